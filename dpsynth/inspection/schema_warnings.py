"""What is known of a schema without data: declarations that are valid and rarely meant."""

from __future__ import annotations

from collections.abc import Iterator

from dpsynth.errors import Problem
from dpsynth.schema import (
    Column,
    Comparison,
    Schema,
    Tree,
    incomplete_only,
    ordered,
    why_no_order,
)
from dpsynth.schema.code_systems.codes import fits_record_numbers
from dpsynth.schema.orders import ordered_pairs
from dpsynth.schema.relations import SECONDS
from dpsynth.schema.types import DAY


def schema_warnings(schema: Schema) -> tuple[Problem, ...]:
    """List declarations that will make a poor table; places are columns or rules.

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
        if column.interval.length(1) < DAY:
            return None
        return "declare the gap in shorter units, with longest in them: dpsynth: {unit: min}"
    if "hour" in column.calendar or SECONDS["h"] % (column.step or 1):
        return None
    parts = ", ".join([*column.calendar, "hour"])
    return f"add to the column: dpsynth: {{calendar: [{parts}]}}"


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


def schema_notes(schema: Schema) -> tuple[Problem, ...]:
    """List what may be declared better; places are columns or rules.

    A rule of text that is an order of numbers: it could hold by construction. (Of two dates, see
    `schema_warnings`: they need a gap.)

    >>> [note.place for note in schema_notes(Schema.load("demo"))]
    ['dbp < sbp']
    """
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
