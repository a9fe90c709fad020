"""What is public about histories that are compared: columns, bins, series, events and groups.

All of it follows from the schema. Bins are cuts of the declared codes, never of the data, so that
what is left out or put together does not depend on any patient.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import CodedColumn, HistoryCodec, code_values
from dpsynth.eval.core import levels_of
from dpsynth.schema import Column, unit_of

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BINS = 32  # of one column
PAIR_BINS = 16  # of each of two columns
GAP_EDGES = (
    *(0, 1, 2, 8, 15, 31, 61, 92, 122, 183, 275, 366, 457, 549, 732, 1096, 1462, 2193, 2923),
    *(4384, 7306, 14612),
)
COUNT_EDGES = (0, 1, 2, 3, 4, 5, 6, 8, 11, 16, 21, 31, 51, 101, 201, 501, 1001)


@dataclass(frozen=True, eq=False)
class Field:
    """A column of patients or of rows.

    Attributes:
        name: of the column.
        title: its name for people.
        unit: of its numbers; empty without one.
        numbers: what each code stands for, ``[codes]``; NaN for categories and missing.
        labels: of each code of a category; empty for numbers.
        missing: the code of missing; -1 if nothing can be missing.
        ordered: whether its codes are numbers in order.
        target: whether the schema gives it role target.
    """

    name: str
    title: str
    unit: str
    numbers: Floats
    labels: tuple[str, ...]
    missing: int
    ordered: bool
    target: bool

    @classmethod
    def of(cls, coded: CodedColumn, column: Column, decimal: str) -> Field:
        """Read the declaration of a column."""
        numbers = code_values(column, decimal)
        labels = tuple(str(column.labels.get(level, level)) for level in column.levels)
        return cls(
            column.name,
            column.title or column.name,
            unit_of(column).strip("{}"),
            numbers,
            labels if column.is_categorical else (),
            coded.size - 1 if column.nullable else -1,
            coded.cells > 0,
            "target" in column.roles,
        )

    @property
    def size(self) -> int:
        """Number of codes."""
        return len(self.numbers)

    @cached_property
    def bins(self) -> Ints:
        """The bin of each code when the column is looked at alone."""
        return self._cut(BINS)

    @cached_property
    def pair_bins(self) -> Ints:
        """The bin of each code when it is looked at with another one."""
        return self._cut(PAIR_BINS)

    def _cut(self, count: int) -> Ints:
        """Cut codes in declared order into bins of equally many; missing has one of its own."""
        present = self.size - (self.missing >= 0)
        width = min(count, present)
        bins = np.arange(self.size) * width // max(present, 1)
        if self.missing >= 0:
            bins[self.missing] = width
        return bins


@dataclass(frozen=True, eq=False)
class SeriesFacts:
    """Rows of one kind that a patient has in order: a wide table, or one test of a long one.

    Attributes:
        name: of the table, with the test in a long one.
        title: the same for people.
        place: where the rows stand in `Histories.rows`: table, series.
        fields: the columns of a row.
        timed: whether rows have a day.
        longest: days that two rows lie apart at most.
        max_rows: of a patient.
    """

    name: str
    title: str
    place: tuple[int, int]
    fields: tuple[Field, ...]
    timed: bool
    longest: int
    max_rows: int


@dataclass(frozen=True, eq=False)
class Group:
    """A column by which the schema tells patients apart.

    Attributes:
        title: its name for people.
        names: of its levels.
        of_code: the level of each of its codes; -1 for none.
        place: of the column in the baseline.
    """

    title: str
    names: tuple[str, ...]
    of_code: Ints
    place: int


@dataclass(frozen=True, eq=False)
class HistoryFacts:
    """The public facts of one schema of linked tables.

    Attributes:
        name, title, sha256: of the schema.
        baseline: columns of patients.
        series: of all tables.
        tables: the names of the tables of repeated rows.
        events: what can happen once.
        groups: columns of role group.
        ending: what the end of follow-up may be, such as death: a name, the column's place in the
            baseline, and the code that says that it came; None if the schema has no such column.
        end: place of the baseline column with the end of follow-up; -1 without one.
        first: first day of the window.
        last: its last day.
    """

    name: str
    title: str
    sha256: str
    baseline: tuple[Field, ...]
    series: tuple[SeriesFacts, ...]
    tables: tuple[str, ...]
    events: tuple[str, ...]
    groups: tuple[Group, ...]
    ending: tuple[str, int, int] | None
    end: int
    first: int
    last: int

    @classmethod
    def of(cls, codec: HistoryCodec) -> HistoryFacts:
        """Read them off a codec; no data is involved."""
        schema, patients = codec.schema, codec.patients
        columns = patients.schema.modelled
        decimal = schema.patients.dialect.decimal
        pairs = zip(codec.baseline, columns, strict=True)
        baseline = _told_apart(Field.of(coded, column, decimal) for coded, column in pairs)
        return cls(
            name=schema.name,
            title=schema.title or schema.name,
            sha256=schema.hash(),
            baseline=baseline,
            series=_series(codec),
            tables=tuple(table.name for table in codec.tables),
            events=codec.events,
            groups=_groups(codec, baseline),
            ending=_ending(codec),
            end=-1 if codec.end is None else codec.end[0],
            first=codec.first,
            last=codec.last,
        )

    @property
    def timed(self) -> bool:
        """Whether anything has a day."""
        return self.last > self.first

    def day_bins(self, days: Ints, count: int = PAIR_BINS) -> Ints:
        """Return the bin of each day: ``count`` before day 0, day 0, and ``count`` after it."""
        before = (days - self.first) * count // max(-self.first, 1)
        after = count + 1 + (days - 1) * count // max(self.last, 1)
        bins = np.where(days < 0, before, np.where(days == 0, count, after))
        return np.asarray(np.clip(bins, 0, 2 * count))


def count_bins(counts: Ints) -> Ints:
    """Return the bin of each number of rows."""
    return np.searchsorted(COUNT_EDGES, counts, side="right") - 1


def gap_bins(gaps: Ints) -> Ints:
    """Return the bin of each number of days between two rows."""
    return np.searchsorted(GAP_EDGES, np.maximum(gaps, 0), side="right") - 1


def _series(codec: HistoryCodec) -> tuple[SeriesFacts, ...]:
    """Flatten the series of all tables."""
    found = []
    repeated = [one for one in codec.children if one.child.once is None]
    for number, (child, table) in enumerate(zip(repeated, codec.tables, strict=True)):
        decimal = child.child.schema.dialect.decimal
        columns = child.codec.schema.modelled
        rest = [columns[place] for place in child.others]
        tests = () if child.child.series is None else child.child.series.columns
        for place, series in enumerate(table.series):
            own = [tests[place], *rest] if tests else rest
            pairs = zip(series.values, own, strict=True)
            fields = _told_apart(Field.of(coded, column, decimal) for coded, column in pairs)
            title = f"{table.name}: {fields[0].title}" if tests else table.name
            facts = (title, (number, place), fields, table.timed, table.longest, series.max_rows)
            found.append(SeriesFacts(series.name, *facts))
    return tuple(found)


def _told_apart(fields: Iterable[Field]) -> tuple[Field, ...]:
    """Put the names of columns behind titles that several of them have."""
    every = tuple(fields)
    often = Counter(field.title for field in every)
    return tuple(
        replace(field, title=f"{field.title} ({field.name})") if often[field.title] > 1 else field
        for field in every
    )


def _groups(codec: HistoryCodec, baseline: tuple[Field, ...]) -> tuple[Group, ...]:
    """Return the groups, with the level of each code."""
    found = []
    for levels in levels_of(codec.patients, "group"):
        field = baseline[levels.place]
        if levels.column.is_categorical:
            codes = np.arange(field.size)
            of_code = np.where(codes < len(levels.names), codes, -1)
        else:
            of_code = np.searchsorted(levels.cuts, field.numbers, side="right")
            of_code = np.where(np.isnan(field.numbers), -1, of_code)
        found.append(Group(levels.title, levels.names, of_code.astype(np.int64), levels.place))
    return tuple(found)


def _ending(codec: HistoryCodec) -> tuple[str, int, int] | None:
    """Name how follow-up may end, if it ends in one of two ways; the last category is the event."""
    if codec.status is None:
        return None
    column = codec.patients.schema.modelled[codec.status]
    if len(column.levels) != 2:
        return None
    return str(column.labels.get(column.levels[1], column.levels[1])), codec.status, 1
