"""Values inside a schema document: bounds of each type, and the canonical text of categories.

Bounds are numbers or, for dates and times of day, texts in the column's own format or ISO 8601 (or
what YAML makes of an unquoted date). They are written back in the column's format, as Table Schema
asks.
"""

from __future__ import annotations

import math
from contextlib import suppress
from datetime import date, datetime
from typing import Any

from dpsynth._util.field_reader import MAX_WHOLE, is_finite
from dpsynth._util.messages import shown
from dpsynth.schema.types import ColumnType, type_of


def canonical_number(value: float | int) -> str:
    """Give the one text of a number, whatever way it was written.

    >>> canonical_number(1.0), canonical_number(1), canonical_number(0.5)
    ('1', '1', '0.5')
    """
    return str(int(value)) if value == int(value) else repr(float(value))


def category_text(type_: str, value: object) -> str:
    """Give the canonical text of one enum value.

    Raises:
        ValueError: with the remedy, if the type cannot hold the value.
    """
    kind = type_of(type_)
    if kind.is_text:
        if not isinstance(value, str):
            raise ValueError(f"write it in quotes; without them it is read as {shown(value)}")
        if value != value.strip() or not value or not value.isprintable():
            raise ValueError(
                f"{shown(value)} is empty, begins or ends with a blank, or has a control character;"
                " cells are trimmed before they are compared, so none could match"
            )
        return value
    number = value
    if isinstance(value, str):
        try:
            number = _parsed_number(kind, value)
        except ValueError:
            raise ValueError(f"{shown(value)} is not of type {type_}") from None
    if isinstance(number, bool) or not isinstance(number, int | float):
        raise ValueError(f"{shown(value)} is not of type {type_}")
    if not abs(number) <= MAX_WHOLE:
        raise ValueError(f"{shown(value)} is not finite or is larger than 2^53")
    if kind.whole and number != int(number):
        raise ValueError(f"{shown(value)} is not whole, but the type is {type_}")
    return canonical_number(number)


def _parsed_number(kind: ColumnType, text: str, pattern: str | None = None) -> float:
    """Read a number by the parser of its type.

    Raises:
        ValueError: it is none.
    """
    if kind.read is None:
        return float(text)
    number = kind.read(text.strip(), pattern)
    if number != number:
        raise ValueError
    return number


def read_bound(type_: str, value: object, pattern: str | None) -> Any:
    """Read a bound as a value of the column's type: a number, date, datetime, time or timedelta.

    Raises:
        ValueError: with the remedy, if it is none.
    """
    kind = type_of(type_)
    if kind.is_time:
        return _moment(kind, value, pattern)
    if kind.is_spelled:
        return _spelled(kind, value, pattern)
    if isinstance(value, str) and kind.read is not None:
        with suppress(ValueError):
            value = _parsed_number(kind, value, pattern)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"a number is expected, not {shown(value)}")
    if not is_finite(value):
        raise ValueError("a bound is finite; declare one that no true value passes")
    if not kind.whole:
        return float(value)
    if abs(value) > MAX_WHOLE or value != int(value):
        raise ValueError(f"a whole number is expected for type {type_}, not {shown(value)}")
    if kind.bounds is not None and not kind.bounds[0] <= value <= kind.bounds[1]:
        raise ValueError(f"a {type_} must be between {kind.bounds[0]} and {kind.bounds[1]}")
    return int(value)


def _moment(kind: ColumnType, value: object, pattern: str | None) -> date | datetime:
    if isinstance(value, str):
        value = _parsed(kind, value.strip(), pattern)
    if not isinstance(value, date):
        expected = f"a {kind.name} like {kind.example!r}"
        expected += f" or in the format {pattern!r}" * bool(pattern)
        raise ValueError(f"{expected} is expected, not {shown(value)}")
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    if moment.tzinfo is not None:
        raise ValueError("times have no zone here; write the local time without one")
    bound: date | datetime = kind.bound(kind.value(moment))
    if moment.isoformat() not in (bound.isoformat(), f"{bound.isoformat()}T00:00:00"):
        raise ValueError(kind.too_fine)
    if pattern is not None and _parsed(kind, bound.strftime(pattern), pattern) != moment:
        raise ValueError(f"the format {pattern!r} cannot hold {bound.isoformat()}; change either")
    return bound


def _spelled(kind: ColumnType, value: object, pattern: str | None) -> Any:
    assert kind.read is not None
    number = kind.read(value.strip(), pattern) if isinstance(value, str) else math.nan
    if number != number:
        expected = f"a {kind.noun} in quotes, like {kind.example!r}"
        expected += f" or in the format {pattern!r}" * bool(pattern)
        raise ValueError(f"{expected} is expected, not {shown(value)}")
    if number != int(number) and (kind.whole or kind.is_elapsed):
        raise ValueError("a bound has whole seconds" if kind.is_elapsed else "a bound is whole")
    if kind.bounds is not None and not kind.bounds[0] <= number <= kind.bounds[1]:
        low, high = (kind.text(end) for end in kind.bounds)
        raise ValueError(f"a {kind.name} must be between {low} and {high}")
    bound = kind.bound(number)
    if pattern is not None and kind.read(bound.strftime(pattern), pattern) != number:
        raise ValueError(f"the format {pattern!r} cannot hold {bound.isoformat()}; change either")
    return bound


def _parsed(kind: ColumnType, text: str, pattern: str | None) -> object:
    """Read a date by a pattern, else as ISO 8601; returns the text where both fail."""
    if pattern is not None:
        try:
            return datetime.strptime(text, pattern)
        except ValueError:
            pass
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        assert kind.read is not None
        number = kind.read(text, None)  # of a type that is coarser than a date
        return text if number != number else kind.bound(number)


def write_bound(value: Any, kind: ColumnType, pattern: str | None = None) -> int | float | str:
    """Write a bound as JSON: whole numbers without a point, dates in the format or ISO 8601."""
    if kind.write is None:
        return write_number(value)
    text: str = value.strftime(pattern) if pattern else kind.write(kind.value(value))
    return text


def write_number(value: float) -> int | float:
    """Write a number as JSON: whole numbers without a point."""
    whole = abs(value) <= MAX_WHOLE and value == int(value)
    return int(value) if whole else float(value)
