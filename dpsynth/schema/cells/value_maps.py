"""The value map of a column, and the texts of a column that would have two meanings."""

from __future__ import annotations

import re
from datetime import date, time
from typing import Any

from dpsynth._util.field_reader import FieldReader
from dpsynth._util.messages import did_you_mean, listed, plain, shown
from dpsynth.errors import InputError
from dpsynth.schema.bounds import canonical_number, category_text, read_bound, write_bound
from dpsynth.schema.cells.detection_limits import LIMIT, NUMERAL, within_bounds
from dpsynth.schema.column import MISSING, Column


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
        elif column.kind.is_number and re.fullmatch(NUMERAL, text.replace(",", ".")):
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
    if kind.is_number and isinstance(target, str):
        target = float(target)
    value: Any = read_bound(column.type, target, column.format)
    if not within_bounds(value, column):
        raise ValueError
    if isinstance(value, date | time):
        return str(write_bound(value, column.format))
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
    if column.kind.is_number:
        try:
            return category_text("number", text)
        except ValueError:
            return text
    return text
