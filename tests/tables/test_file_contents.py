"""A file of another kind than its name says is called what it is; none of its bytes is shown."""

from __future__ import annotations

import gzip
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path

import duckdb
import openpyxl
import pytest

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import open_columns, open_synthetic, open_table, simulate

FRAME = simulate(20, seed=1)
CANARY = "zebrafish"


def workbook(path: Path) -> None:
    book = openpyxl.Workbook()
    assert book.active is not None
    book.active["A1"] = CANARY
    with path.open("wb") as file:
        book.save(file)


def sqlite(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        FRAME.to_sql("patients", connection, index=False)


def duck(path: Path) -> None:
    with duckdb.connect(str(path)) as connection:
        connection.execute("create table patients as select 1 as a")


def zipped(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{CANARY}.csv", "a,b\n")


def of_bytes(content: bytes) -> Callable[[Path], object]:
    return lambda path: path.write_bytes(content + CANARY.encode() * 60)


MADE: dict[str, tuple[Callable[[Path], object], str]] = {
    "parquet": (FRAME.to_parquet, "is a Parquet file: call it t.parquet"),
    "workbook": (workbook, "is an Excel workbook: call it t.xlsx"),
    "sqlite": (sqlite, "is an SQLite database: call it t.sqlite"),
    "duckdb": (duck, "is a DuckDB database: call it t.duckdb"),
    "zip": (zipped, "is a zip archive: unpack it"),
    "gzip": (of_bytes(gzip.compress(b"a,b\n1,2\n")), "is a gzipped file: call it t.csv.gz"),
    "old workbook": (of_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"), "save it as .xlsx or CSV"),
    "spss": (of_bytes(b"$FL2@(#) "), "is a file of SPSS: call it t.sav"),
    "arrow": (of_bytes(b"ARROW1\0\0"), "write it as Parquet"),
    "web page": (of_bytes(b"\n<HTML><table>"), "is a web page"),
    "json": (of_bytes(b'[{"patient": "'), "is a JSON document"),
    "7z": (of_bytes(b"7z\xbc\xaf\x27\x1c"), "unpack it"),
}


@pytest.mark.parametrize("suffix", [".csv", ".dat"])
@pytest.mark.parametrize("name", MADE)
def test_a_file_under_another_name(name: str, suffix: str, tmp_path: Path) -> None:
    make, words = MADE[name]
    path = tmp_path / f"t{suffix}"
    make(path)
    with pytest.raises(TableError) as refused:
        open_table(path, Schema.load("demo"))
    assert words in str(refused.value) and CANARY not in str(refused.value)
    assert "encoding" not in str(refused.value)
    if suffix == ".csv":
        with pytest.raises(TableError) as refused:
            open_synthetic(path, Schema.load("demo"))
        assert words in str(refused.value)


def test_the_remedies_work(tmp_path: Path) -> None:
    schema = Schema.load("demo")
    FRAME.to_parquet(tmp_path / "t.csv")
    (tmp_path / "t.csv").rename(tmp_path / "t.parquet")
    open_table(tmp_path / "t.parquet", schema)
    sqlite(tmp_path / "t.sqlite")
    assert open_columns(tmp_path / "t.sqlite", schema, ("age",), private=True).columns == ("age",)


@pytest.mark.parametrize(
    "header", ["PAR1,age", "PK,age", "BZh9,age", "{age},sex", "7z,age", "DUCK,DUCKDUCK", "html,xml"]
)
def test_a_header_that_begins_alike_is_a_table(header: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"{header}\n1,2\n")
    first = header.split(",")[0]
    schema = Schema.from_dict(
        {
            "fields": [
                {
                    "name": first,
                    "type": "string",
                    "constraints": {"enum": ["1"]},
                    "dpsynth": {"bounds_basis": "made"},
                }
            ],
            "dpsynth": {
                "version": 1,
                "population": {"value": 9, "basis": "made"},
                "rows": {"value": 9, "basis": "made"},
            },
        }
    )
    assert open_table(path, schema).columns == (first,)
