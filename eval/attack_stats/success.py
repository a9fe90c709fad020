"""Success over control: how much more often an attack hits people in the data than other people.

What is true of the population can be guessed about everybody, also about people who were never in
the data. Only what goes beyond is the release's doing: (hits among members - hits among controls) /
(1 - hits among controls), as in Giomi et al., A Unified Framework for Quantifying Privacy Risk in
Synthetic Data (Anonymeter), arXiv 2211.10459, section 3.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.eval.attack_stats.result import ALARM, SURE, SURELY, Finding, Power
from dpsynth.eval.core import Estimate, Rate
from dpsynth.eval.core.estimate import LEVEL

FEW = 100  # people, below which their number is told
STEPS = 40  # of a bisection between 0 and 1


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
            f"{percent(minimum)} of those in the data beyond what it does for others"
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
        for _ in range(STEPS):
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
    return percent(rate.value) + counts


def percent(share: float) -> str:
    """Write a share in per cent, small ones with as many digits as it takes.

    >>> percent(0.25), percent(0.00051), percent(0.0)
    ('25.00 %', '0.051 %', '0 %')
    """
    if share == 0:
        return "0 %"
    digits = max(2, 1 - math.floor(math.log10(share * 100)))
    return f"{share * 100:.{digits}f} %"
