"""Numbers of linked tables, rounded as people round them: by habits that a fit has found.

A history is drawn as codes near each other, so its numbers spread smoothly. Where a fit saw that
people write whole or heaped numbers, each drawn point is rounded to a coarser unit by chance, or
becomes a finer one near it, the finest grain first. A point moves by no more than half of a unit,
but next to a point without a grain (zero, a bound).

Rates follow from noisy counts and drawn histories: post-processing (Dwork and Roth 2014, "The
Algorithmic Foundations of Differential Privacy", proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.column_codecs import NumericCoder
from dpsynth.encoding.grain import Grains, rounded
from dpsynth.tables import typed_series

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class RoundingCoder(NumericCoder):
    """A numeric column whose drawn points are rounded.

    Attributes:
        rates: by unit, the coarsest first. Above 0: how likely a point of this grain is rounded to
            a coarser one. Below 0: minus how likely a point of a coarser grain gets this one.
    """

    rates: tuple[float, ...] = ()

    @classmethod
    def following(cls, coder: NumericCoder, rates: Floats) -> NumericCoder:
        """Let the coder of a column with grains follow rates; without any, it stays as it is."""
        if not rates.any():
            return coder
        return cls(coder.column, coder.decimal, coder.lattice, tuple(rates.tolist()))

    def decode(self, codes: npt.NDArray[np.integer], rng: np.random.Generator) -> pd.Series[Any]:
        """Draw a lattice point of each code, and round it."""
        cells = codes.astype(np.int64)
        missing = cells >= self.grid.codes
        cells[missing] = 0
        grains = Grains.of(self)
        assert grains is not None
        widths = [unit // self.lattice.stride for unit in grains.units]
        found = rounded(self.grid.draw(cells, rng), grains.of_points, widths, self.rates, rng)
        return typed_series(self.lattice.values(found), missing, self.column)


@dataclass(frozen=True, eq=False, repr=False)
class Roundings:
    """Rates of all columns of linked tables that are rounded.

    Attributes:
        patients: of the columns of the table of patients, ``[columns, units]``.
        tables: of the values of each series of each table of rows, ``[values, units]``.

    For a column that is a gap above others, its weights stand in place of rates, as in `landed`.
    """

    patients: Floats
    tables: tuple[tuple[Floats, ...], ...]

    def __repr__(self) -> str:
        """Say for how many series there are rates."""
        return short_repr(self, f"{sum(map(len, self.tables))} series")

    def arrays(self) -> dict[str, Floats]:
        """Give the rates by name."""
        named = {"grains.patients": self.patients}
        for place, table in enumerate(self.tables):
            named |= {f"grains.table{place}.{series}": own for series, own in enumerate(table)}
        return named

    @classmethod
    def restore(
        cls, arrays: Mapping[str, npt.NDArray[Any]], series: Sequence[int]
    ) -> Roundings | None:
        """Read what `arrays` gave; None if there is nothing.

        Args:
            arrays: of a run.
            series: how many each table has.
        """
        if "grains.patients" not in arrays:
            return None
        tables = tuple(
            tuple(arrays[f"grains.table{place}.{number}"] for number in range(count))
            for place, count in enumerate(series)
        )
        return cls(arrays["grains.patients"], tables)
