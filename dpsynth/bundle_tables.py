"""The table of a bundle, in two formats: is each what the schema says, and do they hold the same.

A table is read as numbers: a category as its place among the categories, a date as days, a missing
cell as NaN. So the same rows give the same digest, whether they are text or typed.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.cells import dates, datetimes, distinct, is_typed, numbers, typed_values
from dpsynth.codec import Codec
from dpsynth.coders import typed_series
from dpsynth.errors import DpsynthError, Problem, TableError
from dpsynth.schema import Column, Schema
from dpsynth.table import open_synthetic

Floats = npt.NDArray[np.float64]

_ARROW_TYPES = {
    "integer": "int64",
    "year": "int64",
    "number": "double",
    "boolean": "bool",
    "string": "string",
    "date": "date32[day]",
    "datetime": "timestamp[us]",
}
_MOST_PROBLEMS = 20  # of one table; a reader needs no more to see that it is another one


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
                total.update(_canonical(cell_values(frame[column.name], column), column))
    except DpsynthError as error:
        return None, [*problems, Problem("table", str(error))][:_MOST_PROBLEMS]
    joined = "".join(total.hexdigest() for total in totals)
    content = Content(rows, hashlib.sha256(joined.encode()).hexdigest())
    return content, list(problems)[:_MOST_PROBLEMS]


def typed_frames(path: Path, schema: Schema) -> Iterator[pd.DataFrame]:
    """Read a synthetic table as frames of the declared types, whatever its format.

    Raises:
        TableError: a cell is not what the schema allows, or the file cannot be read.
    """
    codec = Codec(schema)
    for frame in open_synthetic(path, schema).chunks():
        problems = codec.conforms(frame)
        if problems:
            raise TableError(f"{path}: {problems[0]}; it is no table of this run")
        yield _typed_frame(frame, schema)


def cell_values(cells: pd.Series[Any], column: Column) -> Floats:
    """Read the cells of a synthetic column, text or typed, as numbers; NaN where missing."""
    if is_typed(cells) and column.type not in ("string", "boolean"):
        values = typed_values(cells, column.type)
        return np.full(len(cells), np.nan) if values is None else values
    of_text, texts = distinct(cells, boolean=column.type == "boolean")
    return np.append(_read(texts, column), np.nan)[of_text]


def _read(texts: Sequence[str], column: Column) -> Floats:
    if column.type in ("string", "boolean"):
        if column.type == "string":
            known = {text: float(place) for place, text in enumerate(column.levels)}
        else:
            known = dict.fromkeys(column.false_values, 0.0) | {"false": 0.0}
            known |= dict.fromkeys(column.true_values, 1.0) | {"true": 1.0}
        return np.array([known.get(text, np.nan) for text in texts], dtype=np.float64)
    readers: dict[str, Callable[[Sequence[str]], Floats]] = {"date": dates, "datetime": datetimes}
    values = readers.get(column.type, numbers)(texts)
    values[[text in column.missing_values for text in texts]] = np.nan
    return values


def _typed_frame(frame: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    return pd.DataFrame({c.name: _typed(frame[c.name], c) for c in schema.modelled})


def _typed(cells: pd.Series[Any], column: Column) -> pd.Series[Any]:
    """Give a conforming column its declared type."""
    values = cell_values(cells, column)
    missing = np.isnan(values)
    known = np.where(missing, 0.0, values)
    if column.type == "string":
        levels = np.array([*column.levels, None], dtype=object)
        return pd.Series(levels[np.where(missing, len(column.levels), known).astype(np.int64)])
    if column.type == "boolean":
        return pd.Series(pd.arrays.BooleanArray(known != 0, missing))
    return typed_series(known, missing, column, decimals=6)


def _canonical(values: Floats, column: Column) -> bytes:
    """Give bytes that are equal for equal values: one NaN, one zero, whole microseconds."""
    if column.type == "datetime":
        values = np.rint(values * 1e6)
    return np.where(np.isnan(values), np.nan, values + 0.0).tobytes()


def _header_problems(path: Path, schema: Schema) -> list[Problem]:
    """Compare the columns of the file with those of the schema, and look for stowaways."""
    names = [column.name for column in schema.modelled]
    try:
        if path.suffix == ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                found = next(csv.reader(file), [])
            return [] if found == names else [_other_columns()]
        return _parquet_problems(path, schema)
    except (OSError, ValueError, csv.Error):
        return [Problem("table", "its header cannot be read")]


def _parquet_problems(path: Path, schema: Schema) -> list[Problem]:
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        found = [(field.name, str(field.type)) for field in file.schema_arrow]
        notes = set(file.metadata.metadata or {}) | set(file.schema_arrow.metadata or {})
    problems = []
    if [name for name, _ in found] != [column.name for column in schema.modelled]:
        problems.append(_other_columns())
    elif found != [(column.name, _ARROW_TYPES[column.type]) for column in schema.modelled]:
        problems.append(Problem("table", "a column has another type than the schema gives it"))
    if notes - {b"ARROW:schema"}:
        problems.append(Problem("table", "the file holds notes beside its columns"))
    return problems


def _other_columns() -> Problem:
    return Problem("table", "its columns are not those of the schema, in the schema's order")


def _faults(frame: pd.DataFrame, schema: Schema, codec: Codec) -> list[Problem]:
    """List what a frame breaks: the schema's columns, or, if those are sound, its rules."""
    problems = codec.conforms(frame)
    if problems or not schema.rules:
        return problems
    typed = _typed_frame(frame, schema)
    return [
        Problem(f"rule '{rule.text}'", "some rows break it")
        for rule in schema.rules
        if not rule.holds(typed).all()
    ]
