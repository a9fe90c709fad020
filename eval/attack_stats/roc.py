"""How well scores tell members from non-members: area, and rates at few false alarms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.attack_stats.result import ALARM, SURE
from dpsynth.eval.attack_stats.success import described
from dpsynth.eval.core import Estimate, Rate, about
from dpsynth.eval.core.scores import placements

Floats = npt.NDArray[np.float64]

ALARMS = (0.001, 0.01)  # false positive rates at which an attack is judged
POINTS = 60  # of a curve, on a logarithmic scale


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
        grid = np.geomspace(1 / len(self.non_members), 1.0, POINTS)
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
