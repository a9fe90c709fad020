"""The ways in which a CSV file becomes something that `fit` takes: readers that infer, and not.

Each takes the path of a CSV file in a folder of its own, and returns a DataFrame or the path of a
table. They are what offices do: pandas with its options, Arrow, polars, DuckDB, and Parquet files
that were written from what these inferred. JSON has no type for times and infinite numbers: what a
program that inferred them writes instead cannot be told from the source's own text, as in a CSV
file that such a program wrote. So polars and DuckDB write JSON of texts here.
"""

from __future__ import annotations

import csv
import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet

import dpsynth
from dpsynth.schema import Schema

Source = pd.DataFrame | Path
Reader = Callable[[Path, Schema], Source]
QUERY = "SELECT * FROM read_csv('{}', header=true, delim=',', quote='\"', sample_size=-1{})"


def _zipped(path: Path, schema: Schema) -> Path:
    target = path.with_suffix(".csv.gz")
    with path.open("rb") as source, gzip.open(target, "wb") as packed:
        shutil.copyfileobj(source, packed)
    return target


def _rows(path: Path) -> list[list[str]]:
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.reader(file))


def _lists(path: Path, schema: Schema) -> pd.DataFrame:
    header, *rows = _rows(path)
    return pd.DataFrame(rows, columns=header)


def _guessed(path: Path, schema: Schema) -> pd.DataFrame:
    """What a script does that makes numbers of whatever can be one, as small as they will go."""
    frame = _lists(path, schema)
    for name in frame:
        try:
            frame[name] = pd.to_numeric(frame[name].replace("", None), downcast="float")
        except (ValueError, TypeError):
            pass
    return frame


def _cell_by_cell(path: Path, schema: Schema) -> pd.DataFrame:
    """What a spreadsheet or a JSON file gives: each cell has a type of its own."""

    def cell(text: str) -> object:
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
        return text or None

    header, *rows = _rows(path)
    cells = [[cell(text) for text in row] for row in rows]
    columns = {name: [row[place] for row in cells] for place, name in enumerate(header)}
    return pd.DataFrame({name: pd.Series(row, dtype=object) for name, row in columns.items()})


def _in_chunks(path: Path, schema: Schema) -> pd.DataFrame:
    """What pandas makes of a long file: types are inferred part by part."""
    return pd.concat(pd.read_csv(path, chunksize=4), ignore_index=True)


def _pandas_dates(path: Path, schema: Schema) -> pd.DataFrame:
    times = [column.name for column in schema.columns if column.type in ("date", "datetime")]
    return pd.read_csv(path, parse_dates=times)


def _polars_table(path: Path, **options: object) -> pl.DataFrame:
    """Read by polars; integers of 128 bits, which nobody else knows, are left out."""
    table = pl.read_csv(path, **({"infer_schema_length": None} | options))  # type: ignore[arg-type]
    return table.select(pl.exclude(pl.Int128))


def _polars(path: Path, *, extension: bool = False, **options: object) -> pd.DataFrame:
    return _polars_table(path, **options).to_pandas(use_pyarrow_extension_array=extension)


def _polars_file(path: Path, **options: object) -> Path:
    target = path.with_suffix(".parquet")
    _polars_table(path, **options).write_parquet(target)
    return target


def _file(frame: pd.DataFrame, path: Path) -> Path:
    target = path.with_suffix(".parquet")
    frame.to_parquet(target)
    return target


def _arrow_file(path: Path, *, dictionaries: bool = False) -> Path:
    target = path.with_suffix(".parquet")
    options = pyarrow.csv.ConvertOptions(auto_dict_encode=dictionaries)
    pa.parquet.write_table(pyarrow.csv.read_csv(path, convert_options=options), target)
    return target


def _duck_file(path: Path, option: str = "") -> Path:
    target = path.with_suffix(".parquet")
    duckdb.sql(f"COPY ({QUERY.format(path, option)}) TO '{target}' (FORMAT parquet)")
    return target


def _json_lines(frame: pd.DataFrame, path: Path) -> Path:
    target = path.with_suffix(".jsonl")
    frame.to_json(target, orient="records", lines=True, date_format="iso")
    return target


def _polars_lines(path: Path, **options: object) -> Path:
    target = path.with_suffix(".ndjson")
    _polars_table(path, **options).write_ndjson(target)
    return target


def _duck_lines(path: Path, option: str) -> Path:
    target = path.with_suffix(".jsonl")
    duckdb.sql(f"COPY ({QUERY.format(path, option)}) TO '{target}' (FORMAT json)")
    return target


READERS: dict[str, Reader] = {
    "CSV": lambda path, schema: path,
    "CSV, gzipped": _zipped,
    "dpsynth.read_table": dpsynth.read_table,
    "lists of texts": _lists,
    "pandas": lambda path, schema: pd.read_csv(path),
    "pandas, text": lambda path, schema: pd.read_csv(path, dtype=str),
    "pandas, text, nothing missing": lambda path, schema: pd.read_csv(
        path, dtype=str, keep_default_na=False
    ),
    "pandas, nothing missing": lambda path, schema: pd.read_csv(path, keep_default_na=False),
    "pandas, string": lambda path, schema: pd.read_csv(path, dtype="string"),
    "pandas, category": lambda path, schema: pd.read_csv(path, dtype="category"),
    "pandas, python": lambda path, schema: pd.read_csv(path, engine="python"),
    "pandas, by Arrow": lambda path, schema: pd.read_csv(path, engine="pyarrow"),
    "pandas, nullable": lambda path, schema: pd.read_csv(path, dtype_backend="numpy_nullable"),
    "pandas, Arrow types": lambda path, schema: pd.read_csv(path, dtype_backend="pyarrow"),
    "pandas, convert_dtypes": lambda path, schema: pd.read_csv(path).convert_dtypes(),
    "pandas, infer_objects": lambda path, schema: _cell_by_cell(path, schema).infer_objects(),
    "pandas, in chunks": _in_chunks,
    "pandas, dates": _pandas_dates,
    "pandas, to_numeric": _guessed,
    "cell by cell": _cell_by_cell,
    "polars": lambda path, schema: _polars(path),
    "polars, text": lambda path, schema: _polars(path, infer_schema=False),
    "polars, dates": lambda path, schema: _polars(path, try_parse_dates=True),
    "polars, Arrow types": lambda path, schema: _polars(path, extension=True),
    "Arrow": lambda path, schema: pyarrow.csv.read_csv(path).to_pandas(),
    "Arrow types": lambda path, schema: pyarrow.csv.read_csv(path).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "DuckDB": lambda path, schema: duckdb.sql(QUERY.format(path, "")).df(),
    "DuckDB, text": lambda path, schema: duckdb.sql(QUERY.format(path, ", all_varchar=true")).df(),
    "Parquet by pandas": lambda path, schema: _file(pd.read_csv(path), path),
    "Parquet by pandas, text": lambda path, schema: _file(pd.read_csv(path, dtype=str), path),
    "Parquet by polars": lambda path, schema: _polars_file(path, try_parse_dates=True),
    "Parquet by polars, text": lambda path, schema: _polars_file(path, infer_schema=False),
    "Parquet by Arrow": lambda path, schema: _arrow_file(path),
    "Parquet by Arrow, dictionaries": lambda path, schema: _arrow_file(path, dictionaries=True),
    "JSON Lines by pandas": lambda path, schema: _json_lines(pd.read_csv(path), path),
    "JSON Lines by pandas, text": lambda path, schema: _json_lines(
        pd.read_csv(path, dtype=str), path
    ),
    "JSON Lines, cell by cell": lambda path, schema: _json_lines(_cell_by_cell(path, schema), path),
    "JSON Lines by polars, text": lambda path, schema: _polars_lines(path, infer_schema=False),
    "JSON Lines by DuckDB, text": lambda path, schema: _duck_lines(path, ", all_varchar=true"),
    "Parquet by DuckDB": lambda path, schema: _duck_file(path),
    "Parquet by DuckDB, text": lambda path, schema: _duck_file(path, ", all_varchar=true"),
}
