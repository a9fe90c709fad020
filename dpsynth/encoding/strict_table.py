"""The table of a bundle, in two formats: is each what the schema says, and do they hold the same.

A table is read as numbers: a category as its place among the categories, a date as days, a missing
cell as NaN. So the same rows give the same digest, whether they are text or typed.
"""

from __future__ import annotations

import csv
import hashlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

from dpsynth._util.clock import read_clock
from dpsynth.encoding.codec import Codec
from dpsynth.errors import DpsynthError, Problem, TableError
from dpsynth.schema import Column, Family, Schema
from dpsynth.tables import open_synthetic, typed_series
from dpsynth.tables.csv import MAX_LINE_LENGTH

Floats = npt.NDArray[np.float64]

_EPOCH = datetime(1970, 1, 1)
_MAX_PROBLEMS = 20  # of one table; a reader needs no more to see that it is another one


@dataclass(frozen=True)
class Content:
    """What a table holds, by value: its number of rows, and a digest of all cells."""

    rows: int
    sha256: str


def check_table(path: Path, schema: Schema) -> tuple[Content | None, list[Problem]]:
    """Read a table of a bundle whole and compare every cell with the schema.

    Returns:
        The content (None if the table could not be read), and every problem by column.
    """
    codec = Codec(schema)
    totals = [hashlib.sha256() for _ in schema.modelled]
    rows, problems = 0, dict.fromkeys(_header_problems(path, schema))
    try:
        for frame in open_synthetic(path, schema).chunks():
            rows += len(frame)
            problems |= dict.fromkeys(_faults(frame, schema, codec))
            for total, column in zip(totals, schema.modelled, strict=True):
                total.update(_canonical(cell_values(frame[column.name], column)))
    except DpsynthError as error:
        return None, [*problems, Problem("table", str(error))][:_MAX_PROBLEMS]
    joined = "".join(total.hexdigest() for total in totals)
    content = Content(rows, hashlib.sha256(joined.encode()).hexdigest())
    return content, list(problems)[:_MAX_PROBLEMS]


def typed_frames(path: Path, schema: Schema) -> Iterator[pd.DataFrame]:
    """Read a synthetic table as frames of the declared types, whatever its format.

    Raises:
        TableError: a cell is not what the schema allows, or the file cannot be read.
    """
    codec = Codec(schema)
    for frame in open_synthetic(path, schema).chunks():
        problems = codec.conforms(frame)
        if problems:
            raise TableError(f"{path}: {problems[0]}; it is not a table of this run")
        yield pd.DataFrame({c.name: _typed(frame[c.name], c) for c in schema.modelled})


def cell_values(cells: pd.Series[Any], column: Column) -> Floats:
    """Read the cells of a synthetic column, text or typed, as numbers; NaN where missing.

    Numbers as they are; false and true as 0 and 1; strings as the place of the category; dates in
    days since year 1, dates and times in microseconds since 1970, times of day in seconds.
    """
    if pd.api.types.is_datetime64_any_dtype(cells.dtype):
        days = column.kind.in_days
        times = cells.to_numpy().astype("datetime64[D]" if days else "datetime64[us]")
        elapsed = times.astype(np.int64) + (_EPOCH.toordinal() if days else 0)
        return np.where(np.isnat(times), np.nan, elapsed.astype(np.float64))
    if pd.api.types.is_numeric_dtype(cells.dtype) or pd.api.types.is_bool_dtype(cells.dtype):
        return cells.to_numpy(dtype=np.float64, na_value=np.nan)
    of_text, texts = pd.factorize(cells.to_numpy(dtype=object))
    levels = {text: float(place) for place, text in enumerate(column.levels)}
    values = [_value(str(text), column, levels) for text in texts]
    return np.array([*values, np.nan])[of_text]


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


def _typed(cells: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Give a conforming column its declared type."""
    values = cell_values(cells, column)
    missing = np.isnan(values)
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


def _canonical(values: Floats) -> bytes:
    """Give bytes that are equal for equal values: one NaN, one zero."""
    return np.where(np.isnan(values), np.nan, values + 0.0).tobytes()


def _header_problems(path: Path, schema: Schema) -> list[Problem]:
    """Compare the columns of the file with those of the schema, and look for stowaways."""
    names = [column.name for column in schema.modelled]
    try:
        if path.suffix == ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                header = next(csv.reader([file.readline(MAX_LINE_LENGTH)]), [])
            return [] if header == names else [_other_columns()]
        return _parquet_problems(path, schema)
    except (OSError, ValueError, csv.Error, pa.ArrowException):
        return [Problem("table", "its header cannot be read")]


def _parquet_problems(path: Path, schema: Schema) -> list[Problem]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        fields = [(field.name, str(field.type)) for field in file.schema_arrow]
        notes = set(file.metadata.metadata or {}) | set(file.schema_arrow.metadata or {})
        for column in file.schema_arrow:
            notes |= set(column.metadata or {})
    problems = []
    if [name for name, _ in fields] != [column.name for column in schema.modelled]:
        problems.append(_other_columns())
    elif fields != [(column.name, column.kind.arrow) for column in schema.modelled]:
        problems.append(Problem("table", "a column has another type than the schema gives it"))
    if notes - {b"ARROW:schema", b"PARQUET:field_id"}:
        problems.append(Problem("table", "the file holds notes beside its columns"))
    return problems


def _other_columns() -> Problem:
    return Problem("table", "its columns are not those of the schema, in the schema's order")


def _faults(frame: pd.DataFrame, schema: Schema, codec: Codec) -> list[Problem]:
    """List what a frame breaks: the schema's columns, or, if those are sound, its rules."""
    problems = codec.conforms(frame)
    if problems or not schema.rules:
        return problems
    named = {name for rule in schema.rules for name in rule.columns}
    typed = pd.DataFrame({name: _typed(frame[name], schema.column(name)) for name in named})
    return [
        Problem(f"rule '{rule.text}'", "some rows break it")
        for rule in schema.rules
        if not rule.holds(typed).all()
    ]
