"""What the tables of a schema are coded as: columns, series and events; from the schema alone.

Nothing is fitted, so that widths, sizes and ranges are the same whatever the tables hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.codec import Codec
from dpsynth.encoding.column_codecs import Coder, NumericCoder, coder_of
from dpsynth.encoding.grain import Grains, Raised
from dpsynth.encoding.linked.rounding import RoundingCoder, Roundings
from dpsynth.schema import ChildTable, LinkedSchema

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FEW = 4  # categories of a column that may say how follow-up ended


@dataclass(frozen=True)
class CodedColumn:
    """A column as codes; see `Codec` for ``size``, ``cells``, ``points`` and ``parents``.

    ``grains`` says how many points of each round unit each of the cells stands for, and ``raised``
    how codes say the grain of a column that is a gap above others.
    """

    name: str
    size: int
    cells: int
    points: tuple[int, ...] = ()
    parents: tuple[int, ...] = ()
    grains: tuple[tuple[int, ...], ...] = ()
    raised: Raised | None = None

    @classmethod
    def of(cls, name: str, coder: Coder) -> CodedColumn:
        """Return the codes of one column."""
        points = tuple(coder.grid.points.tolist()) if isinstance(coder, NumericCoder) else ()
        return cls(name, coder.size, len(points), points, grains=_by_code(test_grains(coder)))


def test_grains(coder: Coder) -> Grains | None:
    """Return the grains of a test's value, if it is a number that has some."""
    return Grains.of(coder) if isinstance(coder, NumericCoder) else None


def _by_code(grains: Grains | None) -> tuple[tuple[int, ...], ...]:
    return () if grains is None else tuple(map(tuple, grains.by_code.tolist()))


def _columns_of(codec: Codec) -> tuple[CodedColumn, ...]:
    """Return the columns of a codec."""
    parts = (codec.names, codec.sizes, codec.cells, codec.points, codec.parents)
    return tuple(map(CodedColumn, *parts, map(_by_code, codec.grains), codec.raised))


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
        codec: of its modelled columns, that of tests and of events among them.
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
        return cls(child, Codec(child.schema), tuple(coder_of(c, decimal) for c in columns))

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
        """The tables of repeated rows; a gap is at most the window where none is declared."""
        return tuple(
            CodedTable(
                name=one.child.name,
                series=one.series,
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
        coder = coder_of(column, self.schema.patients.dialect.decimal)
        assert isinstance(coder, NumericCoder)  # a whole number, as the schema's reader checks
        grid = coder.grid
        starts, rounds = grid.edges[:-1][grid.span], grid.round[grid.span]
        alone = (rounds != -1) & (np.arange(grid.codes) == grid.first[grid.span])
        starts = np.where(alone, rounds, starts + (~alone & (rounds == starts)))
        days = np.full(coder.size, self.last, dtype=np.int64)
        days[: grid.codes] = np.clip(np.rint(coder.lattice.values(starts)), 0, self.last)
        return place, days
