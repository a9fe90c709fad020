"""Rows grouped by privacy unit, at most ``max_rows`` of each, as codes.

This is where one unit's influence is bounded (add or remove one unit with all its rows): whatever
rows a unit brings, at most ``max_rows`` of them are in the cohort. Which ones depends on the unit's
own rows and on fresh randomness, never on another unit.

What a generator asks of coded rows: other cells for their codes, and counts of these cells.

A generator that only counts asks no row for its codes. It says what the cells of each column are,
as a list of `Cells` over the columns that there are, and gets the same rows with those columns
(``recoded``); a mechanism then counts them (`dpsynth.privacy.joint_histograms`,
`dpsynth.privacy.chosen_histograms`) and adds the noise. Both work on a `Cohort`, in memory, and on
any `RowSource`: rows that are counted where they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.chunks import Coding, Order, Refused, coded_rows
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
Bools = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False, repr=False)
class Lookup:
    """Cells that follow from the codes of one column.

    Attributes:
        column: place of that column among those that there are.
        cells: of each code, ``[codes]`` uint16; None if they are the codes themselves.
    """

    column: int
    cells: Codes | None = None

    def __repr__(self) -> str:
        """Name the column."""
        return short_repr(self, f"column {self.column}")


@dataclass(frozen=True)
class UnitRows:
    """Cells that say how many rows the row's unit has, less 1."""


@dataclass(frozen=True, eq=False, repr=False)
class Derived:
    """Cells that follow from the codes of several columns, row by row.

    Attributes:
        columns: places of these columns.
        of: gives cells ``[...]`` for codes ``[..., columns]``; it can be pickled.
    """

    columns: tuple[int, ...]
    of: Callable[[npt.NDArray[Any]], npt.NDArray[Any]]

    def __repr__(self) -> str:
        """Name the columns."""
        return short_repr(self, f"columns {self.columns}")


Cells: TypeAlias = Lookup | UnitRows | Derived
"""What the cells of a column are; all are public facts or follow from earlier releases."""


class RowSource(CountedRows, Protocol):
    """Rows grouped by privacy unit that are counted where they lie: in shards, or in a warehouse.

    As in a `Cohort`, at most ``rows_per_unit`` rows of a unit are there, chosen once, by its own
    rows and fresh randomness. No row comes out of it, and ``counts`` are exact: only mechanisms may
    ask for them. `CountedRows` says what they are.

    Example:
        To count two columns and their pair, under events that a plan has paid for::

            rows = source.recoded([Lookup(0, bins), UnitRows()])
            first, second = joint_histograms(rows, [3, 12], one_way, entropy)
            (table,) = chosen_histograms(rows, [3, 12], [(0, 1)], sigmas, pairs, entropy)
    """

    def recoded(self, cells: Sequence[Cells]) -> RowSource:
        """Return the same rows with other columns; nothing is read before they are counted.

        Raises:
            InputError: they cannot be expressed here; it names them.
        """
        ...


def cells_of(
    cells: Sequence[Cells], codes: npt.NDArray[Any], mask: Bools
) -> npt.NDArray[np.uint16]:
    """Return the cells of rows in memory, ``[units, rows, cells]``.

    Args:
        cells: what they are.
        codes: ``[units, rows, columns]``, 0 where there is no row.
        mask: which rows there are, ``[units, rows]``.

    Raises:
        InputError: a code is outside its column.
    """
    found = np.empty((*mask.shape, len(cells)), dtype=np.uint16)
    for place, kind in enumerate(cells):
        if isinstance(kind, UnitRows):
            rows = np.maximum(mask.sum(axis=1) - 1, 0)
            found[..., place] = np.broadcast_to(rows[:, None], mask.shape)
        elif isinstance(kind, Derived):
            found[..., place] = kind.of(codes[..., list(kind.columns)])
        elif kind.cells is None:
            found[..., place] = codes[..., kind.column]
        else:
            own = codes[..., kind.column]
            if own.size and (own.min() < 0 or own.max() >= len(kind.cells)):
                raise InputError(
                    "the cohort holds a code outside its column; encode it with its schema"
                )
            found[..., place] = kind.cells[own]
    return found


Ints = npt.NDArray[np.int64]
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
