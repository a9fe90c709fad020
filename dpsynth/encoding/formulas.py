"""Derived columns: computed from the cells of their row by a formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.schema import Column, Schema, lattice_of
from dpsynth.schema.relations import DAY
from dpsynth.tables import typed_series, typed_values

Floats = npt.NDArray[np.float64]


def derived(
    cells: Mapping[Any, pd.Series[Any]], column: Column, columns: Mapping[str, Column]
) -> pd.Series[Any]:
    """Compute a derived column from typed cells, clipped to its bounds and its resolution.

    A row without a result (a missing cell, a division by zero) is missing, or at the minimum where
    the column is required.
    """
    values, lattice = _results(cells, column, columns), lattice_of(column)
    absent = np.isnan(values)
    positions = lattice.positions(np.where(absent, 0.0, values))
    positions[absent] = 0
    return typed_series(lattice.values(positions), absent & column.nullable, column)


def out_of_bounds(frame: pd.DataFrame, schema: Schema) -> dict[str, npt.NDArray[np.bool_]]:
    """Tell in which rows of a table a formula gives a value that its column has no place for.

    Args:
        frame: typed cells of the table, derived columns included.
        schema: as published.

    Returns:
        For each column with a formula and bounds, by name, ``[rows]``. Empty cells are in bounds.
    """
    columns = {column.name: column for column in schema.modelled}
    found = {}
    for column in columns.values():
        if column.derived is not None:
            lattice = lattice_of(column)
            values = _results(frame, column, columns)
            first, last = lattice.values(np.array([0, lattice.points - 1]))
            half = lattice.stride / 10**lattice.decimals / 2
            filled = frame[column.name].notna().to_numpy()
            found[column.name] = filled & ((values < first - half) | (values > last + half))
    return found


def _results(
    cells: Mapping[Any, pd.Series[Any]] | pd.DataFrame,
    column: Column,
    columns: Mapping[str, Column],
) -> Floats:
    """Return what the formula of a column gives in each row; NaN where it gives nothing."""
    assert column.derived is not None
    return column.derived.values(
        {name: typed_values(cells[name], columns[name].kind) for name in column.derived.numbers}
        | {name: _days(cells[name], columns[name]) for name in column.derived.dates}
    )


def _days(cells: pd.Series[Any], column: Column) -> Floats:
    values = typed_values(cells, column.kind)
    return values if column.kind.in_days else np.floor(values / DAY)
