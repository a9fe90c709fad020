"""Cells of numeric columns as values: numbers, dates and times, from text or typed cells.

Values are float64 in the unit of the column's lattice (the number itself, days or seconds since
1970-01-01, seconds since midnight), with NaN for a cell that is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from dpsynth.schema import Column, ColumnType
from dpsynth.schema.cell_forms import pattern_of
from dpsynth.schema.types import SECONDS
from dpsynth.tables.cell_forms import (
    Signs,
    at_limits,
    declared_texts,
    in_own_unit,
    split_signs,
    ungrouped,
)
from dpsynth.tables.text_columns import Texts, array_of, distinct, is_typed

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

FIRST_DAY, LAST_DAY = np.datetime64("0001-01-01"), np.datetime64("9999-12-31")  # of ISO 8601
LAST_BITS = 4 * float(np.finfo(np.float64).eps)  # relative; how far off a fast reader of text is

# Words that readers of tables take for a missing cell: pandas for any column, Arrow only in columns
# of which it makes numbers, times or truth values. So they are missing in text, too.
READER_WORDS = frozenset(
    {"#N/A", "#N/A N/A", "#NA", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN", "<NA>", "N/A", "n/a"}
    | {"NA", "NULL", "null", "None"}
    | {sign + "".join(word) for sign in ("", "+", "-") for word in product("nN", "aA", "nN")}
)


def read_cells(
    cells: pd.Series[Any], column: Column, decimal: str, units: pd.Series[Any] | None = None
) -> tuple[Floats, Bools]:
    """Read a numeric column of any kind of cells.

    Args:
        cells: text or typed values.
        column: its declaration, of a type of numbers or times.
        decimal: the decimal sign of text.
        units: the unit of each cell, if the column has several.

    Returns:
        The values, NaN where a cell is bad or missing, and where it is missing. A missing-value
        token counts by its value too: 999.0 is missing where "999" is declared to be. A
        censored cell has the value of its limit.

    A cell's value is the same whether a reader made a number of it or left it text; a number that
    is within a few units in the last place of a whole one, or of a token, counts as that.
    """
    values, missing, signs = read_signed(cells, column, decimal, units)
    return at_limits(values, signs, column), missing


def read_signed(
    cells: pd.Series[Any], column: Column, decimal: str, units: pd.Series[Any] | None = None
) -> tuple[Floats, Bools, Signs]:
    """Read as `read_cells`, but censored cells as they are written, with their signs."""
    tokens = array_of(sorted(missing_words(column)))
    signs = np.zeros(len(cells), dtype=np.int8)
    if is_typed(cells) and (cells.dtype.kind == "M" or column.kind.unit is None):
        values = typed_values(cells, column.kind)
        missing = cells.isna().to_numpy(dtype=bool)
    else:
        texts = declared_texts(cells, column, decimal)
        bare, signs = split_signs(texts, column)
        values = read_texts(bare, column, decimal)
        missing = _flags(pc.or_(texts.is_null(), pc.is_in(texts, value_set=tokens)))
    if column.kind.whole and units is None:  # what is converted is rounded by the lattice
        values = np.where(is_close(values, np.rint(values)), np.rint(values), np.nan)
    meant = read_texts(tokens, column, decimal)
    for value in np.unique(meant[np.isfinite(meant)]):
        missing = missing | (is_close(values, value) & (signs == 0))
    values = in_own_unit(values, units, column)
    return values, missing, signs


def is_close(values: Floats, others: Floats | np.float64) -> Bools:
    """Tell which values are others up to the last bits, where readers of text differ."""
    with np.errstate(invalid="ignore"):
        return np.asarray(np.abs(values - others) <= LAST_BITS * np.abs(others))


def nearest(value: float, options: Floats) -> float | None:
    """Return the option that a value is, up to the last bits; None if it is none of them."""
    close = options[is_close(options, np.float64(value))]
    return float(close[0]) if len(close) else None


def missing_tokens(column: Column) -> frozenset[str]:
    """Return the trimmed texts that mean a missing cell; the empty one always does."""
    reasons = () if column.kind.is_text else column.forms.reason_texts
    return frozenset({""} | {token.strip() for token in (*column.missing_values, *reasons)})


def missing_words(column: Column) -> frozenset[str]:
    """Return `missing_tokens` and what readers take for missing, unless it is declared as a value.

    Keys of units are compared by `missing_tokens` alone: they are text, whoever read them.
    """
    values = {*(column.categories or ()), *column.true_values, *column.false_values}
    values |= {*column.forms.reason_texts, *column.levels} if column.kind.is_text else set()
    return missing_tokens(column) | (READER_WORDS - values)


def typed_values(cells: pd.Series[Any], kind: ColumnType) -> Floats:
    """Return the values of a typed column for a numeric type of the schema; NaN for others.

    No number is a time, and no time is a number. Times of day are objects of datetime.time.
    """
    if kind.is_clock and cells.dtype == object:
        of_cell, each = pd.factorize(cells.to_numpy(dtype=object))
        return np.array([*map(kind.value, each), np.nan], dtype=np.float64)[of_cell]
    if (cells.dtype.kind == "M") != kind.is_time or kind.is_clock:
        return np.full(len(cells), np.nan)
    values: Floats
    if not kind.is_time:
        values = cells.to_numpy(dtype=np.float64, na_value=np.nan)
        return values
    times = cells.dt.tz_localize(None).to_numpy()  # the time on the clock of the place
    days = times.astype("datetime64[D]")
    micros = 1_000_000 if kind.unit == SECONDS else 1
    ticks = times.astype("datetime64[us]" if micros > 1 else f"datetime64[{kind.unit}]")
    whole, rest = np.divmod(ticks.astype(np.int64), micros)
    values = whole + rest / micros
    values[np.isnat(times) | (days < FIRST_DAY) | (days > LAST_DAY)] = np.nan
    return values


def written_cells(cells: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Write typed cells of a type that is spelled as their texts, None where missing."""
    write = column.kind.write
    assert write is not None
    of_text, each = pd.factorize(cells)
    texts = [write(value) for value in typed_values(pd.Series(each), column.kind).tolist()]
    return pd.Series(np.array([*texts, None], dtype=object)[of_text], dtype=object)


def read_texts(texts: Texts, column: Column, decimal: str) -> Floats:
    """Read trimmed texts by the column's type; NaN for null and for what is not of it."""
    parse = column.kind.read
    if parse is None:
        return numbers(ungrouped(texts, column, decimal), decimal=decimal)
    of_text, each = distinct(texts)
    patterns = [*map(pattern_of, column.forms.formats)] or [column.format]
    values = [_first(parse(text, pattern) for pattern in patterns) for text in each]
    return np.array([*values, np.nan], dtype=np.float64)[of_text]


def _first(values: Iterable[float]) -> float:
    """Return the first value that is a number, NaN if none is."""
    return next((value for value in values if value == value), np.nan)


def numbers(texts: Texts, *, decimal: str = ".") -> Floats:
    """Read decimal numbers such as ``-3.5`` or ``1e3``; anything else is NaN.

    Thousands separators, hexadecimal, underscores, "nan" and "inf" are not numbers; one too large
    for a float64 is infinite. (Declared separators are gone by now, see `ungrouped`.)
    """
    point = re.escape(decimal)
    grammar = rf"^[+-]?([0-9]+{point}?[0-9]*|{point}[0-9]+)([eE][+-]?[0-9]+)?$"
    sound = pc.match_substring_regex(texts, grammar).fill_null(False)
    numerals = texts.filter(sound)
    if decimal != ".":
        numerals = pc.replace_substring(numerals, decimal, ".")
    values = np.full(len(texts), np.nan)
    values[_flags(sound)] = numerals.cast(pa.float64()).to_numpy()
    return values


def _flags(array: Any) -> Bools:
    """Return an Arrow array of truth values as a NumPy one."""
    flags: Bools = array.to_numpy(zero_copy_only=False)
    return flags


def typed_series(values: Floats, missing: Bools, column: Column) -> pd.Series[Any]:
    """Return values in the column's unit as a column of the declared type.

    Whole numbers: int64, Int64 if nullable; number: float64; dates, of months the first day, and
    times: datetime64[s]; time: objects of datetime.time, None where missing.
    """
    if column.kind.whole:
        whole = values.astype(np.int64)
        if column.required:
            return pd.Series(whole)
        return pd.Series(pd.arrays.IntegerArray(whole, missing))
    if column.kind.is_clock:
        each, place = np.unique(np.where(missing, 0.0, values), return_inverse=True)
        objects = np.empty(len(each) + 1, dtype=object)  # None at the end
        objects[:-1] = [column.kind.bound(value) for value in each.tolist()]
        return pd.Series(objects[np.where(missing, len(each), place)], dtype=object)
    if not column.kind.is_time:
        return pd.Series(np.where(missing, np.nan, values))
    unit = f"datetime64[{column.kind.unit}]"
    times = values.astype(np.int64).astype(unit).astype("datetime64[s]")
    times[missing] = np.datetime64("NaT")
    return pd.Series(times)
