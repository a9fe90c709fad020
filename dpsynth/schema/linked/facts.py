"""The facts of linked tables, as values; `LinkedSchema` reads them from a document."""

from __future__ import annotations

import math
import re
import unicodedata
from dataclasses import dataclass, field
from datetime import date

from dpsynth._util.formatting import counted
from dpsynth._util.messages import listed
from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError, Problem
from dpsynth.schema.column import REFUSE, Column, Declared, PrivacyUnit
from dpsynth.schema.linked.temporal import TemporalRule
from dpsynth.schema.relations import SECONDS, WORDS
from dpsynth.schema.schema import Schema
from dpsynth.schema.types import DAY, days_of_date

TIME_UNITS = ("d", "h", "min")  # in which whole numbers since the origin are counted
DROP = "drop"  # what a row of a test that is not declared does, unless the schema refuses it


@dataclass(frozen=True)
class Link:
    """A foreign key.

    Attributes:
        columns: of this table.
        table: that they point to.
        target: the columns there.
    """

    columns: tuple[str, ...]
    table: str
    target: tuple[str, ...]

    @property
    def left_out(self) -> str:
        """Why it is not among synthetic tables, where it points to another table than patients.

        A key that a public rule made up, such as that of the visit before, would state that two
        rows belong together whose values were drawn independently, given the patient.
        """
        return (
            f"the key from {listed(self.columns)} to table {self.table} is left out of synthetic "
            "tables: rows of two tables are drawn independently, given the patient, so none of "
            "them belongs to another"
        )


@dataclass(frozen=True)
class Window:
    """The days that are kept, relative to each patient's origin, both inclusive.

    Attributes:
        first: at most 0.
        last: at least 0.
        basis: where both come from.
        unit: what is counted: days, or hours or minutes in their place.
    """

    first: int
    last: int
    basis: str
    unit: str = TIME_UNITS[0]

    @property
    def noun(self) -> str:
        """What the unit is called: ``day``, ``hour`` or ``minute``."""
        return WORDS[self.unit]

    @property
    def seconds(self) -> int:
        """How long the unit is, in seconds."""
        return SECONDS[self.unit]

    @property
    def days(self) -> int:
        """How many days it is long, from the first to the last."""
        return self.last - self.first


@dataclass(frozen=True)
class LongSeries:
    """What a long table measures: one test a row.

    Attributes:
        column: the column that names the test.
        value: the column that holds its value.
        columns: one for each test, with its name, and the bounds or categories of its value.
        on_unknown: whether a row of another test is dropped ("drop"), or refused ("refuse").
    """

    column: str
    value: str
    columns: tuple[Column, ...]
    on_unknown: str = DROP

    @property
    def names(self) -> tuple[str, ...]:
        """The tests."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True)
class Inside:
    """Rows lie on days of a row of another table of the same patient, such as of a stay.

    Attributes:
        table: a wide table with a time, which is the first of the days.
        length: its column with the days from the first to the last, at least 0. A row in which it
            is missing does not say when it ends.
    """

    table: str
    length: str


@dataclass(frozen=True)
class Schedule:
    """The days since the origin on which rows of a patient are due.

    Attributes:
        days: ascending.
        within: how many days a row lies off a due day at most; None where that is not declared.
            Each row is then near the due day that is nearest.
    """

    days: tuple[int, ...]
    within: int | None = None


@dataclass(frozen=True)
class Implied:
    """Who has one event of a table of events has another one.

    Attributes:
        table: of events.
        event: the one that implies another, such as an infarction.
        implies: the other one, such as heart disease. It is on the day of the event or before.
        same_day: whether it is always on the same day.
    """

    table: str
    event: str
    implies: str
    same_day: bool = False


@dataclass(frozen=True, repr=False)
class ChildTable:
    """A table of rows that belong to patients.

    It is *wide* (a row a visit, all of its modelled columns are values), *long* (a test and its
    value a row), or *once* (an event that a patient has once).

    Attributes:
        schema: of its columns. The unit is the patient: its column is the key to the table of
            patients, and ``max_rows`` the cap of a patient (of each test, in a long table).
        time: the column of the day, or of the date; None where rows are only ordered.
        origin: the column of patients from whose date dates count, or one date for all patients;
            None for days.
        order: the column that orders rows, beside the time those of one day; None without one.
        series: of a long table: its tests.
        once: the column that names the event.
        longest_gap: days between two rows of a patient; None for the whole window.
        links: keys to other tables than that of patients. They are kept, not modelled.
        inside: the table on days of whose rows its own rows lie; None where it is not declared.
        schedule: the days on which rows are due; None where that is not declared.
        exactly: how many rows each patient has (of each test, in a long table). With a schedule,
            the rows are those that are due up to the end of follow-up. None where numbers differ.
        cumulative: columns of a wide table whose value never falls from row to row of a patient.
    """

    schema: Schema
    time: str | None = None
    origin: str | date | None = None
    order: str | None = None
    series: LongSeries | None = None
    once: str | None = None
    longest_gap: int | None = None
    links: tuple[Link, ...] = ()
    inside: Inside | None = None
    schedule: Schedule | None = None
    exactly: int | None = None
    cumulative: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Say which table it is, and of which kind."""
        return short_repr(self, self.name, self.kind)

    @property
    def name(self) -> str:
        """The name of the table."""
        return self.schema.name

    @property
    def kind(self) -> str:
        """Which of the three kinds it is: wide, long or once."""
        return "long" if self.series is not None else "once" if self.once is not None else "wide"

    @property
    def key(self) -> str:
        """The column of the patient's key."""
        return self.schema.unit.column or ""

    @property
    def tests(self) -> tuple[Column, ...]:
        """The tests of a long table, each with the bounds of its values."""
        return () if self.series is None else self.series.columns

    @property
    def test_column(self) -> str | None:
        """The column that names the test; None unless the table is long."""
        return None if self.series is None else self.series.column

    @property
    def value_column(self) -> str | None:
        """The column that holds the value of a test; None unless the table is long."""
        return None if self.series is None else self.series.value

    @property
    def calendar(self) -> tuple[str, ...]:
        """The parts of the calendar that its time keeps: each is a coded value of a row."""
        return () if self.time is None else self.schema.column(self.time).calendar

    @property
    def needed(self) -> tuple[str, ...]:
        """The columns to read that are not modelled, the key first."""
        names = (self.key, self.time, self.order, self.value_column)
        return tuple(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True, repr=False)
class LinkedFacts:
    """The public facts of linked tables.

    Attributes:
        name: of them all.
        patients: the schema of the table of patients; each row is a patient, and its unit's column
            is the patient's key.
        children: the other tables.
        window: the days that are kept; None where no table has a time.
        end: the column of patients with the last day of follow-up: whole days since the origin, or
            a date that is an interval after it. None: all are followed to the window's end.
        ended_by: an event that ends follow-up, such as death: it happens on the last day or never.
        repeated: whether a patient may have several rows in the table of patients, which then hold
            what is constant within her.
        rules: what must hold between the rows of one patient.
        implies: events that imply others.
        last_day: whether many patients are followed to the last day of the window.
        gaps: what a draft leaves open, as it was read; not part of the facts.
    """

    name: str
    patients: Schema
    children: tuple[ChildTable, ...] = ()
    window: Window | None = None
    end: str | None = None
    ended_by: str | None = None
    repeated: bool = False
    title: str | None = None
    description: str | None = None
    source: str | None = None
    draft: bool = False
    rules: tuple[TemporalRule, ...] = ()
    implies: tuple[Implied, ...] = ()
    last_day: bool = False
    gaps: tuple[Problem, ...] = field(default=(), compare=False, repr=False)

    def __repr__(self) -> str:
        """Say which tables it is about."""
        tables = counted(1 + len(self.children), "table")
        return short_repr(self, self.name, tables, self.draft and "draft" or None)

    @property
    def population(self) -> Declared:
        """The public number of patients."""
        return self.patients.population

    @property
    def unit(self) -> PrivacyUnit:
        """The patient: how keys are compared, and whom the ledger counts."""
        return self.patients.unit

    @property
    def may_refuse(self) -> bool:
        """Whether a cell can stop a fit, because a column or a test opts in to ``refuse``."""
        tests = [child.series.columns for child in self.children if child.series is not None]
        return (
            self.patients.may_refuse
            or any(child.schema.may_refuse for child in self.children)
            or any(REFUSE in (test.on_bad, test.on_unknown) for one in tests for test in one)
        )

    @property
    def key(self) -> str:
        """The column of the patient's key in the table of patients."""
        return self.patients.unit.column or ""

    @property
    def origin(self) -> str | None:
        """The column of patients from whose date days count, if a table has such dates."""
        origins = [table.origin for table in self.children]
        return next((origin for origin in origins if isinstance(origin, str)), None)

    @property
    def start(self) -> date | None:
        """The date from which the days of all patients count; None where each has their own."""
        origins = [table.origin for table in self.children]
        return next((origin for origin in origins if isinstance(origin, date)), None)

    @property
    def day_zero(self) -> float:
        """The time of `start` since 1970-01-01, in the unit of time; NaN without one."""
        days = math.nan if self.start is None else float(days_of_date(self.start))
        return days * DAY / self.time_seconds

    @property
    def time_seconds(self) -> int:
        """How long the unit of time is, in seconds: a day, unless the window says otherwise."""
        return DAY if self.window is None else self.window.seconds

    @property
    def table_names(self) -> tuple[str, ...]:
        """The names of all tables, that of patients first."""
        return (self.patients.name, *(table.name for table in self.children))

    def child(self, name: str) -> ChildTable:
        """Return the child table of that name; an `InputError` says that there is none."""
        for table in self.children:
            if table.name == name:
                return table
        raise InputError(f"schema {self.name} has no child table {name!r}")


HIDDEN = (".", "~$")
"""At the start of a file's name: files of the system, and locks of office programs."""
_OTHER = re.compile(r"[^A-Za-z0-9._-]+")
_LETTERS = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "Ä": "Ae", "Ö": "Oe", "Ü": "Ue", "ø": "o"}
)


def table_name(stem: str) -> str:
    """Return the name of the table that a file holds, from the file's name without its suffix.

    >>> table_name("labs"), table_name("Lab values (2)"), table_name("Aufenthälte.2015")
    ('labs', 'Lab-values-2', 'Aufenthaelte.2015')
    """
    whole = unicodedata.normalize("NFC", stem).translate(_LETTERS)
    bare = "".join(one for one in unicodedata.normalize("NFKD", whole) if one.isascii())
    return _OTHER.sub("-", bare).strip("-.") or "table"
