"""P28: whole-number keys of many digits stay apart, whoever stores them, or are refused.

Two patients whose keys share one text are one unit, and each of them moves the statistics by more
than the noise hides. The keys here differ in their last digit alone. The broken versions write a
decimal number as a floating-point one; take Arrow's whole numbers of pandas as they are; and take
the floating-point numbers that SQLite made of whole ones.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest
import sqlalchemy as sa

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import Keys, cell_kinds, databases, open_table, text_columns

from .table_cases import schema_of

SEX = {"type": "string", "constraints": {"enum": ["F", "M"]}, "dpsynth": {"bounds_basis": "x"}}
SCHEMA: Schema = schema_of({"sex": SEX}, "k")
LONG = [123456789012345678901234 + number for number in (0, 1, 2, 3, 3)]
WIDE = pa.decimal128(38, 0)
UNITS = [0, 1, 2, 3, 3]


def arrow(kind: Any = WIDE) -> pa.Table:
    keys = pa.array([Decimal(key) for key in LONG]).cast(kind)
    return pa.table({"k": keys, "sex": pa.array(["F"] * len(LONG))})


def to_parquet(folder: Path) -> Path:
    pyarrow.parquet.write_table(arrow(), folder / "t.parquet")
    return folder / "t.parquet"


def to_duckdb(folder: Path, kind: str = "DECIMAL(38, 0)") -> Path:
    with duckdb.connect(str(folder / "t.duckdb"), config={"threads": 1}) as connection:
        connection.execute(f"CREATE TABLE t (k {kind}, sex VARCHAR)")
        connection.executemany(
            "INSERT INTO t VALUES (CAST(? AS VARCHAR), 'F')", [[k] for k in LONG]
        )
    return folder / "t.duckdb"


def of_duckdb(folder: Path) -> Any:
    with duckdb.connect(str(to_duckdb(folder)), read_only=True) as connection:
        return connection.sql("SELECT * FROM t").to_arrow_table()


DOORS: dict[str, Callable[[Path], Any]] = {
    "PyArrow": lambda folder: arrow(),
    "PyArrow, 256 bits": lambda folder: arrow(pa.decimal256(60, 0)),
    "PyArrow, dictionary": lambda folder: arrow().set_column(
        0, "k", arrow()["k"].combine_chunks().dictionary_encode()
    ),
    "polars": lambda folder: pl.from_arrow(arrow()),
    "Parquet": to_parquet,
    "pandas, Arrow types": lambda folder: pd.read_parquet(
        to_parquet(folder), dtype_backend="pyarrow"
    ),
    "pandas, categories": lambda folder: pd.read_parquet(
        to_parquet(folder), dtype_backend="pyarrow"
    ).astype({"k": "category"}),
    "pandas, objects": lambda folder: pd.DataFrame(
        {"k": pd.Series(LONG, dtype=object), "sex": "F"}
    ),
    "DuckDB": to_duckdb,
    "DuckDB, 128 bits": lambda folder: to_duckdb(folder, "HUGEINT"),
    "DuckDB, a result": of_duckdb,
}
IN_ARROW = ("PyArrow", "polars", "pandas, Arrow types", "DuckDB, a result")


def units(source: Any) -> list[int]:
    keys = Keys(SCHEMA)
    return [int(n) for chunk in open_table(source, SCHEMA).chunks() for n in keys.units(chunk)]


@pytest.mark.parametrize("door", DOORS)
def test_keys_that_differ_in_their_last_digit_are_different_patients(
    door: str, tmp_path: Path
) -> None:
    try:
        assert units(DOORS[door](tmp_path)) == UNITS
    except TableError as refused:
        assert "128 bits" in door and "floating-point numbers" in str(refused)


def test_a_server_s_keys(server: Any) -> None:
    url = server.new()
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE t (k NUMERIC(38, 0), sex TEXT)")
        connection.exec_driver_sql("INSERT INTO t VALUES (%s, 'F')", [(key,) for key in LONG])
    engine.dispose()
    assert units(f"{url}#t") == UNITS


def as_floats(value: Any, decimal: str) -> str:
    """The broken version: as floating-point numbers, of which many have one text."""
    return repr(float(value))


@pytest.mark.parametrize("door", IN_ARROW)
def test_the_check_finds_keys_that_share_a_text(
    door: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text_columns, "_number_text", as_floats)
    assert units(DOORS[door](tmp_path)) == [0, 0, 0, 0, 0]


BIG = [2**60 + 1, 2**60 + 2, None]  # as floating-point numbers, they are the same


def converted(backend: Any) -> pd.DataFrame:
    """What pandas makes of whole numbers beside a missing cell."""
    floats = pd.Series(BIG, dtype="float64")
    return pd.DataFrame({"k": floats.convert_dtypes(dtype_backend=backend), "sex": "F"})


def small() -> pd.DataFrame:
    kept = pd.Series([2**53 - 1, 7, None]).convert_dtypes(dtype_backend="pyarrow")
    return pd.DataFrame({"k": kept, "sex": "F"})


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
@pytest.mark.parametrize("categories", [False, True])
def test_keys_that_pandas_may_have_rounded_are_refused(backend: str, categories: bool) -> None:
    frame = converted(backend)
    if categories:
        frame = frame.astype({"k": "category"})
    with pytest.raises(TableError, match="'k' holds whole numbers that may have been rounded"):
        open_table(frame, SCHEMA)


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()])
def test_keys_of_a_typed_table_were_not_rounded(kind: Any) -> None:
    table = pa.table({"k": pa.array(BIG, kind), "sex": ["F"] * 3})
    for source in (table, pl.from_arrow(table), table.to_reader()):
        assert units(source) == [0, 1, -1]
    assert units(small()) == [0, 1, -1]
    most = table.set_column(0, "k", pa.array([2**63 - 1, 0, None], kind))
    with pytest.raises(TableError, match="may have been rounded"):
        open_table(most.to_pandas(types_mapper=pd.ArrowDtype), SCHEMA)


def test_the_check_finds_keys_that_were_rounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cell_kinds, "_may_be_rounded", lambda cells: False)
    assert units(converted("pyarrow")) == [0, 0, -1]


def to_sqlite(folder: Path, kind: str, keys: list[Any]) -> str:
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute(f"CREATE TABLE t (k {kind}, sex TEXT)")
        connection.executemany("INSERT INTO t VALUES (?, 'F')", [[str(key)] for key in keys])
    return f"sqlite:///{folder / 't.db'}#t"


REALS = [12345678901234567890, 12345678901234567891]
KINDS = ["INTEGER", "BIGINT", "DECIMAL(20, 0)", "DATETIME", "BOOLEAN"]


@pytest.mark.parametrize("kind", KINDS)
def test_keys_that_sqlite_stores_as_floating_point_numbers_are_refused(
    kind: str, tmp_path: Path
) -> None:
    source = to_sqlite(tmp_path, kind, [7, 8])
    assert units(source) == [0, 1]
    table = open_table(source, SCHEMA)
    with sqlite3.connect(tmp_path / "t.db") as connection:
        connection.executemany("INSERT INTO t VALUES (?, 'F')", [[str(key)] for key in REALS])
    for read in (lambda: open_table(source, SCHEMA), lambda: list(table.chunks())):
        with pytest.raises(TableError, match="'k' holds floating-point .* type TEXT") as refused:
            read()
        assert "12345" not in str(refused.value)


def test_sqlite_keeps_long_keys_as_text(tmp_path: Path) -> None:
    assert units(to_sqlite(tmp_path, "TEXT", [*REALS, REALS[1]])) == [0, 1, 1]
    assert np.unique(np.array(REALS, dtype=float)).size == 1


def test_the_check_finds_keys_that_sqlite_made_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "must_be_exact", lambda schema, name: False)
    assert units(to_sqlite(tmp_path, "INTEGER", REALS)) == [0, 0]
