"""The schema as generators see it: what is modelled of each row, in place of what is published.

An interval becomes a whole number, its gap in its unit, and so does a column that an order keeps
above others. A derived column is left out, because it follows from the others; a calendar part of
a date becomes a category beside the date; a column of several codes becomes a column for each
place. A schema without any of these is its own coded schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TypeVar

from dpsynth.schema.column import MISSING, CellForms, Column, Facts
from dpsynth.schema.declarations import code_places, needs
from dpsynth.schema.orders import gap_column
from dpsynth.schema.relations import WORDS

AnyFacts = TypeVar("AnyFacts", bound=Facts)
PARTS = {
    "weekday": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"),
    "month": (
        *("January", "February", "March", "April", "May", "June"),
        *("July", "August", "September", "October", "November", "December"),
    ),
    "hour": tuple(f"{hour:02}" for hour in range(24)),
}


def part_name(date: str, part: str) -> str:
    """Name the coded column of a calendar part."""
    return f"{date}: {part}"


def is_related(schema: Facts) -> bool:
    """Tell whether a column follows from others, keeps a calendar part, or holds several codes."""
    return any(needs(column) or column.calendar or column.several for column in schema.modelled)


def coded_schema(schema: AnyFacts) -> AnyFacts:
    """Return the schema of what is modelled: the same, but for its columns.

    The codes of its columns are those of the schema, in the same order.
    """
    if not is_related(schema):
        return schema
    titles = {column.name: column.title or column.name for column in schema.columns}
    columns: list[Column] = []
    for column in schema.columns:
        if column.is_computed:
            continue
        column = replace(column, present_if=None)
        if column.floor is not None:
            columns.append(gap_column(column, schema.columns))
            continue
        if column.interval is not None:
            columns.append(_gap(column, titles[column.interval.base]))
            columns.extend(calendar_columns(column) if column.modelled else ())
            continue
        if column.several is not None and column.modelled:
            columns.extend(code_places(column))
            continue
        columns.append(replace(column, calendar=()))
        if column.modelled:
            columns.extend(calendar_columns(column))
    return replace(schema, columns=tuple(columns))


def _gap(column: Column, base: str) -> Column:
    """Return the whole number that an interval is modelled as."""
    interval = column.interval
    assert interval is not None
    side = "before" if interval.before else "after"
    return replace(
        column,
        type="integer",
        minimum=interval.shortest,
        maximum=interval.longest,
        step=None,
        format=None,
        interval=None,
        calendar=(),
        ucum=interval.unit,
        missing_values=("",),
        forms=CellForms(),
        title=f"{column.title or column.name}: {WORDS[interval.unit]}s {side} {base}",
    )


def calendar_columns(column: Column) -> Iterator[Column]:
    """Yield the categories that are modelled beside a date."""
    for part in column.calendar:
        names = PARTS[part]
        policy = names[0] if column.required else MISSING
        yield Column(
            name=part_name(column.name, part),
            type="string",
            categories=names,
            required=column.required,
            on_bad=policy,
            on_unknown=policy,
            bounds_basis="calendar",
            title=f"{column.title or column.name}: {part}",
        )
