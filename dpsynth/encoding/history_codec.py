"""What the tables of a schema are coded as: columns, series and events; from the schema alone.

Nothing is fitted, so that widths, sizes and ranges are the same whatever the tables hold.

Numbers of linked tables, rounded as people round them: by habits that a fit has found.

A history is drawn as codes near each other, so its numbers spread smoothly. Where a fit saw that
people write whole or heaped numbers, each drawn point is rounded to a coarser unit by chance, or
becomes a finer one near it, the finest grain first. A point moves by no more than half of a unit,
but next to a point without a grain (zero, a bound).

Rates follow from noisy counts and drawn histories: post-processing (Dwork and Roth 2014, "The
Algorithmic Foundations of Differential Privacy", proposition 2.1).

Coded histories back to tables: a frame for each, whose keys agree.

Everything here is post-processing of what a generator drew (Dwork and Roth, The Algorithmic
Foundations of Differential Privacy, 2014, Proposition 2.1); no private row is read.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.codec import Codec
from dpsynth.encoding.column_codecs import Coder, NumericCoder, coder_of
from dpsynth.encoding.grain import Grains, Raised, rounded
from dpsynth.encoding.histories import NEVER, Histories, SeriesRows
from dpsynth.encoding.history_calendar import (
    RowLimits,
    drawn_seconds,
    moved_days,
    part_columns,
)
from dpsynth.schema import ChildTable, Column, LinkedSchema, Schema, published_tables, text_keys
from dpsynth.schema.relations import SECONDS, in_time_units
from dpsynth.schema.types import DAY
from dpsynth.tables import texts_of, typed_series, typed_values

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FEW = 4  # categories of a column that may say how follow-up ended


@dataclass(frozen=True)
class CodedColumn:
    """A column as codes; see `Codec` for ``size``, ``cells``, ``points`` and ``parents``.

    ``grains`` says how many points of each round unit each of the cells stands for, and ``raised``
    how codes say the grain of a column that is a gap above others. ``low`` is the lower bound of a
    number in parts of its range, if it is above 0, and ``undeclared`` are the codes of no declared
    value.
    """

    name: str
    size: int
    cells: int
    points: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    grains: tuple[tuple[int, ...], ...] = ()
    raised: Raised | None = None
    low: float = field(default=0.0, repr=False)
    undeclared: tuple[int, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, name: str, coder: Coder) -> CodedColumn:
        """Return the codes of one column."""
        points = tuple(coder.grid.points.tolist()) if isinstance(coder, NumericCoder) else ()
        grains = _by_code(test_grains(coder))
        return cls(name, coder.size, len(points), points, grains=grains, low=lower_bound(coder))


def lower_bound(coder: Coder) -> float:
    """Return the lower bound of a number in parts of its range; 0 if it is not above 0."""
    if not isinstance(coder, NumericCoder):
        return 0.0
    lattice = coder.lattice
    return max(lattice.first, 0) / max(lattice.stride * (lattice.points - 1), 1)


def test_grains(coder: Coder) -> Grains | None:
    """Return the grains of a test's value, if it is a number that has some."""
    return Grains.of(coder) if isinstance(coder, NumericCoder) else None


def _by_code(grains: Grains | None) -> tuple[tuple[int, ...], ...]:
    return () if grains is None else tuple(map(tuple, grains.by_code.tolist()))


def _columns_of(codec: Codec) -> tuple[CodedColumn, ...]:
    """Return the columns of a codec."""
    parts = (codec.names, codec.sizes, codec.cells, codec.points, codec.parents)
    low = map(lower_bound, codec.coders)
    grains = map(_by_code, codec.grains)
    return tuple(map(CodedColumn, *parts, grains, codec.raised, low, codec.undeclared))


@dataclass(frozen=True)
class CodedSeries:
    """Rows of one kind that a patient has in order: a wide table, or one test of a long one.

    Attributes:
        name: of the table, with the test in a long one.
        values: the columns of a row; in a long table the test's value first.
        max_rows: of a patient.
    """

    name: str
    values: tuple[CodedColumn, ...]
    max_rows: int


@dataclass(frozen=True)
class CodedTable:
    """One table of repeated rows.

    Attributes:
        name: of the table.
        series: one for a wide table, one for each test of a long table.
        timed: whether rows have a day.
        longest: days that two rows of a patient lie apart at most; 0 without time.
        long: whether it is a long table.
    """

    name: str
    series: tuple[CodedSeries, ...]
    timed: bool
    longest: int
    long: bool


@dataclass(frozen=True)
class ChildCodec:
    """The coders of a child table.

    Attributes:
        child: the table.
        codec: of its modelled columns, that of tests and of events among them; last come the parts
            of the calendar that its time keeps.
        tests: the coder of each test's value, in a long table.
    """

    child: ChildTable
    codec: Codec
    tests: tuple[Coder, ...]

    @classmethod
    def of(cls, child: ChildTable) -> ChildCodec:
        """Derive the coders from public facts."""
        decimal = child.schema.dialect.decimal
        columns = () if child.series is None else child.series.columns
        schema = replace(child.schema, columns=(*child.schema.columns, *part_columns(child)))
        return cls(child, Codec(schema), tuple(coder_of(c, decimal) for c in columns))

    @cached_property
    def naming(self) -> int | None:
        """The place of the codec's column that names the test, or the event; None if wide."""
        named = self.child.once if self.child.series is None else self.child.series.column
        return None if named is None else self.codec.names.index(named)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The tests or events, by code; a cell of a higher code names none."""
        if self.child.series is not None:
            return self.child.series.names
        return () if self.child.once is None else self.child.schema.column(self.child.once).levels

    @cached_property
    def others(self) -> tuple[int, ...]:
        """The places of the codec's columns that are values of a row."""
        places = range(len(self.codec.names))
        return tuple(place for place in places if place != self.naming)

    @cached_property
    def series(self) -> tuple[CodedSeries, ...]:
        """The series of the table; one for each test of a long one."""
        codec, child, most = self.codec, self.child, self.child.schema.unit.max_rows
        columns = _columns_of(codec)
        values = tuple(columns[place] for place in self.others)
        if child.series is None:
            return (CodedSeries(child.name, values, most),)
        value = child.series.value
        return tuple(
            CodedSeries(f"{child.name} {test}", (CodedColumn.of(value, coder), *values), most)
            for test, coder in zip(self.names, self.tests, strict=True)
        )

    def least_days(self, place: int, seconds: int = DAY) -> Ints:
        """Return the fewest days from the row's own to that of each code of a column, at least 0.

        Args:
            place: of a column of whole days, or of a date that is declared by its distance.
            seconds: how long a day is: in the unit of the window.
        """
        column = self.codec.schema.column(self.codec.names[place])
        found = least_days(coder_of(column, self.child.schema.dialect.decimal), 0)
        interval = self.child.schema.column(column.name).interval
        if interval is not None:
            found = found * SECONDS[interval.unit] // seconds
        return np.maximum(found, 0)

    def following(self, rates: Sequence[Floats]) -> ChildCodec:
        """Return coders that round, by the rates of each series' values.

        A column beside a test is rounded alike in all series: by the mean of their rates.
        """
        beside = np.mean([own[bool(self.tests) :] for own in rates], axis=0)
        whole = np.zeros((len(self.codec.names), beside.shape[1]))
        whole[list(self.others)] = beside
        codec = self.codec.following_grains(whole, RoundingCoder.following)
        tests = []
        for coder, own in zip(self.tests, rates, strict=bool(self.tests)):
            grains = test_grains(coder)
            if grains is not None and isinstance(coder, NumericCoder):
                coder = RoundingCoder.following(coder, own[0][: len(grains.units)])
            tests.append(coder)
        return replace(self, codec=codec, tests=tuple(tests))


class HistoryCodec:
    """The codes of linked tables.

    Attributes:
        schema: of the tables.
        patients: the codec of the table of patients.
        children: the coders of every other table.
    """

    def __init__(self, schema: LinkedSchema) -> None:
        """Derive the codes from public facts.

        Raises:
            SchemaError: a column's bounds and step do not make a lattice.
        """
        self.schema = schema
        self.patients = Codec(schema.patients)
        self.children = tuple(ChildCodec.of(child) for child in schema.children)

    def __repr__(self) -> str:
        """Name the schema."""
        return short_repr(self, f"schema {self.schema.name}")

    def following(self, found: Roundings | None) -> HistoryCodec:
        """Return a codec that rounds what it decodes as a fit has found; the same one for None."""
        if found is None:
            return self
        codec, tables = HistoryCodec(self.schema), iter(found.tables)
        codec.patients = self.patients.following_grains(found.patients, RoundingCoder.following)
        codec.children = tuple(
            one if one.child.once is not None else one.following(next(tables))
            for one in self.children
        )
        return codec

    @property
    def first(self) -> int:
        """The first day of the window; 0 where no table has a time."""
        return 0 if self.schema.window is None else self.schema.window.first

    @property
    def last(self) -> int:
        """The last day of the window; 0 where no table has a time."""
        return 0 if self.schema.window is None else self.schema.window.last

    @cached_property
    def baseline(self) -> tuple[CodedColumn, ...]:
        """The columns of the table of patients; the end of follow-up, a day, has no grains."""
        return tuple(
            replace(column, grains=(), raised=None) if column.name == self.schema.end else column
            for column in _columns_of(self.patients)
        )

    @cached_property
    def events(self) -> tuple[str, ...]:
        """What can happen once, of all tables; with the table's name where there are several."""
        tables = [one for one in self.children if one.child.once is not None]
        if len(tables) == 1:
            return tables[0].names
        return tuple(f"{one.child.name} {name}" for one in tables for name in one.names)

    @cached_property
    def ended_by(self) -> int | None:
        """The place among `events` of the one that ends follow-up."""
        tables = [one.names for one in self.children if one.child.once is not None]
        names = [*itertools.chain.from_iterable(tables)]
        return names.index(self.schema.ended_by) if self.schema.ended_by in names else None

    @cached_property
    def status(self) -> int | None:
        """The place in the baseline of how follow-up ended: the one column of role ``event``.

        None where there is none, or several, or one of more than a few categories; and where an
        event says how follow-up ended.
        """
        if self.schema.end is None or self.schema.ended_by is not None:
            return None
        columns = [self.patients.schema.column(name) for name in self.patients.names]
        events = [place for place, column in enumerate(columns) if "event" in column.roles]
        if len(events) != 1 or not columns[events[0]].is_categorical:
            return None
        return events[0] if self.patients.sizes[events[0]] <= FEW else None

    @cached_property
    def tables(self) -> tuple[CodedTable, ...]:
        """The tables of repeated rows; a gap is at most the window where none is declared.

        How long a row lasts inside which others lie has no grains: rounded, it would end elsewhere.
        """
        lengths = {
            (one.child.inside.table, one.child.inside.length)
            for one in self.children
            if one.child.inside is not None
        }
        return tuple(
            CodedTable(
                name=one.child.name,
                series=tuple(
                    replace(
                        series,
                        values=tuple(
                            replace(value, grains=(), raised=None)
                            if (one.child.name, value.name) in lengths
                            else value
                            for value in series.values
                        ),
                    )
                    for series in one.series
                ),
                timed=one.child.time is not None,
                longest=0
                if one.child.time is None
                else one.child.longest_gap or self.last - self.first,
                long=one.child.series is not None,
            )
            for one in self.children
            if one.child.once is None
        )

    @cached_property
    def end(self) -> tuple[int, Ints] | None:
        """Where the end of follow-up is in the baseline, and the day of each of its codes.

        Where a code stands for several days, it is the first of them, so that a row up to that day
        lies within follow-up whichever is drawn. A missing end is the window's.
        """
        if self.schema.end is None:
            return None
        place = self.patients.names.index(self.schema.end)
        column = self.patients.schema.column(self.schema.end)
        zero = int(self.schema.day_zero) if column.kind.is_time else 0
        coder = coder_of(column, self.schema.patients.dialect.decimal)
        days = least_days(coder, self.last + zero) - zero
        return place, np.clip(days, 0, self.last)


def least_days(coder: Coder, missing: int) -> Ints:
    """Return the fewest days that each code of a whole number of days stands for.

    Args:
        coder: of the column.
        missing: what a missing number stands for.
    """
    assert isinstance(coder, NumericCoder)  # a whole number or a date, as the reader checks
    grid = coder.grid
    starts, rounds = grid.edges[:-1][grid.span], grid.round[grid.span]
    alone = (rounds != -1) & (np.arange(grid.codes) == grid.first[grid.span])
    starts = np.where(alone, rounds, starts + (~alone & (rounds == starts)))
    days = np.full(coder.size, missing, dtype=np.int64)
    days[: grid.codes] = np.rint(coder.lattice.values(starts))
    return days


@dataclass(frozen=True)
class RoundingCoder(NumericCoder):
    """A numeric column whose drawn points are rounded.

    Attributes:
        rates: by unit, the coarsest first. Above 0: how likely a point of this grain is rounded to
            a coarser one. Below 0: minus how likely a point of a coarser grain gets this one.
    """

    rates: tuple[float, ...] = ()

    @classmethod
    def following(cls, coder: NumericCoder, rates: Floats) -> NumericCoder:
        """Let the coder of a column with grains follow rates; without any, it stays as it is."""
        if not rates.any():
            return coder
        return cls(coder.column, coder.decimal, coder.lattice, tuple(rates.tolist()))

    def decode(self, codes: npt.NDArray[np.integer], rng: np.random.Generator) -> pd.Series[Any]:
        """Draw a lattice point of each code, and round it."""
        cells = codes.astype(np.int64)
        missing = cells >= self.grid.codes
        cells[missing] = 0
        grains = Grains.of(self)
        assert grains is not None
        widths = [unit // self.lattice.stride for unit in grains.units]
        found = rounded(self.grid.draw(cells, rng), grains.of_points, widths, self.rates, rng)
        return typed_series(self.lattice.values(found), missing, self.column)


@dataclass(frozen=True, eq=False, repr=False)
class Roundings:
    """Rates of all columns of linked tables that are rounded.

    Attributes:
        patients: of the columns of the table of patients, ``[columns, units]``.
        tables: of the values of each series of each table of rows, ``[values, units]``.

    For a column that is a gap above others, its weights stand in place of rates, as in `landed`.
    """

    patients: Floats
    tables: tuple[tuple[Floats, ...], ...]

    def __repr__(self) -> str:
        """Say for how many series there are rates."""
        return short_repr(self, f"{sum(map(len, self.tables))} series")

    def arrays(self) -> dict[str, Floats]:
        """Give the rates by name."""
        named = {"grains.patients": self.patients}
        for place, table in enumerate(self.tables):
            named |= {f"grains.table{place}.{series}": own for series, own in enumerate(table)}
        return named

    @classmethod
    def restore(
        cls, arrays: Mapping[str, npt.NDArray[Any]], series: Sequence[int]
    ) -> Roundings | None:
        """Read what `arrays` gave; None if there is nothing.

        Args:
            arrays: of a run.
            series: how many each table has.
        """
        if "grains.patients" not in arrays:
            return None
        tables = tuple(
            tuple(arrays[f"grains.table{place}.{number}"] for number in range(count))
            for place, count in enumerate(series)
        )
        return cls(arrays["grains.patients"], tables)


def decode_histories(
    histories: Histories, codec: HistoryCodec, rng: np.random.Generator
) -> dict[str, pd.DataFrame]:
    """Return a frame of typed cells for each table, with the columns of `published_tables`.

    The key of a patient is her place among the histories, from 0, as a whole number in every table;
    `with_keys` gives the keys that are written. Rows stand by patient, then by day. A date is the
    patient's origin and the days since then; the row of a patient without an origin has none, and
    is left out. A date and time is at midnight, unless its column keeps the hour.

    Args:
        histories: as a generator draws them.
        codec: of their schema.
        rng: draws each value among those that its code stands for.
    """
    tables = published_tables(codec.schema)
    own = codec.schema.patients
    patients = codec.patients.decode(histories.baseline, rng)
    patients[codec.schema.key] = np.arange(len(histories))
    frames = {own.name: _in_order(patients, tables[own.name])}
    origins = _origins(patients, codec.schema)
    onsets, series = iter(_by_table(histories.onsets, codec)), iter(histories.rows)
    for child in codec.children:
        name = child.child.name
        if child.child.once is not None:
            frame = _events(next(onsets), child, rng)
        else:
            limits = None if origins is None else _Limits(origins, histories.ends, codec)
            frame = _rows(next(series), child, tables[name], limits, rng)
        seconds = codec.schema.time_seconds
        frame = _dated(frame, child.child, tables[name], origins, seconds)
        frames[name] = _in_order(frame, tables[name])
    return frames


def with_keys(
    frames: dict[str, pd.DataFrame], schema: LinkedSchema, keys: Ints
) -> dict[str, pd.DataFrame]:
    """Return the frames with the key of each patient in place of her number, and none without one.

    Args:
        frames: as `decode_histories` returns them.
        schema: of the tables.
        keys: of each patient; -1 of those who are left out.
    """
    columns = {schema.patients.name: schema.key} | {c.name: c.key for c in schema.children}
    tables = published_tables(schema)
    keyed = {}
    for name, frame in frames.items():
        column = columns[name]
        own = keys[frame[column].to_numpy()]
        frame = frame[own >= 0].reset_index(drop=True)
        is_text = tables[name].column(column).kind.is_text
        of_rows = own[own >= 0]
        keyed[name] = frame.assign(**{column: text_keys(of_rows) if is_text else of_rows})
    return keyed


def _in_order(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    return frame[[column.name for column in schema.modelled]]


def _texts(numbers: Ints) -> npt.NDArray[np.object_]:
    return np.array([str(number) for number in numbers.tolist()], dtype=object)


def _by_table(onsets: Ints, codec: HistoryCodec) -> list[Ints]:
    """Return the columns of onsets, table by table."""
    widths = [len(one.names) for one in codec.children if one.child.once is not None]
    return np.split(onsets, np.cumsum(widths)[:-1], axis=1) if widths else []


def _events(onsets: Ints, codec: ChildCodec, rng: np.random.Generator) -> pd.DataFrame:
    """Return a row for each event of each patient, with its day."""
    child = codec.child
    assert child.once is not None and child.time is not None
    days, events = onsets.T.ravel(), np.repeat(np.arange(onsets.shape[1]), len(onsets))
    patients = np.tile(np.arange(len(onsets)), onsets.shape[1])
    kept = np.flatnonzero(days != NEVER)
    kept = kept[np.lexsort((events[kept], days[kept], patients[kept]))]
    frame = codec.codec.decode(events[kept, None].astype(np.uint16), rng)
    return frame.assign(**{child.key: patients[kept], child.time: days[kept]})


@dataclass(frozen=True, eq=False)
class _Limits:
    """Between which days rows may lie: from the origins of patients to the ends of follow-up."""

    origins: Floats
    ends: Ints
    codec: HistoryCodec

    def of(self, patients: Ints, child: ChildTable) -> RowLimits:
        """Return those of rows of patients with an origin."""
        origins = self.origins[patients].astype(np.int64)
        longest = child.longest_gap or self.codec.last - self.codec.first
        return RowLimits(origins + self.codec.first, origins + self.ends[patients], longest)


def _placed(
    rows: SeriesRows, child: ChildTable, limits: _Limits | None, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return the day of each row of a series since the origin, and its second of the day.

    Where the time of the table keeps parts of the calendar, these are the last values of a row.
    """
    days, seconds, parts = rows.days, np.zeros(len(rows.days), dtype=np.int64), child.calendar
    if not parts or limits is None or child.time is None:
        return days, seconds
    dated = np.flatnonzero(np.isfinite(limits.origins[rows.patients]))
    patients, codes = rows.patients[dated], rows.values[dated, -len(parts) :].astype(np.int64)
    wanted = dict(zip(parts, codes.T, strict=True))
    origins = limits.origins[patients].astype(np.int64)
    moved = moved_days(patients, days[dated] + origins, wanted, limits.of(patients, child))
    if "hour" in wanted:
        column = child.schema.column(child.time)
        step = int(column.step or column.kind.step or 1)
        seconds[dated] = drawn_seconds(patients, moved, wanted["hour"], step, rng)
    days = days.copy()
    days[dated] = moved - origins
    return days, seconds


def _moments(
    series: tuple[SeriesRows, ...],
    child: ChildTable,
    limits: _Limits | None,
    rng: np.random.Generator,
) -> tuple[Ints, Ints]:
    """Return days and seconds of the rows of all series, one series after the other.

    Tests of one day are taken together: a patient's first values of each test on a day have one
    moment, that of the first of these tests, and so have her second ones.
    """
    if len(series) == 1 or not child.calendar:
        placed = [_placed(rows, child, limits, rng) for rows in series]
        days, seconds = (np.concatenate(parts) for parts in zip(*placed, strict=True))
        return days, seconds
    again = [_occurrences(rows) for rows in series]
    patients, days, ranks = (
        np.concatenate(parts)
        for parts in zip(
            *((rows.patients, rows.days, own) for rows, own in zip(series, again, strict=True)),
            strict=True,
        )
    )
    wide = len(child.calendar)
    codes = np.concatenate([rows.values[:, -wide:] for rows in series])
    order = np.lexsort((ranks, days, patients))  # of equal ones, the first series stands first
    keys = np.stack([patients, days, ranks])[:, order]
    begins = np.append(True, (np.diff(keys, axis=1) != 0).any(axis=0))[: len(order)]
    occasion = np.empty(len(order), dtype=np.int64)
    occasion[order] = np.cumsum(begins) - 1
    first = order[begins]
    taken = SeriesRows(patients[first], days[first], codes[first])
    of_days, of_seconds = _placed(taken, child, limits, rng)
    return of_days[occasion], of_seconds[occasion]


def _occurrences(rows: SeriesRows) -> Ints:
    """Return of each row how many rows before it the patient has on its day."""
    same = (np.diff(rows.patients) == 0) & (np.diff(rows.days) == 0)
    starts = np.flatnonzero(np.append(True, ~same)[: len(rows.days)])
    lengths = np.diff([*starts, len(rows.days)])
    return np.asarray(np.arange(len(rows.days)) - np.repeat(starts, lengths), dtype=np.int64)


def _rows(
    series: tuple[SeriesRows, ...],
    codec: ChildCodec,
    table: Schema,
    limits: _Limits | None,
    rng: np.random.Generator,
) -> pd.DataFrame:
    """Return the rows of a wide or long table, by patient and day.

    The time is the day since the origin, as the sampler draws it; a part of a day where the table
    keeps the hour.
    """
    child = codec.child
    patients = np.concatenate([rows.patients for rows in series])
    days, seconds = _moments(series, child, limits, rng)
    tests = np.repeat(np.arange(len(series)), [len(rows.patients) for rows in series])
    codes = np.concatenate([rows.values for rows in series])
    # rows of a test stand in their order already; lexsort keeps the order of equal ones
    order = np.lexsort((tests, seconds, days, patients))
    patients, days, tests, codes = patients[order], days[order], tests[order], codes[order]
    moments = days + seconds[order] / DAY
    whole = np.empty((len(codes), len(codec.codec.names)), dtype=np.uint16)
    if codec.naming is not None:
        whole[:, codec.naming] = tests
    whole[:, list(codec.others)] = codes[:, codes.shape[1] - len(codec.others) :]
    beside = None
    if child.time is not None and limits is not None and child.origin is not None:
        seconds_of = limits.codec.schema.time_seconds
        dates = _dates(moments + limits.origins[patients], table.column(child.time), seconds_of)
        beside = {child.time: dates}
    frame = codec.codec.decode(whole, rng, beside)
    frame = frame.assign(**{child.key: patients})
    if child.series is not None:
        value = child.series.value
        frame[value] = _values(codec, tests, codes[:, 0], table.column(value), rng)
    if child.time is not None:
        frame[child.time] = moments if child.calendar else days
    if child.order is not None:
        starts = np.flatnonzero(np.diff(patients, prepend=-1))
        place = np.arange(len(patients)) - np.repeat(starts, np.diff([*starts, len(patients)])) + 1
        is_text = table.column(child.order).kind.is_text
        frame[child.order] = _texts(place) if is_text else place
    return frame


def _values(
    codec: ChildCodec,
    tests: Ints,
    codes: npt.NDArray[np.uint16],
    column: Column,
    rng: np.random.Generator,
) -> pd.Series:
    """Return the value of each row of a long table, decoded by its own test."""
    assert codec.child.series is not None
    kinds = [test.kind for test in codec.child.series.columns]
    numbers = np.full(len(tests), np.nan)
    texts = np.full(len(tests), None, dtype=object)
    for place, coder in enumerate(codec.tests):
        rows = np.flatnonzero(tests == place)
        cells = coder.decode(codes[rows], rng)
        if column.kind.is_text:
            texts[rows] = texts_of(cells, boolean=True)
        else:
            numbers[rows] = typed_values(cells, kinds[place])
    if column.kind.is_text:
        return pd.Series(texts)
    return typed_series(numbers, np.isnan(numbers), column)


def _origins(patients: pd.DataFrame, schema: LinkedSchema) -> Floats | None:
    """Return each patient's origin in units of time since 1970-01-01; None without dates."""
    if schema.start is not None:
        return np.full(len(patients), schema.day_zero)
    if schema.origin is None:
        return None
    kind = schema.patients.column(schema.origin).kind
    values = typed_values(patients[schema.origin], kind)
    return in_time_units(values, kind, schema.time_seconds)


def _dated(
    frame: pd.DataFrame, child: ChildTable, table: Schema, origins: Floats | None, seconds: int
) -> pd.DataFrame:
    """Put dates in the place of days since the origin, where the table has dates."""
    if child.origin is None or child.time is None or origins is None:
        return frame
    days = frame[child.time].to_numpy() + origins[frame[child.key].to_numpy()]
    frame = frame[np.isfinite(days)].reset_index(drop=True)
    dates = _dates(days[np.isfinite(days)], table.column(child.time), seconds)
    return frame.assign(**{child.time: dates})


def _dates(times: Floats, column: Column, seconds: int) -> pd.Series:
    """Return units of time since 1970-01-01 as dates, with their parts; missing without one."""
    gone = ~np.isfinite(times)
    values = np.rint(np.where(gone, 0.0, times) * seconds) // column.kind.seconds
    return typed_series(values, gone, column)
