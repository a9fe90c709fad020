"""What the tables of a synthetic cohort are: the columns that are written, each with its type.

Beside what is modelled, a table has the patient's key, a number that the sampler gives; a child
table has its day or date, the place of a row among the patient's rows where they are only ordered,
and the value of a test.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta

from dpsynth.schema.column import Bound, Column, PrivacyUnit
from dpsynth.schema.lattice import lattice_of
from dpsynth.schema.linked.facts import ChildTable, LinkedFacts, LongSeries
from dpsynth.schema.schema import Schema

MOST = 2**31 - 1  # the largest key
_ROWS = PrivacyUnit(column=None, max_rows=1, max_rows_basis=None)
_KEY = "number of a synthetic patient; it stands for nobody in the source"


def published_tables(schema: LinkedFacts) -> dict[str, Schema]:
    """Return the schema of each table as it is written, by name, that of patients first."""
    own = schema.patients
    key = replace(_numbered(own.column(schema.key), MOST), bounds_basis=_KEY)
    tables = {own.name: _written(own, {schema.key: key})}
    for child in schema.children:
        columns = {child.key: replace(key, name=child.key)}
        if child.order is not None:
            columns[child.order] = _numbered(child.schema.column(child.order), MOST)
        if child.time is not None:
            columns[child.time] = _timed(schema, child)
        if child.series is not None:
            value = child.schema.column(child.series.value)
            columns[child.series.value] = _measured(value, child.series)
        named = child.once if child.series is None else child.series.column
        if named is not None:  # which each row names
            columns[named] = replace(child.schema.column(named), required=True)
        tables[child.name] = _written(child.schema, columns)
    return tables


def _written(schema: Schema, columns: dict[str, Column]) -> Schema:
    """Return a schema whose modelled columns are those that are written, in their order."""
    placed = tuple(columns.get(column.name, column) for column in schema.columns)
    return replace(schema, columns=placed, unit=_ROWS)


def _numbered(column: Column, most: int) -> Column:
    """Return a column of numbers from 1; text where the source's is, so that files join alike."""
    kind = "string" if column.kind.is_text else "integer"
    bounds: dict[str, Bound] = {} if kind == "string" else {"minimum": 1, "maximum": most}
    return Column(column.name, kind, required=True, title=column.title, **bounds)  # type: ignore[arg-type]


def _timed(schema: LinkedFacts, child: ChildTable) -> Column:
    """Return the column of the day: within the window, from the origin if it is a date."""
    assert child.time is not None and schema.window is not None
    column, window = child.schema.column(child.time), schema.window
    low: Bound = window.first
    high: Bound = window.last
    if child.origin is not None:
        origin = schema.patients.column(child.origin)
        low = _moved(origin.minimum, window.first, column)
        high = _moved(origin.maximum, window.last + 1, column)
    roles = frozenset({"time"})
    return replace(column, roles=roles, minimum=low, maximum=high, required=True, step=None)


def _moved(bound: Bound | None, days: int, column: Column) -> Bound:
    """Return a bound of the origin some days later, of the type of the column."""
    assert isinstance(bound, date)  # of every date that counts as an origin; datetimes are dates
    moved = bound + timedelta(days=days)
    if column.kind.in_days:
        return date(moved.year, moved.month, moved.day)
    return datetime(moved.year, moved.month, moved.day)


def _measured(value: Column, series: LongSeries) -> Column:
    """Return the column of a long table's values: numbers, if all tests are; their finest step."""
    tests = series.columns
    nullable = any(test.nullable for test in tests)
    if value.kind.is_text or any(test.kind.is_text for test in tests):
        return replace(value, type="string", roles=frozenset(), required=not nullable)
    lows, highs = zip(*map(_range, tests), strict=True)
    decimals = max(
        (lattice_of(test).decimals for test in tests if not test.is_categorical), default=0
    )
    return replace(
        value,
        roles=frozenset(),
        minimum=min(lows),
        maximum=max(highs),
        step=None if value.kind.whole else 10.0**-decimals,
        required=not nullable,
    )


def _range(test: Column) -> tuple[float, float]:
    """Return the least and the largest value of a test."""
    values: Sequence[float]
    if test.is_categorical:
        values = [float(level) for level in test.levels]
    else:
        assert isinstance(test.minimum, int | float) and isinstance(test.maximum, int | float)
        values = (test.minimum, test.maximum)
    return min(values), max(values)
