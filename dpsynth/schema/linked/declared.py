"""What histories keep by declaration: read, checked against each other, and what breaks it.

A declaration says of all histories what a generator then keeps by construction: rows lie within
stays, on due days, or in a fixed number; an event implies another; a value never falls back. It is
a public fact. Nothing here is learned from private rows.

What breaks a declaration is counted patient by patient: whether a row or a patient breaks one
follows from the patient's own rows. A check counts private rows, for the office alone, and `verify`
synthetic ones, with the same function. What missing cells leave undecided counts as kept, as in
temporal rules.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpsynth._util.field_reader import MAX_WHOLE, FieldReader
from dpsynth._util.formatting import counted
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.schema.column import Column
from dpsynth.schema.linked.facts import (
    ChildTable,
    Implied,
    Inside,
    LinkedFacts,
    Schedule,
    Window,
)
from dpsynth.schema.linked.resources import CUMULATIVE, Resource
from dpsynth.schema.linked.temporal import (
    COUNT,
    EACH,
    EVENT,
    NEXT,
    PATIENT,
    PatientRows,
    TemporalRule,
    Term,
)
from dpsynth.schema.relations import SECONDS, elapsed
from dpsynth.schema.rules import Comparison, Literal, Tree, values_of
from dpsynth.schema.schema import Schema
from dpsynth.schema.types import DAY

if TYPE_CHECKING:
    import pandas as pd

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

CHILD_KEYS = ("inside", "schedule", "schedule_within", "rows")
MAX_DUE = 1000  # days of a schedule
MIN_GRID = 4  # days; so many at equal distances are written as a grid
_GRID = "{from: 0, every: 7, times: 52}"


def read_inside(own: FieldReader) -> Inside | None:
    """Read within which rows the rows of a table lie; `check_children` says if they can."""
    if not own.has("inside"):
        return None
    part = own.part("inside")
    part.refuse_unknown(("table", "length"))
    if not part.has("table"):
        part.gap("table", "is missing: the table on days of whose rows these rows lie")
    if not part.has("length"):
        part.gap("length", "is missing: the column of that table that says when a row ends")
    table, length = part.text("table"), part.text("length")
    return None if table is None or length is None else Inside(table, length)


def read_schedule(own: FieldReader, window: Window | None) -> Schedule | None:
    """Read on which days rows are due."""
    if not own.has("schedule"):
        if own.has("schedule_within"):
            own.mistake("schedule_within", "needs a schedule, the days on which rows are due")
        return None
    within, days = own.whole("schedule_within", minimum=0), _due_days(own)
    if not days:
        return None
    if window is not None and (days[0] < window.first or days[-1] > window.last):
        own.mistake(
            "schedule",
            f"has days outside the window, {window.first} to {window.last}; remove them, or "
            "compare the window with its source",
        )
    return Schedule(days, within)


def _due_days(own: FieldReader) -> tuple[int, ...]:
    """Read a list of days, or a grid of them; empty if it has a mistake, which is noted."""
    value = own.values["schedule"]
    if isinstance(value, Mapping):
        return _grid_days(own.part("schedule"))
    if not isinstance(value, list | tuple) or not value:
        own.mistake(
            "schedule",
            f"a list of days since the origin, such as [0, 365], or a grid, such as {_GRID}, is "
            f"expected, not {shown(value)}",
        )
        return ()
    if len(value) > MAX_DUE:
        own.mistake("schedule", f"lists {len(value):,} days; at most {MAX_DUE:,} are due")
        return ()
    wrong = [index for index, day in enumerate(value) if not _is_day(day)]
    for index in wrong:
        own.mistake(
            f"schedule[{index}]",
            f"a whole number of days since the origin is expected, not {shown(value[index])}",
        )
    if wrong:
        return ()
    days = tuple(int(day) for day in value)
    if any(later <= day for day, later in itertools.pairwise(days)):
        own.mistake("schedule", "its days are not ascending; sort them, and name each once")
        return ()
    return days


def _grid_days(part: FieldReader) -> tuple[int, ...]:
    """Read a grid: the first day, the days from one to the next, and how many there are."""
    part.refuse_unknown(("from", "every", "times"))
    for key in ("from", "every", "times"):
        if not part.has(key):
            part.gap(key, f"is missing: a grid of days has three keys, such as {_GRID}")
    first, every = part.number("from"), part.whole("every", minimum=1)
    times = part.whole("times", minimum=1)
    if first is not None and not _is_day(first):
        part.mistake("from", f"a whole number of days is expected, not {shown(first)}")
        return ()
    if times is not None and times > MAX_DUE:
        part.mistake("times", f"is {times:,}; at most {MAX_DUE:,} days are due")
        return ()
    if first is None or every is None or times is None:
        return ()
    return tuple(int(first) + every * step for step in range(times))


def _is_day(value: Any) -> bool:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= MAX_WHOLE and value == int(value)


def read_exactly(own: FieldReader) -> int | None:
    """Read how many rows each patient has."""
    if not own.has("rows"):
        return None
    part = own.part("rows")
    part.refuse_unknown(("exactly",))
    if not part.has("exactly"):
        part.gap("exactly", "is missing: how many rows each patient has; or remove rows")
    exactly = part.whole("exactly", minimum=1)
    most = own.part("max_rows").values.get("value") if own.has("max_rows") else None
    if exactly is not None and isinstance(most, int) and exactly > most:
        part.mistake(
            "exactly",
            f"each patient has {exactly:,} rows, and max_rows keeps {most:,} of them; remove "
            "max_rows, or correct one of both",
        )
    return exactly


def check_kind(table: Resource, *, once: bool, timed: bool, wide: bool) -> None:
    """Note declarations that a table of its kind cannot keep.

    Args:
        table: whose columns are read.
        once: whether it is a table of events.
        timed: whether rows have a day.
        wide: whether its columns are the values of a row.
    """
    own = table.own
    if once:
        for key in CHILD_KEYS:
            if own.has(key):
                own.mistake(key, "a patient has each event of this table once; remove it")
    elif not timed:
        for key in ("inside", "schedule"):
            if own.has(key):
                own.mistake(key, "rows without a time have no days; remove it")
    if not wide:
        refuse_cumulative(table, "only columns of wide tables can be cumulative; remove it")


def refuse_cumulative(table: Resource, why: str) -> None:
    """Note each column that is declared cumulative where none can be."""
    for name in table.columns:
        if name in table.cumulative:
            table.findings.mistake(f"{table.places[name]}.dpsynth.{CUMULATIVE}", why)


def read_cumulative(table: Resource, schema: Schema) -> tuple[str, ...]:
    """Return the columns of a wide table that are declared cumulative, in its order."""
    names = tuple(name for name in table.columns if name in table.cumulative)
    for name in names:
        why = _why_not_cumulative(schema.column(name))
        if why is not None:
            table.findings.mistake(f"{table.places[name]}.dpsynth.{CUMULATIVE}", why)
    return names


def _why_not_cumulative(column: Column) -> str | None:
    if not column.modelled:
        return "the column is not a value of the row; remove it"
    if column.is_computed:
        return "the column is computed from others; declare those cumulative, or remove it"
    if column.floor is not None or column.present_if is not None:
        return "the column has an order or a condition, which cannot be kept beside it; keep one"
    if column.kind.is_number or len(rising(column)) > 1:
        return None
    return (
        f"the column is of type {column.type}; a cumulative one is a number, or lists two "
        "categories or more, the later ones last"
    )


YES, NO = (
    ("yes", "true", "y", "1", "positive", "present"),
    (*("no", "false", "n", "0", "negative", "absent"),),
)


def rising(column: Column) -> tuple[str, ...]:
    """Return the categories of a column in the order in which a cumulative one takes them.

    It is that in which they are listed; of a yes and a no, the yes is the later one.
    """
    listed = column.categories or ()
    words = [one.casefold() for one in listed]
    if len(words) == 2 and words[0] in YES and words[1] in NO:
        return tuple(reversed(listed))
    return tuple(listed)


def check_children(
    children: Sequence[ChildTable], tables: Mapping[str, Resource], end: str | None, patients: str
) -> None:
    """Note declarations of tables of rows that contradict each other.

    Args:
        children: that were read without a mistake.
        tables: the resources, by name.
        end: the column with the last day of follow-up.
        patients: the name of the table of patients.
    """
    read = {child.name: child for child in children}
    for child in children:
        own = tables[child.name].own
        if child.inside is not None:
            _check_inside(child, child.inside, own.part("inside"), read, tables, patients)
        if child.exactly is not None:
            _check_exactly(child, child.exactly, own, read, end)
        if child.inside is not None and child.schedule is not None:
            own.mistake(
                "schedule",
                f"rows lie within rows of {child.inside.table}, whose days no schedule knows; keep "
                "inside or schedule",
            )


def _check_inside(
    child: ChildTable,
    inside: Inside,
    part: FieldReader,
    read: Mapping[str, ChildTable],
    tables: Mapping[str, Resource],
    patients: str,
) -> None:
    """Note why the rows of a table cannot lie within those of another."""
    name = inside.table
    if name not in tables:
        meant = did_you_mean(name, [one for one in tables if one not in (child.name, patients)])
        part.mistake("table", f"there is no table {shown(name)}{meant}")
        return
    if name in (child.name, patients):
        what = "the table itself" if name == child.name else "the table of patients"
        part.mistake("table", f"{shown(name)} is {what}; name a wide table with a time")
        return
    parent = read.get(name)
    if parent is None:
        return  # its mistakes are noted
    if parent.kind != "wide" or parent.time is None:
        kind = "has no time" if parent.kind == "wide" else f"is {parent.kind}"
        part.mistake("table", f"table {name} {kind}; name a wide table with a time, such as stays")
    elif parent.inside is not None:
        part.mistake(
            "table", f"table {name} is inside {parent.inside.table}; name {parent.inside.table}"
        )
    elif tables[name].known(inside.length, part, "length") is not None:
        column = parent.schema.column(inside.length)
        if not is_length(column, parent.time):
            part.mistake(
                "length",
                f"{shown(inside.length)} of table {name} does not say when a row ends; name a "
                "modelled integer column of days whose minimum is 0 or more, or a date that is "
                f"declared by its distance: dpsynth: {{after: {parent.time}, longest: ...}}",
            )


def is_length(column: Column, time: str | None) -> bool:
    """Tell whether a column says how long a row lasts that begins at a time: days, or a date."""
    if not column.is_read or column.is_categorical:
        return False
    if (interval := column.interval) is not None:
        counted = interval.unit in SECONDS and not interval.before
        return interval.base == time and counted and interval.shortest >= 0
    low = column.minimum
    if not column.kind.whole:
        return False
    return column.kind.is_quantity and column.kind.is_plain and isinstance(low, int) and low >= 0


def _check_exactly(
    child: ChildTable,
    exactly: int,
    own: FieldReader,
    read: Mapping[str, ChildTable],
    end: str | None,
) -> None:
    """Note why not every patient can have so many rows."""
    part, schedule = own.part("rows"), child.schedule
    if schedule is not None and len(schedule.days) != exactly:
        part.mistake(
            "exactly",
            f"is {exactly:,}, and rows are due on {counted(len(schedule.days), 'day')}; a patient "
            "has one row for each due day",
        )
    if end is not None and child.time is not None and schedule is None:
        part.mistake(
            "exactly",
            f"patients are followed until {end}, so not all live to see {exactly:,} rows; "
            "declare the schedule of the rows, too: each patient has those that are due until then",
        )
    parent = None if child.inside is None else read.get(child.inside.table)
    if parent is not None and parent.exactly is None:
        part.mistake(
            "exactly",
            f"a patient without a row of {parent.name} has no row here; keep inside or rows",
        )
    if schedule is None or schedule.within is None or child.longest_gap is None:
        return
    widest = max((b - a for a, b in itertools.pairwise(schedule.days)), default=0)
    if widest - 2 * schedule.within > child.longest_gap:
        own.mistake(
            "longest_gap",
            f"is {child.longest_gap}, and rows that are due {widest} days apart lie further apart; "
            "remove it",
        )


def read_implied(extra: FieldReader) -> dict[str, Implied]:
    """Read which events imply others, each by its place."""
    values: Any = extra.values.get("implies") if extra.has("implies") else ()
    example = "implies: [{table: events, event: infarction, implies: heart_disease}]"
    if not isinstance(values, list | tuple):
        extra.mistake("implies", f"a list is expected, not {shown(values)}: write {example}")
        return {}
    found = {}
    for index, value in enumerate(values):
        place = f"implies[{index}]"
        part = FieldReader(value, extra.at(place), extra.findings)
        part.refuse_unknown(("table", "event", "implies", "same_day"))
        for key in ("table", "event", "implies"):
            if isinstance(value, Mapping) and not part.has(key):
                part.gap(key, f"is missing; write {example}")
        texts = [part.text(key) for key in ("table", "event", "implies")]
        same_day = part.flag("same_day", False)
        if texts[0] is not None and texts[1] is not None and texts[2] is not None:
            found[place] = Implied(texts[0], texts[1], texts[2], same_day)
    return found


def check_implied(
    implied: Mapping[str, Implied],
    children: Sequence[ChildTable],
    resources: Mapping[str, Resource],
    extra: FieldReader,
) -> None:
    """Note tables and events that are not declared, and events that imply each other.

    Args:
        implied: as they were read, by their place.
        children: the tables that were read without a mistake.
        resources: all tables of rows, by name.
        extra: the part of the document that they stand in.
    """
    tables = {child.name: child for child in children}
    first: dict[tuple[str, str, str], str] = {}
    ways: dict[tuple[str, str], list[str]] = {}
    for place, one in implied.items():
        part = FieldReader({}, extra.at(place), extra.findings)
        child = tables.get(one.table)
        if child is None and one.table in resources:
            continue  # its mistakes are noted
        if child is None or child.once is None:
            events = [name for name, other in tables.items() if other.once is not None]
            meant = did_you_mean(one.table, events)
            part.mistake("table", f"there is no table of events {shown(one.table)}{meant}")
            continue
        levels = child.schema.column(child.once).levels
        for key, event in (("event", one.event), ("implies", one.implies)):
            if event not in levels:
                part.mistake(
                    key,
                    f"table {child.name} has no event {shown(event)}{did_you_mean(event, levels)}",
                )
        if first.setdefault((one.table, one.event, one.implies), place) != place:
            part.mistake(None, "says of two events what is said before; remove it")
            continue
        way = _way((one.table, one.implies), one.event, ways)
        if way is not None:
            circle = " -> ".join([one.event, *way])
            part.mistake("implies", f"events imply each other: {circle}; remove one of these")
            continue
        ways.setdefault((one.table, one.event), []).append(one.implies)


def _way(
    start: tuple[str, str], goal: str, ways: Mapping[tuple[str, str], Sequence[str]]
) -> list[str] | None:
    """Return the events from one to another that it implies; None if it does not."""
    table, event = start
    if event == goal:
        return [event]
    for follows in ways.get(start, ()):
        rest = _way((table, follows), goal, ways)
        if rest is not None:
            return [event, *rest]
    return None


MAX_TRIED = 100_000  # combinations of values


def rule_contradiction(rule: TemporalRule, schema: LinkedFacts) -> str | None:
    """Say which declarations leave a temporal rule no way to hold; None if there is none.

    A rule is tried with all values that declarations allow its terms. It is not judged if a term
    can have others, such as the value of a test, or if values are too many to try.
    """
    groups = list(_possible(rule, schema))
    known = {name for group in groups for name in group.names}
    tried = np.prod([len(group.values) for group in groups], dtype=float)
    if not groups or known != set(rule.terms) or tried > MAX_TRIED:
        return None
    import pandas as pd

    rows = [
        [number for values in case for number in values]
        for case in itertools.product(*(group.values for group in groups))
    ]
    names = [name for group in groups for name in group.names]
    if rule.rule.holds(pd.DataFrame(rows, columns=names, dtype=float)).any():
        return None
    return f"contradicts {listed(dict.fromkeys(group.why for group in groups))}; keep one of them"


@dataclass(frozen=True)
class _Group:
    """Terms of a rule, with all values that they can have together, and what says so."""

    names: tuple[str, ...]
    values: Sequence[tuple[float, ...]]
    why: str


def _possible(rule: TemporalRule, schema: LinkedFacts) -> Iterator[_Group]:
    """Yield what declarations say of the terms of a rule."""
    children = {child.name: child for child in schema.children}
    values: list[tuple[float, ...]]
    for name, term in rule.terms.items():
        child = children.get(str(term.table))
        if child is None:
            continue
        if term.function == COUNT and child.exactly is not None:
            tests = 1 if term.named is not None else max(1, len(child.tests))
            counts = {child.exactly}
            if schema.end is not None and child.schedule is not None and schema.window is not None:
                ends = np.array([0, *child.schedule.days])
                counts = set(rows_due(child, ends[ends >= 0]).tolist())
            values = [(float(count * tests),) for count in sorted(counts)]
            yield _Group((name,), values, f"rows: {{exactly: {child.exactly}}} of {child.name}")
        elif term.column == child.time and child.origin is None and child.schedule is not None:
            within = child.schedule.within
            if within is not None:
                off = range(-within, within + 1) if within < MAX_DUE else range(0)
                days = {day + step for day in child.schedule.days for step in off}
                if days:
                    values = [(float(day),) for day in sorted(days)]
                    yield _Group((name,), values, f"the schedule of {child.name}")
    if any(isinstance(side, Literal) for side in _sides(rule.rule.tree)):
        return
    of_events = [(name, term) for name, term in rule.terms.items() if term.function == EVENT]
    for one in schema.implies:
        events = {term.named: name for name, term in of_events if term.table in (None, one.table)}
        if len(rule.terms) == 2 and one.event in events and one.implies in events:
            values = [(0.0, 0.0)] if one.same_day else [(0.0, 0.0), (1.0, 0.0)]
            names = (events[one.event], events[one.implies])
            yield _Group(names, values, f"implies: {one.event} implies {one.implies}")
    each = [name for name, term in rule.terms.items() if term.function == EACH]
    after = [name for name, term in rule.terms.items() if term.function == NEXT]
    if len(rule.terms) == 2 and each and after:
        term, other = rule.terms[each[0]], rule.terms[after[0]]
        child = children.get(str(term.table))
        if child is not None and term.column == other.column and term.column in child.cumulative:
            values = [(0.0, 0.0), (0.0, 1.0)]
            yield _Group((each[0], after[0]), values, f"cumulative {child.name}.{term.column}")


def _sides(tree: Tree) -> Iterator[object]:
    if isinstance(tree, Comparison):
        yield from (tree.left, tree.right)
    else:
        for part in tree.parts:
            yield from _sides(part)


def rows_due(child: ChildTable, ends: npt.NDArray[Any]) -> Ints:
    """Return how many rows patients have, of each test in a long table.

    Args:
        child: a table that declares ``exactly``.
        ends: the last day of follow-up of each patient, ``[patients]``.
    """
    assert child.exactly is not None
    if child.schedule is None:
        return np.full(len(ends), child.exactly, dtype=np.int64)
    return np.searchsorted(child.schedule.days, ends, side="right").astype(np.int64)


def declared_document(child: ChildTable) -> dict[str, Any]:
    """Write what a table of rows declares of histories, apart from its columns."""
    written: dict[str, Any] = {}
    if child.inside is not None:
        written["inside"] = {"table": child.inside.table, "length": child.inside.length}
    if child.schedule is not None:
        days = child.schedule.days
        every = {later - day for day, later in itertools.pairwise(days)}
        grid = len(days) >= MIN_GRID and len(every) == 1
        written["schedule"] = list(days)
        if grid:
            written["schedule"] = {"from": days[0], "every": every.pop(), "times": len(days)}
        if child.schedule.within is not None:
            written["schedule_within"] = child.schedule.within
    if child.exactly is not None:
        written["rows"] = {"exactly": child.exactly}
    return written


def implied_document(implied: Implied) -> dict[str, Any]:
    """Write which event implies another."""
    names = {"table": implied.table, "event": implied.event, "implies": implied.implies}
    return names | ({"same_day": True} if implied.same_day else {})


OUTSIDE, OFF_SCHEDULE, NOT_EXACTLY = "outside", "off-schedule", "not-exactly"
NOT_IMPLIED, FALLS = "not-implied", "falls"
ROW, WHOLE = "row", "patient"


@dataclass(frozen=True)
class DeclarationCount:
    """A declaration of histories, and how many rows or patients break it.

    Attributes:
        kind: which of the declarations.
        place: the table, or ``table.column``.
        text: what holds, as a sentence without its end.
        broken_text: what is true of those that break it, as the rest of a sentence.
        unit: what is counted: `ROW` or `WHOLE`, patients.
        broken: how many break it.
        judged: of how many.
        patients: how many patients break it.
    """

    kind: str
    place: str
    text: str
    broken_text: str
    unit: str
    broken: int
    judged: int
    patients: int


def declares(schema: LinkedFacts) -> bool:
    """Tell whether a schema declares anything that histories keep by construction."""
    return bool(schema.implies or schema.last_day) or any(
        child.inside or child.schedule or child.exactly or child.cumulative
        for child in schema.children
    )


def declared_columns(schema: LinkedFacts) -> dict[str, frozenset[str]]:
    """Return the columns of each table whose cells say whether a declaration is kept."""
    names: dict[str, set[str]] = {name: set() for name in schema.table_names}
    if declares(schema):
        names[schema.patients.name] |= {*filter(None, (schema.origin, schema.end))}
    for child in schema.children:
        names[child.name] |= {*child.cumulative}
        if child.inside is not None:
            names[child.inside.table].add(child.inside.length)
    return {name: frozenset(columns) for name, columns in names.items()}


def declared_counts(rows: PatientRows, schema: LinkedFacts) -> tuple[DeclarationCount, ...]:
    """Count the rows and patients that break each declaration.

    Args:
        rows: decoded tables of the package, private or synthetic, with `declared_columns`.
        schema: of the tables.
    """
    if not declares(schema):
        return ()
    histories = _Histories(rows, schema)
    found: list[DeclarationCount] = []
    for child in schema.children:
        if child.inside is not None:
            found.append(histories.outside(child, child.inside))
        if child.schedule is not None and child.schedule.within is not None:
            found.append(histories.off_schedule(child, child.schedule, child.schedule.within))
        if child.exactly is not None:
            found.append(histories.not_exactly(child, child.exactly))
        found += [histories.falls(child, name) for name in child.cumulative]
    return (*found, *(histories.not_implied(one) for one in schema.implies))


def declared_texts(schema: LinkedFacts) -> tuple[str, ...]:
    """Say what a schema declares of histories and of calendar time: a sentence for each."""
    import pandas as pd

    nothing = {
        own.name: pd.DataFrame({one.name: pd.Series(dtype=object) for one in own.columns})
        for own in (schema.patients, *(child.schema for child in schema.children))
    }
    texts = [count.text for count in declared_counts(PatientRows(nothing, schema), schema)]
    if schema.last_day:
        texts.append("many patients are followed to the last day of the window")
    if schema.start is not None:
        texts.append(f"the days of all patients count from {schema.start}")
    texts += [
        f"each row of {child.name} keeps the {' and the '.join(child.calendar)} of {child.time}"
        for child in schema.children
        if child.calendar
    ]
    return tuple(texts)


@dataclass(frozen=True, eq=False)
class _Timed:
    """Rows of a table that have a patient and a day, by patient and then in order."""

    owners: Ints
    days: Floats
    cells: pd.DataFrame


class _Histories:
    """Tables of patients, with the days of their rows."""

    def __init__(self, rows: PatientRows, schema: LinkedFacts) -> None:
        self.rows, self.schema = rows, schema
        self.patients = schema.patients.name
        self.origins = np.full(len(rows), schema.day_zero)
        if schema.origin is not None:
            self.origins = _numbers(self._of_patients(schema.origin), schema.time_seconds)
        last = np.inf if schema.window is None else float(schema.window.last)
        self.ends = np.full(len(rows), last)
        if schema.end is not None:
            column = schema.patients.column(schema.end)
            ends = _numbers(self._of_patients(schema.end), schema.time_seconds)
            ends = elapsed(ends, self.origins) if column.kind.is_time else ends
            self.ends = np.fmin(ends, last)  # a missing end is the window's

    def outside(self, child: ChildTable, inside: Inside) -> DeclarationCount:
        """Count rows that lie on no day of a row of the other table."""
        parent = self.schema.child(inside.table)
        own, other = self._timed(child), self._timed(parent, inside.length)
        last = _numbers(other.cells[inside.length], self.schema.time_seconds)
        if parent.schema.column(inside.length).interval is None:
            last = other.days + last
        elif parent.origin is not None:
            last = elapsed(last, self.origins[other.owners])
        ends = np.where(np.isnan(last), np.inf, last)
        broken = ~_covered(own.owners, own.days, other.owners, other.days, ends)
        return _of_rows(
            OUTSIDE,
            f"{child.name}.{child.time}",
            f"each row of {child.name} lies on a day of a row of {parent.name}",
            f"lie on no day of a row of {parent.name} of their patient",
            own.owners,
            broken,
        )

    def off_schedule(self, child: ChildTable, schedule: Schedule, within: int) -> DeclarationCount:
        """Count rows that lie too far from each due day."""
        own = self._timed(child)
        near = _distance(own.days, np.array(schedule.days, dtype=np.float64))
        noun = "day" if self.schema.window is None else self.schema.window.noun
        text, broken = f"on a due {noun}", f"do not lie on a due {noun} of the schedule"
        if within:
            off = f"{counted(within, noun)} off"
            text, broken = f"at most {off} a due {noun}", f"lie more than {off} each due {noun} of "
            broken += "the schedule"
        return _of_rows(
            OFF_SCHEDULE,
            f"{child.name}.{child.time}",
            f"each row of {child.name} lies {text}",
            broken,
            own.owners,
            near > within,
        )

    def not_exactly(self, child: ChildTable, exactly: int) -> DeclarationCount:
        """Count patients who have another number of rows, or none on a due day."""
        due = rows_due(child, self.ends)
        broken = np.zeros(len(self.rows), dtype=bool)
        tests: list[str | None] = [test.name for test in child.tests]
        for named in tests or [None]:
            own = self._timed(child, named=named)
            counts = np.bincount(own.owners, minlength=len(self.rows))
            broken |= counts != due
            if child.schedule is not None:
                starts = np.cumsum(counts) - counts
                places = np.arange(len(own.owners)) - starts[own.owners]
                days = np.array(child.schedule.days, dtype=np.float64)
                expected = days[np.minimum(places, len(days) - 1)]
                wrong = np.abs(own.days - expected) > _distance(own.days, days)
                broken[own.owners[wrong]] = True
        judged = np.ones(len(self.rows), dtype=bool)
        if child.origin is not None:
            judged = np.isfinite(self.origins)  # else the patient has no row with a day
        of_each = " of each test" if child.series is not None else ""
        what = f"{counted(exactly, 'row')}{of_each}"
        text = f"each patient has {what} in {child.name}"
        broken_text = f"do not have {what}"
        if child.schedule is not None:
            text = f"each patient has one row{of_each} in {child.name} for each due day"
            broken_text = f"do not have one row{of_each} for each due day"
            if self.schema.end is not None:
                text += " up to the end of follow-up"
                broken_text += " up to the end of follow-up"
        count = int((broken & judged).sum())
        return DeclarationCount(
            NOT_EXACTLY, child.name, text, broken_text, WHOLE, count, int(judged.sum()), count
        )

    def falls(self, child: ChildTable, name: str) -> DeclarationCount:
        """Count patients in whom a value falls from one row to a later one."""
        placed = [one for one in (child.time, child.order) if one is not None]
        terms = {one: Term(EACH, child.name, None, one) for one in dict.fromkeys([*placed, name])}
        cells, owners = self.rows.by_row(terms.values(), terms[placed[0]])
        values = _ranks(cells[terms[name].text], child.schema.column(name))
        moved = np.append(True, owners[1:] != owners[:-1])[: len(owners)]
        for one in placed:
            place = cells[terms[one].text]
            moved |= (place != place.shift()).to_numpy(dtype=bool, na_value=True)
        moments = np.cumsum(moved)  # rows of one moment stand in order of their values
        filled = np.flatnonzero(np.isfinite(values))
        order = filled[np.lexsort((values[filled], moments[filled]))]
        who, sorted_values = owners[order], values[order]
        same = np.diff(who) == 0
        broken = len(np.unique(who[1:][same & (np.diff(sorted_values) < 0)]))
        return DeclarationCount(
            FALLS,
            f"{child.name}.{name}",
            f"{name} of {child.name} never falls from a row of a patient to a later one",
            "with several values have one that is lower than one before",
            WHOLE,
            broken,
            len(np.unique(who[1:][same])),
            broken,
        )

    def not_implied(self, one: Implied) -> DeclarationCount:
        """Count patients who have an event without the one that it implies."""
        child = self.schema.child(one.table)
        days = []
        for event in (one.event, one.implies):
            term = Term("first", child.name, event, child.time)
            cells = self.rows.by_patient([term])[term.text]
            days.append(_numbers(cells, self.schema.time_seconds))
        has = np.isfinite(days[0])
        kept = days[1] == days[0] if one.same_day else days[1] <= days[0]
        when = "on the same day" if one.same_day else "on that day or before"
        broken = int((has & ~kept).sum())
        return DeclarationCount(
            NOT_IMPLIED,
            one.table,
            f"each patient with {one.event} has {one.implies} {when}",
            f"with {one.event} do not have {one.implies} {when}",
            WHOLE,
            broken,
            int(has.sum()),
            broken,
        )

    def _of_patients(self, name: str) -> pd.Series[Any]:
        term = Term(PATIENT, self.patients, None, name)
        return self.rows.by_patient([term])[term.text]

    def _timed(self, child: ChildTable, *columns: str, named: str | None = None) -> _Timed:
        """Return the rows of a table that have a day, of one test or of all declared ones."""
        first = child.time or child.order
        wanted = [name for name in (first, *columns) if name is not None]
        if named is None and child.test_column is not None:
            wanted.append(child.test_column)
        terms = {name: Term(EACH, child.name, named, name) for name in dict.fromkeys(wanted)}
        cells, owners = self.rows.by_row(terms.values(), next(iter(terms.values())))
        cells = cells.rename(columns={term.text: name for name, term in terms.items()})
        days = np.zeros(len(owners))
        if child.time is not None:
            days = _numbers(cells[child.time], self.schema.time_seconds)
            days = days if child.origin is None else elapsed(days, self.origins[owners])
        kept = np.isfinite(days)
        if child.test_column in cells.columns:
            kept &= cells[child.test_column].isin([test.name for test in child.tests]).to_numpy()
        return _Timed(owners[kept], days[kept], cells[kept])


def _of_rows(
    kind: str, place: str, text: str, broken_text: str, owners: Ints, broken: Bools
) -> DeclarationCount:
    patients = len(np.unique(owners[broken]))
    total = int(broken.sum())
    return DeclarationCount(kind, place, text, broken_text, ROW, total, len(owners), patients)


def _numbers(cells: pd.Series[Any], seconds: int = DAY) -> Floats:
    """Return numbers as they are, and dates since 1970-01-01 in a unit; NaN where one is missing.

    Args:
        cells: numbers or dates.
        seconds: how long the unit is; days are whole.
    """
    kind, values, gaps = values_of(cells)
    if kind == "empty":
        return np.full(len(cells), np.nan)
    if kind == "date":
        whole = values.astype("datetime64[D]" if seconds == DAY else "datetime64[s]")
        values = whole.astype(np.int64) / (1 if seconds == DAY else seconds)
    return np.where(gaps, np.nan, np.asarray(values, dtype=np.float64))


def _ranks(cells: pd.Series[Any], column: Column) -> Floats:
    """Return numbers in order of a column's values; NaN where one is missing."""
    kind, values, gaps = values_of(cells)
    if kind == "empty":
        return np.full(len(cells), np.nan)
    if column.is_categorical and not column.kind.is_truth:
        listed = rising(column)
        texts = [float(level) for level in listed] if kind == "number" else listed
        ranks = {level: float(rank) for rank, level in enumerate(texts)}
        values = np.array([ranks.get(value, np.nan) for value in values.tolist()])
    return np.where(gaps, np.nan, np.asarray(values, dtype=np.float64))


def _distance(days: Floats, due: Floats) -> Floats:
    """Return how far each day is from the due day that is nearest."""
    after = np.searchsorted(due, days)
    ends = (due[np.maximum(after - 1, 0)], due[np.minimum(after, len(due) - 1)])
    return np.minimum(np.abs(days - ends[0]), np.abs(days - ends[1]))


def _covered(owners: Ints, days: Floats, others: Ints, starts: Floats, ends: Floats) -> Bools:
    """Tell which rows lie between the start and the end of a row of the same patient.

    Args:
        owners: the patient of each row.
        days: of each row.
        others: the patient of each row that has a start and an end, ascending; within a patient,
            starts ascend.
        starts: of each of these.
        ends: of each of these.
    """
    import pandas as pd

    if not len(starts):
        return np.zeros(len(days), dtype=bool)
    latest = pd.Series(ends).groupby(others).cummax().to_numpy()
    each, ranks = np.unique(np.concatenate([starts, days]), return_inverse=True)
    own_ranks, start_ranks = ranks[len(starts) :], ranks[: len(starts)]
    keys = others * (len(each) + 1) + start_ranks
    last = np.searchsorted(keys, owners * (len(each) + 1) + own_ranks, side="right") - 1
    found = np.maximum(last, 0)
    return np.asarray((last >= 0) & (others[found] == owners) & (latest[found] >= days))
