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

Parts of the calendar beside a date: weekday, month, and the hour of the day.

A part is a function of its own date, and of no other row (see `relations` for what that means for
sensitivity). A drawn date moves to the nearest one that has the drawn parts; this reads drawn
cells only, and so is post-processing.

What is modelled of a row whose columns follow from each other: gaps, and cells left empty.

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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.code_sets import SetCoder, joined
from dpsynth.encoding.column_codecs import REFUSED, NumericCoder, coder_of
from dpsynth.encoding.grain import landed
from dpsynth.errors import Problem
from dpsynth.schema import (
    Column,
    Schema,
    gap_column,
    in_order,
    is_related,
    lattice_of,
    lowest,
    needs,
    part_name,
    with_needs,
)
from dpsynth.schema.coded import PARTS
from dpsynth.schema.relations import SECONDS, converted
from dpsynth.schema.types import DAY, TYPES
from dpsynth.tables import read_cells, typed_series, typed_values, units_beside

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
        for part in column.calendar:
            columns[part_name(column.name, part)] = calendar_part(frame, column, part, decimal)
        if column.interval is None:
            columns[column.name] = frame[column.name]
            continue
        days = row_gaps(frame, column, schema.column(column.interval.base), decimal)
        columns[column.name] = pd.Series(days, name=column.name)
    return columns


def row_gaps(frame: pd.DataFrame, column: Column, base: Column, decimal: str) -> Floats:
    """Return the gap between the two cells of each row, NaN where one is missing, `BAD` if bad."""
    assert column.interval is not None
    times, own_missing = read_cells(frame[column.name], column, decimal)
    other, other_missing = read_cells(frame[base.name], base, decimal)
    other = converted(other, base.kind, column.kind)
    missing = own_missing | other_missing
    bad = ~(np.isfinite(times) & np.isfinite(other))
    whole = [np.floor(np.where(bad, 0.0, cells)).astype(np.int64) for cells in (other, times)]
    gaps = column.interval.gaps(*whole, tick=column.kind.seconds)
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
        if column.calendar and column.interval is None:
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
    other = converted(other, base.kind, column.kind)
    missing = np.isnan(gaps) | np.isnan(other)
    origin, whole = (
        np.where(missing, ends, values).astype(np.int64)
        for values, ends in ((other, 0), (gaps, column.interval.shortest))
    )
    tick = column.kind.seconds
    drawn = column.interval.draw(origin, whole, rng, tick=tick)
    if column.calendar:
        wanted = _wanted(cells[part_name(column.name, "hour")], "hour")
        drawn = _within_gap(drawn, wanted, column.interval.ends(origin, whole, tick=tick))
    return typed_series(drawn.astype(np.float64), missing, column)


def _within_gap(moments: Ints, wanted: Ints, ends: tuple[Ints, Ints]) -> Ints:
    """Return the same minute of the wanted hour, at most a day away, where the gap stays the same.

    A gap of whole days leaves one day of time, in which each hour comes once.
    """
    later = moments + (wanted - moments // HOUR) % 24 * HOUR
    chosen, done = moments.copy(), wanted < 0
    for option in (later, later - DAY):
        fits = ~done & (option >= ends[0]) & (option <= ends[1])
        chosen[fits] = option[fits]
        done |= fits
    return chosen


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


HOUR = SECONDS["h"]
WEEK = 7
MAX_MONTHS = 6  # how far the nearest month of a name can be


def calendar_part(frame: pd.DataFrame, column: Column, part: str, decimal: str) -> pd.Series[Any]:
    """Return a part of the calendar of each cell, None where it is missing or cannot be read."""
    values, missing = read_cells(frame[column.name], column, decimal)
    absent = missing | ~np.isfinite(values)
    days, clock = _days_and_rest(np.floor(np.where(absent, 0.0, values)).astype(np.int64), column)
    names = np.array([*PARTS[part], None], dtype=object)
    places = clock // HOUR if part == "hour" else place_of(days, part)
    return pd.Series(names[np.where(absent, -1, places)], name=part_name(column.name, part))


def _days_and_rest(values: Ints, column: Column) -> tuple[Ints, Ints]:
    """Return the day of each value since 1970-01-01, and how far it lies behind its beginning."""
    days = converted(values, column.kind, TYPES["date"])
    rest = values - converted(days, TYPES["date"], column.kind).astype(np.int64)
    return days.astype(np.int64), rest


def place_of(days: Ints, part: str) -> Ints:
    """Return the weekday from Monday, or the month from January, from 0."""
    if part == "weekday":
        return (days + 3) % WEEK  # 1970 began on a Thursday
    return _months(days) % 12


def _months(days: Ints) -> Ints:
    months: Ints = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months


def moved_dates(cells: Mapping[Any, pd.Series[Any]], column: Column) -> pd.Series[Any]:
    """Move each drawn date to the nearest one with the drawn parts, within the bounds."""
    values = typed_values(cells[column.name], column.kind)
    missing = np.isnan(values)
    lattice = lattice_of(column)
    bounds = lattice.values(np.array([0, lattice.points - 1])).astype(np.int64)
    whole = np.where(missing, bounds[0], values).astype(np.int64)
    wanted = {part: _wanted(cells[part_name(column.name, part)], part) for part in column.calendar}
    days, rest = _days_and_rest(whole, column)
    for part in ("month", "weekday"):
        if part in wanted:
            days = nearest_days(days, wanted[part], part, _days_and_rest(bounds, column)[0])
    moved = converted(days, TYPES["date"], column.kind).astype(np.int64) + rest
    if "hour" in wanted:
        moved = _at_hour(moved, wanted["hour"], bounds)
    values = lattice.values(lattice.positions(moved.astype(np.float64)))
    return typed_series(values, missing, column)


def _at_hour(moments: Ints, wanted: Ints, ends: Ints) -> Ints:
    """Return the same minute of the wanted hour, on the same day unless a bound is in the way.

    The first and the last day may have a part of their hours only. Then the day is a week away, so
    that the weekday stays, or where the bounds are nearer, a day away.
    """
    days, clock = np.divmod(moments, DAY)
    same = days * DAY + wanted * HOUR + clock % HOUR
    chosen = moments.copy()
    done = wanted < 0
    for away in (0, WEEK, -WEEK, 1, -1):
        option = same + away * DAY
        fits = ~done & (option >= ends[0]) & (option <= ends[1])
        chosen[fits] = option[fits]
        done |= fits
    return chosen


def _wanted(cells: pd.Series[Any], part: str) -> Ints:
    """Return the place of each drawn part in the calendar, -1 where it is missing."""
    places = {name: place for place, name in enumerate(PARTS[part])}
    return np.array([places.get(name, -1) for name in cells], dtype=np.int64)


def nearest_days(days: Ints, wanted: Ints, part: str, ends: Ints | tuple[Ints, Ints]) -> Ints:
    """Return the nearest days with this part of the calendar; others stay where none is allowed.

    Args:
        days: since 1970-01-01.
        wanted: the place of the weekday or month, from 0; -1 where none is.
        part: ``weekday`` or ``month``.
        ends: the first and the last day that is allowed, of all days or of each.
    """
    if part == "weekday":
        shift = (wanted - place_of(days, part) + 3) % WEEK - 3
        options = [days + shift, days + shift + WEEK, days + shift - WEEK]
        month = _months(days)
        inside = [_months(option) == month for option in options]
    else:
        months = _months(days)
        shift = (wanted - months % 12 + MAX_MONTHS - 1) % 12 - MAX_MONTHS + 1
        within = days - _first(months)
        options = [
            np.minimum(_first(month) + within, _first(month + 1) - 1)
            for month in (months + shift, months + shift + 12, months + shift - 12)
        ]
        inside = [np.ones(len(days), dtype=bool)] * len(options)
    chosen = days.copy()
    done = wanted < 0
    for strict in (True, False):
        for option, same in zip(options, inside, strict=True):
            fits = ~done & (option >= ends[0]) & (option <= ends[1]) & (same | (not strict))
            chosen[fits] = option[fits]
            done |= fits
    return chosen


def _first(months: Ints) -> Ints:
    first: Ints = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first


Cells = Mapping[Any, pd.Series]


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
                gap = gaps_above(cells, column, by_name)
                cells[name] = raised(cells | {name: gap}, column, by_name)
                gaps[name] = gap.mask(codes == REFUSED, BAD)
        if column.present_if is not None:
            missing = absent_of(cells, column)
            cells[name] = emptied(cells[name], missing)
            names = [name, *(part_name(name, part) for part in column.calendar)]
            absent |= dict.fromkeys(names, missing)
    return OwnRows(gaps, absent)


def gaps_above(cells: Cells, column: Column, columns: Mapping[str, Column]) -> pd.Series[Any]:
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
    return converted(typed_values(cells, column.kind), column.kind, TYPES["date"])
