"""A table or query of an SQLite file as a private table: its queries declare no types."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import open_table

from .sources_schema import BASIS, FIELDS, HEADER, NUMBER, ROWS, TEXTS, schema_of
from .test_databases import read, refusal


def execute(path: Path, statement: str) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute(statement)


def test_a_sqlite_file_is_opened_for_reading_only(tmp_path: Path) -> None:
    path = tmp_path / "ward.db"
    assert "no such SQLite file" in refusal(f"sqlite:///{path}#stays")
    assert not path.exists()
    with sqlite3.connect(path) as connection:
        types = "text text integer real date datetime boolean text".split()
        columns = ", ".join(f"{name} {kind}" for name, kind in zip(HEADER, types, strict=True))
        connection.execute(f"CREATE TABLE stays ({columns})")
        rows = [[str(c) if hasattr(c, "year") else c for c in row] for row in ROWS]
        connection.executemany(f"INSERT INTO stays VALUES ({', '.join('?' * len(HEADER))})", rows)
    before = path.read_bytes()
    cells = read(f"sqlite:///{path}#stays")
    assert {name: cells[name] for name in TEXTS} == TEXTS
    assert path.read_bytes() == before


def test_a_query_of_sqlite_says_no_types_so_its_cells_count(tmp_path: Path) -> None:
    """What pandas wrote as numbers would be read past the declared types of its table."""
    path, query = tmp_path / "ward.db", tmp_path / "q.sql"
    address = f"sqlite:///{path}#@{query}"
    with sqlite3.connect(path) as connection:
        columns = ", ".join(f"{name} INTEGER" for name in HEADER)
        connection.execute(f"CREATE TABLE stays ({columns})")
        connection.execute(f"INSERT INTO stays VALUES ({', '.join('7' * len(HEADER))})")
    assert "column 'sex' holds whole numbers" in refusal(f"sqlite:///{path}#stays")
    query.write_text("SELECT * FROM stays")
    assert "column 'sex' holds whole numbers" in refusal(address)  # while it is opened
    query.write_text(
        "SELECT CASE age WHEN 8 THEN age / 3.0 ELSE 'p7' END AS patient, "
        "CASE age WHEN 9 THEN age ELSE 'Male' END AS sex, age, "
        "weight, NULL AS admitted, NULL AS seen, smoker FROM stays"
    )
    table = open_table(address, schema_of())
    assert [*next(iter(table.chunks()))["age"]] == ["7"]
    execute(path, "UPDATE stays SET age = 8")
    with pytest.raises(TableError, match="column 'patient' holds floating-point numbers"):
        list(table.chunks())
    execute(path, "UPDATE stays SET age = 9")
    with pytest.raises(TableError, match="column 'sex' holds whole numbers"):
        list(table.chunks())


def test_an_empty_column_of_a_query_is_refused_where_na_is_a_value(tmp_path: Path) -> None:
    """pandas reads NA as missing in some columns and not in others, by the cells of everyone."""
    path, query = tmp_path / "ward.db", tmp_path / "q.sql"
    arm = {"name": "arm", "type": "string", "constraints": {"enum": ["NA", "B"]}}
    fields = [FIELDS[0], arm | {"dpsynth": BASIS}]
    rows = {"version": 1, "population": NUMBER, "rows": NUMBER, "max_rows": NUMBER}
    schema = Schema.from_dict({"fields": fields, "dpsynth": rows})
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE stays (patient TEXT, arm TEXT)")
        connection.execute("INSERT INTO stays VALUES ('p1', NULL)")
    query.write_text("SELECT * FROM stays")
    with pytest.raises(TableError, match="'arm' holds no cell at all, and a declared value"):
        open_table(f"sqlite:///{path}#@{query}", schema)
    execute(path, "INSERT INTO stays VALUES ('p2', 'B')")
    assert len(next(iter(open_table(f"sqlite:///{path}#@{query}", schema).chunks()))) == 2
