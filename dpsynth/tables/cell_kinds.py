"""The kinds of cells that each column of a private table may arrive with.

Many readers infer a column's type from all of its rows, so one patient can change it: ``008`` is
the number 8 until somebody has the code ``V27``. Typed cells are therefore accepted only where
typed and text cells of the same content get the same code. Everywhere else cells must be text.

- The unit's key, whatever its type, must be text or whole numbers: a whole number has one text.
  Whoever makes whole numbers of texts such as ``007`` and ``7`` has made one patient of two before
  dpsynth sees them (docs/privacy.md states what is assumed about keys). Floating-point numbers cut
  long keys, and a program may choose them because the key of one patient is missing.
- A column of type string must be text, or whole numbers if every number among its declared values
  is written as a whole number is: 2 and not 02.
- Other columns may be text, or typed cells of the declared kind if the column's text has its
  standard form: decimal sign ``.``, no ``format`` of its own, the usual words for true and false.
  A date whose ``format`` is of digits alone, the year first, may be a number, such as 20150131.

Only dtypes, Arrow types and the kinds of objects are looked at, and whether a whole number of a
DataFrame is so large that it may have been rounded. No message quotes a cell.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from dpsynth._util.messages import shown
from dpsynth.errors import TableError
from dpsynth.schema import Column, Family, Schema
from dpsynth.tables.cell_values import READER_WORDS, missing_tokens, numbers
from dpsynth.tables.frames import TYPED
from dpsynth.tables.text_columns import array_of


class Held(StrEnum):
    """What the cells of a column are, in the words of messages."""

    TEXT = "text"
    NOTHING = "no cell at all"
    WHOLE = "whole numbers"
    ROUNDED = "whole numbers that may have been rounded, of 2^53 or more"
    FLOAT = "floating-point numbers"
    SINGLE = "floating-point numbers of reduced precision"
    DECIMAL = "decimal numbers"
    TRUTH = "truth values"
    TIME = "dates or times"
    CLOCK = "times of day"
    DURATION = "durations"
    ZONED = "times with a time zone"
    MIXED = "cells of several kinds, such as numbers beside texts"
    OTHER = "cells of a kind that no schema has"


_NUMBERS = (Held.WHOLE, Held.FLOAT, Held.DECIMAL)
_OF_FAMILY: Mapping[Family, tuple[Held, ...]] = {
    Family.NUMBER: _NUMBERS,
    Family.TRUTH: (Held.TRUTH, *_NUMBERS),
    Family.TIME: (Held.TIME,),
    Family.CLOCK: (Held.CLOCK,),
}
_INFERRED = {
    "string": Held.TEXT,
    "empty": Held.NOTHING,
    "integer": Held.WHOLE,
    "floating": Held.FLOAT,
    "mixed-integer-float": Held.FLOAT,
    "decimal": Held.DECIMAL,
    "boolean": Held.TRUTH,
    "date": Held.TIME,
    "datetime": Held.TIME,
    "datetime64": Held.TIME,
    "time": Held.CLOCK,
    "timedelta": Held.DURATION,
    "timedelta64": Held.DURATION,
    "mixed-integer": Held.MIXED,
    "mixed": Held.MIXED,
}
_ONE_TEXT = re.compile("0|-?[1-9][0-9]*")  # how a whole number is written
_NUMERAL = re.compile(r"[+-]?[0-9]+([.,][0-9]*)?")
_DIGITS = re.compile("%Y(%[mdHMSj])+")  # a format of digits alone, without a zero in front
EXACT = 2**53  # from here on, a floating-point number may not be the whole number that it was
_STRAIGHT = "write the column as text, directly from the source and not from a table in memory"
_STANDARD = Column("", "boolean")


def check_frame(frame: pd.DataFrame, needed: tuple[str, ...], schema: Schema) -> None:
    """Refuse a DataFrame whose needed columns hold cells that could be coded otherwise as text.

    Raises:
        TableError: it names every such column, says what it holds, and how to read the file.
    """
    if len(frame):  # a column without rows has whatever type a reader gives it
        kinds = {name: kind_of(frame[name]) for name in needed}
        for name, kind in () if frame.attrs.get(TYPED) else kinds.items():
            if kind is Held.WHOLE and must_be_exact(schema, name) and _may_be_rounded(frame[name]):
                kinds[name] = Held.ROUNDED
        _check(kinds, schema, "the DataFrame", "dtype=str (polars: infer_schema=False)")


def must_be_exact(schema: Schema, name: str) -> bool:
    """Tell whether each cell of a column has to be read to its last digit: a key, or a text."""
    return name == schema.unit.column or schema.column(name).kind.text_only


def _may_be_rounded(cells: pd.Series[Any]) -> bool:
    """Tell whether whole numbers may have been floating-point numbers that were rounded.

    Where a cell is missing, pandas reads whole numbers as floating-point ones; ``convert_dtypes``
    then makes nullable whole numbers of them, its own or those of Arrow. Below 2^53, none has
    changed on that way.
    """
    dtype: Any = cells.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return _may_be_rounded(pd.Series(dtype.categories))
    arrow = isinstance(dtype, pd.ArrowDtype) and pa.types.is_integer(dtype.pyarrow_dtype)
    if not arrow and not isinstance(dtype, pd.Int64Dtype | pd.UInt64Dtype):
        return False
    return max(int(cells.max()), -int(cells.min())) >= EXACT


def check_layout(
    layout: Any, needed: tuple[str, ...], schema: Schema, place: str, remedy: str = _STRAIGHT
) -> None:
    """Refuse a table, by its Arrow schema, as `check_frame` refuses a DataFrame.

    Args:
        layout: the Arrow schema.
        needed: the columns that are read.
        schema: of the table.
        place: what messages call the table.
        remedy: what to do about a column that has to be text.

    Raises:
        TableError: as `check_frame`.
    """
    kinds = {name: kind_of_arrow(layout.field(name).type) for name in needed}
    _check(kinds, schema, place, None, remedy)


def check_kinds(kinds: Mapping[str, Held], schema: Schema, place: str, remedy: str) -> None:
    """Refuse a table of another kind, by what it declares its columns to hold.

    Args:
        kinds: of the columns whose types are known.
        schema: of the table.
        place: what messages call the table.
        remedy: what to do about a column that has to be text.

    Raises:
        TableError: as `check_frame`.
    """
    _check(kinds, schema, place, None, remedy)


def kind_of(cells: pd.Series[Any]) -> Held:
    """Return what a column of a DataFrame holds."""
    dtype: Any = cells.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return kind_of(pd.Series(dtype.categories))
    if isinstance(dtype, pd.StringDtype):
        return Held.TEXT
    if isinstance(dtype, pd.ArrowDtype):
        kind = kind_of_arrow(dtype.pyarrow_dtype)
    elif isinstance(dtype, pd.SparseDtype | pd.PeriodDtype | pd.IntervalDtype):
        return Held.OTHER
    elif dtype.kind == "O":
        return _kind_of_objects(cells)
    elif dtype.kind == "f":
        kind = Held.FLOAT if dtype.itemsize == 8 else Held.SINGLE
    elif dtype.kind == "M":
        kind = Held.TIME if getattr(dtype, "tz", None) is None else Held.ZONED
    else:
        kind = {"i": Held.WHOLE, "u": Held.WHOLE, "b": Held.TRUTH, "m": Held.DURATION}.get(
            dtype.kind, Held.OTHER
        )
    # Readers give a column without cells a type all the same: pandas says float64.
    return Held.NOTHING if kind is not Held.TEXT and bool(cells.isna().all()) else kind


def _kind_of_objects(cells: pd.Series[Any]) -> Held:
    kind = _INFERRED.get(pd.api.types.infer_dtype(cells, skipna=True), Held.OTHER)
    if kind not in (Held.TIME, Held.CLOCK):
        return kind
    times = [cell for cell in cells if not pd.isna(cell)]  # NaT alone is inferred to be a time
    if any(getattr(cell, "tzinfo", None) is not None for cell in times):
        return Held.ZONED
    return kind if times else Held.NOTHING


def kind_of_arrow(kind: Any) -> Held:
    """Return what a column of an Arrow type holds."""
    types = pa.types
    if types.is_dictionary(kind):
        return kind_of_arrow(kind.value_type)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return Held.TEXT
    if types.is_floating(kind):
        return Held.FLOAT if types.is_float64(kind) else Held.SINGLE
    if types.is_timestamp(kind):
        return Held.TIME if kind.tz is None else Held.ZONED
    if types.is_decimal(kind) and kind.scale == 0:
        return Held.WHOLE
    for is_one, kind_of_cells in (
        (types.is_null, Held.NOTHING),
        (types.is_integer, Held.WHOLE),
        (types.is_decimal, Held.DECIMAL),
        (types.is_boolean, Held.TRUTH),
        (types.is_date, Held.TIME),
        (types.is_time, Held.CLOCK),
        (types.is_duration, Held.DURATION),
    ):
        if is_one(kind):
            return kind_of_cells
    return Held.OTHER


def _check(
    kinds: Mapping[str, Held],
    schema: Schema,
    place: str,
    option: str | None,
    remedy: str = _STRAIGHT,
) -> None:
    """Word the first column that is refused, and name the others."""
    reasons = {
        name: reason
        for name, kind in kinds.items()
        if (reason := refusal(schema.column(name), kind, schema)) is not None
    }
    if not reasons:
        return
    first, *others = reasons
    if option is not None:
        remedy = f"read the file with dpsynth.read_table(path, schema), or with {option}"
    also = "" if not others else f". Also refused: {', '.join(others)}"
    raise TableError(
        f"{place}: column '{first}' holds {kinds[first]}, {reasons[first]}; {remedy}{also}"
    )


def refusal(column: Column, kind: Held, schema: Schema) -> str | None:
    """Say why a column of a schema may not arrive with cells of a kind; None if it may."""
    key = column.name == schema.unit.column
    if kind is Held.TEXT:
        return None
    if kind is Held.NOTHING:
        return "and it is the key of the unit" if key else _refusal_of_words(column)
    if kind in (Held.MIXED, Held.OTHER):
        return "so that cells with the same content may get different codes"
    if key or column.kind.text_only:
        if kind is Held.WHOLE and (key or column.kind.is_text):
            return _refusal_of_whole(column, key=key)
        role = "it is the key of the unit" if key else f"its type is {column.type}"
        also = " or whole numbers" if key else ""
        return (
            f"and {role}, so it must be text{also}: other types lose leading zeros and cut long "
            "keys, and whether a program reads a column as numbers, dates or truth values depends "
            "on the cells of every patient"
        )
    if kind is Held.SINGLE:
        return "which keep fewer digits than the text they were read from"
    if kind is Held.ZONED:
        return "which may differ from the local time that the text gives"
    if kind in _NUMBERS and column.kind.is_time and _is_of_digits(column):
        return _refusal_of_words(column)
    if kind not in _OF_FAMILY[column.kind.family]:
        hint = ""
        if kind in _NUMBERS and column.kind.drops_time:
            hint = "; if they are like 20150131, declare its format: %Y%m%d"
        return f"and its type is {column.type}{hint}"
    return _refusal_of_words(column) or _refusal_of_form(column, kind, schema.dialect.decimal)


def _refusal_of_whole(column: Column, *, key: bool) -> str | None:
    """Judge whole numbers as a key or in a column of type string: has each declared value one text?

    Only what the schema declares is looked at, never a cell.
    """
    tokens = missing_tokens(column) | {*column.forms.reason_texts}
    values = {*(column.categories or ()), *(text for text, _ in column.forms.values)}
    if not key and column.codes is not None:
        return (
            f"and its type is {column.type}: its codes may have leading zeros, so it must be text"
        )
    if not key and not any(_ONE_TEXT.fullmatch(text.strip()) for text in values):
        return (
            f"and its type is {column.type}, so it must be text: none of its declared values is a "
            "whole number"
        )
    for text in sorted(tokens if key else values | tokens):
        if _NUMERAL.fullmatch(text.strip()) and not _ONE_TEXT.fullmatch(text.strip()):
            return (
                f"but the schema declares {shown(text)}, and no whole number is written so: other "
                "types lose leading zeros, so it must be text"
            )
    return None


def _is_of_digits(column: Column) -> bool:
    """Tell whether a format gives dates as digits alone, such as 20150131."""
    formats = (*column.forms.formats, column.format or "")
    return any(_DIGITS.fullmatch(one) for one in formats)


def _refusal_of_words(column: Column) -> str | None:
    """Judge cells that are not text: a reader may have taken a declared NA for a missing one."""
    words = {*(column.categories or ()), *column.true_values, *column.false_values}
    words |= {*column.forms.reason_texts, *(text for text, _ in column.forms.values)}
    if words & READER_WORDS:
        return "and a declared value is a word that many readers take for a missing cell"
    return None


def _refusal_of_form(column: Column, kind: Held, decimal: str) -> str | None:
    """Judge typed cells of the declared kind: has their text the form that the schema declares?"""
    if decimal != "." and (column.kind.has_decimals or kind in (Held.FLOAT, Held.DECIMAL)):
        return f"but the schema declares {decimal!r} as decimal sign, so its numbers must be text"
    if column.forms.thousands:
        return "but the schema declares a groupChar, so its numbers must be text"
    if column.forms.values and not column.kind.is_number:
        return "but the schema declares a value map, so the cells must be text"
    if (column.format is not None or column.forms.formats) and kind in (Held.TIME, Held.CLOCK):
        return (
            "but the schema declares a format, so its dates and times must be text (or leave the "
            "format out of the schema: cells of this kind need none)"
        )
    if column.kind.is_truth and not _plain_words(column, kind):
        return "but the schema declares words for true and false, so it must be text"
    return None


def _plain_words(column: Column, kind: Held) -> bool:
    """Tell whether typed truth values, or 0 and 1, mean what their texts would mean."""
    if kind is Held.TRUTH:
        usual = _STANDARD.true_values[:3], _STANDARD.false_values[:3]
        return set(usual[0]) <= {*column.true_values} and set(usual[1]) <= {*column.false_values}
    words = {*column.true_values, *column.false_values}
    numerals = numbers(array_of(sorted(words - {"0", "1"})))
    tokens = numbers(array_of(sorted(missing_tokens(column))))
    return bool(np.isnan(numerals).all()) and not np.isin(tokens, (0.0, 1.0)).any()
