"""Which pairs of columns a fit has measured, and how far each stands above its noise.

Counts of a pair stand above their noise as far as they depart from the product of its columns. With
the departure d of a cell of share, and its standard error s, sum (d / s)^2 is chi-square with as
many degrees of freedom as there are cells, if the columns are independent and noise is all there is
(Agresti, Categorical Data Analysis, 2013, section 3.2).

**Privacy.** Counts were released, and the scale of their noise is public: post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpsynth.models.presets import MAX_PAIRS

if TYPE_CHECKING:
    from dpsynth.models.marginals.released import Released


MEASURED, UNITS = "measured", "units"  # names of arrays of a run
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class MeasuredPair:
    """A pair of columns whose cells were counted.

    Attributes:
        places: of the two columns, a hidden one included.
        cells: how many were counted.
        sd: standard error of a cell, in units.
        apart: sum over cells of the squared departure from independent columns, in errors.
    """

    places: tuple[int, int]
    cells: int
    sd: float
    apart: float


@dataclass(frozen=True)
class MeasuredPairs:
    """The pairs that a fit has measured.

    Attributes:
        pairs: in the order in which they were measured.
        units: how many units there are, as it was counted.
        most: how many a fit may measure, a public fact; a run keeps as many, whatever it measured.

    Example:
        >>> from dpsynth.models.marginals import Pairs, Released
        >>> table = np.array([[0.3, 0.2], [0.2, 0.3]])
        >>> pairs = Pairs(((0, 1),), (table,), (0.01,))
        >>> [pair] = MeasuredPairs.of(Released((2, 2), np.full(4, 0.5), pairs, 1000.0)).pairs
        >>> pair.places, pair.cells, pair.sd, round(pair.apart)
        ((0, 1), 4, 10.0, 100)
    """

    pairs: tuple[MeasuredPair, ...]
    units: float
    most: int = 0

    @classmethod
    def of(cls, released: Released) -> MeasuredPairs:
        """Sum up what was released.

        Args:
            released: shares of columns and of the cells of pairs, with their standard errors.
        """
        pairs = []
        for (i, j), table, sigma in released.pairs.each():
            departure = table - np.outer(released.shares(i), released.shares(j))
            apart = float((departure**2).sum()) / sigma**2 if sigma else 0.0
            pairs.append(MeasuredPair((i, j), table.size, float(sigma) * released.units, apart))
        columns = len(released.sizes)
        return cls(tuple(pairs), released.units, min(columns * (columns - 1) // 2, MAX_PAIRS))

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give them as arrays of a run: ``[most, 5]``, columns, cells, error, departure; units."""
        rows = [(*pair.places, pair.cells, pair.sd, pair.apart) for pair in self.pairs]
        measured = np.zeros((max(self.most, len(rows)), 5))
        measured[: len(rows)] = np.array(rows).reshape(-1, 5)
        return {MEASURED: measured, UNITS: np.array([self.units])}

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]]) -> MeasuredPairs:
        """Rebuild them."""
        rows = arrays[MEASURED].tolist()
        return cls(
            tuple(
                MeasuredPair((int(i), int(j)), int(cells), sd, apart)
                for i, j, cells, sd, apart in rows
                if cells
            ),
            float(arrays[UNITS][0]),
            len(rows),
        )
