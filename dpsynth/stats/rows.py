"""What a statistic reads: coded rows with their units, and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import Cohort

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows of a cohort.

    Attributes:
        units: the unit of each row, ``[rows]``.
        codes: of its columns, ``[rows, columns]``.
    """

    units: Ints
    codes: npt.NDArray[np.uint16]

    def __repr__(self) -> str:
        """Show no row."""
        return short_repr(self, "coded rows of units")

    @classmethod
    def of(cls, cohort: Cohort) -> Self:
        """Take the rows that are there."""
        units, places = np.nonzero(cohort.mask)
        return cls(units.astype(np.int64), cohort.codes[units, places])
