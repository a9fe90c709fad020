"""Gaps in days: how much likelier some are than the law of gaps next to a patient's mean says.

A step's gap is learned as a ratio to the mean gap of the rows to come (`grids.RatioGrid`), which
blurs the calendar: a control after a week, a visit each year. One released histogram of gaps in
days puts it right. Chains are drawn, their gaps are compared with the released ones, and each cell
of days gets a factor by which its gaps are drawn more or less often: a few rounds, in which what
differs by no more than noise is left alone. All but the histogram is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.grids import Grid, RatioGrid

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ROUNDS = 5
PACE = 0.8  # of a round's correction that is made
WIDEST = 6.0  # a factor lies between 1 / WIDEST and WIDEST
HALF_A_DAY = 0.5
SHARE = 1e-4  # of all gaps, added to both sides: a cell that none reaches is left as it is


@dataclass(frozen=True, eq=False)
class GapCounts:
    """What was released of one series' gaps.

    Attributes:
        counts: noisy mass of each cell of days.
        sigma: scale of the noise of a cell.
        total: mass of all steps, as released elsewhere with less noise.
    """

    counts: Floats
    sigma: float
    total: float = 0.0


@dataclass(frozen=True, eq=False)
class GapFactors:
    """How much likelier a gap is made, by cells of days.

    Attributes:
        days: the cells.
        factors: of each cell, above 0.

    >>> twice = GapFactors(Grid(np.array([0, 1, 20, 41])), np.array([1.0, 1.0, 2.0]))
    >>> ratios, paces = RatioGrid(), np.array([20.0])
    >>> codes = ratios.code(np.array([5, 30]), np.array([20.0, 20.0]))
    >>> twice.of_codes(paces, ratios)[0, codes].round(2).tolist()
    [1.0, 2.0]
    """

    days: Grid
    factors: Floats

    @classmethod
    def even(cls, days: Grid) -> Self:
        """Return factors that change nothing."""
        return cls(days, np.ones(days.cells))

    @cached_property
    def _logs(self) -> Floats:
        """Logarithms of the days at which a cell begins, from a gap of a day on."""
        return np.asarray(np.log(self.days.edges[1:] - HALF_A_DAY))

    @cached_property
    def _area(self) -> Floats:
        """The factors' integral over the logarithm of days, up to each of ``_logs``."""
        return np.concatenate([[0.0], np.cumsum(self.factors[1:] * np.diff(self._logs))])

    def of_codes(self, paces: Floats, ratios: RatioGrid) -> Floats:
        """Return the mean factor within each code of a gap, ``[paces, codes]``."""
        ends = _ends(paces[:, None], ratios.bounds)
        area, width = np.diff(self._up_to(ends), axis=1), np.diff(ends, axis=1)
        mean = np.where(width > 0, area / np.where(width > 0, width, 1.0), self.factors[1])
        return np.concatenate([np.full((len(paces), 1), self.factors[0]), mean], axis=1)

    def draw(self, codes: Ints, paces: Floats, ratios: RatioGrid, rng: np.random.Generator) -> Ints:
        """Draw whole days within each code, by their logarithm and the factors."""
        cells = np.clip(codes, 1, len(ratios.bounds) - 1)
        low, high = (self._up_to(_ends(paces, ratios.bounds[cells - end])) for end in (1, 0))
        logs = self._back(low + rng.random(len(codes)) * (high - low))
        return np.asarray(np.where(codes > 0, np.maximum(np.rint(np.exp(logs)), 1), 0), np.int64)

    def _up_to(self, logs: Floats) -> Floats:
        """Integrate the factors up to points; outside the cells they are those of the nearest."""
        inside = np.interp(logs, self._logs, self._area)
        below = np.minimum(logs - self._logs[0], 0.0) * self.factors[1]
        above = np.maximum(logs - self._logs[-1], 0.0) * self.factors[-1]
        return np.asarray(inside + below + above)

    def _back(self, areas: Floats) -> Floats:
        """Return the points up to which the integral is so large: the inverse of ``_up_to``."""
        inside = np.interp(areas, self._area, self._logs)
        below = np.minimum(areas, 0.0) / self.factors[1]
        above = np.maximum(areas - self._area[-1], 0.0) / self.factors[-1]
        return np.asarray(inside + below + above)


def _ends(paces: Floats, bounds: Floats) -> Floats:
    """Return logarithms of the days at which codes begin; none lies below half a day."""
    return np.asarray(np.log(np.maximum(paces * bounds, HALF_A_DAY)))


def calibrated(
    released: GapCounts, days: Grid, drawn: Callable[[GapFactors], tuple[Ints, Ints]]
) -> GapFactors:
    """Find factors with which drawn chains have the released gaps.

    Args:
        released: of the series.
        days: the cells.
        drawn: draws chains with factors; gaps in days, and weights as of real steps.
    """
    found = GapFactors.even(days)
    for _ in range(ROUNDS):
        gaps, weights = drawn(found)
        whole = float(weights.sum())
        if not whole:
            break
        shares = np.bincount(days.code(gaps), weights=weights, minlength=days.cells) / whole
        each = (weights.astype(np.float64) ** 2).sum() / whole**2  # what a drawn gap is worth
        spread = released.sigma**2 + each * shares * released.total**2
        apart = released.counts - released.total * shares
        clear = np.maximum(1.0 - spread / np.maximum(apart**2, spread), 0.0)
        least = SHARE * released.total
        ratios = (np.maximum(released.counts, 0.0) + least) / (released.total * shares + least)
        factors = found.factors * np.exp(PACE * clear * np.log(ratios))
        found = GapFactors(days, np.clip(factors, 1 / WIDEST, WIDEST))
    return found
