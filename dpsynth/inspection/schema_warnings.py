"""What is known of a schema without data: declarations that are valid and rarely meant."""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.errors import Problem
from dpsynth.schema import (
    AnySchema,
    ChildTable,
    Column,
    Comparison,
    LinkedSchema,
    Schema,
    Tree,
    incomplete_only,
    ordered,
    published_tables,
    why_no_order,
)
from dpsynth.schema.code_systems.codes import fits_record_numbers
from dpsynth.schema.orders import ordered_pairs
from dpsynth.schema.relations import SECONDS
from dpsynth.schema.types import DAY

LONG_WINDOW = 20 * 365  # days; over a longer one, the day of a drawn row is too coarse for a year


def schema_warnings(schema: AnySchema) -> tuple[Problem, ...]:
    """List declarations that will make a poor table; places are columns or rules.

    Of linked tables, they are those of each table, and what is lost of the calendar of rows: years
    where days count from a birth, and times of day.

    Two dates that are ordered by a rule, with no interval between them: dpsynth models each date
    alone and draws again what breaks the rule. So the time between them has the right sign and no
    more: a stay of 4 days can come out as 40.

    Rules that contradict each other in every row without empty cells.

    A name or category that a spreadsheet would run as a formula.

    A pattern of codes to discover that numbers of patients fit.

    A datetime whose time of day is not modelled: cells are drawn evenly within wide steps of time,
    so each hour of the day comes out as frequent as the others.

    >>> schema_warnings(Schema.load("demo"))
    ()
    """
    if isinstance(schema, LinkedSchema):
        tables = (schema.patients, *(child.schema for child in schema.children))
        of_tables = [
            Problem(f"{own.name}: {one.place}", one.message)
            for own in tables
            for one in schema_warnings(own)
        ]
        return (*of_tables, *lost_years(schema), *lost_hours(schema))
    columns = {column.name: column for column in schema.modelled}
    warnings = []
    if (whole := incomplete_only(schema)) is not None:
        warnings.append(
            Problem(
                "rules",
                f"{whole}; only rows with empty cells meet them. If cells are to be empty in some "
                "rows, declare in which they are not: dpsynth: {present_if: ...}",
            )
        )
    for rule in schema.rules:
        if rule.order:  # the time between them is modelled
            continue
        for first, second in _ordered_dates(rule.tree, columns):
            if _is_interval(columns[first]) or _is_interval(columns[second]):
                continue
            warnings.append(
                Problem(
                    rule.text,
                    f"orders the dates {first} and {second}, but the time between them is not "
                    f"declared, so it will be far from the real one; declare {second} by its gap: "
                    f"dpsynth: {{after: {first}, longest: ..., bounds_basis: ...}}",
                )
            )
    for column in columns.values():
        if column.runs_in_spreadsheets:
            warnings.append(
                Problem(
                    column.name,
                    "its name or a category begins with =, +, -, @ or a tab, so a spreadsheet that "
                    "opens the CSV file may run it as a formula; declare another text with labels, "
                    "or tell recipients to import the column as text",
                )
            )
        if (remedy := _lost_time_of_day(column)) is not None:
            warnings.append(
                Problem(
                    column.name,
                    "its time of day will be even: as many cells at night as at noon; to keep how "
                    f"the hours of the day differ, {remedy}",
                )
            )
        discovery = column.discovery
        digits = None if discovery is None else fits_record_numbers(discovery.pattern)
        if digits is not None:
            warnings.append(
                Problem(
                    column.name,
                    f"record numbers could fit its pattern: {digits} digits do. Codes "
                    "that a fit finds are published, so make sure that no number of a patient, a "
                    "stay or an order ever stands in this column; or write what all codes begin "
                    "with into the pattern",
                )
            )
    return tuple(dict.fromkeys(warnings))


def _lost_time_of_day(column: Column) -> str | None:
    """Say how to declare the time of day of a datetime; None where nothing is lost."""
    if "hour" not in column.kind.calendar or column.is_categorical:
        return None
    if column.interval is not None:
        if column.interval.length(1) < DAY or "hour" in column.calendar:
            return None
        return (
            "add to the column: dpsynth: {calendar: [hour]}, or declare the gap in shorter units, "
            "with longest in them: dpsynth: {unit: min}"
        )
    if "hour" in column.calendar or SECONDS["h"] % (column.step or 1):
        return None
    parts = ", ".join([*column.calendar, "hour"])
    return f"add to the column: dpsynth: {{calendar: [{parts}]}}"


def lost_calendar(schema: AnySchema) -> tuple[Problem, ...]:
    """List what a fit loses of the calendar of rows of linked tables; places are table.column."""
    if not isinstance(schema, LinkedSchema):
        return ()
    return (*lost_years(schema), *lost_hours(schema), *lost_weekdays(schema))


def lost_years(schema: LinkedSchema) -> tuple[Problem, ...]:
    """List dates of rows of linked tables whose years are lost; places are table.column."""
    lost, window = [], schema.window
    for child, column in _dated(schema):
        if not isinstance(child.origin, str) or window is None or window.days <= LONG_WINDOW:
            continue
        bounds = published_tables(schema)[child.name].column(column.name)
        lost.append(
            Problem(
                f"{child.name}.{column.name}",
                f"its days count from {child.origin} over {window.days // 365} years, so synthetic "
                f"rows can lie anywhere from {str(bounds.minimum)[:10]} to "
                f"{str(bounds.maximum)[:10]}; to keep their years, count all days from one date: "
                "dpsynth: {origin: YYYY-MM-DD} in the table, with the window of the extract",
            )
        )
    return tuple(lost)


def lost_hours(schema: LinkedSchema) -> tuple[Problem, ...]:
    """List times of rows of linked tables whose time of day is lost; places are table.column."""
    return tuple(
        Problem(
            f"{child.name}.{column.name}",
            "its time of day is not kept: each synthetic row is at midnight; to keep how the hours "
            "of the day differ, add to the column: dpsynth: {calendar: "
            f"[{', '.join([*column.calendar, 'hour'])}]}}",
        )
        for child, column in _dated(schema)
        if child.once is None and "hour" in column.kind.calendar and "hour" not in column.calendar
    )


def lost_weekdays(schema: LinkedSchema) -> tuple[Problem, ...]:
    """List the weekdays and months of rows of linked tables that are lost; by table.column."""
    notes = []
    for child, column in _dated(schema):
        window = schema.window
        origin = schema.patients.column(child.origin) if isinstance(child.origin, str) else None
        if window is not None and window.days > LONG_WINDOW:
            origin = None  # the weekday of a birth says nothing of rows years later
        kept = {*column.calendar, *(() if origin is None else origin.calendar)}
        lost = [part for part in ("weekday", "month") if part not in kept]
        if not lost or child.once is not None:
            continue
        where = "this column" if origin is None else f"this column, or for {origin.name}"
        notes.append(
            Problem(
                f"{child.name}.{column.name}",
                f"the {' and the '.join(lost)} of its days are not kept; where they matter, "
                f"declare dpsynth: {{calendar: [{', '.join(lost)}]}} for {where}",
            )
        )
    return tuple(notes)


def _dated(schema: LinkedSchema) -> Iterator[tuple[ChildTable, Column]]:
    """Yield the tables whose rows have a date that counts in days, with its column."""
    for child in schema.children if schema.time_seconds == DAY else ():
        if child.time is not None and child.origin is not None:
            yield child, child.schema.column(child.time)


def _is_interval(column: Column) -> bool:
    """Whether a date is declared by its gap after another one."""
    return column.interval is not None


def _ordered_dates(tree: Tree, columns: dict[str, Column]) -> Iterator[tuple[str, str]]:
    """Yield pairs of dates that a rule orders for certain, the earlier one first."""
    if isinstance(tree, Comparison):
        for pair in ordered(tree):
            if all(columns[name].kind.gaps for name in pair):
                yield pair
    elif tree.word == "and":
        for part in tree.parts:
            yield from _ordered_dates(part, columns)


def schema_notes(schema: AnySchema) -> tuple[Problem, ...]:
    """List what may be declared better; places are columns or rules.

    A rule of text that is an order of numbers: it could hold by construction. (Of two dates, see
    `schema_warnings`: they need a gap.) Of linked tables, the weekdays and months that are lost.

    >>> [note.place for note in schema_notes(Schema.load("demo"))]
    ['dbp < sbp']
    """
    if isinstance(schema, LinkedSchema):
        return lost_weekdays(schema)
    return tuple(dict.fromkeys(_orders(schema)))


def _orders(schema: Schema) -> Iterator[Problem]:
    columns = {column.name: column for column in schema.modelled}
    for rule in schema.rules:
        if rule.order:
            continue
        try:
            pairs = list(ordered_pairs(rule.tree))
        except ValueError:
            continue  # it says something else
        for low, high, strict in pairs:
            if columns[high].kind.gaps or columns[high].floor is not None:
                continue
            if why_no_order(columns[low], columns[high], strict=strict) is None:
                order = f"{low} {'<' if strict else '<='} {high}"
                yield Problem(
                    rule.text,
                    "rows that break it are drawn again. It could also hold by construction, which "
                    "is better if drawn rows often break it (dpsynth sample says how often): write "
                    f'- order: "{order}" in place of the rule',
                )
