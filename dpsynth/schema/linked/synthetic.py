"""The synthetic tables that a schema stands for: one of a single table, several of linked ones.

Whoever writes, reads or describes synthetic tables goes through this list, so that one flat table
is the case of a list with one entry.

What the tables of a synthetic cohort are: the columns that are written, each with its type.

Beside what is modelled, a table has the patient's key, a number that the sampler gives; a child
table has its day or date, the place of a row among the patient's rows where they are only ordered,
and the value of a test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.schema.column import Bound, Column, PrivacyUnit
from dpsynth.schema.lattice import lattice_of
from dpsynth.schema.linked.facts import ChildTable, LinkedFacts, LongSeries
from dpsynth.schema.linked.linked_schema import AnySchema
from dpsynth.schema.schema import Schema
from dpsynth.schema.types import DAY

SINGLE = "synthetic"
"""Name of the synthetic table of a schema of one table."""
PREFIX = f"{SINGLE}-"
"""Of the file of each synthetic table of linked ones, and of each key that is text."""
NOTE_FILE = "SYNTHETIC.txt"
"""Name of the note that says of the tables beside it that they are synthetic."""


def file_stem(table: str) -> str:
    """Return the name of the file of a synthetic table, without its suffix: it says synthetic.

    >>> file_stem("labs"), file_stem(SINGLE)
    ('synthetic-labs', 'synthetic')
    """
    return table if table == SINGLE else PREFIX + table


def text_keys(numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.object_]:
    """Return keys of synthetic patients where the source's keys are text.

    >>> text_keys(np.array([1, 12]))
    array(['synthetic-1', 'synthetic-12'], dtype=object)
    """
    return np.array([f"{PREFIX}{number}" for number in numbers.tolist()], dtype=object)


@dataclass(frozen=True, repr=False)
class SyntheticTable:
    """One synthetic table.

    Attributes:
        name: of the table.
        schema: of its columns as they are written, in order.
        key: the column with the number of the patient; None in a single table.
        child: what linked tables declare of it; None of a single table, and of that of patients.
    """

    name: str
    schema: Schema
    key: str | None = None
    child: ChildTable | None = None

    def __repr__(self) -> str:
        """Name the table."""
        return short_repr(self, self.name)

    @property
    def label(self) -> str:
        """Its name where there are several tables; empty for a single one."""
        return "" if self.key is None else self.name

    @property
    def series(self) -> LongSeries | None:
        """The tests of a long table."""
        return None if self.child is None else self.child.series

    @property
    def place(self) -> str | None:
        """The column with the place of a row among the patient's rows, if there is one."""
        return None if self.child is None else self.child.order

    def is_number(self, column: Column) -> bool:
        """Tell whether the sampler numbers this column: the key, and the place of a row."""
        return column.name in (self.key, self.place)

    def numbers(self, frame: pd.DataFrame, column: Column) -> pd.Series[Any]:
        """Return the cells of a column that the sampler numbers, without the prefix of a text key.

        A text key without the prefix stays text, and so is not a number.
        """
        cells = frame[column.name]
        if column.name != self.key or not column.kind.is_text:
            return cells
        of_text, texts = pd.factorize(cells.to_numpy(dtype=object))
        bare = [
            str(text).removeprefix(PREFIX) if str(text).startswith(PREFIX) else f"?{text}"
            for text in texts
        ]
        return pd.Series(np.array([*bare, ""], dtype=object)[of_text], index=cells.index)

    def is_measured(self, column: Column) -> bool:
        """Tell whether the cells of this column are values of the tests that their rows name."""
        return self.series is not None and column.name == self.series.value

    def variables(self) -> Iterator[tuple[Column, str | None]]:
        """Yield all that varies: each column, or a test in place of a column, with its name.

        Numbers that the sampler gives are left out, and each test stands for its own values.
        """
        for column in self.schema.modelled:
            if self.is_measured(column) and self.series is not None:
                yield from ((test, test.name) for test in self.series.columns)
            elif not self.is_number(column):
                yield column, None


def synthetic_tables(schema: AnySchema) -> dict[str, SyntheticTable]:
    """Return every synthetic table of a schema by name, that of patients first.

    >>> from dpsynth.schema import LinkedSchema
    >>> list(synthetic_tables(Schema.load("demo")))
    ['synthetic']
    >>> [table.key for table in synthetic_tables(LinkedSchema.load("nafld")).values()]
    ['id', 'id', 'id']
    """
    if isinstance(schema, Schema):
        return {SINGLE: SyntheticTable(SINGLE, schema)}
    children = {child.name: child for child in schema.children}
    tables = {}
    for name, written in published_tables(schema).items():
        child = children.get(name)
        key = schema.key if child is None else child.key
        tables[name] = SyntheticTable(name, written, key, child)
    return tables


def as_number(column: Column) -> Column:
    """Return a column of numbers that the sampler gave as whole numbers, also where it is text."""
    return replace(column, type="integer", minimum=1, maximum=MOST)


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
        ends: tuple[Bound | None, Bound | None] = (schema.start, schema.start)
        if isinstance(child.origin, str):
            origin = schema.patients.column(child.origin)
            ends = origin.minimum, origin.maximum
        low = _moved(ends[0], window.first * window.seconds, column)
        high = _moved(ends[1], window.last * window.seconds + DAY, column)
    roles = frozenset({"time"})
    own: dict[str, Any] = {"roles": roles, "minimum": low, "maximum": high, "required": True}
    return replace(column, **own, step=None, calendar=())


def _moved(bound: Bound | None, seconds: int, column: Column) -> Bound:
    """Return the day of a bound of the origin some seconds later, of the type of the column."""
    assert isinstance(bound, date)  # of every date that counts as an origin; datetimes are dates
    at = bound if isinstance(bound, datetime) else datetime(bound.year, bound.month, bound.day)
    moved = at + timedelta(seconds=seconds)
    kind = column.kind
    own: Bound = kind.bound(kind.value(datetime(moved.year, moved.month, moved.day)))
    return own


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
