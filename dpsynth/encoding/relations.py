"""Rows as they are published, and as they are modelled: dates and gaps, derived columns, weekdays.

**Sensitivity.** What is modelled of a row is a function of that row and of the schema: a gap is
computed from the row's own two dates, a weekday from its own date, and a derived column is not read
at all. No other row takes part, so a unit that comes or goes changes its own coded rows and no
others, at most ``max_rows`` of them, and each mechanism's sensitivity is what it was. Were a gap
measured against something of the table (its first date, a mean), one patient could move the codes
of all, and no bound would hold.

**Back.** Computing dates from drawn gaps, and derived columns from drawn columns, reads what
mechanisms released and fresh randomness only: post-processing (Dwork and Roth, The Algorithmic
Foundations of Differential Privacy, 2014, Proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.calendar_parts import calendar_part, moved_dates
from dpsynth.errors import Problem
from dpsynth.schema import Column, Schema, in_order, is_related, lattice_of, part_name
from dpsynth.schema.relations.interval import DAY
from dpsynth.tables import read_cells, typed_series, typed_values

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BAD = np.inf  # stands for a gap between cells that cannot be read; NaN for a missing one


def related(frame: pd.DataFrame, schema: Schema) -> Mapping[Any, pd.Series[Any]]:
    """Return the columns that are modelled, from the cells of a table, each row by itself.

    Args:
        frame: cells of the schema's columns, text or typed.
        schema: as published.
    """
    if not is_related(schema):
        return {name: frame[name] for name in frame.columns}
    decimal = schema.dialect.decimal
    columns: dict[Any, pd.Series[Any]] = {}
    for column in schema.modelled:
        if column.derived is not None or (column.status_of and column.name not in frame.columns):
            continue  # a status is coded from the cells of its column
        if column.interval is None:
            columns[column.name] = frame[column.name]
            for part in column.calendar:
                columns[part_name(column.name, part)] = calendar_part(frame, column, part, decimal)
            continue
        gaps = row_gaps(frame, column, schema.column(column.interval.base), decimal)
        columns[column.name] = pd.Series(gaps, name=column.name)
    return columns


def row_gaps(frame: pd.DataFrame, column: Column, base: Column, decimal: str) -> Floats:
    """Return the gap between the two cells of each row, NaN where one is missing, `BAD` if bad."""
    assert column.interval is not None
    times, own_missing = read_cells(frame[column.name], column, decimal)
    other, other_missing = read_cells(frame[base.name], base, decimal)
    if base.kind.in_days != column.kind.in_days:
        other = np.floor(other / DAY) if column.kind.in_days else other * DAY
    missing = own_missing | other_missing
    bad = ~(np.isfinite(times) & np.isfinite(other))
    whole = [np.floor(np.where(bad, 0.0, cells)).astype(np.int64) for cells in (other, times)]
    gaps = column.interval.gaps(*whole, in_days=column.kind.in_days)
    gaps[bad] = BAD
    gaps[missing] = np.nan
    return gaps


def published(
    frame: pd.DataFrame,
    schema: Schema,
    rng: np.random.Generator,
    beside: Mapping[Any, pd.Series[Any]] | None = None,
) -> pd.DataFrame:
    """Return decoded rows as they are published: dates from gaps, then derived columns.

    Args:
        frame: decoded cells of the coded schema.
        schema: as published.
        rng: draws a date among those that have the gap.
        beside: dates of the rows that are not modelled as columns, by name: the time of a linked
            table, which other dates may count from.
    """
    if not is_related(schema):
        return frame
    cells = {name: frame[name] for name in frame.columns} | dict(beside or {})
    by_name = {column.name: column for column in schema.modelled}
    by_name |= {name: schema.column(name) for name in beside or {}}
    for name in in_order(schema.modelled):
        column = by_name[name]
        if column.calendar:
            cells[name] = moved_dates(cells, column)
        if column.interval is not None:
            cells[name] = _drawn(cells, column, by_name[column.interval.base], rng)
    for column in schema.modelled:
        if column.derived is not None:
            cells[column.name] = derived(cells, column, by_name)
    return pd.DataFrame({column.name: cells[column.name] for column in schema.modelled})


def _drawn(
    cells: Mapping[Any, pd.Series[Any]], column: Column, base: Column, rng: np.random.Generator
) -> pd.Series[Any]:
    """Compute the dates of an interval from its gaps and the dates that it leans on."""
    assert column.interval is not None
    gaps = cells[column.name].to_numpy(dtype=np.float64, na_value=np.nan)
    other = typed_values(cells[base.name], base.kind)
    if base.kind.in_days != column.kind.in_days:
        other = np.floor(other / DAY) if column.kind.in_days else other * DAY
    missing = np.isnan(gaps) | np.isnan(other)
    origin, whole = (
        np.where(missing, ends, values).astype(np.int64)
        for values, ends in ((other, 0), (gaps, column.interval.shortest))
    )
    drawn = column.interval.draw(origin, whole, rng, in_days=column.kind.in_days)
    return typed_series(drawn.astype(np.float64), missing, column)


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


def strained(frame: pd.DataFrame, schema: Schema) -> list[Problem]:
    """List the relations that a synthetic table breaks; its cells are known to be valid ones.

    Cells may be typed, or text as dpsynth writes it. A problem says how many rows, and never which.
    """
    if not is_related(schema):
        return []
    plain = {c.name: replace(c, format=None, missing_values=("",)) for c in schema.modelled}
    problems = []
    for column in schema.modelled:
        place = f"column '{column.name}'"
        if column.interval is not None:
            interval, base = column.interval, plain[column.interval.base]
            gaps = row_gaps(frame, plain[column.name], base, ".")
            count = int(((gaps < interval.shortest) | (gaps > interval.longest)).sum())
            if count:
                problems.append(Problem(place, f"not {interval.words(base.name)}: {_rows(count)}"))
            present = ~read_cells(frame[column.name], plain[column.name], ".")[1]
            alone = present & read_cells(frame[base.name], base, ".")[1]
            if count := int(alone.sum()):
                text = f"has a date where '{base.name}' is missing: {_rows(count)}"
                problems.append(Problem(place, text))
        elif column.derived is not None:
            count = _unequal(frame, column, plain)
            if count:
                problems.append(Problem(place, f"not {column.derived.text}: {_rows(count)}"))
    return problems


def _unequal(frame: pd.DataFrame, column: Column, columns: Mapping[str, Column]) -> int:
    """Count the rows in which a derived column is not what its formula gives."""
    assert column.derived is not None
    cells = {}
    for name in (*column.derived.numbers, *column.derived.dates, column.name):
        values, missing = read_cells(frame[name], columns[name], ".")
        missing = missing | ~np.isfinite(values)
        nullable = replace(columns[name], required=False)
        cells[name] = typed_series(np.where(missing, 0.0, values), missing, nullable)
    actual = typed_values(cells[column.name], column.kind)
    wanted = typed_values(derived(cells, column, columns), column.kind)
    same = np.isclose(actual, wanted, rtol=1e-12, atol=0.0) | (np.isnan(actual) & np.isnan(wanted))
    return int((~same).sum())


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
