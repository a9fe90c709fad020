"""Linked tables that lie together, in a folder, a file or a database, give the same histories."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import openpyxl
import pandas as pd
import pytest
import sqlalchemy as sa

from dpsynth.encoding import HistoryCodec, read_histories
from dpsynth.errors import TableError
from dpsynth.ledger import source_digest
from dpsynth.privacy import SeededEntropy
from dpsynth.tables import linked_sources, open_linked, split_file

from ...support.clinic import clinic_schema, clinic_tables, write_clinic

PATIENTS = 30
Write = Callable[[Path], Any]


def cohort() -> dict[str, pd.DataFrame]:
    tables = clinic_tables()
    key = clinic_schema().key
    keys = tables["patients"][key].head(PATIENTS)
    return {name: table[table[key].isin(keys)] for name, table in tables.items()}


def cells() -> dict[str, pd.DataFrame]:
    """The tables as text: what a column of dates holds does not matter here."""
    texts = {name: table.astype(str) for name, table in cohort().items()}
    return {n: t.where(cohort()[n].notna().to_numpy(), None) for n, t in texts.items()}


def to_folder(folder: Path) -> Any:
    return write_clinic(folder / "files", cohort())


def to_parts(folder: Path) -> Any:
    """Some tables in files of other formats, one in a folder of parts."""
    place = write_clinic(folder / "mixed", cohort())
    (place / "labs.csv").unlink()
    (place / "labs.parquet").mkdir()
    labs = cells()["labs"]
    for number, part in enumerate((labs[:9], labs[9:])):
        part.to_parquet(place / "labs.parquet" / f"part-{number}.parquet")
    (place / "visits.csv").unlink()
    cells()["visits"].to_json(place / "Visits.jsonl", orient="records", lines=True)
    return place


def to_duckdb(folder: Path) -> Any:
    with duckdb.connect(str(folder / "clinic.duckdb")) as connection:
        connection.execute("CREATE SCHEMA ward")
        connection.execute("CREATE TABLE labs AS SELECT 1 AS other")
        for name, frame in cells().items():
            columns = ", ".join(f'"{column}" VARCHAR' for column in frame)
            connection.execute(f"CREATE TABLE ward.{name} ({columns})")
            rows = frame.to_numpy(dtype=object).tolist()
            marks = ", ".join("?" * frame.shape[1])
            connection.executemany(f"INSERT INTO ward.{name} VALUES ({marks})", rows)
    return f"{folder / 'clinic.duckdb'}#ward"


def to_sqlite(folder: Path) -> Any:
    with sqlite3.connect(folder / "clinic.sqlite") as connection:
        for name, frame in cells().items():
            frame.to_sql(name.upper(), connection, index=False, dtype="TEXT")
    return folder / "clinic.sqlite"


def to_url(folder: Path) -> Any:
    return f"sqlite:///{to_sqlite(folder)}"


def to_workbook(folder: Path) -> Any:
    with pd.ExcelWriter(folder / "clinic.xlsx") as book:
        pd.DataFrame({"note": ["SECRET"]}).to_excel(book, sheet_name="Notes", index=False)
        for name, frame in cells().items():
            frame.to_excel(book, sheet_name=name.title(), index=False)
    return folder / "clinic.xlsx"


DOORS: dict[str, Write] = {
    "a folder": to_folder,
    "a folder of several formats": to_parts,
    "DuckDB": to_duckdb,
    "SQLite": to_sqlite,
    "SQLite, by its URL": to_url,
    "Excel": to_workbook,
    "a mapping": lambda folder: cells(),
}


def histories(data: Any) -> list[Any]:
    schema = clinic_schema()
    tables = open_linked(linked_sources(data, schema), schema)
    read = read_histories(tables, HistoryCodec(schema), SeededEntropy(1))
    arrays = [read.baseline, read.ends, read.onsets]
    for rows in (one for series in read.rows for one in series):
        arrays += [rows.patients, rows.days, rows.values]
    return [array.tolist() for array in arrays]


@pytest.fixture(name="expected", scope="module")
def histories_of_files(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    return histories(to_folder(tmp_path_factory.mktemp("files")))


@pytest.mark.parametrize("door", DOORS)
def test_histories_are_those_of_the_files(door: str, tmp_path: Path, expected: list[Any]) -> None:
    assert histories(DOORS[door](tmp_path)) == expected


def test_a_server(server: Any, expected: list[Any]) -> None:
    url = server.new()
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE SCHEMA ward")
        for name, frame in cells().items():
            frame.to_sql(name, connection, schema="ward", index=False, dtype=sa.Text())
    engine.dispose()
    assert histories(f"{url}#ward") == expected
    with pytest.raises(TableError, match="has no table for table patients of schema clinic"):
        histories(url)


@pytest.mark.parametrize("door", ["DuckDB", "SQLite", "Excel"])
def test_a_part_that_is_not_there_is_named(door: str, tmp_path: Path) -> None:
    place = str(DOORS[door](tmp_path)).partition("#")[0]
    noun = "sheet" if door == "Excel" else "table"
    if door == "Excel":
        book = openpyxl.load_workbook(place)
        del book["Labs"]
        book.save(place)
    elif door == "SQLite":
        with sqlite3.connect(place) as connection:
            connection.execute("DROP TABLE LABS")
    missing = "patients" if door == "DuckDB" else "labs"  # the usual schema has labs alone
    message = f"clinic.* has no {noun} for table {missing} of schema clinic; call it {missing}"
    with pytest.raises(TableError, match=message) as refused:
        linked_sources(place, clinic_schema())
    assert "SECRET" not in str(refused.value) and "Notes" not in str(refused.value)


def test_two_parts_of_one_name_are_refused(tmp_path: Path) -> None:
    place = to_duckdb(tmp_path).partition("#")[0]
    with duckdb.connect(place) as connection:
        connection.execute('CREATE VIEW ward."lab(s" AS SELECT * FROM ward.labs')
        connection.execute('CREATE VIEW ward."labs." AS SELECT * FROM ward.labs')
    with pytest.raises(TableError, match=r"several tables for table labs: labs, labs\."):
        linked_sources(f"{place}#ward", clinic_schema())


def test_what_has_no_parts_is_refused(tmp_path: Path) -> None:
    schema = clinic_schema()
    place = to_folder(tmp_path)
    with pytest.raises(TableError, match=r"is a file and not a folder: the tables of schema"):
        linked_sources(place / "labs.csv", schema)
    with pytest.raises(TableError, match="a query is one table, and linked tables are several"):
        linked_sources("sqlite:///clinic.db#@labs.sql", schema)
    with pytest.raises(TableError, match="there is no such file"):
        linked_sources(tmp_path / "none.duckdb", schema)
    with pytest.raises(TableError, match="a list is not the path|a list"):
        linked_sources([1], schema)  # type: ignore[arg-type]


def test_sources_are_told_apart_by_file_and_part(tmp_path: Path) -> None:
    sources = linked_sources(to_workbook(tmp_path), clinic_schema())
    digests = {source_digest(source, b"key") for source in sources.values()}
    assert len(digests) == len(sources)
    assert digests == {
        source_digest(source, b"key")
        for source in linked_sources(str(tmp_path / "clinic.xlsx"), clinic_schema()).values()
    }


def test_a_split_reads_a_database(tmp_path: Path, expected: list[Any]) -> None:
    train, holdout = split_file(
        to_duckdb(tmp_path), clinic_schema(), tmp_path / "parts", holdout=0.5, seed=1
    )
    assert sorted(path.name for path in train.iterdir()) == [
        f"{name}.parquet" for name in sorted(clinic_schema().table_names)
    ]
    counts = [len(histories(side)[0]) for side in (train, holdout)]
    assert sum(counts) == len(expected[0]) == PATIENTS and min(counts) > 0


def test_commands_read_a_database(command_line: Any, tmp_path: Path) -> None:
    place = to_sqlite(tmp_path)
    checked = command_line("schema", "check", "clinic", place)
    assert checked.code in (0, 3) and f"{PATIENTS} rows" in checked.out + checked.err
    done = command_line("split", "clinic", place, "--holdout", "0.5", "-o", tmp_path / "split")
    assert done.code == 0, done.err
    assert {path.name for path in (tmp_path / "split").iterdir()} == {"train", "holdout"}
    wrong = command_line("schema", "check", "clinic", f"sqlite:///{place}", "--query", "x.sql")
    assert wrong.code != 0 and "a query is one table" in wrong.err
