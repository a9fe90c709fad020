"""The ways in which rows get into a workbook, a statistics file or a database: P28 through each.

Each writer takes columns of texts, infers what the programs of an office infer from all of their
rows, and returns the name of a private table. Columns have short names, as SPSS and Stata allow.
"""

from __future__ import annotations

import csv
import functools
import sqlite3
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pandas as pd
import pyreadstat
import sqlalchemy as sa

from ..support.sas_files import DOUBLE, STRING, write_sas

Columns = dict[str, Sequence[str]]
Write = Callable[[Columns, Path, str], str]  # columns, an empty folder, a PostgreSQL database


def _inferred(columns: Columns) -> pd.DataFrame:
    text = StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    text.seek(0)
    return pd.read_csv(text)


def _texts(columns: Columns) -> pd.DataFrame:
    return pd.DataFrame({name: list(cells) for name, cells in columns.items()}, dtype=object)


def _cell(text: str) -> Any:
    """What a spreadsheet makes of what is typed into one cell."""
    for kind in (int, float):
        try:
            return kind(text) if abs(float(text)) < 1e300 else text
        except ValueError:
            continue
    if text.upper() in ("TRUE", "FALSE"):
        return text.upper() == "TRUE"
    try:
        return pd.Timestamp(text).to_pydatetime() if text[4:5] == "-" else text or None
    except ValueError:
        return text or None


def _typed_workbook(columns: Columns, folder: Path, server: str) -> str:
    book = openpyxl.Workbook()
    book.active.append(list(columns))
    for row in zip(*columns.values(), strict=True):
        book.active.append([row[0], *map(_cell, row[1:])])
    book.save(folder / "t.xlsx")
    return str(folder / "t.xlsx")


def _pandas_workbook(columns: Columns, folder: Path, server: str) -> str:
    _inferred(columns).to_excel(folder / "t.xlsx", index=False)
    return str(folder / "t.xlsx")


def _text_workbook(columns: Columns, folder: Path, server: str) -> str:
    _texts(columns).to_excel(folder / "t.xlsx", index=False)
    return str(folder / "t.xlsx")


def _sav(columns: Columns, folder: Path, server: str) -> str:
    pyreadstat.write_sav(_inferred(columns), folder / "t.sav")
    return str(folder / "t.sav")


def _text_sav(columns: Columns, folder: Path, server: str) -> str:
    pyreadstat.write_sav(_texts(columns), folder / "t.sav")
    return str(folder / "t.sav")


def _stata(columns: Columns, folder: Path, server: str) -> str:
    _inferred(columns).to_stata(folder / "t.dta", write_index=False, version=118)
    return str(folder / "t.dta")


def _sas(columns: Columns, folder: Path, server: str) -> str:
    frame = _inferred(columns)
    kinds = {name: STRING if frame[name].dtype == object else DOUBLE for name in frame}
    rows = [
        [None if pd.isna(cell) else cell if kinds[name] == STRING else float(cell)
         for name, cell in row.items()]
        for row in frame.to_dict("records")
    ]  # fmt: skip
    variables = [(str(name), kind, None) for name, kind in kinds.items()]
    return str(write_sas(folder / "t.sas7bdat", variables, rows))


def _duckdb(columns: Columns, folder: Path, server: str) -> str:
    _texts(columns).to_csv(folder / "t.csv", index=False)
    with duckdb.connect(str(folder / "t.duckdb"), config={"threads": 1}) as connection:
        source = (
            f"read_csv('{folder / 't.csv'}', header=true, delim=',', quote='\"', sample_size=-1)"
        )
        connection.execute(f"CREATE TABLE t AS SELECT * FROM {source}")
    return str(folder / "t.duckdb")


def _sqlite(columns: Columns, folder: Path, server: str) -> str:
    with sqlite3.connect(folder / "t.db") as connection:
        _inferred(columns).to_sql("t", connection, index=False)
    return f"sqlite:///{folder / 't.db'}#t"


def _sqlite_query(columns: Columns, folder: Path, server: str) -> str:
    _sqlite(columns, folder, server)
    (folder / "q.sql").write_text("SELECT * FROM t")
    return f"sqlite:///{folder / 't.db'}#@{folder / 'q.sql'}"


@functools.cache
def _engine(server: str) -> sa.Engine:
    """One connection for all tables that are written."""
    return sa.create_engine(sa.make_url(server).set(drivername="postgresql+psycopg"))


def _postgresql(columns: Columns, folder: Path, server: str, *, text: bool = False) -> str:
    frame = _texts(columns) if text else _inferred(columns)
    frame.to_sql("t", _engine(server), index=False, if_exists="replace")
    return f"{server}#public.t"


def _tsv(columns: Columns, folder: Path, server: str) -> str:
    _texts(columns).to_csv(folder / "t.tsv", sep="\t", index=False)
    return str(folder / "t.tsv")


WRITERS: dict[str, Write] = {
    "Excel, cell by cell": _typed_workbook,
    "Excel by pandas": _pandas_workbook,
    "Excel, text": _text_workbook,
    "SPSS by pandas": _sav,
    "SPSS, text": _text_sav,
    "Stata by pandas": _stata,
    "SAS by pandas": _sas,
    "DuckDB": _duckdb,
    "SQLite by pandas": _sqlite,
    "SQLite by pandas, query": _sqlite_query,
    "PostgreSQL by pandas": _postgresql,
    "PostgreSQL, text": lambda columns, folder, server: _postgresql(
        columns, folder, server, text=True
    ),
    "TSV": _tsv,
}
