"""Derived columns: computed from the cells of their row by a formula."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.schema import Column, lattice_of
from dpsynth.schema.relations.interval import DAY
from dpsynth.tables import typed_series, typed_values

Floats = npt.NDArray[np.float64]


def derived(
    cells: Mapping[Any, pd.Series[Any]], column: Column, columns: Mapping[str, Column]
) -> pd.Series[Any]:
    """Compute a derived column from typed cells, clipped to its bounds and its resolution.

    A row without a result (a missing cell, a division by zero) is missing, or at the minimum where
    the column is required.
    """
    assert column.derived is not None
    values = column.derived.values(
        {name: typed_values(cells[name], columns[name].kind) for name in column.derived.numbers}
        | {name: _days(cells[name], columns[name]) for name in column.derived.dates}
    )
    lattice = lattice_of(column)
    absent = np.isnan(values)
    positions = lattice.positions(np.where(absent, 0.0, values))
    positions[absent] = 0
    return typed_series(lattice.values(positions), absent & column.nullable, column)


def _days(cells: pd.Series[Any], column: Column) -> Floats:
    values = typed_values(cells, column.kind)
    return values if column.kind.in_days else np.floor(values / DAY)
