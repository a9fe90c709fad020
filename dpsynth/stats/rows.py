"""What a statistic reads: coded rows with their units, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import CodedCells, Cohort

Ints = npt.NDArray[np.int64]
FINE = 2**15
"""Parts of a whole: what a unit is shared into by its rows, and half the width of bounds."""


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows of a cohort.

    Attributes:
        units: the unit of each row, ``[rows]``.
        codes: of its columns, ``[rows, columns]``.
        undeclared: rows with the codes of columns whose codes nobody declared; None if none asks.
    """

    units: Ints
    codes: npt.NDArray[np.uint16]
    undeclared: CodedCells | None = None

    def __repr__(self) -> str:
        """Show no row."""
        return short_repr(self, "coded rows of units")

    def weights(self, known: npt.NDArray[np.bool_]) -> Ints:
        """Return what each row counts where every unit counts `FINE`, shared by its known rows.

        Parts are rounded down; a row that is not known counts 0.
        """
        _, place = np.unique(self.units, return_inverse=True)
        counts = np.bincount(place[known], minlength=int(place.max(initial=-1)) + 1)
        return np.where(known, FINE // np.maximum(counts[place], 1), 0)

    @classmethod
    def of(cls, cohort: Cohort) -> Self:
        """Take the rows that are there."""
        units, places = np.nonzero(cohort.mask)
        return cls(units.astype(np.int64), cohort.codes[units, places])
