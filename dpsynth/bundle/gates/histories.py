"""What synthetic patients of linked tables look like in time, for the page of a bundle.

A pure function of the synthetic tables and the schema: sample patients, rows per patient, courses
of values, and curves of events. No evaluation takes part, so nothing here says how close synthetic
patients are to real ones, and `verify` computes it again from the tables of the bundle.

The share of synthetic patients without an event over time, by Kaplan and Meier.

Kaplan and Meier, Nonparametric Estimation from Incomplete Observations, JASA 53, 1958.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.bundle.format import table_path
from dpsynth.bundle.gates.profile import Bin, RuleCount
from dpsynth.encoding import typed_frames, values_of
from dpsynth.schema import (
    AnySchema,
    Column,
    LinkedSchema,
    PatientRows,
    Schema,
    SyntheticTable,
    declared_counts,
    declares,
    synthetic_tables,
    unit_of,
)
from dpsynth.schema.relations import elapsed, in_time_units

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

_One = TypeVar("_One")
PATIENTS = 12  # whose follow-up is drawn line by line
COURSES, LINES = 6, 24  # pictures of values, and patients in each
PARTS = 12  # of the window, in which values of all patients are summed up
MIN_ROWS = 30  # in a part


@dataclass(frozen=True)
class SamplePatient:
    """A synthetic patient as a line in time.

    Attributes:
        key: her number.
        first, last: day of her first row, or 0 if that is earlier; last day of follow-up.
        rows: the days of her rows in each table that has a time, in order.
        events: what happened to her, with its day.
    """

    key: int
    first: float
    last: float
    rows: tuple[tuple[float, ...], ...]
    events: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Course:
    """How a value develops, over days or over the numbers of rows.

    Attributes:
        table, name, unit: of the column or test.
        timed: whether ``x`` are days since the origin; else the numbers of a patient's rows.
        lines: the values of single patients with several rows.
        quartiles: x, lower quartile, median, upper quartile and number of rows of all patients.
    """

    table: str
    name: str
    unit: str
    timed: bool
    lines: tuple[tuple[tuple[float, float], ...], ...]
    quartiles: tuple[tuple[float, float, float, float, int], ...]


@dataclass(frozen=True)
class HistoryProfile:
    """What synthetic patients look like in time.

    Attributes:
        patients: how many there are.
        first, last: day of the window; 0 and 0 without one.
        timed: tables whose rows are drawn as ticks, in order.
        samples, counts, courses, curves: see there.
        values: how many columns and tests are numbers; some of each table have a course.
        noun: what time is counted in: days, hours or minutes.
    """

    patients: int
    first: int
    last: int
    timed: tuple[str, ...]
    samples: tuple[SamplePatient, ...]
    counts: tuple[RowCounts, ...]
    courses: tuple[Course, ...]
    curves: tuple[EventCurve, ...]
    values: int = 0
    noun: str = "day"

    @classmethod
    def of(cls, folder: Path, schema: LinkedSchema) -> HistoryProfile:
        """Compute it from the tables of the bundle in ``folder``.

        Raises:
            TableError: a cell is not what the schema allows, or a table cannot be read.
        """
        own, *children = synthetic_tables(schema).values()
        people = PatientDays.of(folder, own, schema)
        tables = [_Rows.of(folder, table, people, schema) for table in children]
        repeated = [rows for rows in tables if not rows.is_events]
        courses = [list(rows.courses(schema)) for rows in repeated]
        window = schema.window
        return cls(
            len(people.keys),
            0 if window is None else window.first,
            0 if window is None else window.last,
            tuple(rows.table.name for rows in repeated if rows.days is not None),
            () if window is None else _samples(people, tables),
            tuple(
                count
                for rows in repeated
                for count in row_counts(
                    rows.table.name, rows.owners, rows.days, rows.named, len(people.keys)
                )
            ),
            tuple(_some_of_each(courses, COURSES)),
            tuple(curve for rows in tables for curve in _curves(rows, people)),
            sum(map(len, courses)),
            "day" if window is None else window.noun,
        )


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of a table, in the order of its file: by patient, and then in order.

    Attributes:
        table: its declaration.
        owners: the place of each row's patient.
        days: since the origin; None without a time.
        named: the place of each row's test or event among those declared; None without.
        values: of each column of numbers, and of all tests together.
    """

    table: SyntheticTable
    owners: Ints
    days: Floats | None
    named: Ints | None
    values: dict[str, Floats]

    @classmethod
    def of(
        cls, folder: Path, table: SyntheticTable, people: PatientDays, schema: LinkedSchema
    ) -> _Rows:
        """Read what is needed of a table."""
        child = table.child
        assert child is not None
        named = child.once if child.series is None else child.series.column
        numbers = {one.name for one, test in table.variables() if test is None and _is_number(one)}
        numbers -= {child.time}  # days are no values
        measured = set() if child.series is None else {child.series.value}
        names = {child.key, *filter(None, (child.time, named)), *numbers, *measured}
        found = read_columns(folder, table, names)
        owners = np.searchsorted(people.keys, found[child.key]).astype(np.int64)
        days = None
        if child.time is not None:
            days = found[child.time]
            if child.origin is not None:
                kind = table.schema.column(child.time).kind
                times = in_time_units(days, kind, schema.time_seconds)
                days = elapsed(times, people.origins[owners])
        values = {name: found[name] for name in numbers | measured}
        kinds = None if named is None else found[named].astype(np.int64)
        return cls(table, owners, days, kinds, values)

    @property
    def is_events(self) -> bool:
        """Whether a row is an event."""
        return self.table.child is not None and self.table.child.once is not None

    def courses(self, schema: LinkedSchema) -> Iterator[Course]:
        """Yield the courses of the columns of numbers, or of the tests that are numbers."""
        series = self.table.series
        for column, test in self.table.variables():
            if not _is_number(column) or (test is None and column.name not in self.values):
                continue
            if test is None or series is None or self.named is None:
                values, rows = self.values[column.name], np.arange(len(self.owners))
            else:
                number = self.table.schema.column(series.column).levels.index(test)
                values, rows = self.values[series.value], np.flatnonzero(self.named == number)
            rows = rows[np.isfinite(values[rows])]
            if len(rows):
                yield self._course(column, values[rows], rows, schema)

    def _course(self, column: Column, values: Floats, rows: Ints, schema: LinkedSchema) -> Course:
        owners = self.owners[rows]
        if self.days is None or schema.window is None:
            at = (np.arange(len(owners)) - np.searchsorted(owners, owners) + 1).astype(float)
            edges = np.arange(1, PARTS + 2) - 0.5
        else:
            at = self.days[rows]
            edges = np.linspace(schema.window.first, schema.window.last + 1, PARTS + 1)
        lines = []
        for patient in _spread(np.flatnonzero(np.bincount(owners) > 1), LINES):
            start, stop = np.searchsorted(owners, [patient, patient + 1])
            lines.append(
                tuple(zip(at[start:stop].tolist(), values[start:stop].tolist(), strict=True))
            )
        part = np.searchsorted(edges, at, side="right") - 1
        quartiles = []
        for number in range(PARTS):
            inside = np.sort(values[part == number])
            if len(inside) >= MIN_ROWS:
                places = [-(-len(inside) * quarter // 4) - 1 for quarter in (1, 2, 3)]
                low, middle, high = inside[places].tolist()
                x = float((edges[number] + edges[number + 1]) / 2)
                quartiles.append((x, low, middle, high, len(inside)))
        timed = self.days is not None
        unit = unit_of(column).strip("{}")
        return Course(self.table.name, column.name, unit, timed, tuple(lines), tuple(quartiles))


def _is_number(column: Column) -> bool:
    return column.kind.is_quantity and not column.is_categorical


def _spread(places: Ints, count: int) -> list[int]:
    """Choose places that are spread evenly over all of them.

    >>> _spread(np.arange(10), 3)
    [1, 5, 8]
    """
    count = min(count, len(places))
    return [int(places[(2 * n + 1) * len(places) // (2 * count)]) for n in range(count)]


def _some_of_each(groups: Sequence[Sequence[_One]], count: int) -> list[_One]:
    """Take the first of each group, then the second, up to a count; in the order of the groups.

    >>> _some_of_each([["a1", "a2", "a3"], [], ["b1"]], 3)
    ['a1', 'a2', 'b1']
    """
    places = sorted(
        (place, number) for number, one in enumerate(groups) for place in range(len(one))
    )
    return [groups[number][place] for number, place in sorted((n, p) for p, n in places[:count])]


def _samples(people: PatientDays, tables: list[_Rows]) -> tuple[SamplePatient, ...]:
    found = []
    for patient in _spread(np.arange(len(people.keys)), PATIENTS):
        rows: list[tuple[float, ...]] = []
        events: list[tuple[str, float]] = []
        for table in tables:
            if table.days is None:
                continue
            own = np.arange(*np.searchsorted(table.owners, [patient, patient + 1]))
            days = tuple(table.days[own].tolist())
            if table.is_events:
                names = _events(table)
                events += [(names[table.named[one]], float(table.days[one])) for one in own]  # type: ignore[index]
            else:
                rows.append(days)
        every = [0.0, *(day for days in rows for day in days), *(day for _, day in events)]
        last = float(people.ends[patient])
        found.append(
            SamplePatient(int(people.keys[patient]), min(every), last, tuple(rows), tuple(events))
        )
    return tuple(found)


def _events(rows: _Rows) -> list[str]:
    """Name the events of a table, in the declared order."""
    assert rows.table.child is not None and rows.table.child.once is not None
    column = rows.table.schema.column(rows.table.child.once)
    return [column.labels.get(level, level) for level in column.levels]


def _curves(rows: _Rows, people: PatientDays) -> Iterator[EventCurve]:
    """Yield the curve of each event of a table."""
    if not rows.is_events or rows.days is None or rows.named is None:
        return
    for number, name in enumerate(_events(rows)):
        onset = np.full(len(people.keys), np.inf)
        own = rows.named == number
        onset[rows.owners[own]] = rows.days[own]
        yield event_curve(name, onset, people.ends)


@dataclass(frozen=True)
class EventCurve:
    """The share of patients without an event over time, by Kaplan and Meier.

    Attributes:
        event: its name.
        patients: who had not had it on day 0.
        happened: how many of them had it later.
        steps: days, and the share without it from then on.
    """

    event: str
    patients: int
    happened: int
    steps: tuple[tuple[float, float], ...]


def event_curve(name: str, onset: Floats, ends: Floats) -> EventCurve:
    """Return the curve of those who had not had the event on day 0.

    Args:
        name: of the event.
        onset: its day for each patient; infinite where it did not come.
        ends: last day of follow-up of each patient.

    >>> onset, ends = np.array([np.inf, 2, np.inf, 4]), np.array([1.0, 5, 2, 6])
    >>> event_curve("stroke", onset, ends).steps
    ((0.0, 1.0), (2.0, 0.6666666666666667), (4.0, 0.0))
    """
    at_risk = (onset > 0) & (ends >= 0)
    came = (onset <= ends)[at_risk]
    days = np.minimum(onset, ends)[at_risk]
    when, events = np.unique(days[came], return_counts=True)
    left = len(days) - np.searchsorted(np.sort(days), when)
    shares = np.cumprod(1 - events / np.maximum(left, 1))
    steps = ((0.0, 1.0), *zip(when.tolist(), shares.tolist(), strict=True))
    return EventCurve(name, len(days), int(came.sum()), steps)


@dataclass(frozen=True, eq=False)
class PatientDays:
    """What the table of patients says of the days of each one.

    Attributes:
        keys: in the order of the rows.
        origins: the time of the origin since 1970-01-01, in the unit of time; NaN without one.
        ends: the last day of follow-up since the origin.
    """

    keys: Floats
    origins: Floats
    ends: Floats

    @classmethod
    def of(cls, folder: Path, table: SyntheticTable, schema: LinkedSchema) -> PatientDays:
        """Read them."""
        assert table.key is not None
        end = None if schema.end is None else table.schema.column(schema.end)
        base = schema.origin
        if end is not None and end.interval is not None:
            base = end.interval.base  # which is the origin, if there is one
        names = {table.key, *filter(None, (base, schema.end))}
        values = read_columns(folder, table, names)
        keys = values[table.key]
        last = np.inf if schema.window is None else schema.window.last
        origins = np.full(len(keys), schema.day_zero)
        if base is not None:
            kind = table.schema.column(base).kind
            origins = in_time_units(values[base], kind, schema.time_seconds)
        ends = np.full(len(keys), last, dtype=np.float64)
        if end is not None:
            days = values[end.name]
            if end.kind.is_time:
                days = elapsed(in_time_units(days, end.kind, schema.time_seconds), origins)
            ends = np.fmin(days, last)  # a missing end is the window's
        return cls(keys, origins, ends)


def read_columns(folder: Path, table: SyntheticTable, names: set[str]) -> dict[str, Floats]:
    """Read some columns of a table as numbers."""
    columns = [column for column in table.schema.modelled if column.name in names]
    parts: dict[str, list[Floats]] = {column.name: [np.empty(0)] for column in columns}
    for frame in typed_frames(folder / table_path(table.name), table):
        for column in columns:
            parts[column.name].append(values_of(frame, column, table))
    return {name: np.concatenate(part) for name, part in parts.items()}


MAX_BARS = 30  # of rows per patient
GAPS = (0, 1, 8, 31, 62, 92, 183, 275, 366, 549, 732, 1462)  # days, where their ranges begin


@dataclass(frozen=True)
class RowCounts:
    """How many rows patients have in a table, or how many days lie between their rows.

    Attributes:
        table: its name.
        days: whether it counts the days from each row to the patient's next one; else patients by
            their number of rows.
        whole: how many patients or steps there are.
        bins: how many of them each range has.
    """

    table: str
    days: bool
    whole: int
    bins: tuple[Bin, ...]


def row_counts(
    table: str, owners: Ints, days: Floats | None, kinds: Ints | None, patients: int
) -> Iterator[RowCounts]:
    """Count patients by their number of rows, and steps from row to row by their days.

    Args:
        table: its name.
        owners: the place of each row's patient; rows are by patient, and then in order.
        days: of each row; None without a time.
        kinds: the test of each row, within which steps are counted; None without.
        patients: how many there are.
    """
    counts = np.bincount(owners, minlength=patients)
    most = int(counts.max(initial=0))
    width = -(-(most + 1) // MAX_BARS)
    starts = range(0, most + 1, width)
    labels = [_range(first, min(first + width - 1, most)) for first in starts]
    yield RowCounts(table, False, patients, _bins(counts // width, labels))
    if days is None:
        return
    own = np.zeros(len(owners), dtype=np.int64) if kinds is None else kinds
    order = np.lexsort((own, owners))  # stable: rows of a test stay in order of time
    alike = (np.diff(owners[order]) == 0) & (np.diff(own[order]) == 0)
    gaps = np.diff(days[order])[alike]
    labels = [_range(low, high - 1) for low, high in zip(GAPS, GAPS[1:], strict=False)]
    labels.append(f"{GAPS[-1]:,} or more")
    if len(gaps):
        parts = np.searchsorted(GAPS, gaps, side="right") - 1
        yield RowCounts(table, True, len(gaps), _bins(parts, labels))


def _range(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,} to {last:,}"


def _bins(places: Ints, labels: Sequence[str]) -> tuple[Bin, ...]:
    counts = np.bincount(places, minlength=len(labels)).tolist()
    return tuple(Bin(label, count) for label, count in zip(labels, counts, strict=True))


def temporal_counts(folder: Path, schema: AnySchema) -> tuple[RuleCount, ...]:
    """Count the patients who break each temporal rule, and each declaration of histories.

    There are none of a single table.

    Raises:
        TableError: a cell is not what the schema allows, or a table cannot be read.
    """
    if isinstance(schema, Schema) or not (schema.rules or declares(schema)):
        return ()
    frames = {
        name: pd.concat(typed_frames(folder / table_path(name), table), ignore_index=True)
        for name, table in synthetic_tables(schema).items()
    }
    rows = PatientRows(frames, schema)
    broken = (int(np.count_nonzero(~rule.holds_in(rows))) for rule in schema.rules)
    return (
        *(RuleCount(rule.text, count) for rule, count in zip(schema.rules, broken, strict=True)),
        *(RuleCount(one.text, one.patients) for one in declared_counts(rows, schema)),
    )
