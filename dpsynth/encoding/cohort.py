"""Rows grouped by privacy unit, at most ``max_rows`` of each, as codes.

This is where one unit's influence is bounded (add or remove one unit with all its rows): whatever
rows a unit brings, at most ``max_rows`` of them are in the cohort. Which ones depends on the unit's
own rows and on fresh randomness, never on another unit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.chunks.coded import Coding, Order, Refused
from dpsynth.encoding.chunks.workers import coded_rows
from dpsynth.encoding.sources.recoding import Cells, RowSource, cells_of
from dpsynth.errors import InputError, NoRowsError, TableError
from dpsynth.privacy import CountedRows
from dpsynth.schema import Schema
from dpsynth.tables.unit_keys import NO_KEY

if TYPE_CHECKING:
    from dpsynth._util.engines import Engine
    from dpsynth.encoding.codec import Codec
    from dpsynth.privacy import Entropy
    from dpsynth.tables import Progress, Table

Codes = npt.NDArray[np.uint16]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Cohort:
    """Coded rows of units.

    Attributes:
        codes: ``[units, rows, columns]`` uint16, where rows is the schema's ``max_rows``.
        mask: ``[units, rows]``, True for a row of the unit, False for padding, which comes last
            and has code 0.
    """

    codes: Codes
    mask: Bools

    def __repr__(self) -> str:
        """Show no code: the rows may be real."""
        return short_repr(self, "coded rows of units")

    @property
    def rows_per_unit(self) -> int:
        """How many rows a unit has at most."""
        return int(self.mask.shape[1])

    @property
    def columns(self) -> int:
        """How many columns there are."""
        return int(self.codes.shape[2])

    def recoded(self, cells: Sequence[Cells]) -> Cohort:
        """Return the same rows with other columns, as `RowSource.recoded`, in memory.

        Raises:
            InputError: a code is outside its column.
        """
        return Cohort(cells_of(cells, self.codes, self.mask), self.mask)


AnyRows: TypeAlias = Cohort | RowSource
"""Rows in memory, or where they lie: what a generator that only counts can be fitted to."""

Rows = TypeVar("Rows", Cohort, RowSource, AnyRows)


def in_memory(rows: AnyRows) -> Cohort:
    """Return rows whose codes are needed, not only their counts.

    Raises:
        InputError: they are counted where they lie.
    """
    if isinstance(rows, CountedRows):
        raise InputError("these rows can only be counted where they lie; this needs them in memory")
    return rows


def read_cohort(
    table: Table,
    codec: Codec,
    schema: Schema,
    entropy: Entropy,
    progress: Progress | None = None,
    refused: Refused = "stop",
    *,
    engine: Engine | None = None,
) -> Cohort:
    """Read a table into a cohort: keys compared as declared, rows capped, units in random order.

    Whoever reads the file (``engine``; this process if None), the cohort is the same, to the bit.
    Where refused rows are left out (``drop``), whether there is a cohort does not depend on any
    cell: a row counts or not by its own cells alone, and a cohort may have no unit at all.

    Raises:
        TableError: the table is damaged; or has no rows, or none of them has a key, and refused
            rows stop.
        RefusedCellError: a cell broke a column that opts in to ``refuse``, and such rows stop.
    """
    coding = Coding(schema, codec, refused)
    try:
        read = coded_rows(table, coding, engine=engine, progress=progress)
    except NoRowsError:
        if refused == "stop":
            raise
        return _no_units(schema, codec)
    ranks = None if read.order is None else ranks_of(read.order)
    unit_of_row = read.units()
    if (unit_of_row == NO_KEY).all():
        if refused == "drop":
            return _no_units(schema, codec)
        raise no_unit(schema)
    rows, places = select(unit_of_row, schema.unit.max_rows, entropy, order=ranks)
    most = schema.unit.max_rows
    return assembled(read.codes, unit_of_row, rows, places, most, entropy.permutation)


def no_unit(schema: Schema) -> TableError:
    """Say that no row has a key."""
    return TableError(
        f"no row has a key in column '{schema.unit.column}'; correct the table, the column's "
        "missingValues, or which column has the role unit"
    )


def _no_units(schema: Schema, codec: Codec) -> Cohort:
    shape = (0, schema.unit.max_rows)
    codes = np.zeros((*shape, len(codec.names)), dtype=np.uint16)
    return Cohort(codes, np.zeros(shape, dtype=bool))


def select(
    units: Ints, maximum: int, entropy: Entropy, *, order: Ints | None = None
) -> tuple[Ints, Ints]:
    """Choose at most ``maximum`` rows of each unit.

    Args:
        units: unit of each row, `NO_KEY` for a row to leave out.
        maximum: the cap.
        entropy: source of the choice.
        order: rank of each row in time. If given, a unit keeps consecutive rows from a uniform
            start; otherwise a uniform subset, in random order.

    Returns:
        The chosen rows, unit by unit, and the place of each within its unit, from 0.
    """
    if order is None:
        return placed(units, maximum, entropy.uniform(len(units)))
    return placed(units, maximum, order, lambda owners: entropy.uniform(len(owners)))


def placed(
    units: Ints,
    maximum: int,
    within: npt.NDArray[Any],
    starts: Callable[[Ints], Floats] | None = None,
) -> tuple[Ints, Ints]:
    """Keep at most ``maximum`` rows of each unit: those that come first, or a window of them.

    Args:
        units: unit of each row, `NO_KEY` for a row to leave out.
        maximum: the cap.
        within: rank of each row within its unit; rows that share one stay in order.
        starts: where the windows of these units start, uniform in [0, 1); the first rows if None.

    Returns:
        As `select`.
    """
    rows = np.lexsort((within, units))
    rows = rows[units[rows] != NO_KEY]
    owners, firsts, counts = np.unique(units[rows], return_index=True, return_counts=True)
    places = np.arange(len(rows)) - np.repeat(firsts, counts)
    if starts is not None:
        spare = np.maximum(counts - maximum, 0)
        first = np.floor(starts(owners) * (spare + 1)).astype(np.int64)
        places = places - np.repeat(first, counts)
    chosen = (places >= 0) & (places < maximum)
    return rows[chosen], places[chosen]


def assembled(
    codes: npt.NDArray[Any],
    units: Ints,
    rows: Ints,
    places: Ints,
    most: int,
    permutation: Callable[[int], Ints],
) -> Cohort:
    """Lay the chosen rows out by unit, with room for ``most`` each, the units in random order.

    The order comes from ``permutation``, which gives one of so many numbers.
    """
    names, unit_of_chosen = np.unique(units[rows], return_inverse=True)
    seat = permutation(len(names))[unit_of_chosen]
    laid = np.zeros((len(names), most, codes.shape[1]), dtype=np.uint16)
    mask = np.zeros((len(names), most), dtype=bool)
    laid[seat, places] = codes[rows]
    mask[seat, places] = True
    return Cohort(laid, mask)


def ranks_of(order: Order) -> Ints:
    """Return the rank of each row; bad and missing cells come last, ties share a rank."""
    ranks, _ = pd.factorize(order, sort=True)
    return np.where(ranks < 0, len(ranks), ranks).astype(np.int64)
