"""Bounds: of a number, those of the document and then of the shipped table; of a datetime."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime

from dpsynth._util.field_reader import TODO
from dpsynth.draft.clinical import Range, Variable
from dpsynth.draft.entry import Entry
from dpsynth.draft.value_lists import read_number

TOP = 2**53
_TIME = re.compile(r"[T _-]+%H.*$")  # the end of a format of datetimes
Bound = float | int | str


@dataclass(frozen=True)
class Limits:
    """Minimum and maximum, or TODO, the source of both, and a hint for the person who checks."""

    minimum: Bound
    maximum: Bound
    basis: str
    hint: str = ""


def bounds_of(entry: Entry, variable: Variable | None, range_: Range | None, source: str) -> Limits:
    """Choose the bounds of a number.

    Args:
        entry: what the document says; a bound that can mean two numbers counts as absent.
        variable: the clinical variable, if the column is one.
        range_: its range in the column's unit, None where the unit is not known.
        source: what to call the document.
    """
    written = {"minimum": entry.minimum, "maximum": entry.maximum}
    read = {key: read_number(text) for key, text in written.items()}
    unclear = [text for key, text in written.items() if text and read[key] is None]
    table = {key: getattr(range_, key) if range_ else None for key in written}
    chosen = {key: table[key] if read[key] is None else read[key] for key in written}
    if unclear:
        chosen = {"minimum": None, "maximum": None}
    low, high = (TODO if chosen[key] is None else number_text(chosen[key]) for key in written)
    parts = []
    if any(number is not None for number in read.values()):
        parts.append(f"{source}, {entry.place}")
    if range_ is not None and any(read[key] is None for key in written):
        parts.append(_named(variable, range_))
    basis = f"{'; '.join(parts)}, {low} to {high} {range_.ucum if range_ else entry.unit}".rstrip()
    if range_ is not None and range_.basis and all(number is None for number in read.values()):
        basis += f", {range_.basis}"
    hint = ""
    if unclear:
        hint = f"the document says {unclear[0][:30]}, which is not one clear number"
    elif TODO in (low, high):
        hint = _options(variable) if range_ is None else ""
    return Limits(low, high, basis, hint)


def number_text(number: float | None) -> float | int:
    """Return a whole number without a point.

    >>> number_text(3.0), number_text(0.5)
    (3, 0.5)
    """
    assert number is not None
    return int(number) if number == int(number) and abs(number) < TOP else number


def _named(variable: Variable | None, range_: Range) -> str:
    name = variable.name if variable is not None else ""
    return f"{name}, LOINC {range_.loinc}" if range_.loinc else name


def _options(variable: Variable | None) -> str:
    """Say which range would be proposed in each unit that a variable can have."""
    if variable is None or variable.ranges[0].minimum is None:
        return ""
    options = (
        f"{number_text(one.minimum)} to {number_text(one.maximum)} {one.ucum}"
        for one in variable.ranges
    )
    return f"{variable.name}: " + " or ".join(options)


def moment_text(text: str, pattern: str | None, kind: str, *, last: bool) -> str:
    """Return a bound of a datetime that names the day only with its time; others as they stand.

    Args:
        text: as written; empty for none.
        pattern: of the column's dates, ``default`` for ISO 8601, None if it is not known.
        kind: ``date`` or ``datetime``.
        last: whether it is the maximum, which holds its whole day.

    >>> moment_text("31/12/2024", "%d/%m/%Y %H:%M", "datetime", last=True)
    '2024-12-31T23:59:00'
    >>> moment_text("2023-01-01", "default", "datetime", last=False)
    '2023-01-01T00:00:00'
    >>> moment_text("soon", "%d/%m/%Y %H:%M", "datetime", last=False)
    'soon'
    """
    if kind != "datetime" or not text or pattern is None:
        return text
    days = "%Y-%m-%d" if pattern == "default" else _TIME.sub("", pattern)
    try:
        day = datetime.strptime(text.strip(), days)
    except ValueError:
        return text
    return f"{day:%Y-%m-%d}T{'23:59:00' if last else '00:00:00'}"
