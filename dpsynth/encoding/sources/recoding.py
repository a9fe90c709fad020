"""What a generator asks of coded rows: other cells for their codes, and counts of these cells.

A generator that only counts asks no row for its codes. It says what the cells of each column are,
as a list of `Cells` over the columns that there are, and gets the same rows with those columns
(``recoded``); a mechanism then counts them (`dpsynth.privacy.joint_histograms`,
`dpsynth.privacy.chosen_histograms`) and adds the noise. Both work on a `Cohort`, in memory, and on
any `RowSource`: rows that are counted where they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError
from dpsynth.privacy import CountedRows

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
