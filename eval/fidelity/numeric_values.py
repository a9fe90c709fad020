"""The numbers that are compared one column at a time: of each table, with a step and a unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import PairedTables, numbers
from dpsynth.schema import lattice_of, unit_of

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NumericColumn:
    """One column of numbers in each table of a comparison.

    Attributes:
        name: of the column.
        title: for people.
        unit: of the numbers; empty where there is none.
        kind: the type that the schema declares, such as ``date``.
        step: smallest difference of two values, in the unit of ``values``.
        values: of each table in the order of `PairedTables.every`, NaN where missing; days or
            seconds for times.
    """

    name: str
    title: str
    unit: str
    kind: str
    step: float
    values: tuple[Floats, ...]

    def __repr__(self) -> str:
        """Show no value."""
        return f"NumericColumn({self.name!r})"


def numeric_columns(sides: PairedTables) -> Iterator[NumericColumn]:
    """Yield the numeric columns that are modelled, one at a time."""
    for column in sides.tables.schema.modelled:
        if column.is_categorical:
            continue
        lattice = lattice_of(column)
        yield NumericColumn(
            column.name,
            column.title or column.name,
            unit_of(column) or "",
            column.type,
            lattice.stride / 10**lattice.decimals,
            tuple(numbers(side.view, column) for side in sides.every),
        )
