"""What the codes of a column stand for, and how they are grouped; from its declaration alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.column_codecs import NumericCoder, coder_of
from dpsynth.encoding.grid import NONE
from dpsynth.schema import Column
from dpsynth.tables import typed_series

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def code_values(column: Column, decimal: str) -> Floats:
    """Return the number that each code of a column stands for, ``[codes]``, in the column's unit.

    A code of several lattice points stands for the one in their middle. Times are days or seconds
    since 1970. Categories, and the code of missing, are NaN.

    >>> from dpsynth.schema import Schema
    >>> code_values(Schema.load("cardio").column("height"), ".")[:3]
    array([120., 121., 122.])
    """
    coder = coder_of(column, decimal)
    values = np.full(coder.size, np.nan)
    if not isinstance(coder, NumericCoder):
        return values
    starts, ends = _places(coder)
    values[: coder.grid.codes] = coder.lattice.values((starts + ends) // 2)
    return values


def code_ends(column: Column, decimal: str) -> tuple[pd.Series[Any], pd.Series[Any]]:
    """Return the least and the largest cell of each code, in the column's type.

    >>> from dpsynth.schema import Schema
    >>> first, last = code_ends(Schema.load("cardio").column("gender"), ".")
    >>> first.equals(last)
    True
    """
    coder = coder_of(column, decimal)
    if not isinstance(coder, NumericCoder):
        cells = coder.decode(np.arange(coder.size), np.random.default_rng(0))  # draws nothing
        return cells, cells
    missing = np.arange(coder.size) >= coder.grid.codes
    first, last = (
        typed_series(coder.lattice.values(np.resize(places, coder.size)), missing, column)
        for places in _places(coder)
    )
    return first, last


def _places(coder: NumericCoder) -> tuple[Ints, Ints]:
    """Return the first and the last lattice point of each ordered code."""
    grid = coder.grid
    starts, ends = grid.edges[:-1][grid.span], grid.edges[1:][grid.span] - 1
    rounds = grid.round[grid.span]
    alone = (rounds != NONE) & (np.arange(grid.codes) == grid.first[grid.span])
    return np.where(alone, rounds, starts), np.where(alone, rounds, ends)


def code_parents(column: Column) -> tuple[int, ...]:
    """Return the group of each code of a column of listed codes; empty for any other column.

    Groups are numbered from 0; what is not on the list (other, reasons, missing) is apart.
    """
    groups = () if column.codes is None else column.codes.group_of
    places = {group: place for place, group in enumerate(dict.fromkeys(groups))}
    others = len(column.levels) + int(column.nullable) - len(groups)
    apart = range(len(places), len(places) + others)
    return (*(places[group] for group in groups), *apart) if groups else ()
