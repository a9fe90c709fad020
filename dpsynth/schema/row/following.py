"""Columns that are the group of a code, and columns that are empty in some rows: as declared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from dpsynth._util.field_reader import FieldFindings, FieldReader
from dpsynth._util.messages import did_you_mean, listed, shown
from dpsynth.errors import InputError
from dpsynth.schema.column import MISSING, UNMODELLED, Column
from dpsynth.schema.relations.grouping import Grouping
from dpsynth.schema.row.needs import circle, why_needed
from dpsynth.schema.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Sequence

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
        for problem in _problems(column, known):
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


def _problems(column: Column, known: Mapping[str, Column]) -> Iterator[str]:
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
