"""Columns that lean on others of their row: intervals, derived columns, parts of the calendar.

A column is read on its own first (`read_relation`). When all are read, `settled` checks what they
name, refuses circles, and works out the bounds of intervals from those of the dates they lean on.

The places of a cell that holds several codes: each is modelled as a column of one code.

The first place holds the first code, so a cell of two codes has two places filled. The places of a
column without an order hold its codes in the order of the declared list.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dpsynth._util.field_reader import MAX_WHOLE, FieldFindings, FieldReader
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import InputError
from dpsynth.schema.column import MISSING, UNMODELLED, CellForms, Column
from dpsynth.schema.formula import Formula
from dpsynth.schema.lattice import in_units
from dpsynth.schema.relations import NO_END, SECONDS, Grouping, Interval, converted
from dpsynth.schema.rules import Rule
from dpsynth.schema.types import DAY, YEAR

MONTHS = ("mo", "month", "months")
NO_MONTHS = (
    "months are not equally long, so a gap of whole months does not say how many days it is; "
    "write d or wk, and longest in that unit (6 months: longest: 184, unit: d)"
)
RELATION_KEYS = ("after", "before", "longest", "shortest", "unit", "derived", "calendar")
CALENDAR_PARTS = ("weekday", "month", "hour")
MAX_YEARS = 1_000  # of a gap
_OF_INTERVALS = ("longest", "shortest", "unit")
_DERIVED_HAS_NO = ("role", "on_bad", "on_unknown", "codes", "after", "before", "calendar")


def read_relation(constraints: FieldReader, extra: FieldReader, column: Column) -> Column:
    """Read what a field declares about other columns; the names are checked by `settled`."""
    if extra.has("derived"):
        return _read_derived(extra, column)
    column = read_calendar(extra, column)
    sides = [key for key in ("after", "before") if extra.has(key)]
    if not sides:
        for key in _OF_INTERVALS:
            if extra.has(key):
                extra.mistake(key, "only an interval has it; name the other date: after: column")
        return column
    if len(sides) > 1:
        extra.mistake("before", "a date is an interval to one other; keep after or before")
    if not column.kind.gaps or column.is_categorical:
        extra.mistake(
            sides[0],
            f"an interval is of type date or datetime, not {column.type}; to publish a number "
            "that follows from dates, declare it as derived, like 'days(admitted, discharged)'",
        )
        return column
    for part, key in ((constraints, "minimum"), (constraints, "maximum"), (extra, "step")):
        if part.has(key):
            part.mistake(key, f"follows from '{sides[0]}' and the other date; remove it")
    base = extra.text(sides[0])
    interval = _read_ends(extra, column, base or "", before=sides[0] == "before")
    if [part for part in column.calendar if part != "hour"]:
        extra.mistake("calendar", "an interval keeps the hour alone; declare others for its base")
    elif column.calendar and interval.unit != YEAR and interval.length(1) < DAY:
        extra.mistake("calendar", "the hour follows from a gap in hours or less; remove it")
    return replace(column, interval=interval) if base else column


def _read_ends(extra: FieldReader, column: Column, base: str, *, before: bool) -> Interval:
    """Read unit and ends of a gap."""
    units, usual = column.kind.gaps, column.kind.usual_gap
    if extra.values.get("unit") in MONTHS:
        extra.mistake("unit", NO_MONTHS)
        unit = usual
    else:
        unit = extra.choice("unit", units, usual)
    unit = unit if unit in units else units[0]
    if not extra.has("longest"):
        extra.gap("longest", "is missing; declare it, it is never taken from the data")
    length = 366 * DAY if unit == YEAR else SECONDS[unit]
    largest = MAX_YEARS * 366 * DAY // length
    ends: dict[str, int] = {"longest": NO_END, "shortest": 0}
    for key in ends:
        value = extra.whole(key, minimum=-MAX_WHOLE)
        if value is not None and abs(value) > largest:
            extra.mistake(key, f"is more than {MAX_YEARS} years; declare a smaller one")
        elif value is not None:
            ends[key] = value
    if ends["longest"] != NO_END and ends["longest"] < ends["shortest"]:
        extra.mistake("longest", "longest is below shortest; swap or correct them")
        ends["longest"] = ends["shortest"]
    if unit == YEAR and ends["shortest"] < 0:
        extra.mistake("shortest", "completed years are not negative; take unit d")
    return Interval(base, unit, ends["longest"], ends["shortest"], before)


def _read_derived(extra: FieldReader, column: Column) -> Column:
    """Read a formula."""
    if not column.kind.is_number or column.is_categorical:
        extra.mistake("derived", f"a derived column is a number with bounds, not a {column.type}")
    for key in (*_DERIVED_HAS_NO, *_OF_INTERVALS):
        if extra.has(key):
            extra.mistake(key, "the column is derived, and so has none; remove it")
    text = extra.text("derived")
    try:
        formula = None if text is None else Formula.parse(text)
    except InputError as error:
        extra.mistake("derived", str(error))
        return column
    return replace(column, derived=formula, roles=frozenset())


def read_calendar(extra: FieldReader, column: Column) -> Column:
    """Read which parts of the calendar a date keeps: one, or a list."""
    if not extra.has("calendar"):
        return column
    several = isinstance(extra.values["calendar"], list | tuple)
    words = extra.texts("calendar") if several else (extra.text("calendar"),)
    if not column.kind.is_time or column.is_categorical:
        extra.mistake("calendar", f"only a date has a calendar, and the type is {column.type}")
        return column
    for word in words or ():
        if word is not None and word not in CALENDAR_PARTS:
            meant = did_you_mean(word, CALENDAR_PARTS)
            known = ", ".join(CALENDAR_PARTS)
            extra.mistake("calendar", f"{shown(word)} is not one of {known}{meant}")
    for word in words or ():
        if word in CALENDAR_PARTS and word not in column.kind.calendar:
            hour = "; set type: datetime if the cells have a time of day" * (word == "hour")
            extra.mistake("calendar", f"a {column.kind.noun} has no {word}{hour}")
    return replace(column, calendar=tuple(part for part in CALENDAR_PARTS if part in (words or ())))


def settled(
    columns: Sequence[Column], places: Mapping[str, str], findings: FieldFindings
) -> tuple[Column, ...]:
    """Check what columns say about each other, and give intervals their bounds."""
    known = {column.name: column for column in columns}
    sound = []
    for column in columns:
        key = "derived"
        if column.interval is not None:
            key = "before" if column.interval.before else "after"
        problem = next(_problems(column, known), None)
        if problem:
            findings.mistake(f"{places[column.name]}.dpsynth.{key}", problem)
        for part in column.calendar:
            if f"{column.name}: {part}" in known:
                text = f"'{column.name}: {part}' is the name of a column; rename that one"
                findings.mistake(f"{places[column.name]}.dpsynth.calendar", text)
        if "hour" in column.calendar and SECONDS["h"] % (column.step or 1):
            text = "an hour needs a step that divides it: 3600 seconds, or a part of them"
            findings.mistake(f"{places[column.name]}.dpsynth.calendar", text)
        for key, text in problems_of(column, known):
            findings.mistake(f"{places[column.name]}.dpsynth.{key}", text)
        if not problem:
            sound.append(column.name)
    for name in in_order(known.values()):
        column = known[name]
        if column.interval is None or name not in sound:
            continue
        try:
            known[name] = bounded(column, known[column.interval.base])
            if "hour" in column.calendar and SECONDS["h"] % int(known[name].step or 1):
                base, text = column.interval.base, "its hour needs a step that divides it"
                findings.mistake(f"{places[base]}.dpsynth.step", f"{name!r} keeps the hour: {text}")
        except (ValueError, OverflowError):
            findings.mistake(
                f"{places[name]}.dpsynth.longest", "leads to dates outside the years 1 to 9999"
            )
    return grouped(tuple(known[column.name] for column in columns), places, findings)


def _problems(column: Column, known: Mapping[str, Column]) -> Iterator[str]:
    """Yield what is wrong with the columns that a column names."""
    if column.interval is not None:
        base = column.interval.base
        yield from _absent(base, known)
        if not known[base].kind.gaps or known[base].is_categorical:
            yield f"column {base!r} is of type {known[base].type}; a date or datetime is expected"
        if column.required and known[base].nullable:
            yield (
                f"the column is required, but {base!r} may be missing, and the date follows from "
                "it; make both required, or neither"
            )
        if circle := _circle(column.name, known):
            yield f"goes round in a circle: {' after '.join(circle)}; one date stands on its own"
    if column.derived is None:
        return
    for name in (*column.derived.numbers, *column.derived.dates):
        yield from _absent(name, known)
        dated, other = name in column.derived.dates, known[name]
        if not (other.kind.is_time if dated else other.kind.is_number):
            wanted = "a date" if dated else "a number"
            yield f"column {name!r} is of type {other.type}; {wanted} is expected there"
        if column.required and other.nullable:
            yield f"the column is required, but {name!r} may be missing; remove required"


def _absent(name: str, known: Mapping[str, Column]) -> Iterator[str]:
    if name not in known:
        yield f"there is no column {shown(name)}{did_you_mean(name, known)}"
    elif not known[name].modelled:
        roles = listed(sorted(known[name].roles & UNMODELLED))
        yield f"column {name!r} has role {roles} and is not in the synthetic table"


def _circle(name: str, known: Mapping[str, Column]) -> list[str]:
    """Return the columns from one back to itself; empty if there is no such way."""
    names = [name]
    while (column := known.get(names[-1])) is not None and column.interval is not None:
        names.append(column.interval.base)
        if names[-1] == name:
            return names
        if len(names) > len(known):
            return []
    return []


def bounded(column: Column, base: Column) -> Column:
    """Return an interval with the bounds and the step that follow from those of its base.

    Raises:
        ValueError, OverflowError: they are not dates of the years 1 to 9999.
    """
    interval = column.interval
    if interval is None or base.minimum is None or base.maximum is None:
        return column  # a draft
    if interval.longest == NO_END:
        return column
    kind, tick = column.kind, column.kind.seconds
    bounds = np.array([int(in_units(bound, base.kind)) for bound in (base.minimum, base.maximum)])
    gaps = np.array([interval.shortest, interval.longest])
    first, last = (
        np.array(interval.ends(np.array([end, end]), gaps, tick=tick))
        for end in converted(bounds, base.kind, kind).astype(np.int64)
    )
    ends = int(min(first.min(), last.min())), int(max(first.max(), last.max()))
    minimum, maximum = map(kind.bound, ends)
    step = None
    if tick == 1:
        own = base.step if base.step is not None else base.kind.step
        parts = int(own or 1) * base.kind.seconds, interval.length(tick), interval.resolution(tick)
        step = math.gcd(*parts)
        step = None if step == kind.step else step
    return replace(column, minimum=minimum, maximum=maximum, step=step)


_HAS_NO = (
    *("role", "on_bad", "on_unknown", "codes", "after", "before", "longest", "shortest", "unit"),
    *("calendar", "step", "values", "case", "missing", "censored", "status", "unit_from"),
)
OWN_KEYS = ("group", "level")


def is_grouping(extra: FieldReader) -> bool:
    """Whether a field is declared as the group of a code, and not by a formula."""
    return isinstance(extra.values.get("derived"), Mapping)


def read_grouping(constraints: FieldReader, extra: FieldReader, column: Column) -> Column:
    """Read ``derived: {group: column, level: chapter}``; categories follow from the other column.

    Args:
        constraints: of the field.
        extra: its dpsynth object.
        column: what was read of it.
    """
    if not column.kind.is_text:
        extra.mistake("derived", f"a group of codes is of type string, not {column.type}")
    for key in _HAS_NO:
        if extra.has(key):
            extra.mistake(key, "the column is derived, and so has none; remove it")
    if constraints.has("enum"):
        constraints.mistake("enum", "the categories are the groups of the codes; remove it")
    part = extra.part("derived")
    part.refuse_unknown(OWN_KEYS)
    level = part.values.get("level")
    if isinstance(level, bool) or not isinstance(level, int | str) or not part.has("level"):
        part.mistake("level", "name a roll-up such as chapter, or a level of the list such as 1")
        return replace(column, categories=(), roles=frozenset())
    base = part.text("group")
    if base is None:
        part.mistake("group", "name the column of codes")
        return replace(column, categories=(), roles=frozenset())
    grouping = Grouping(base, str(level))
    return replace(column, grouping=grouping, categories=(), roles=frozenset())


def grouped(
    columns: tuple[Column, ...], places: Mapping[str, str], findings: FieldFindings
) -> tuple[Column, ...]:
    """Give columns that are groups of codes their categories; what is wrong with them is noted."""
    known = {column.name: column for column in columns}
    for column in columns:
        if column.grouping is None:
            continue
        place = f"{places[column.name]}.dpsynth.derived"
        base = known.get(column.grouping.base)
        if base is None or not base.modelled:
            why = f"there is no column {shown(column.grouping.base)}"
            if base is not None:
                roles = listed(sorted(base.roles & UNMODELLED))
                why = f"column {base.name!r} has role {roles} and is not in the synthetic table"
            findings.mistake(place, why + did_you_mean(column.grouping.base, known))
            continue
        if column.required and base.nullable:
            findings.mistake(
                place, f"the column is required, but {base.name!r} may be missing; remove required"
            )
        try:
            groups = tuple(dict.fromkeys(column.grouping.groups(base.codes, base.levels).values()))
            labels = column.grouping.labels(base.codes)
        except (InputError, ValueError) as error:
            findings.mistake(place, str(error))
            continue
        policy = (
            groups[0] if column.required else MISSING
        )  # no cell is read, but of a synthetic table
        known[column.name] = replace(
            column,
            categories=groups,
            labels={group: labels[group] for group in groups if group in labels},
            on_bad=policy,
            on_unknown=policy,
        )
    return tuple(known[column.name] for column in columns)


def read_presence(extra: FieldReader, column: Column) -> Column:
    """Read ``present_if``: the rows in which a cell may be filled in."""
    if not extra.has("present_if"):
        return column
    if column.required:
        extra.mistake("present_if", "the column is required, so no cell is empty; keep one of both")
    text = extra.text("present_if")
    try:
        return column if text is None else replace(column, present_if=Rule.parse(text))
    except InputError as error:
        extra.mistake("present_if", str(error))
        return column


def check_following(columns: Sequence[Column], findings: FieldFindings) -> None:
    """Note what is wrong with the conditions of columns, and columns that go round in a circle."""
    known = {column.name: column for column in columns}
    told: set[frozenset[str]] = set()
    for column in columns:
        place = f"fields {shown(column.name)}.dpsynth"
        for problem in _following_problems(column, known):
            findings.mistake(f"{place}.present_if", problem)
        way = circle(column.name, known)
        if not way or frozenset(way) in told or _is_of_dates(way, known):
            continue
        told.add(frozenset(way))
        steps = zip(way[:-1], way[1:], strict=True)
        reasons = ", ".join(why_needed(known[name], other) for name, other in steps)
        findings.mistake(
            place,
            f"goes round in a circle: {' needs '.join(way)} ({reasons}); remove one of these "
            "declarations",
        )


def _following_problems(column: Column, known: Mapping[str, Column]) -> Iterator[str]:
    if column.present_if is None:
        return
    yield from column.present_if.problems(known.values())
    forms = column.forms
    if forms.is_censored or (forms.reasons and not column.kind.is_text):
        yield (
            "the column has a status column, which says why a cell is missing; remove the limits "
            "of detection and the reasons, or present_if"
        )
    for name in column.present_if.columns:
        if name in known and known[name].status_of is not None:
            yield f"{name!r} is a status column; name the column itself"


def _is_of_dates(way: tuple[str, ...], known: Mapping[str, Column]) -> bool:
    """Whether a circle is of intervals alone, which is noted where they are read."""
    steps = zip(way[:-1], way[1:], strict=True)
    return all(
        (interval := known[name].interval) is not None and interval.base == other
        for name, other in steps
    )


def needs(column: Column) -> tuple[str, ...]:
    """Return the columns that a column follows from, each once.

    >>> from dpsynth.schema.relations import Floor
    >>> needs(Column("systolic", "integer", floor=Floor((("diastolic", True),))))
    ('diastolic',)
    """
    names: list[str] = []
    if column.interval is not None:
        names.append(column.interval.base)
    if column.floor is not None:
        names += column.floor.names
    if column.derived is not None:
        names += [*column.derived.numbers, *column.derived.dates]
    if column.grouping is not None:
        names.append(column.grouping.base)
    if column.present_if is not None:
        names += column.present_if.columns
    return tuple(dict.fromkeys(names))


def why_needed(column: Column, other: str) -> str:
    """Say by which declaration a column follows from another one, in a few words.

    >>> from dpsynth.schema.relations import Floor
    >>> why_needed(Column("systolic", "integer", floor=Floor((("diastolic", True),))), "diastolic")
    "'systolic' follows from 'diastolic' by an order"
    """
    floor, presence, interval = column.floor, column.present_if, column.interval
    if interval is not None and interval.base == other:
        way = f"its gap, {'before' if interval.before else 'after'}"
    elif floor is not None and other in floor.names:
        way = "an order"
    elif presence is not None and other in presence.columns:
        way = "present_if"
    else:
        way = "derived"
    return f"{column.name!r} follows from {other!r} by {way}"


def in_order(columns: Iterable[Column]) -> list[str]:
    """Name the columns so that each comes after those that it follows from.

    Columns of a circle are left out.

    >>> from dpsynth.schema.relations import Interval
    >>> in_order([Column("b", "date", interval=Interval("a", "d", 9)), Column("a", "date")])
    ['a', 'b']
    """
    waiting = {column.name: needs(column) for column in columns}
    names: list[str] = []
    while True:
        ready = [name for name, own in waiting.items() if not any(one in waiting for one in own)]
        if not ready:
            return names
        names += ready
        waiting = {name: own for name, own in waiting.items() if name not in ready}


def with_needs(names: Iterable[str], columns: Mapping[str, Column]) -> frozenset[str]:
    """Return the names, and those of all columns that these follow from."""
    found: set[str] = set()
    open_names = list(names)
    while open_names:
        name = open_names.pop()
        if name in found or name not in columns:
            continue
        found.add(name)
        open_names += needs(columns[name])
    return frozenset(found)


def circle(name: str, columns: Mapping[str, Column]) -> tuple[str, ...]:
    """Return a shortest way from a column back to itself; empty if there is none."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    while ways:
        longer: list[tuple[str, ...]] = []
        for way in ways:
            for other in needs(columns[way[-1]]):
                if other == name:
                    return (*way, name)
                if other in columns and other not in seen:
                    seen.add(other)
                    longer.append((*way, other))
        ways = longer
    return ()


ROLES = frozenset({"sensitive", "quasi_identifier"})  # that a column of several codes may have


def place_names(column: Column) -> tuple[str, ...]:
    """Name the coded columns of a column of several codes; none for any other column."""
    several = column.several
    return () if several is None else tuple(f"{column.name}: {i + 1}" for i in range(several.most))


def single(column: Column) -> Column:
    """Return what is declared of one code of a cell: an empty part is no code, and left out."""
    assert column.codes is not None
    return replace(
        column, codes=replace(column.codes, several=None), required=False, on_bad="missing"
    )


def code_places(column: Column) -> Iterator[Column]:
    """Yield a coded column for each place; only the first may be required."""
    assert column.codes is not None
    for number, name in enumerate(place_names(column), start=1):
        required = column.required and number == 1
        yield replace(
            column,
            name=name,
            codes=replace(column.codes, several=None),
            required=required,
            on_bad=column.on_bad if required else "missing",
            missing_values=("",),
            forms=CellForms(),
            title=f"{column.title or column.name}: code {number}",
        )


def problems_of(column: Column, known: Mapping[str, Column]) -> Iterator[tuple[str, str]]:
    """Yield what a column of several codes declares and cannot have: the key, and a sentence."""
    if column.several is None:
        return
    if roles := sorted(column.roles - ROLES):
        yield (
            "role",
            f"a column of several codes has no role {listed(roles)}; declare a column of its own "
            "for what is predicted or compared",
        )
    if column.forms.reasons:
        yield "missing", "reasons are for cells of one code; list their texts in missingValues"
    for name in place_names(column):
        if name in known:
            yield "codes.several", f"{shown(name)} is the name of a column; rename that one"
