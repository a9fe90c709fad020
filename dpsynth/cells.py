"""Cells of a table as values: text and typed cells, read one way wherever they come from.

A cell is a function of itself alone: no other cell of its column changes how it is read. Text
columns are factorised first, so that each distinct text is read once.

Values are float64 in the unit of the column's lattice (the number itself, days or seconds since
1970-01-01), with NaN for a cell that is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.schema import Column

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

TIMES = ("date", "datetime")
NUMBER_CHARACTERS = frozenset("0123456789+-.eE")
EPOCH_DAY = date(1970, 1, 1).toordinal()
DAY = 86_400  # seconds


def read_cells(cells: pd.Series[Any], column: Column, decimal: str) -> tuple[Floats, Bools]:
    """Read a numeric column of any kind of cells.

    Args:
        cells: text or typed values.
        column: its declaration: integer, number, date, datetime or year.
        decimal: the decimal sign of text.

    Returns:
        The values, NaN where a cell is bad or missing, and where it is missing. A missing-value
        token counts by its value too: 999.0 is missing where "999" is declared to be.
    """
    tokens = missing_tokens(column)
    if is_typed(cells):
        values = typed_values(cells, column.type)
        missing = cells.isna().to_numpy(dtype=bool)
    else:
        of_text, texts = distinct(cells)
        texts = [text.strip() for text in texts]
        absent = np.array([*(text in tokens for text in texts), True], dtype=bool)
        values = np.append(read_texts(texts, column, decimal), np.nan)[of_text]
        missing = absent[of_text]
    if column.type in ("integer", "year"):
        values = np.where(values == np.rint(values), values, np.nan)
    meant = read_texts(sorted(tokens), column, decimal)
    meant = meant[np.isfinite(meant)]
    if len(meant):
        missing = missing | np.isin(values, meant)
    return values, missing


def missing_tokens(column: Column) -> frozenset[str]:
    """Return the trimmed texts that mean a missing cell; the empty one always does."""
    return frozenset({""} | {token.strip() for token in column.missing_values})


def distinct(cells: pd.Series[Any], *, boolean: bool = False) -> tuple[Ints, list[str]]:
    """Factorise a column into its distinct texts.

    Args:
        cells: text or typed values of any kind.
        boolean: whether truth values are the words true and false, or 1 and 0.

    Returns:
        For each cell the index of its text, -1 where it is None, NaN, NaT or NA; and the texts.
    """
    if isinstance(cells.dtype, pd.CategoricalDtype):
        of_level, texts = distinct(pd.Series(cells.cat.categories), boolean=boolean)
        of_code = np.append(of_level, -1)  # code -1, a missing cell, finds the last entry
        return of_code[cells.cat.codes.to_numpy()], texts
    values: Any = cells
    if not is_typed(cells):
        values = cells.to_numpy(dtype=object)
        if pd.api.types.infer_dtype(values, skipna=True) not in ("string", "empty"):
            texts_or_none = [cell_text(value, boolean=boolean) for value in values]
            values = np.array([*texts_or_none, None], dtype=object)[:-1]
    codes, uniques = pd.factorize(values)
    texts = [cell_text(value, boolean=boolean) or "" for value in uniques]
    return codes.astype(np.int64, copy=False), texts


def is_typed(cells: pd.Series[Any]) -> bool:
    """Tell whether a column's dtype is one of numbers, truth values or times."""
    types, dtype = pd.api.types, cells.dtype
    known = (types.is_numeric_dtype, types.is_bool_dtype, types.is_datetime64_any_dtype)
    return any(check(dtype) for check in known)


def cell_text(value: Any, *, boolean: bool = False) -> str | None:
    """Return the text of one typed cell, None if it is missing; 3.0 is "3"."""
    if isinstance(value, str):
        return value
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, bool | np.bool_):
        words = ("false", "true") if boolean else ("0", "1")
        return words[int(value)]
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float | np.floating | Decimal):
        if value != value:
            return None
        number = float(value)
        return str(int(value)) if number.is_integer() else repr(number)
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def typed_values(cells: pd.Series[Any], kind: str) -> Floats:
    """Return the values of a typed column for a numeric type of the schema; NaN for others.

    No number is a date and no time is a number, but a time has a year.
    """
    if not pd.api.types.is_datetime64_any_dtype(cells.dtype):
        if kind in TIMES:
            return np.full(len(cells), np.nan)
        return np.asarray(cells.to_numpy(dtype=np.float64, na_value=np.nan))
    local = cells.dt.tz_localize(None)  # the time on the clock of the place
    if kind == "year":
        return np.asarray(local.dt.year.to_numpy(dtype=np.float64, na_value=np.nan))
    if kind not in TIMES:
        return np.full(len(cells), np.nan)
    times = local.to_numpy()
    if kind == "date":
        elapsed = times.astype("datetime64[D]").astype(np.int64).astype(np.float64)
    else:
        elapsed = times.astype("datetime64[us]").astype(np.int64) / 1e6
    elapsed[np.isnat(times)] = np.nan
    return elapsed


def read_texts(texts: Sequence[str], column: Column, decimal: str) -> Floats:
    """Read trimmed texts by the column's type; NaN for what is not of it."""
    if column.type == "date":
        return dates(texts, column.format)
    if column.type == "datetime":
        return datetimes(texts, column.format)
    return numbers(texts, decimal=decimal)


def numbers(texts: Sequence[str], *, decimal: str = ".") -> Floats:
    """Read decimal numbers such as ``-3.5`` or ``1e3``; anything else is NaN.

    Thousands separators, hexadecimal, underscores, "nan" and "inf" are not numbers; one too large
    for a float64 is infinite.
    """
    if decimal != ".":
        # A point is no decimal sign here, and must not become one.
        texts = ["x" if "." in text else text.replace(decimal, ".") for text in texts]
    try:
        if NUMBER_CHARACTERS.issuperset("".join(texts)):
            return np.array(texts, dtype=np.float64)
    except ValueError:
        pass
    return _one_by_one(texts, _number)


def _number(text: str) -> float:
    if not NUMBER_CHARACTERS.issuperset(text):
        raise ValueError
    return float(text)


def dates(texts: Sequence[str], pattern: str | None = None) -> Floats:
    """Read dates, as days since 1970-01-01: ISO 8601, or by a strptime pattern.

    The time of day of a date and time is dropped.
    """
    return np.floor(datetimes(texts, pattern) / DAY)


def datetimes(texts: Sequence[str], pattern: str | None = None) -> Floats:
    """Read dates and times, as seconds since 1970-01-01: ISO 8601, or by a strptime pattern.

    A date alone is its midnight; an offset from UTC is dropped: the clock of the place counts.
    """
    if pattern is None:
        return _one_by_one(texts, lambda text: _seconds(datetime.fromisoformat(text)))
    known: str = pattern
    return _one_by_one(texts, lambda text: _seconds(datetime.strptime(text, known)))


def _seconds(moment: datetime) -> float:
    days = moment.toordinal() - EPOCH_DAY
    whole = days * DAY + moment.hour * 3600 + moment.minute * 60 + moment.second
    return whole + moment.microsecond / 1e6


def _one_by_one(texts: Iterable[str], read: Callable[[str], float]) -> Floats:
    """Read each text, NaN where ``read`` raises ValueError."""
    values = []
    for text in texts:
        try:
            values.append(read(text))
        except ValueError:
            values.append(np.nan)
    return np.array(values, dtype=np.float64)
