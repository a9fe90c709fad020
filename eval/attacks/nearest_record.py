"""Distance to the closest record: are synthetic rows nearer to people in the data than to others?

Each synthetic row has a nearest row on the two sides together, and so a unit to which it is
nearest: let c_u rows be nearest to unit u. If the table says nothing about single people, then of a
unit of the data and one of the holdout, paired at random, a fair coin has decided which is which.
Hence the excess of rows that are nearer to the data is a sum of +-(c_u - c_v) over such pairs, with
independent fair signs, and its variance is the sum of (c_u - c_v)^2; that is at most sum(c_u^2) in
expectation, what single coins would give, and less because both sides are equal in number. Counted
by rows the share looks far more precise than it is, since all rows near a person fall with that
person's coin.

A sum of weighted signs exceeds z standard deviations with probability at most 3.18 times that of a
normal variable (Bentkus and Dzindzalieta, A tight Gaussian bound for weighted sums of Rademacher
random variables, Bernoulli 21, 2015), whatever the weights; the test uses that, so a few heavy
units raise no false alarm. A row that is equally near to both sides counts half for each, which
cancels, yet enters the variance: the test is then on the safe side.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.eval.attack_stats import Finding, MatchedGroups, Power, percent
from dpsynth.eval.attack_stats.result import ALARM, SURE, SURELY
from dpsynth.eval.core import Estimate, about
from dpsynth.eval.distances import Neighbours

Floats = npt.NDArray[np.float64]

TAIL = 3.18  # of a sum of coins, over a normal tail
KEY, TITLE = "memorization:closer", "Synthetic rows nearer to people in the data"


@dataclass(frozen=True, eq=False)
class ClosestRecord:
    """Weights of units: how many synthetic rows are nearest to each; a tie goes half to each side.

    Attributes:
        source: of the units in the data, in random order.
        holdout: of as many others, in random order.
    """

    source: Floats
    holdout: Floats

    @classmethod
    def of(cls, sides: MatchedGroups, source: Neighbours, holdout: Neighbours) -> ClosestRecord:
        """Give each synthetic row to the unit that it is nearest to."""
        near, far = source.squared[:, 0], holdout.squared[:, 0]
        won = np.where(near == far, 0.5, near < far)
        weights: list[Floats] = [
            np.bincount(side.unit[neighbours.rows[:, 0]], share, side.units).astype(float)
            for side, neighbours, share in (
                (sides.source, source, won),
                (sides.holdout, holdout, 1 - won),
            )
        ]
        return cls(weights[0], weights[1])

    @property
    def share(self) -> float:
        """Return the share of synthetic rows that are nearer to the data, ties half."""
        return float(self.source.sum() / self._rows)

    @property
    def error(self) -> float:
        """Return the share's standard error without memorisation; at least that of one row."""
        spread = ((self.source - self.holdout) ** 2).sum()
        return float(math.sqrt(max(spread, 1.0)) / (2 * self._rows))

    @property
    def estimate(self) -> Estimate:
        """Return the share with an interval that is robust to clusters: of pairs of units.

        The error is at least that of the heaviest unit's coin.
        """
        rest = self.source - self.share * (self.source + self.holdout)
        heaviest = max(self.source.max(), self.holdout.max())
        error = math.sqrt(max((rest**2).sum(), (heaviest / 2) ** 2)) / self._rows
        n = len(self.source) + len(self.holdout)
        return about(self.share, error, n, reference=0.5, minimum=0.0, maximum=1.0)

    @property
    def found(self) -> bool:
        """Tell whether more rows than chance allows are nearer to the data."""
        return self.chance < ALARM

    @property
    def chance(self) -> float:
        """Return how likely so many rows are nearer to the data without memorisation, at most."""
        from scipy.special import ndtr

        return min(1.0, float(TAIL * ndtr(-(self.share - 0.5) / self.error)))

    @property
    def _rows(self) -> float:
        return float(self.source.sum() + self.holdout.sum())

    def finding(self) -> Finding:
        """Say what was seen."""
        verb = "more than chance allows" if self.found else "no more than chance allows"
        sentence = (
            f"{percent(self.share)} of synthetic rows lie nearer to people in the data than to as "
            f"many others (half of them would without memorisation): {verb}"
        )
        return Finding(KEY, TITLE, self.found, sentence, self.chance)

    def power(self, people: int) -> Power:
        """Say which share of synthetic rows could be made from people in the data and go unseen.

        If a share f lies next to units that are compared, all of these are nearer, of the others
        half: the share of nearer rows is (1 + f) / 2. Rows made from units of the source that were
        not drawn are among the others.
        """
        from scipy.special import ndtri

        minimum = 2 * (float(ndtri(1 - ALARM / TAIL)) + float(ndtri(SURE))) * self.error
        minimum *= people / len(self.source)
        if minimum >= 1:
            return Power(KEY, None, "share", "no share of synthetic rows would have been seen")
        sentence = (
            f"would have been seen {SURELY} if {percent(minimum)} of synthetic rows "
            "were made from a person in the data each"
        )
        return Power(KEY, minimum, "share", sentence)
