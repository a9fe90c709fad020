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

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.calendar_parts import calendar_part, moved_dates
from dpsynth.encoding.code_sets import SetCoder
from dpsynth.encoding.column_codecs import coder_of
from dpsynth.encoding.drawn_sets import joined
from dpsynth.encoding.own_row import OwnRows, absent_of, computed, emptied, own_rows, raised
from dpsynth.errors import Problem
from dpsynth.schema import Column, Schema, in_order, is_related, needs, part_name
from dpsynth.schema.relations import DAY
from dpsynth.tables import read_cells, typed_series, typed_values

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

BAD = np.inf  # stands for a gap between cells that cannot be read; NaN for a missing one


def related(
    frame: pd.DataFrame, schema: Schema, own: OwnRows | None = None
) -> Mapping[Any, pd.Series[Any]]:
    """Return the columns that are modelled, from the cells of a table, each row by itself.

    Args:
        frame: cells of the schema's columns, text or typed.
        schema: as published.
        own: what `own_rows` gives of them, where that is known.
    """
    if not is_related(schema):
        return {name: frame[name] for name in frame.columns}
    decimal = schema.dialect.decimal
    gaps = (own or own_rows(frame, schema)).gaps
    columns: dict[Any, pd.Series[Any]] = {}
    for column in schema.modelled:
        if column.is_computed or (column.status_of and column.name not in frame.columns):
            continue  # a status is coded from the cells of its column
        if column.several is not None:
            columns |= SetCoder(column, decimal).places(frame[column.name])
            continue
        if column.name in gaps:
            columns[column.name] = gaps[column.name]
            continue
        if column.interval is None:
            columns[column.name] = frame[column.name]
            for part in column.calendar:
                columns[part_name(column.name, part)] = calendar_part(frame, column, part, decimal)
            continue
        days = row_gaps(frame, column, schema.column(column.interval.base), decimal)
        columns[column.name] = pd.Series(days, name=column.name)
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
    heaps: Mapping[str, Floats] | None = None,
) -> pd.DataFrame:
    """Return decoded rows as they are published: dates and others from gaps, sets, derived columns.

    Each column is computed after those that it follows from. Where the condition of a column does
    not hold, its cell is left empty.

    Args:
        frame: decoded cells of the coded schema.
        schema: as published.
        rng: draws a date among those that have the gap, and parts codes that stand twice.
        beside: dates of the rows that are not modelled as columns, by name: the time of a linked
            table, which other dates may count from.
        heaps: by column above others, weights of its round units, which a fit has found.
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
        if column.several is not None:
            cells[name] = joined(cells, column, rng)
        if column.floor is not None:
            cells[name] = raised(cells, column, by_name, (heaps or {}).get(name), rng)
        if column.is_computed:
            cells[name] = computed(cells, column, by_name)
        if column.present_if is not None:
            cells[name] = emptied(cells[name], absent_of(cells, column))
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
        problems += [
            Problem(place, f"{words}: {_rows(count)}")
            for words, count in _own(frame, column, plain)
            if count
        ]
    return problems


def _own(
    frame: pd.DataFrame, column: Column, columns: Mapping[str, Column]
) -> Iterator[tuple[str, int]]:
    """Yield what is wrong with a column that follows from others of its row, and in how many."""
    names = [name for name in needs(column) if name in columns]
    if not names:
        return
    cells = {
        name: coder_of(columns[name], ".").read(frame[name])[1] for name in (*names, column.name)
    }
    own = cells[column.name]
    filled = own.notna().to_numpy()
    absent = np.zeros(len(own), dtype=bool)
    if column.present_if is not None:
        absent = absent_of(cells, column)
        yield f"filled in where not {column.present_if.text}", int((absent & filled).sum())
    if column.derived is not None:
        actual, wanted = (
            typed_values(series, column.kind) for series in (own, computed(cells, column, columns))
        )
        same = np.isclose(actual, wanted, rtol=1e-12, atol=0.0)
        same |= np.isnan(actual) & np.isnan(wanted)
        yield f"not {column.derived.text}", int((~same & ~absent).sum())
    if column.grouping is not None:
        groups = computed(cells, column, columns).to_numpy(dtype=object)
        yield (
            f"not the {column.grouping.words}",
            int(((own.to_numpy(dtype=object) != groups) & ~absent).sum()),
        )
    if column.floor is not None:
        least = raised({**cells, column.name: own.notna() * 0.0}, column, columns)
        low, actual = (typed_values(series, column.kind) for series in (least, own))
        yield f"not {column.floor.words}", int((filled & (actual < low)).sum())


def _rows(count: int) -> str:
    return "1 row" if count == 1 else f"{count} rows"
