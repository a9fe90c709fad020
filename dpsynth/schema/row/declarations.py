"""Columns that lean on others of their row: intervals, derived columns, parts of the calendar.

A column is read on its own first (`read_relation`). When all are read, `settled` checks what they
name, refuses circles, and works out the bounds of intervals from those of the dates they lean on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from dpsynth._util.field_reader import MAX_WHOLE, FieldFindings, FieldReader
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import InputError
from dpsynth.schema.column import UNMODELLED, Column
from dpsynth.schema.lattice import EPOCH, in_units
from dpsynth.schema.relations.formula import Formula
from dpsynth.schema.relations.interval import (
    DAY,
    NO_END,
    SECONDS,
    UNITS_OF_DATES,
    UNITS_OF_TIMES,
    YEAR,
    Interval,
)
from dpsynth.schema.row.code_places import problems_of
from dpsynth.schema.row.following import grouped
from dpsynth.schema.row.needs import in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

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
    column = _read_calendar(extra, column)
    sides = [key for key in ("after", "before") if extra.has(key)]
    if not sides:
        for key in _OF_INTERVALS:
            if extra.has(key):
                extra.mistake(key, "only an interval has it; name the other date: after: column")
        return column
    if len(sides) > 1:
        extra.mistake("before", "a date is an interval to one other; keep after or before")
    if not column.kind.is_time or column.is_categorical:
        extra.mistake(
            sides[0],
            f"an interval is of type date or datetime, not {column.type}; to publish a number "
            "that follows from dates, declare it as derived, like 'days(admitted, discharged)'",
        )
        return column
    for part, key in ((constraints, "minimum"), (constraints, "maximum"), (extra, "step")):
        if part.has(key):
            part.mistake(key, f"follows from '{sides[0]}' and the other date; remove it")
    if column.calendar:
        extra.mistake("calendar", "an interval keeps none; declare it for the other date")
    base = extra.text(sides[0])
    interval = _read_ends(extra, column, base or "", before=sides[0] == "before")
    return replace(column, interval=interval, calendar=()) if base else column


def _read_ends(extra: FieldReader, column: Column, base: str, *, before: bool) -> Interval:
    """Read unit and ends of a gap."""
    units = UNITS_OF_DATES if column.kind.in_days else UNITS_OF_TIMES
    usual = "d" if column.kind.in_days else "min"
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


def _read_calendar(extra: FieldReader, column: Column) -> Column:
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
    if column.kind.in_days and "hour" in (words or ()):
        text = "a date has no hour; set type: datetime if the cells have a time of day"
        extra.mistake("calendar", text)
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
        if not known[base].kind.is_time or known[base].is_categorical:
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
    days = column.kind.in_days
    low, high = (
        converted(int(in_units(bound)), from_days=base.kind.in_days, to_days=days)
        for bound in (base.minimum, base.maximum)
    )
    gaps = np.array([interval.shortest, interval.longest])
    first, last = (
        np.array(interval.ends(np.array([end, end]), gaps, in_days=days)) for end in (low, high)
    )
    ends = int(min(first.min(), last.min())), int(max(first.max(), last.max()))
    minimum, maximum = (_moment(end, days=days) for end in ends)
    step = None
    if not days:
        own = base.step if base.step is not None else base.kind.step
        stride = int(own or 1) * (DAY if base.kind.in_days else 1)
        parts = stride, interval.length(in_days=False), interval.resolution(in_days=False)
        step = math.gcd(*parts)
        step = None if step == column.kind.step else step
    return replace(column, minimum=minimum, maximum=maximum, step=step)


def converted(value: int, *, from_days: bool, to_days: bool) -> int:
    """Turn days into the seconds of their midnight, or seconds into their day."""
    if from_days == to_days:
        return value
    return value // DAY if to_days else value * DAY


def _moment(value: int, *, days: bool) -> date | datetime:
    if days:
        return date.fromordinal(EPOCH.toordinal() + value)
    return EPOCH + timedelta(seconds=value)
