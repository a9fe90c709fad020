"""Cells whose writing a schema declares: value maps, letter case, limits of detection, units.

What a cell becomes depends on its own text and its column's declaration; for a unit, also on the
text of one other cell of its own row. No other row is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow.compute as pc

from dpsynth.schema import Column
from dpsynth.schema.column import HIGH, LOW, MISSING
from dpsynth.tables.text_columns import Texts, array_of, distinct, texts_of, trimmed

Floats = npt.NDArray[np.float64]
Signs = npt.NDArray[np.int8]

_SIGN = r"^([<>]=?|[≤≥])\s*"
SLACK = 1e-9  # relative; a limit that was converted from another unit has rounded last digits


def reader_of_texts(column: Column, decimal: str) -> Callable[[str], str] | None:
    """Return what gives a trimmed text as the column declares it; None if texts stand as they are.

    The value map is looked up once, so that maps do not chain; then, where case is ignored, a text
    becomes the declared word that it equals.
    """
    forms = column.forms
    if not forms.values and forms.case:
        return None
    fold = str if forms.case else str.casefold
    words: dict[str, str] = {}
    if not forms.case:
        declared = (*column.levels, *column.missing_values, *forms.reason_texts)
        if column.kind.is_truth:
            declared += (*column.true_values, *column.false_values)
        for text in declared:
            words.setdefault(fold(text), text)
    words |= {fold(text): _meant(text_for, column, decimal) for text, text_for in forms.values}
    return lambda text: words.get(fold(text), text)


def _meant(target: str, column: Column, decimal: str) -> str:
    """Return the text that the target of a value map is read as."""
    reasons = dict(column.forms.reasons)
    if target in (column.categories or ()) and not column.kind.is_truth:
        return target.replace(".", decimal) if column.kind.is_number else target
    if target in reasons:
        return reasons[target][0]
    if target == MISSING:
        return ""
    if column.kind.is_truth:
        return (column.true_values if target == "true" else column.false_values)[0]
    return target.replace(".", decimal) if column.kind.is_number else target


def declared_texts(cells: pd.Series[Any], column: Column, decimal: str) -> Texts:
    """Return the trimmed text of each cell, as its column declares it; null where there is none."""
    boolean = column.kind.is_truth
    texts = trimmed(texts_of(cells, decimal=decimal, boolean=boolean))
    read = reader_of_texts(column, decimal)
    if read is None:
        return texts
    of_text, each = distinct(texts)
    return array_of([*map(read, each), None]).take(of_text % (len(each) + 1))


def split_signs(texts: Texts, column: Column) -> tuple[Texts, Signs]:
    """Return texts without a sign of censoring, and the signs: -1 for low, 1 for high, else 0."""
    signs = np.zeros(len(texts), dtype=np.int8)
    if not column.forms.is_censored:
        return texts, signs
    bare = pc.replace_substring_regex(texts, _SIGN, "")
    for words, sign in ((("<", "≤"), -1), ((">", "≥"), 1)):
        for word in words:
            starts = pc.starts_with(texts, word).fill_null(False)
            signs[starts.to_numpy(zero_copy_only=False)] = sign
    return bare, signs


def ungrouped(texts: Texts, column: Column, decimal: str) -> Texts:
    """Return numbers without their declared thousands separator; other texts as they stand.

    The sign is taken away only between groups of three digits before the decimal sign, of a number
    that does not begin with 0. So ``28.123`` is 28123 where ``.`` is declared, while ``0.123``,
    ``28.12`` and ``1234.567`` stay as they are, and are then no numbers: whoever wrote them meant
    the sign otherwise. Each text is judged alone, whatever the others of its column look like.
    """
    sign = column.forms.thousands
    if not sign:
        return texts
    grouped = (
        rf"^[+-]?[1-9][0-9]{{0,2}}({re.escape(sign)}[0-9]{{3}})+({re.escape(decimal)}[0-9]*)?$"
    )
    of_text, each = distinct(texts)
    pattern = re.compile(grouped)
    bare = [text.replace(sign, "") if pattern.fullmatch(text) else text for text in each]
    return array_of([*bare, None]).take(of_text % (len(each) + 1))


def at_limits(values: Floats, signs: Signs, column: Column) -> Floats:
    """Return censored values at the declared limits that they imply, NaN where there is none.

    ``<3`` is below every limit from 3 on, so it is at the lowest of those; ``>9`` is at the highest
    limit up to 9.
    """
    if not signs.any():
        return values
    values = values.copy()
    for sign, limits in ((-1, column.forms.low), (1, column.forms.high)):
        at = signs == sign
        values[at] = _implied(values[at], np.array(limits), sign)
    return values


def _implied(values: Floats, limits: Floats, sign: int) -> Floats:
    slack = SLACK * np.maximum(1.0, np.abs(values))
    ends = np.append(limits, np.nan) if sign < 0 else np.append(np.nan, limits)
    with np.errstate(invalid="ignore"):
        if sign < 0:
            places = np.searchsorted(limits, values - slack, side="left")
        else:
            places = np.searchsorted(limits, values + slack, side="right")
    return np.where(np.isfinite(values), ends[places], np.nan)


def in_own_unit(values: Floats, units: pd.Series[Any] | None, column: Column) -> Floats:
    """Return numbers in the column's unit, by the unit of each row; NaN where it is not declared.

    Without a column of units, as in a synthetic table, all are in the column's own unit.
    """
    unit = column.forms.unit
    if unit is None or units is None:
        return values
    of_text, texts = distinct(trimmed(texts_of(units)))
    factors = {text: (times, plus) for text, times, plus in unit.factors}
    none = factors.get("", (np.nan, np.nan))  # an empty cell may be declared, too
    each = np.array([*(factors.get(text, (np.nan, np.nan)) for text in texts), none])
    times, plus = each[of_text].T
    return np.asarray(values * times + plus)


def units_beside(frame: pd.DataFrame, column: Column) -> pd.Series[Any] | None:
    """Return the column of a frame that names a column's units; None if there is none."""
    unit = column.forms.unit
    return frame[unit.column] if unit is not None and unit.column in frame.columns else None


def nearest_limits(values: Floats, side: str, column: Column) -> Floats:
    """Return the declared limit of a side that is nearest to each value."""
    limits = np.array(column.forms.low if side == LOW else column.forms.high)
    assert side in (LOW, HIGH) and len(limits)
    return np.asarray(limits[np.abs(values[:, None] - limits).argmin(axis=1)])
