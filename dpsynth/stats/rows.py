"""What a statistic reads: coded rows with their units, and nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import CodedCells, Cohort
from dpsynth.privacy import Contributions

Ints = npt.NDArray[np.int64]
FINE = 2**15
"""Parts of a whole: what a unit is shared into by its rows, and half the width of bounds."""
Asked = Mapping[int, npt.NDArray[np.integer]]
"""What a statistic reads: by the place of a column, the class of each of its codes. Codes of one
class are the same to it."""


class Readable(Protocol):
    """Rows of a cohort, wherever they are."""

    def reading(self, asked: Asked) -> Rows:
        """Return what a statistic reads of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows of a cohort.

    Attributes:
        units: the unit of each row, ``[rows]``.
        codes: of its columns, ``[rows, columns]``.
        undeclared: rows with the codes of columns whose codes nobody declared; None if none asks.
        like: how many units there are with just the rows of this row's unit, which stands for them
            all, ``[rows]``; None where each stands for itself.
    """

    units: Ints
    codes: npt.NDArray[np.uint16]
    undeclared: CodedCells | None = None
    like: Ints | None = None

    def __repr__(self) -> str:
        """Show no row."""
        return short_repr(self, "coded rows of units")

    def reading(self, asked: Asked) -> Rows:
        """Return them all: they are here."""
        return self

    def adding(self, cells: Ints, values: Ints | None = None) -> Contributions:
        """Return what they add to cells of each part, ``[rows, parts]``; see `Contributions`."""
        return Contributions(self.units, cells, values, self.like)

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
