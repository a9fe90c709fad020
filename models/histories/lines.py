"""Where a measurement is expected, given a patient's level: a line through one noisy table.

A patient's next value lies near her level, drawn to the mean of all. The line is fitted to one
released table of (level, value), so it is post-processing. Without it, binned values would lose how
alike a patient's values are, and changes added up without it would wander off.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.models import Feature

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CELLS = 25  # of a level, and of a value, in the table that a line is fitted to
CLEAR = 2.5  # standard deviations of noise; a cell below holds no patient, as far as one can tell
MIN_MASS = 150  # patients; with fewer, the next value is expected at the mean


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
    def of(cls, table: Floats, sigma: float, mass: float, value: Feature) -> Line:
        """Fit a line by least squares to the cells that stand out of the noise.

        Args:
            table: noisy mass by cells of level and of value, ``[CELLS, CELLS]``.
            sigma: scale of its noise.
            mass: of one patient.
            value: the column.
        """
        counts = np.where(table > CLEAR * sigma, table, 0.0)
        total = counts.sum()
        if total < MIN_MASS * mass:
            centre = middles(value)[CELLS // 2]
            mean = float((counts.sum(axis=0) @ middles(value)) / total) if total > 0 else centre
            return cls(mean, 0.0, mean)
        points = middles(value)
        level, mean = counts.sum(axis=1) @ points / total, counts.sum(axis=0) @ points / total
        spread = counts.sum(axis=1) @ (points - level) ** 2
        both = (points - level) @ counts @ (points - mean)
        slope = float(np.clip(both / spread, 0.0, 1.0)) if spread > 0 else 0.0
        return cls(float(mean - slope * level), slope, float(mean))


def middles(value: Feature) -> Floats:
    """Return the code in the middle of each cell of the table."""
    return (np.arange(CELLS) + 0.5) * value.cells / CELLS - 0.5


def line_cells(levels: Floats, codes: Ints, value: Feature) -> Ints:
    """Return the cell of each step in the table; one more for a step without level or code."""
    none = np.isnan(levels) | (codes >= value.cells)
    level = np.clip(np.where(none, 0, levels) * CELLS / value.cells, 0, CELLS - 1).astype(np.int64)
    code = np.clip(codes.astype(np.int64) * CELLS // value.cells, 0, CELLS - 1)
    return np.asarray(np.where(none, CELLS * CELLS, level * CELLS + code))
