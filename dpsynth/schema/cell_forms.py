"""How the cells of a column are written: value maps, dates, limits of detection and units.

Several date formats of one column, and the pairs of them that read one text as two dates.

The first format that reads a cell wins. That is safe only where no later format would read the same
text as another date, so an ambiguous pair, such as ``%d/%m/%Y`` and ``%m/%d/%Y``, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np

from dpsynth._util.field_reader import FieldReader, is_finite
from dpsynth._util.messages import did_you_mean, listed, plain, shown
from dpsynth.errors import InputError
from dpsynth.schema.bounds import (
    canonical_number,
    category_text,
    read_bound,
    write_bound,
    write_number,
)
from dpsynth.schema.column import HIGH, LOW, MISSING, OTHER, REFUSE, VALUE, Column, UnitFrom
from dpsynth.schema.lattice import lattice_of
from dpsynth.schema.types import ColumnType

FORM_KEYS = ("values", "case", "missing", "censored", "status", "unit_from", "formats")
THOUSANDS = (".", ",", "'", "\u2019", " ", "\u00a0", "\u202f")  # the last two do not break lines
RESERVED = (VALUE, LOW, HIGH, MISSING, OTHER, REFUSE)


def read_forms(extra: FieldReader, column: Column, decimal: str = ".") -> Column:
    """Read the declarations of a modelled column whose categories and bounds are read."""
    forms = replace(column.forms, case=_read_case(extra, column))
    low, high = read_limits(extra, column, decimal)
    forms = replace(
        forms,
        low=low,
        high=high,
        reasons=_read_reasons(extra, column),
        unit=_read_unit(extra, column),
        status=extra.text("status"),
    )
    column = replace(column, forms=forms)
    column = replace(column, forms=replace(forms, values=read_values(extra, column)))
    _check_status(extra, column)
    check_texts(extra, column)
    if column.kind.is_text and forms.reasons:
        labels = {reason: f"missing: {reason}" for reason, _ in forms.reasons}
        column = replace(column, labels={**column.labels, **labels})
    return column


def read_formats(extra: FieldReader, column: Column, *, declared: bool) -> Column:
    """Read several date formats; ``declared`` says whether the field has one format already."""
    formats = extra.texts("formats")
    if not formats:
        return column
    takes = column.kind.takes
    if takes is None or not column.kind.is_time:
        extra.mistake("formats", f"only dates have formats, and the type is {column.type}")
        return column
    if declared:
        extra.mistake("formats", "remove the field's format: it is one of these")
        return column
    for text in formats:
        if text != DEFAULT and not takes(text):
            extra.mistake("formats", f"{shown(text)} is not a date format, such as '%d.%m.%Y'")
            return column
    if pair := ambiguous(formats, column.kind):
        extra.mistake(
            "formats",
            f"{shown(pair[0])} and {shown(pair[1])} read one text as two dates, such as day and "
            "month swapped; keep one of them, and correct the table at its source",
        )
        return column
    first = None if formats[0] == DEFAULT else formats[0]
    return replace(column, format=first, forms=replace(column.forms, formats=formats))


def read_thousands(field: FieldReader, column: Column, decimal: str) -> Column:
    """Read the sign between groups of three digits, Table Schema's ``groupChar``.

    Such a sign is read in quantities only, and never where it could be the decimal sign, or where
    it says nothing: a year or a code has no thousands.
    """
    if not field.has("groupChar"):
        return column
    sign = field.values["groupChar"]  # a blank is one of them
    if not column.kind.is_plain or not column.kind.is_quantity or column.is_categorical:
        field.mistake("groupChar", "only a number with bounds has thousands; remove it")
    elif sign not in THOUSANDS:
        known = "a point, a comma, an apostrophe or a blank"
        field.mistake("groupChar", f"{shown(sign)} is not {known}")
    elif sign == decimal:
        field.mistake(
            "groupChar",
            f"{shown(sign)} is the decimal sign, dpsynth.dialect.decimal; one sign has one meaning",
        )
    else:
        return replace(column, forms=replace(column.forms, thousands=sign))
    return column


def _read_case(extra: FieldReader, column: Column) -> bool:
    case = extra.flag("case", True)
    if not case and not (column.kind.is_text or column.kind.is_truth):
        extra.mistake("case", f"numbers and dates have no case, and the type is {column.type}")
        return True
    return case


def _read_reasons(extra: FieldReader, column: Column) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Read the reasons of missing cells."""
    if not extra.has("missing"):
        return ()
    part = extra.part("missing")
    if column.required:
        extra.mistake("missing", "the column is required, so no cell is missing; remove one")
        return ()
    reasons = []
    for reason in part.values:
        texts = part.texts(reason)
        if not texts or "" in texts:
            part.mistake(
                reason, "list the texts of the reason, such as ['-8']; an empty cell has none"
            )
        elif reason in RESERVED or reason in (column.categories or ()):
            part.mistake(reason, f"{shown(reason)} has another meaning; choose another word")
        elif reason != reason.strip() or not reason.isprintable():
            part.mistake(reason, "a reason is a word without blanks at its ends, such as refused")
        else:
            reasons.append((reason, texts))
    return tuple(reasons)


def _read_unit(extra: FieldReader, column: Column) -> UnitFrom | None:
    """Read where the unit of each cell stands, and what each unit means."""
    if not extra.has("unit_from"):
        return None
    if not column.kind.is_plain or column.is_categorical:
        extra.mistake("unit_from", "only a column of numbers with bounds has units")
        return None
    part = extra.part("unit_from")
    name = part.text("column")
    factors = []
    for text, value in part.values.items():
        if text != "column" and (factor := _factor(part, text, value)) is not None:
            factors.append((text.strip(), *factor))
    if not part.has("column") or not factors:
        part.mistake(None, "name the column and its units: {column: unit, 'g/L': 1, 'mg/dL': 0.01}")
    if len({text for text, _, _ in factors}) < len(factors):
        part.mistake(None, "two units differ only by blanks; keep one")
    if name is None or not factors:
        return None
    return UnitFrom(name, tuple(factors))


def _factor(part: FieldReader, text: str, value: object) -> tuple[float, float] | None:
    """Read ``times`` and ``plus`` of a unit."""
    times: Any = value
    plus: Any = 0.0
    if isinstance(value, Mapping):
        factor = part.part(text)
        factor.refuse_unknown(("times", "plus"))
        times, plus = factor.number("times"), factor.number("plus")
        times, plus = (1.0 if times is None else times), (0.0 if plus is None else plus)
    if isinstance(times, bool) or not isinstance(times, int | float) or not is_finite(times):
        part.mistake(text, "a factor is expected, such as 0.01 or {times: 0.0915, plus: 2.15}")
        return None
    if times <= 0:
        part.mistake(text, "the factor is positive, such as 0.01")
        return None
    return float(times), float(plus)


def _check_status(extra: FieldReader, column: Column) -> None:
    """Note a name for a status column that the column does not have."""
    forms = column.forms
    needs = forms.is_censored or (forms.reasons and not column.kind.is_text)
    if forms.status is not None and not needs:
        extra.mistake("status", "the column has no status; declare censored or missing first")
    elif forms.status is not None and (
        forms.status != forms.status.strip() or not forms.status.isprintable()
    ):
        extra.mistake("status", "a column name has printable characters, no blanks at its ends")


def write_forms(column: Column) -> dict[str, Any]:
    """Write the keys of a field's ``dpsynth`` object; what equals a default is left out."""
    forms = column.forms
    extra: dict[str, Any] = {}
    if forms.values:
        extra["values"] = dict(forms.values)
    if not forms.case:
        extra["case"] = False
    if forms.reasons:
        extra["missing"] = {reason: list(texts) for reason, texts in forms.reasons}
    if forms.is_censored:
        limits = {"low": forms.low, "high": forms.high}
        extra["censored"] = {
            side: [write_number(limit) for limit in side_limits]
            for side, side_limits in limits.items()
            if side_limits
        }
    if forms.status is not None:
        extra["status"] = forms.status
    if forms.unit is not None:
        extra["unit_from"] = {"column": forms.unit.column} | {
            text: _written_factor(times, plus) for text, times, plus in forms.unit.factors
        }
    if forms.formats:
        extra["formats"] = list(forms.formats)
    return extra


def _written_factor(times: float, plus: float) -> Any:
    if plus == 0:
        return write_number(times)
    return {"times": write_number(times), "plus": write_number(plus)}


def read_values(extra: FieldReader, column: Column) -> tuple[tuple[str, str], ...]:
    """Read the value map."""
    if not extra.has("values"):
        return ()
    part = extra.part("values")
    read = []
    for source, target in part.values.items():
        text = source.strip()
        if not text:
            part.mistake(None, "an empty cell is always missing; remove its entry")
        elif column.kind.is_plain and re.fullmatch(NUMERAL, text.replace(",", ".")):
            part.mistake(
                source, "is a number already; use missingValues, missing or unit_from instead"
            )
        elif (meant := _target(part, source, target, column)) is not None:
            read.append((text, meant))
    return tuple(read)


def _target(part: FieldReader, source: str, target: object, column: Column) -> str | None:
    """Return the text that a text of the source stands for; None if it is none, which is noted."""
    reasons = [reason for reason, _ in column.forms.reasons]
    known = column.categories or ()
    if isinstance(target, str) and target in reasons:
        return target
    if target == MISSING and MISSING not in known:
        if column.required:
            part.mistake(source, "the column is required, so no cell is missing")
            return None
        return MISSING
    try:
        return _value_text(target, column)
    except (ValueError, InputError):
        options = [*known, *reasons, *([] if column.required else [MISSING])]
        meant = did_you_mean(str(target), options)
        what = f"known: {listed(options)}" if known else f"a {column.kind.noun} within the bounds"
        part.mistake(source, f"{shown(target)} is not what the column declares{meant}; {what}")
        return None


def _value_text(target: object, column: Column) -> str:
    """Return the text of a declared value.

    Raises:
        ValueError: the column does not declare it.
    """
    kind = column.kind
    if kind.is_truth:
        text = str(target).lower() if isinstance(target, bool) else str(target)
        if text not in ("true", "false"):
            raise ValueError
        return text
    if column.categories is not None:
        text = category_text(column.type, target)
        if text not in column.categories and not _is_code(text, column):
            raise ValueError
        return text
    if kind.is_text:
        return category_text(column.type, target)  # a draft: its categories are still to be listed
    if column.forms.is_censored and isinstance(target, str) and LIMIT.fullmatch(target):
        return target
    if kind.is_plain and isinstance(target, str):
        target = float(target)
    value: Any = read_bound(column.type, target, column.format)
    if not within_bounds(value, column):
        raise ValueError
    if kind.is_spelled:
        return str(write_bound(value, kind, column.format))
    return canonical_number(value)


def _is_code(text: str, column: Column) -> bool:
    """Tell whether a text is a code of the column's code list."""
    return column.codes is not None and column.codes.roll_up(text) is not None


def check_texts(extra: FieldReader, column: Column) -> None:
    """Note texts with two meanings, among values, reasons, missing values and categories."""
    forms = column.forms
    fold = str.casefold if not forms.case else str
    meanings: dict[str, str] = {}
    words = [(text, "missingValues") for text in column.missing_values if text]
    if column.kind.is_truth:
        words += [(text, "trueValues") for text in column.true_values]
        words += [(text, "falseValues") for text in column.false_values]
        if not forms.case:  # true, True and TRUE are one word
            words = list(dict.fromkeys((fold(text), key) for text, key in words))
    elif column.kind.is_text:
        words += [(text, "enum") for text in column.categories or ()]
    for reason, texts in forms.reasons:
        words += [(text, f"missing.{plain(reason)}") for text in texts]
    words += [(text, "values") for text, _ in forms.values]
    if column.kind.is_text:
        words += [
            (reason, f"missing.{plain(reason)}")
            for reason, texts in forms.reasons
            if fold(reason) not in map(fold, texts)
        ]
    if not (forms.values or forms.reasons or not forms.case):
        return
    for text, key in words:
        at = fold(_canonical(text, column))
        if at in meanings:
            also = " regardless of case" if not forms.case else ""
            part = key.split(".")[0]
            extra.mistake(
                part if part in ("values", "missing") else "case",
                f"{shown(text)} has two meanings{also}, in {meanings[at]} and {key}; keep one",
            )
        meanings.setdefault(at, key)


def _canonical(text: str, column: Column) -> str:
    """Give the text of a number where a text is one, so that -8 and -8.0 are one text."""
    if column.kind.is_plain:
        try:
            return category_text("number", text)
        except ValueError:
            return text
    return text


NUMERAL = r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?"
LIMIT = re.compile(rf"([<>]=?|[≤≥])\s*({NUMERAL})")


def read_limits(
    extra: FieldReader, column: Column, decimal: str = "."
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Read the limits of detection; texts are written as in the source, with its decimal sign."""
    if not extra.has("censored"):
        return (), ()
    if not column.kind.is_plain or column.is_categorical:
        extra.mistake("censored", "only a column of numbers with bounds has limits of detection")
        return (), ()
    if not isinstance(extra.values["censored"], Mapping):
        extra.mistake("censored", "declare the limits: {low: 5, high: 2000}; one of them suffices")
        return (), ()
    part = extra.part("censored")
    part.refuse_unknown((LOW, HIGH))
    low, high = (_limits(part, side, column, decimal) for side in (LOW, HIGH))
    if not (part.has(LOW) or part.has(HIGH)):
        part.mistake(None, "declare a limit: {low: 5, high: 2000}; one of them suffices")
    return low, high


def _limits(part: FieldReader, side: str, column: Column, decimal: str) -> tuple[float, ...]:
    """Read the limits of one side: numbers, or texts such as ``<5``."""
    if not part.has(side):
        return ()
    values = part.values[side]
    limits = set()
    for value in values if isinstance(values, list | tuple) else [values]:
        limit: Any = value
        text = value.strip() if isinstance(value, str) else ""
        text = text.replace(",", ".") if decimal == "," else text
        if match := LIMIT.fullmatch(text):
            signs = "<≤" if side == LOW else ">≥"
            limit = float(match[2]) if match[1][0] in signs else None
        if isinstance(limit, bool) or not isinstance(limit, int | float) or not is_finite(limit):
            sign = "<" if side == LOW else ">"
            hint = "; the decimal sign is a point here" if "," in text else ""
            part.mistake(side, f"{shown(value)} is not a limit, such as 5 or '{sign}5'{hint}")
        elif not within_bounds(limit, column):
            part.mistake(
                side,
                f"{shown(limit)} is not within the bounds; the synthetic table holds the limit, so "
                "widen minimum or maximum",
            )
        elif not _on_lattice(limit, column):
            part.mistake(side, f"{shown(limit)} lies between two steps; choose another step")
        else:
            limits.add(float(limit))
    return tuple(sorted(limits))


def within_bounds(value: float, column: Column) -> bool:
    """Tell whether a number is within the bounds, as far as these are declared."""
    low: Any = column.minimum
    high: Any = column.maximum
    return (low is None or value >= low) and (high is None or value <= high)


def _on_lattice(value: float, column: Column) -> bool:
    """Tell whether a column can hold a number; what its bounds lack is noted elsewhere."""
    if column.minimum is None or column.maximum is None:
        return True
    try:
        return bool(lattice_of(column).on_lattice(np.array([float(value)]))[0])
    except InputError:
        return True


DEFAULT = "default"  # ISO 8601
_DAYS_PROBED = 366
_YEARS_PROBED = range(1969, 2069)  # those that a year of two digits can mean


def pattern_of(text: str) -> str | None:
    """Return a format as a strptime pattern, None for ISO 8601."""
    return None if text == DEFAULT else text


@cache
def ambiguous(formats: tuple[str, ...], kind: ColumnType) -> tuple[str, str] | None:
    """Return the first pair of formats that read one text as two dates; None if there is none.

    Every day of one year, and one day of each year from 1969 to 2068, is written in each format,
    also without leading zeros, and read by the others.

    >>> from dpsynth.schema.types import TYPES
    >>> ambiguous(("%d/%m/%Y", "%m/%d/%Y"), TYPES["date"])
    ('%d/%m/%Y', '%m/%d/%Y')
    >>> ambiguous(("%d.%m.%Y", "default"), TYPES["date"])
    """
    assert kind.read is not None
    for first, second in permutations(formats, 2):
        for text in _texts(first):
            value = kind.read(text, pattern_of(first))
            other = kind.read(text, pattern_of(second))
            if value == value and other == other and value != other:
                pair = sorted((first, second), key=formats.index)
                return pair[0], pair[1]
    return None


def _texts(pattern: str) -> Iterator[str]:
    start = datetime(2012, 1, 1, 4, 5, 6)
    moments = [start + timedelta(days=day, hours=day % 19) for day in range(_DAYS_PROBED)]
    moments += [datetime(year, 2, 3, 17, 8, 9) for year in _YEARS_PROBED]
    for moment in moments:
        if pattern == DEFAULT:
            yield moment.date().isoformat()
            yield moment.isoformat()
            continue
        yield moment.strftime(pattern)
        yield _bare(moment, pattern)


def _bare(moment: datetime, pattern: str) -> str:
    """Write a date without leading zeros of day, month, hour, minute and second."""
    numbers = {"%d": moment.day, "%m": moment.month, "%H": moment.hour}
    numbers |= {"%M": moment.minute, "%S": moment.second}
    for directive, number in numbers.items():
        pattern = pattern.replace(directive, str(number))
    return moment.strftime(pattern)
