"""The cells of a synthetic table as numbers, and of their declared types, text and typed alike.

A category is its place among the categories, a date its days, a missing cell NaN. In a table of
linked ones, the number of a patient is a whole number, whether it is written as text or not, and
the value of a test is read by the test that its row names.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.clock import read_clock
from dpsynth.encoding.drawn_sets import set_values
from dpsynth.schema import Column, Family, SyntheticTable, as_number, text_keys
from dpsynth.tables import texts_of, typed_series

Floats = npt.NDArray[np.float64]

_EPOCH = datetime(1970, 1, 1)


def cell_values(cells: pd.Series[Any], column: Column) -> Floats:
    """Read the cells of a synthetic column, text or typed, as numbers; NaN where missing.

    Numbers as they are; false and true as 0 and 1; strings as the place of the category; dates in
    days since year 1, dates and times in microseconds since 1970, times of day in seconds. A
    cell of several codes has a number by its text.
    """
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        days = column.kind.in_days
        times = cells.to_numpy().astype("datetime64[D]" if days else "datetime64[us]")
        elapsed = times.astype(np.int64) + (_EPOCH.toordinal() if days else 0)
        return np.where(np.isnat(times), np.nan, elapsed.astype(np.float64))
    if pd.api.types.is_numeric_dtype(cells.dtype) or pd.api.types.is_bool_dtype(cells.dtype):
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    of_text, texts = pd.factorize(cells.to_numpy(dtype=object))
    if column.several is not None:
        words = [str(text) for text in texts]
        numbers = np.where([word == "" for word in words], np.nan, set_values(words))
        return np.append(numbers, np.nan)[of_text]
    levels = {text: float(place) for place, text in enumerate(column.levels)}
    values = [_value(str(text), column, levels) for text in texts]
    return np.array([*values, np.nan])[of_text]


def values_of(frame: pd.DataFrame, column: Column, table: SyntheticTable) -> Floats:
    """Read a column of a frame of a table as numbers, as `cell_values` does."""
    if table.is_number(column):
        return cell_values(table.numbers(frame, column), as_number(column))
    cells = frame[column.name]
    if not table.is_measured(column):
        return cell_values(cells, column)
    values = np.full(len(frame), np.nan)
    for test, rows in rows_of_tests(frame, table):
        values[rows] = cell_values(cells.iloc[rows], test)
    return values


def rows_of_tests(
    frame: pd.DataFrame, table: SyntheticTable
) -> list[tuple[Column, npt.NDArray[np.int64]]]:
    """Return the places of each test's rows in a frame of a long table."""
    assert table.series is not None
    names = frame[table.series.column].to_numpy(dtype=object)
    return [(test, np.flatnonzero(names == test.name)) for test in table.series.columns]


def typed_frame(
    frame: pd.DataFrame, table: SyntheticTable, names: Container[str] | None = None
) -> pd.DataFrame:
    """Give each column of a conforming frame, or those of these names, its declared type."""
    columns = {}
    for column in table.schema.modelled:
        if names is not None and column.name not in names:
            continue
        cells = frame[column.name]
        if not column.kind.is_text or column.is_categorical:
            columns[column.name] = typed_cells(cells, column)
        elif table.is_measured(column):
            columns[column.name] = _texts_of_tests(frame, table, column)
        else:
            numbers = values_of(frame, column, table).astype(np.int64)
            texts = text_keys(numbers) if column.name == table.key else numbers.astype(str)
            columns[column.name] = pd.Series(texts, dtype=object)
    return pd.DataFrame(columns)


def _texts_of_tests(frame: pd.DataFrame, table: SyntheticTable, column: Column) -> pd.Series[Any]:
    """Write the value of each row as its test does."""
    texts = np.full(len(frame), None, dtype=object)
    for test, rows in rows_of_tests(frame, table):
        cells = typed_cells(frame[column.name].iloc[rows], test)
        texts[rows] = texts_of(cells, boolean=True)
    return pd.Series(texts)


def _value(text: str, column: Column, levels: Mapping[str, float]) -> float:
    """Read one text as `write_table` writes it; NaN if it is missing or no value of the column."""
    if text == "" or text in column.missing_values:
        return math.nan
    try:
        match column.kind.family:
            case Family.TEXT:
                return levels.get(text, math.nan)
            case Family.TRUTH:
                return float(text in column.true_values or text == "true")
            case Family.CLOCK:
                return read_clock(text)
            case Family.TIME if column.kind.in_days:
                return float(date.fromisoformat(text).toordinal())
            case Family.TIME:
                return float((datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1))
        return float(text)
    except ValueError:
        return math.nan


def typed_cells(cells: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Give a conforming column its declared type."""
    values = cell_values(cells, column)
    missing = np.isnan(values)
    if column.several is not None:
        texts = cells.to_numpy(dtype=object).copy()
        texts[missing] = None
        return pd.Series(texts)
    whole = np.where(missing, 0.0, values).astype(np.int64)
    kind = column.kind
    match kind.family:
        case Family.TEXT:
            levels = np.array([*column.levels, None], dtype=object)
            return pd.Series(levels[np.where(missing, len(column.levels), whole)])
        case Family.TRUTH:
            return pd.Series(pd.arrays.BooleanArray(whole != 0, missing))
        case Family.CLOCK:
            return typed_series(values, missing, column)
        case Family.NUMBER if kind.whole:
            return pd.Series(pd.arrays.IntegerArray(whole, missing))
        case Family.TIME if kind.in_days:
            times = (whole - _EPOCH.toordinal()).astype("datetime64[D]").astype("datetime64[s]")
        case Family.TIME:
            times = whole.astype("datetime64[us]")
        case _:
            return pd.Series(values)
    times[missing] = np.datetime64("NaT")
    return pd.Series(times)


def canonical(values: Floats) -> bytes:
    """Give bytes that are equal for equal values: one NaN, one zero."""
    return np.where(np.isnan(values), np.nan, values + 0.0).tobytes()
