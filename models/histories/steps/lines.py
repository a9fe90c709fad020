"""Where a measurement is expected, given a patient's level: a line through one noisy table.

A patient's next value lies near her level, drawn to the mean of all. The line is found from one
released table of (level, value) in a few groups, so it is post-processing. Groups are cut where the
released first values are, which costs nothing, and leaves few cells for noise: a grid over the
public range would have most patients in a few of hundreds of cells. Without the line, binned values
would lose how alike a patient's values are, and changes added up without it would wander off.

The table is read as that of two normal numbers that were cut into groups: their correlation is the
one whose table is nearest (polychoric correlation; Olsson, Psychometrika 44, 1979, section 2).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from dpsynth.models import Feature

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

GROUPS = 4  # of a level, and of a value, in the table that a line is fitted to
PRIOR, SPREAD = 0.8, 0.2  # the correlation that is expected before the table is seen
NOISE = 3.0  # error of the correlation, in noise of a count over the total: by simulation
EDGE = 0.02  # of the rows: a cut beyond tells nothing of location and spread
POINTS = 50  # of a group, over which a normal law is averaged
GRID = np.linspace(0.0, 0.99, 100)


@dataclass(frozen=True)
class Line:
    """Expected code = intercept + slope * level; without a level, the mean.

    Attributes:
        intercept: at level 0, in codes.
        slope: from 0 to 1.
        mean: of all values, in codes.
        holds: whether a value stays at the level, because noise outweighs what the steps show.
    """

    intercept: float
    slope: float
    mean: float
    holds: bool = False

    def at(self, levels: Floats) -> Floats:
        """Return the expected code at each level; NaN stands for no level."""
        return np.where(np.isnan(levels), self.mean, self.intercept + self.slope * levels)

    def held(self) -> Line:
        """Return the line on which a value stays at the patient's level."""
        return Line(0.0, 1.0, self.mean, holds=True)

    @classmethod
    def of(cls, table: Floats, sigma: float, cuts: Ints) -> Line:
        """Find the line from a table of levels and values in groups.

        The less the table tells, the nearer the correlation is to what is expected of measurements.

        Args:
            table: noisy mass by groups of level and of value, ``[GROUPS, GROUPS]``.
            sigma: scale of its noise.
            cuts: codes at which groups begin.
        """
        total = max(float(table.sum()), sigma, 1.0)
        levels, values = (_below(table.sum(axis=axis), total) for axis in (1, 0))
        (level, width), (mean, spread) = _location(levels, cuts), _location(values, cuts)
        fits = [((table / total - _joint(levels, values, rho)) ** 2).sum() for rho in GRID]
        error = NOISE * sigma / total
        weight = SPREAD**2 / (SPREAD**2 + error**2)
        correlation = weight * GRID[int(np.argmin(fits))] + (1 - weight) * PRIOR
        slope = float(np.clip(correlation * (spread / width) ** weight, 0.0, 1.0))
        return cls(mean - slope * level, slope, mean)


def cuts_of(shares: Floats) -> Ints:
    """Return the codes at which equal parts of a column begin, ``[GROUPS - 1]``.

    Args:
        shares: of its ordered codes, as released; without any, no code is in another group.

    >>> cuts_of(np.ones(8) / 8).tolist()
    [2, 4, 6]
    """
    if len(shares) < 2:
        return np.full(GROUPS - 1, len(shares), dtype=np.int64)
    mass = np.maximum(shares, 0.0)
    ends = np.cumsum(mass if mass.sum() > 0 else np.ones(len(mass)))
    parts = np.arange(1, GROUPS) / GROUPS * ends[-1]
    return np.asarray(np.clip(np.searchsorted(ends, parts, side="left") + 1, 1, len(mass) - 1))


def line_cells(levels: Floats, codes: Ints, value: Feature, cuts: Ints) -> Ints:
    """Return the cell of each step in the table; one more for a step without level or code."""
    none = np.isnan(levels) | (codes >= value.cells)
    level = np.searchsorted(cuts - 0.5, np.where(none, 0.0, levels), side="right")
    code = np.searchsorted(cuts, codes.astype(np.int64), side="right")
    return np.asarray(np.where(none, GROUPS * GROUPS, level * GROUPS + code))


def _below(counts: Floats, total: float) -> Floats:
    """Return the share of rows below each cut: rising, and neither 0 nor 1."""
    shares = np.maximum.accumulate(np.cumsum(counts)[:-1] / total)
    return np.asarray(np.clip(shares, EDGE / 2, 1 - EDGE / 2))


def _location(below: Floats, cuts: Ints) -> tuple[float, float]:
    """Return mean and standard deviation of the normal law with these shares below the cuts."""
    scores, points = ndtri(below), cuts - 0.5
    clear = (below > EDGE) & (below < 1 - EDGE)
    if clear.sum() < 2 or np.ptp(points[clear]) == 0 or np.ptp(scores[clear]) < EDGE:
        return float(points.mean()), 1.0
    slope, mean = np.polyfit(scores[clear], points[clear], 1)
    return float(mean), float(max(slope, 0.5))


def _joint(level: Floats, value: Floats, correlation: float) -> Floats:
    """Return shares of the groups of two normal numbers, ``[GROUPS, GROUPS]``."""
    ends = np.concatenate([[0.0], level, [1.0]])
    inside = (np.arange(POINTS) + 0.5) / POINTS
    points = ndtri(ends[:-1, None] + np.diff(ends)[:, None] * inside)
    cuts = np.concatenate([[-np.inf], ndtri(value), [np.inf]])
    width = np.sqrt(1 - correlation**2)
    under = ndtr((cuts - correlation * points[:, :, None]) / width).mean(axis=1)
    return np.asarray(np.diff(ends)[:, None] * np.diff(under, axis=1))
