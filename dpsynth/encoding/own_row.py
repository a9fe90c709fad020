"""What is modelled of a row whose columns follow from each other: gaps, and cells left empty.

**Sensitivity.** Everything here is a function of one row and of the schema. Each cell is bounded by
itself; the gap of a row is counted from the row's own other cells; a record that breaks an order is
moved to the least value that its own row allows; a cell is left out where its own row does not meet
the condition of the column. How long a gap can be follows from declared bounds. So a unit moves its
own coded rows and no others, at most ``max_rows`` of them, and the sensitivity of each mechanism is
what it was. Were a gap bounded by the largest one of the table, one patient could move the codes of
all, and no bound would hold.

**Back.** Raising a column above drawn ones by a drawn gap, emptying drawn cells and computing
groups reads what mechanisms released only: post-processing (Dwork and Roth, The Algorithmic
Foundations of Differential Privacy, 2014, Proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.column_codecs import REFUSED, NumericCoder, coder_of
from dpsynth.encoding.formulas import derived
from dpsynth.encoding.grain import landed
from dpsynth.schema import (
    Column,
    Schema,
    gap_column,
    in_order,
    lattice_of,
    lowest,
    part_name,
    with_needs,
)
from dpsynth.tables import typed_series, typed_values, units_beside

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Cells = Mapping[Any, pd.Series]

BAD = np.inf  # stands for a cell that its column refuses


@dataclass(frozen=True, eq=False)
class OwnRows:
    """What each row says of itself.

    Attributes:
        gaps: of each column with a floor, in its unit; NaN where missing, `BAD` where refused.
        absent: where each coded column is left empty.
    """

    gaps: Mapping[Any, pd.Series[Any]] = field(default_factory=dict)
    absent: Mapping[str, Bools] = field(default_factory=dict)


def own_rows(frame: pd.DataFrame, schema: Schema) -> OwnRows:
    """Compute gaps and empty cells from the cells of a table, each row by itself.

    Args:
        frame: cells of the schema's columns, text or typed.
        schema: as published.
    """
    by_name = {column.name: column for column in schema.modelled}
    found = [column.name for column in schema.modelled if column.floor or column.present_if]
    wanted = with_needs(found, by_name)
    cells: dict[Any, pd.Series[Any]] = {}
    gaps: dict[Any, pd.Series[Any]] = {}
    absent: dict[str, Bools] = {}
    for name in in_order(schema.modelled) if wanted else ():
        if name not in wanted:
            continue
        column = by_name[name]
        if column.is_computed:
            cells[name] = computed(cells, column, by_name)
        else:
            units = units_beside(frame, column)
            coder = coder_of(column, schema.dialect.decimal)
            codes, cells[name] = coder.read(frame[name], units)
            if column.floor is not None:
                gap = row_gaps(cells, column, by_name)
                cells[name] = raised(cells | {name: gap}, column, by_name)
                gaps[name] = gap.mask(codes == REFUSED, BAD)
        if column.present_if is not None:
            missing = absent_of(cells, column)
            cells[name] = emptied(cells[name], missing)
            names = [name, *(part_name(name, part) for part in column.calendar)]
            absent |= dict.fromkeys(names, missing)
    return OwnRows(gaps, absent)


def row_gaps(cells: Cells, column: Column, columns: Mapping[str, Column]) -> pd.Series[Any]:
    """Return the gap of each row above the least value that it allows; 0 where it is below.

    Args:
        cells: bounded cells of the column and of those below it.
        column: with a floor.
        columns: of the schema, by name.
    """
    lattice = lattice_of(column)
    values = typed_values(cells[column.name], column.kind)
    missing = np.isnan(values)
    steps = lattice.positions(np.where(missing, 0.0, values)) - _lowest(cells, column, columns)
    steps = np.clip(steps, 0, _longest(column, columns))
    gaps = steps * lattice.stride / float(10**lattice.decimals)
    return pd.Series(np.where(missing, np.nan, gaps), name=column.name)


def raised(
    cells: Cells,
    column: Column,
    columns: Mapping[str, Column],
    weights: Floats | None = None,
    rng: np.random.Generator | None = None,
) -> pd.Series[Any]:
    """Return a column from its gaps above the cells of its row; within its bounds in every row.

    Args:
        cells: the gaps under the column's own name, and the cells of those below it.
        column: with a floor.
        columns: of the schema, by name.
        weights: of its round units, if a fit has found them: drawn values follow these.
        rng: of these draws.
    """
    lattice = lattice_of(column)
    gaps = cells[column.name].to_numpy(dtype=np.float64, na_value=np.nan)
    missing = np.isnan(gaps)
    ticks = np.rint(np.where(missing, 0.0, gaps) * 10**lattice.decimals).astype(np.int64)
    least = _lowest(cells, column, columns)
    places = np.minimum(least + ticks // lattice.stride, lattice.points - 1)
    if weights is not None and rng is not None:
        coder = coder_of(column, ".")
        assert isinstance(coder, NumericCoder)
        some = np.flatnonzero(~missing)
        last = np.minimum(least + _longest(column, columns), lattice.points - 1)
        places[some] = landed(places[some], (least[some], last[some]), coder, weights, rng)
    values = lattice.values(places)
    return typed_series(values, missing & column.nullable, column)


def computed(cells: Cells, column: Column, columns: Mapping[str, Column]) -> pd.Series[Any]:
    """Return a column that follows from its row: by a formula, or as the group of a code."""
    if column.grouping is None:
        return derived(cells, column, columns)
    base = columns[column.grouping.base]
    groups = column.grouping.groups(base.codes, base.levels)
    texts = cells[column.grouping.base].to_numpy(dtype=object)
    return pd.Series([groups.get(text) for text in texts.tolist()], dtype=object)


def absent_of(cells: Cells, column: Column) -> Bools:
    """Tell in which rows the condition of a column does not certainly hold."""
    assert column.present_if is not None
    frame = pd.DataFrame({name: cells[name] for name in column.present_if.columns})
    return np.asarray(~column.present_if.holds(frame, missing=False))


def emptied(cells: pd.Series[Any], absent: Bools) -> pd.Series[Any]:
    """Return a nullable column with some cells missing."""
    if cells.dtype.kind != "O":
        return cells.mask(absent)
    values = cells.to_numpy(dtype=object, copy=True)
    values[absent] = None
    return pd.Series(values, index=cells.index, dtype=object)


def _lowest(cells: Cells, column: Column, columns: Mapping[str, Column]) -> Ints:
    assert column.floor is not None
    values = {name: typed_values(cells[name], columns[name].kind) for name in column.floor.names}
    return lowest(column.floor, lattice_of(column), values)


def _longest(column: Column, columns: Mapping[str, Column]) -> int:
    """Return the largest gap in steps, which follows from declared bounds."""
    return lattice_of(gap_column(column, tuple(columns.values()))).points - 1
