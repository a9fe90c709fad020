"""What an attack found, how sure that is, and what it could have seen: never one alone.

An attack that finds nothing says something only if it would have found something. So each brings,
beside its figures, findings (whether it succeeded beyond chance) and its power (the least leak that
it would have seen).

**Success over control**: how much more often an attack hits people in the data than other people.
What is true of the population can be guessed about everybody, also about people who were never in
the data. Only what goes beyond is the release's doing: (hits among members - hits among controls) /
(1 - hits among controls), as in Giomi et al., A Unified Framework for Quantifying Privacy Risk in
Synthetic Data (Anonymeter), arXiv 2211.10459, section 3.

**Scores** tell members from non-members: by the area under their curve, and by rates at few false
alarms.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import Estimate, PartResult, Rate, about
from dpsynth.eval.core.estimate import LEVEL
from dpsynth.eval.core.scores import placements

ALARM = 1e-3  # chance at most that one finding accuses a table that leaks nothing
SURE = 0.9  # probability with which a leak of the stated size would have been found
SURELY = f"with probability {SURE * 100:.0f} %"


@dataclass(frozen=True)
class Finding:
    """Whether an attack succeeded beyond what chance explains.

    Attributes:
        key: by which controls and scripts know it, such as ``membership:density``.
        title: a few words for people.
        found: whether it succeeded; of a table that leaks nothing, with probability `ALARM` at
            most.
        sentence: what was seen, with its figures; one plain sentence.
        chance: probability at most that chance alone does so well, over all tests of the finding;
            None where it is not known. It is not written down.
    """

    key: str
    title: str
    found: bool
    sentence: str
    chance: float | None = None

    def found_at(self, alarm: float) -> bool:
        """Tell whether it succeeded at a stricter level than `ALARM`, for tests that share one.

        What claims success without support by its own figure succeeded at every level.

        >>> finding = Finding("echo", "Echo", True, "it echoed", chance=4e-4)
        >>> finding.found_at(1e-3), finding.found_at(1e-3 / 30)
        (True, False)
        """
        return self.found and not (self.chance is not None and alarm <= self.chance < ALARM)

    def to_dict(self) -> dict[str, Any]:
        """Give the finding in JSON types."""
        return {name: getattr(self, name) for name in ("key", "title", "found", "sentence")}


@dataclass(frozen=True)
class Power:
    """The least leak that an attack would have found with probability `SURE`.

    Attributes:
        key: of the finding.
        least: the leak, in ``unit``; None where no leak would have been found.
        unit: ``auc``, ``share`` (of members, above control) or ``epsilon``.
        sentence: the same in words.
    """

    key: str
    least: float | None
    unit: str
    sentence: str

    def to_dict(self) -> dict[str, Any]:
        """Give the power in JSON types."""
        return asdict(self)


@dataclass(frozen=True)
class Attack:
    """All that one kind of attack has to say.

    Attributes:
        part: its figures, and details for tables and pictures.
        findings: what it found, or did not.
        powers: what it could have found.
    """

    part: PartResult
    findings: tuple[Finding, ...] = ()
    powers: tuple[Power, ...] = ()

    def finding(self, key: str) -> Finding | None:
        """Return the finding of a key, if the attack could be made."""
        return next((finding for finding in self.findings if finding.key == key), None)


FEW = 100  # people, below which their number is told
BISECTIONS = 40  # of a bisection between 0 and 1


@dataclass(frozen=True)
class Success:
    """Hits of one attack among people in the data, and among as many others.

    Attributes:
        members: one trial for each person in the data.
        controls: one trial for each person who is not.
    """

    members: Rate
    controls: Rate

    @property
    def excess(self) -> Estimate:
        """Return the success beyond control, from -inf to 1, with its interval."""
        return self.beyond((1 - LEVEL) / 2)

    def beyond(self, fails: float) -> Estimate:
        """Return the success beyond control; each end of the interval fails with ``fails``.

        The interval is Newcombe's of a difference (Statistics in Medicine 17, 1998, method 10, with
        the exact bounds of Clopper and Pearson instead of Wilson's), divided by the same. Where
        every control is hit, half of one counts as missed.
        """
        p, q = self.members.value, self.controls.value
        (p_low, p_high), (q_low, q_high) = self.members.bounds(fails), self.controls.bounds(fails)
        room = max(1 - q, 0.5 / self.controls.runs)
        low = (p - q - math.hypot(p - p_low, q_high - q)) / room
        high = (p - q + math.hypot(p_high - p, q - q_low)) / room
        value = (p - q) / room
        return Estimate(value, low, min(high, 1.0), self.members.runs, reference=0.0)

    @property
    def chance(self) -> float:
        """Return how likely so many hits among members are if membership makes no difference.

        Fisher's exact test, one-sided: given all hits, how many fall on members is hypergeometric.
        """
        from scipy.stats import hypergeom

        people = self.members.runs + self.controls.runs
        hits = self.members.hits + self.controls.hits
        return float(hypergeom.sf(self.members.hits - 1, people, hits, self.members.runs))

    def finding(self, key: str, title: str, event: str, alarm: float = ALARM) -> Finding:
        """Say whether members are hit more often than chance explains.

        Args:
            key: of the finding.
            title: of the finding.
            event: completes "for 3 % of those in the data".
            alarm: chance of a false alarm; less than `ALARM` where several tests share it.
        """
        significant = self.chance < alarm
        verb = "more than chance allows" if significant else "no more than chance allows"
        sentence = (
            f"{event} for {told(self.members)} of those in the data and "
            f"{told(self.controls)} of others: {verb}"
        )
        return Finding(key, title, significant, sentence, min(1.0, self.chance * ALARM / alarm))

    def power(self, key: str, alarm: float = ALARM) -> Power:
        """Say which share of members the attack could hit beyond control and still go unseen."""
        minimum = self.least_seen(alarm)
        if minimum is None:
            return Power(key, None, "share", "no share of those in the data is sure to be seen")
        sentence = (
            f"would have been seen {SURELY} if it succeeded for "
            f"{precise_percent(minimum)} of those in the data beyond what it does for others"
        )
        return Power(key, minimum, "share", sentence)

    def least_seen(self, alarm: float = ALARM) -> float | None:
        """Return the least excess that the test at level ``alarm`` sees with probability `SURE`.

        The controls' true rate q is taken to be the one that was seen, or of one hit where none
        was; members are then hit at q + excess (1 - q). For each number of hits among controls that
        may come up, the test needs a known number among members; so the probability is a sum of
        binomials, without approximation but for counts of controls of probability below 1e-6.

        Returns:
            None if even a hit of every member would not be seen so surely.
        """
        from scipy.stats import binom, hypergeom

        members, others = self.members.runs, self.controls.runs
        rate = max(self.controls.hits, 1) / others
        law = binom(others, rate)
        counts = np.arange(int(law.ppf(5e-7)), int(law.isf(5e-7)) + 1)
        low, high = np.zeros(len(counts), dtype=int), np.full(len(counts), members + 1)
        while (low < high).any():
            middle = (low + high) // 2
            visible = hypergeom.sf(middle - 1, members + others, middle + counts, members) < alarm
            visible &= low < high
            low, high = (
                np.where(visible | (low >= high), low, middle + 1),
                np.where(visible, middle, high),
            )
        weights = law.pmf(counts)

        def sure(excess: float) -> bool:
            hit = binom.sf(high - 1, members, rate + excess * (1 - rate))
            return bool((weights * hit).sum() >= SURE)

        if not sure(1.0):
            return None
        minimum, maximum = 0.0, 1.0
        for _ in range(BISECTIONS):
            half = (minimum + maximum) / 2
            minimum, maximum = (minimum, half) if sure(half) else (half, maximum)
        return maximum

    def to_dict(self) -> dict[str, Any]:
        """Give both rates and the excess in JSON types."""
        return {
            "members": described(self.members),
            "controls": described(self.controls),
            "excess": self.excess.to_dict(),
        }


def described(rate: Rate) -> dict[str, Any]:
    """Give a rate with its interval in JSON types."""
    low, high = rate.bounds((1 - LEVEL) / 2)
    return {"hits": rate.hits, "runs": rate.runs, "value": rate.value, "low": low, "high": high}


def told(rate: Rate) -> str:
    """Write a rate in per cent; of few people, how many there are.

    >>> told(Rate(3, 6)), told(Rate(50, 200))
    ('50.00 % (3 of 6)', '25.00 %')
    """
    counts = f" ({rate.hits} of {rate.runs})" if rate.runs < FEW else ""
    return precise_percent(rate.value) + counts


def precise_percent(share: float) -> str:
    """Write a share in per cent, small ones with as many digits as it takes.

    >>> precise_percent(0.25), precise_percent(0.00051), precise_percent(0.0)
    ('25.00 %', '0.051 %', '0 %')
    """
    if share == 0:
        return "0 %"
    digits = max(2, 1 - math.floor(math.log10(share * 100)))
    return f"{share * 100:.{digits}f} %"


Floats = npt.NDArray[np.float64]

ALARMS = (0.001, 0.01)  # false positive rates at which an attack is judged
CURVE_POINTS = 60  # of a curve, on a logarithmic scale


@dataclass(frozen=True, eq=False)
class Roc:
    """Scores of people in the data and of others, higher where an attack says "in".

    Attributes:
        members: one score for each person in the data.
        non_members: one score for each other person.
    """

    members: Floats
    non_members: Floats

    def __post_init__(self) -> None:
        """Refuse scores that cannot be ordered."""
        if not (np.isfinite(self.members).all() and np.isfinite(self.non_members).all()):
            raise ValueError("a score is not a finite number")
        if not (len(self.members) and len(self.non_members)):
            raise ValueError("a curve needs scores of members and of non-members")

    @property
    def auc(self) -> Estimate:
        """Return the chance that a member scores above a non-member, ties half.

        The interval is DeLong's (DeLong, DeLong and Clarke-Pearson, Biometrics 44, 1988).
        """
        value, error = self._placed()
        n = len(self.members) + len(self.non_members)
        return about(value, error, n, reference=0.5, minimum=0.0, maximum=1.0)

    @property
    def chance(self) -> float:
        """Return how likely members are to score so much higher if membership makes no difference.

        By the rank test of Mann and Whitney: the error is that of a random labelling, ties
        included. Two corrections keep false alarms at the stated level where scores are few or
        mostly equal: ranks count half of their widest gap less, as a lattice asks for, and a
        skewed law has the next term of its expansion (Edgeworth), where that is against members.
        One side should not be more than about four times as large as the other.
        """
        from scipy.special import ndtr
        from scipy.stats import rankdata

        n, m = len(self.members), len(self.non_members)
        both = n + m
        ranks = rankdata(np.concatenate([self.members, self.non_members]))
        apart = ranks - (both + 1) / 2
        variance = float((apart**2).sum()) * n * m / (both * (both - 1))
        if variance == 0:
            return 1.0
        gap = float(np.diff(np.unique(ranks)).max())
        z = (float(apart[:n].sum()) - gap / 2) / math.sqrt(variance)
        chance = float(ndtr(-z))
        if z > 1 and both > 2:
            third = float((apart**3).sum()) * n * m * (m - n) / (both * (both - 1) * (both - 2))
            density = math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)
            chance += max(0.0, third / variance**1.5) * (z**2 - 1) / 6 * density
        return min(chance, 1.0)

    @property
    def found(self) -> bool:
        """Whether members score higher, beyond chance."""
        return self.chance < ALARM

    def least(self, tests: int = 1) -> float:
        """Return the least area that would have been found with probability `SURE`, 1 if none is.

        Args:
            tests: that share the chance of a false alarm.
        """
        from scipy.special import ndtri

        n, m = len(self.members), len(self.non_members)
        spread = math.sqrt((n + m + 1) / (12 * n * m))
        return min(1.0, 0.5 + (float(ndtri(1 - ALARM / tests)) + float(ndtri(SURE))) * spread)

    def at(self, alarm: float) -> tuple[Rate, Rate]:
        """Return true and false positives at the lowest cut whose false rate is at most ``alarm``.

        The cut depends on the non-members' scores alone.
        """
        allowed = math.floor(alarm * len(self.non_members))
        ordered = np.sort(self.non_members)[::-1]
        cut = ordered[allowed] if allowed < len(ordered) else -np.inf
        true, false = int((self.members > cut).sum()), int((self.non_members > cut).sum())
        return Rate(true, len(self.members)), Rate(false, len(self.non_members))

    def to_dict(self) -> dict[str, Any]:
        """Give area, rates and the curve in JSON types."""
        rates = []
        for alarm in ALARMS:
            true, false = self.at(alarm)
            rates.append({"fpr": alarm, "tpr": described(true), "false": described(false)})
        grid = np.geomspace(1 / len(self.non_members), 1.0, CURVE_POINTS)
        curve = [self.at(float(alarm)) for alarm in grid]
        return {
            "auc": self.auc.to_dict(),
            "rates": rates,
            "roc": {
                "fpr": [_rounded(false.value) for _, false in curve],
                "tpr": [_rounded(true.value) for true, _ in curve],
            },
        }

    def _placed(self) -> tuple[float, float]:
        """Return the area and its standard error, by the place of each score among the others'."""
        n, m = len(self.members), len(self.non_members)
        above = placements(self.members, self.non_members)
        below = 1 - placements(self.non_members, self.members)
        variance = above.var(ddof=1) / n if n > 1 else 0.25
        variance += below.var(ddof=1) / m if m > 1 else 0.25
        return float(above.mean()), max(math.sqrt(variance), 1 / (2 * math.sqrt(n * m)))


def ceiling(epsilon: float, delta: float, false: Floats) -> Floats:
    """Return the highest true positive rate that (epsilon, delta) allows at false positive rates.

    TPR <= e^epsilon FPR + delta and 1 - FPR <= e^epsilon (1 - TPR) + delta (Kairouz, Oh and
    Viswanath, arXiv 1311.0776, Theorem 2.1).
    """
    false = np.asarray(false, dtype=float)
    first = _grown(epsilon) * false + delta
    second = 1 - (1 - delta - false) / _grown(epsilon)
    return np.asarray(np.clip(np.minimum(first, second), 0.0, 1.0))


def ceiling_auc(epsilon: float, delta: float) -> float:
    """Return the largest area under a curve that (epsilon, delta) allows.

    The region under `ceiling` is a polygon: (0, delta), (x, 1 - x), (1 - delta, 1), with
    x = (1 - delta) / (1 + e^epsilon).
    """
    x = (1 - delta) / (1 + _grown(epsilon))
    first = x * (delta + 1 - x) / 2
    second = (1 - delta - x) * (1 - x + 1) / 2
    return first + second + delta


def _grown(epsilon: float) -> float:
    """Return e^epsilon; above 700, where that is no number any more, as of 700."""
    return math.exp(min(epsilon, 700.0))


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")
