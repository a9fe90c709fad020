"""Columns of any kind as columns of text: what a cell would be in a CSV file.

A cell's text is a function of the cell alone; no other cell of its column changes it. Columns of
text are Arrow arrays, null where a cell is missing: Arrow compares texts exactly, where pandas
takes texts for equal that differ behind a NUL, and it is faster. Importing it costs nothing here,
since pandas loads it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time
from decimal import Decimal
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

Texts: TypeAlias = Any  # a pyarrow.LargeStringArray; Arrow has no type annotations
Ints = npt.NDArray[np.int64]

_MOST_DIGITS = 4300  # of a decimal number such as 1E+999999999, whose digits no memory holds


def texts_of(cells: pd.Series[Any], *, decimal: str = ".", boolean: bool = False) -> Texts:
    """Return the text of each cell, null where it is None, NaN, NaT or NA.

    Args:
        cells: text or typed values of any kind.
        decimal: the decimal sign to give to typed numbers, that of the column's text.
        boolean: whether typed truth values are the words true and false, or 1 and 0.
    """
    if isinstance(cells.dtype, pd.CategoricalDtype):
        levels = pd.Series(cells.dtype.categories)
        codes, texts = (
            cells.cat.codes.to_numpy(),
            texts_of(levels, decimal=decimal, boolean=boolean),
        )
    elif is_typed(cells):
        codes, values = pd.factorize(cells)
        texts = array_of([cell_text(v, decimal=decimal, boolean=boolean) for v in values])
    else:
        objects = cells.to_numpy(dtype=object)
        try:
            return pa.array(objects, pa.large_string(), from_pandas=True)
        except (pa.ArrowException, UnicodeError):  # not text only, or half a surrogate pair
            return array_of([cell_text(v, decimal=decimal, boolean=boolean) for v in objects])
    return texts.take(pa.array(codes, pa.int64(), mask=codes < 0))


def array_of(texts: Sequence[str | None]) -> Texts:
    """Return texts as an array."""
    return pa.array(texts, pa.large_string())


def trimmed(texts: Texts) -> Texts:
    """Return texts without blanks around them, blanks being those of ``str.strip``."""
    return pc.utf8_trim_whitespace(texts)


def distinct(texts: Texts) -> tuple[Ints, list[str]]:
    """Return the index of each text among the distinct ones, -1 for null; and these."""
    encoded = texts.dictionary_encode()
    indices = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return indices.astype(np.int64), encoded.dictionary.to_pylist()


def is_typed(cells: pd.Series[Any]) -> bool:
    """Tell whether a column's dtype is one of real numbers, truth values or times."""
    # Arrow's dates have kind M as well, but are objects of datetime.date.
    return cells.dtype.kind in "iufbM" and cells.dtype.type is not date


def cell_text(value: Any, *, decimal: str = ".", boolean: bool = False) -> str | None:
    """Return the text of one typed cell, None if it is missing.

    >>> [cell_text(value) for value in (3.0, 0.5, True, date(2001, 2, 3), float("nan"))]
    ['3', '0.5', '1', '2001-02-03', None]
    """
    if value is None or value is pd.NA or value is pd.NaT:
        return None
    if isinstance(value, bytes | str):
        text = value if isinstance(value, str) else value.decode(errors="backslashreplace")
        return text.encode(errors="backslashreplace").decode()
    if isinstance(value, bool | np.bool_):
        words = ("false", "true") if boolean else ("0", "1")
        return words[int(value)]
    if isinstance(value, int | np.integer | float | np.floating | Decimal):
        return _number_text(value, decimal)
    if isinstance(value, np.datetime64):
        value = pd.Timestamp(value)
        return None if value is pd.NaT else str(value.isoformat())
    return value.isoformat() if isinstance(value, date | time) else str(value)


def _number_text(value: Any, decimal: str) -> str | None:
    """Return the text of a number, None for NaN; that of a whole number has all of its digits."""
    if isinstance(value, int | np.integer):
        return format(Decimal(int(value)), "f")  # str refuses more than 4300 digits
    if isinstance(value, Decimal) and value.is_finite():
        if value.adjusted() > _MOST_DIGITS:
            return str(value)
        if value == value.to_integral_value():
            return format(value.to_integral_value(), "f") if value else "0"
    try:
        number = float(value)
    except ValueError:  # a signalling NaN
        return None
    if number != number:
        return None
    if number.is_integer() and abs(number) <= 2**64:
        return str(int(value))  # not of the float: a key may have more than 53 bits
    return repr(number).replace(".", decimal)
