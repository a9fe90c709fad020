"""The numbers that are compared one column at a time: of each table, with a step and a unit."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import PairedTables, numbers, published_numbers
from dpsynth.schema import Column, Schema, lattice_of, unit_of

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
    """Yield the numeric columns that are modelled, one at a time, then those that follow from them.

    The last are derived columns, and those whose modelled column is a gap: dates of intervals, and
    columns that an order keeps above others.
    """
    for column in sides.tables.schema.modelled:
        if column.is_categorical:
            continue
        values = tuple(numbers(side.view, column) for side in sides.every)
        yield _of(column, column.name, column.title or column.name, values)
    for column in following(sides.tables.codec.published):
        values = tuple(published_numbers(side.view, column) for side in sides.every)
        title = f"{column.title or column.name} ({mark_of(column)})"
        yield _of(column, followed_name(column), title, values)


def following(schema: Schema) -> list[Column]:
    """Return the numeric columns of the published table that are computed from modelled ones."""
    return [c for c in schema.modelled if c.derived or c.interval or c.floor]


def followed_name(column: Column) -> str:
    """Name a column that follows from others; a gap has its column's name."""
    is_gap = column.interval or column.floor
    return f"{column.name} ({mark_of(column)})" if is_gap else column.name


def mark_of(column: Column) -> str:
    """Say how a column follows from others, in one word."""
    return "derived" if column.derived else column.type


def _of(column: Column, name: str, title: str, values: tuple[Floats, ...]) -> NumericColumn:
    lattice = lattice_of(column)
    step = lattice.stride / 10**lattice.decimals
    return NumericColumn(name, title, unit_of(column) or "", column.type, step, values)
