"""The keys of a field's ``dpsynth`` object that say how cells are written; mistakes are noted."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from dpsynth._util.field_reader import FieldReader, is_finite
from dpsynth._util.messages import shown
from dpsynth.schema.cells.date_formats import DEFAULT, ambiguous
from dpsynth.schema.cells.detection_limits import read_limits
from dpsynth.schema.cells.value_maps import check_texts, read_values
from dpsynth.schema.column import (
    HIGH,
    LOW,
    MISSING,
    OTHER,
    REFUSE,
    VALUE,
    Column,
    UnitFrom,
)

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
    if not column.kind.is_time:
        extra.mistake("formats", f"only dates have formats, and the type is {column.type}")
        return column
    if declared:
        extra.mistake("formats", "remove the field's format: it is one of these")
        return column
    for text in formats:
        if text != DEFAULT and not is_date_format(text):
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
    if not column.kind.is_quantity or not column.kind.is_number or column.is_categorical:
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


def is_date_format(pattern: str) -> bool:
    """Tell whether a strptime pattern reads the date that it writes."""
    try:
        return datetime.strptime(datetime(2001, 2, 3).strftime(pattern), pattern).year == 2001
    except (ValueError, LookupError, re.error):  # the last: a directive that occurs twice
        return False


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
    if not column.kind.is_number or column.is_categorical:
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
