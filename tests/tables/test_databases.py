"""A table or query of a database as a private table: on a real PostgreSQL server, and SQLite."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.encoding import Codec
from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import Reference, databases, open_table
from dpsynth.tables.reference import Address

from .sources_schema import HEADER, ROWS, TEXTS, schema_of

TYPES = "text, sex_t, smallint, double precision, date, timestamp, boolean, text"
CANARY = "hunter2-canary"


@pytest.fixture
def url(server: Any) -> str:
    """A database with the table ``ward.stays``, and others that are not to be read."""
    import psycopg

    address: str = server.new()
    columns = ", ".join(
        f"{name} {kind}" for name, kind in zip(HEADER, TYPES.split(", "), strict=True)
    )
    with psycopg.connect(address) as connection:
        connection.execute("CREATE SCHEMA ward")
        connection.execute("CREATE TYPE sex_t AS ENUM ('Female', 'Male')")
        connection.execute(f"CREATE TABLE ward.stays ({columns})")
        connection.execute("CREATE TABLE log (entry text)")
        holes = ", ".join(["%s"] * len(HEADER))
        with connection.cursor() as cursor:
            cursor.executemany(f"INSERT INTO ward.stays VALUES ({holes})", ROWS)
    return address


def execute(url: str, statement: str) -> list[Any]:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def read(name: str) -> dict[str, list[str | None]]:
    frame = dpsynth.read_table(name, schema_of())
    return {column: frame[column].tolist() for column in frame}


def refusal(name: str) -> str:
    with pytest.raises(TableError) as refused:
        open_table(name, schema_of())
    error = refused.value
    assert error.__cause__ is None and (error.__context__ is None or error.__suppress_context__)
    return str(refused.value)


def test_a_table_of_postgresql_is_read_as_the_text_that_it_exports(url: str) -> None:
    cells = read(f"{url}#ward.stays")
    assert {name: cells[name] for name in TEXTS} == TEXTS
    assert cells["seen"] == [
        "2001-02-03 10:30:00",
        None,
        "2010-12-31 00:00:00",
        "2020-01-01 23:59:00",
    ]
    assert cells["smoker"] == ["true", "false", None, "true"]
    assert "note" not in cells  # it has role drop
    table = open_table(f"{url}#ward.stays", schema_of())
    [chunk] = table.chunks()
    kinds = Codec(schema_of()).encode(chunk)
    assert len(kinds) == len(ROWS)


def test_a_query_in_a_file_is_read_inside_a_select(url: str, tmp_path: Path) -> None:
    query = tmp_path / "stays.sql"
    query.write_text(
        "-- the stays; no, not this semicolon\n".replace(";", ",")
        + "WITH few AS (SELECT * FROM ward.stays WHERE age::int > 40 AND '%s' LIKE '%')\n"
        "SELECT * FROM few;"
    )
    assert read(f"{url}#@{query}")["patient"] == ["A8", "A9"]


@pytest.mark.parametrize(
    "text, reason",
    [
        ("SELECT * FROM ward.stays; DROP TABLE log", "semicolon before its end"),
        ("DROP TABLE log", "does not start with SELECT"),
        ("WITH gone AS (DELETE FROM log RETURNING *) SELECT * FROM gone", "the word DELETE"),
        ("SELECT * INTO copied FROM ward.stays", "the word INTO"),
        ("SELECT * FROM ward.stays FOR UPDATE", "the word UPDATE"),
        ("SELECT nobody FROM ward.stays", "a column that is not there"),
        ("SELECT * FROM ward.nothing", "no such table"),
        ("SELECT * FROM (SELECT 1", "does not accept the query"),
        ("", "is empty"),
    ],
)
def test_only_one_select_is_run(url: str, tmp_path: Path, text: str, reason: str) -> None:
    query = tmp_path / "q.sql"
    query.write_text(text)
    assert reason in refusal(f"{url}#@{query}")
    assert execute(url, "SELECT count(*) FROM log") == [(0,)]


def test_the_transaction_can_only_read(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A function that writes passes the check of words; the database refuses it."""
    execute(
        url,
        "CREATE FUNCTION mark() RETURNS text LANGUAGE sql VOLATILE AS "
        "$$ INSERT INTO log VALUES ('read') RETURNING entry $$",
    )
    query = tmp_path / "q.sql"
    names = ", ".join(HEADER[1:-1])
    query.write_text(f"SELECT patient || substr(mark(), 5) AS patient, {names} FROM ward.stays")
    with pytest.raises(TableError, match="dpsynth only reads"):
        list(open_table(f"{url}#@{query}", schema_of()).chunks())
    broken = dict(databases.READ_ONLY) | {"postgresql": lambda connection: None}
    monkeypatch.setattr(databases, "READ_ONLY", broken)
    list(open_table(f"{url}#@{query}", schema_of()).chunks())  # the function ran


def test_rows_are_streamed_by_a_cursor_of_the_server(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute(
        url,
        "INSERT INTO ward.stays SELECT 'p' || g, 'Male', g % 100 FROM generate_series(1, 5000) g",
    )
    monkeypatch.setattr(databases, "chunk_rows", lambda columns: 1000)
    table = open_table(f"{url}#ward.stays", schema_of())
    chunks = table.chunks()
    assert len(next(chunks)) == 1000
    names = execute(url, "SELECT query FROM pg_stat_activity WHERE application_name = 'dpsynth'")
    assert any("FETCH FORWARD" in text.upper() for (text,) in names)
    assert sum(map(len, chunks)) == 5004 - 1000


@pytest.mark.parametrize(
    "kind, reason",
    [
        ("real", "reduced precision"),
        ("timestamptz", "time zone"),
        ("text[]", "a kind that no schema has"),
        ("time", "holds times of day, and its type is number"),
        ("interval", "a kind that no schema has"),
    ],
)
def test_a_column_whose_type_could_change_codes_is_refused(
    url: str, kind: str, reason: str
) -> None:
    column = "seen" if kind == "timestamptz" else "weight"
    execute(url, f"ALTER TABLE ward.stays DROP COLUMN {column}")
    execute(url, f"ALTER TABLE ward.stays ADD COLUMN {column} {kind}")
    message = refusal(f"{url}#ward.stays")
    assert f"column '{column}'" in message and reason in message


def test_a_whole_key_is_taken_and_any_other_number_cast_in_a_query(
    url: str, tmp_path: Path
) -> None:
    execute(url, "CREATE VIEW numbered AS SELECT s.*, 7 AS number FROM ward.stays s")
    execute(url, "ALTER TABLE ward.stays RENAME COLUMN patient TO old_patient")
    query = tmp_path / "q.sql"
    for number in ("CAST(age AS INTEGER)", "CAST(age AS BIGINT)", "CAST(age AS NUMERIC(9, 0))"):
        query.write_text(f"SELECT s.*, {number} AS patient FROM ward.stays s")
        assert read(f"{url}#@{query}")["patient"] == ["34", None, "50", "120"]
    for number in ("CAST(age AS DOUBLE PRECISION)", "CAST(age AS NUMERIC)"):
        query.write_text(f"SELECT s.*, {number} AS patient FROM ward.stays s")
        assert "column 'patient' holds" in refusal(f"{url}#@{query}")
    query.write_text("SELECT s.*, CAST(age AS TEXT) AS patient FROM ward.stays s")
    assert read(f"{url}#@{query}")["patient"] == ["34", None, "50", "120"]


def test_dates_that_no_calendar_has_stop_nothing(url: str) -> None:
    execute(url, "UPDATE ward.stays SET admitted = 'infinity' WHERE patient = 'A9'")
    execute(url, "UPDATE ward.stays SET admitted = '0044-03-15 BC' WHERE patient = 'A8'")
    texts = read(f"{url}#ward.stays")["admitted"]
    assert set(texts) == {"2001-02-03", None, "0044-03-15 BC", "infinity"}


def test_bad_addresses_have_a_sentence_each(url: str, tmp_path: Path) -> None:
    assert "no such table or view" in refusal(f"{url}#ward.nothing")
    assert "names no table" in refusal(url)
    assert "cannot be reached" in refusal("postgresql://office@127.0.0.1:1/db#stays")
    nowhere = url.replace("ledger_", "absent_")
    assert "cannot be reached" in refusal(f"{nowhere}#ward.stays")
    assert "SQLAlchemy knows no database" in refusal("nosuchdb://host/db#stays")
    assert "the driver pymysql is not installed" in refusal("mysql+pymysql://host/db#stays")
    assert "does not exist" in refusal(f"{url}#@{tmp_path}/none.sql").replace(
        "there is no such file", "does not exist"
    )
    assert "drops a slash" in refusal(str(Path("postgresql://host/db")))
    assert "name a DuckDB file by its path" in refusal("duckdb:///x.duckdb#t")
    execute(url, "CREATE USER stranger")
    stranger = url.replace("office@", "stranger@")
    assert "may not" in refusal(f"{stranger}#ward.stays")


@pytest.mark.parametrize(
    "name",
    [
        f"postgresql://office:{CANARY}@127.0.0.1:1/db#stays",
        f"postgresql://127.0.0.1:1/db?password={CANARY}#stays",
        f"mssql+pyodbc:///?odbc_connect=PWD%3D{CANARY}#stays",
        f"postgresql://office:{CANARY}@:x/db#stays",
    ],
)
def test_a_password_in_a_url_is_refused_and_not_shown(name: str) -> None:
    message = refusal(name)
    assert CANARY not in message and ("password" in message)


def test_a_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WARD_PASSWORD", CANARY)
    address = Address.of("postgresql://office:${WARD_PASSWORD}@DB.example/ward")
    assert address.url.password == CANARY
    assert address.place == "postgresql://db.example/ward"
    monkeypatch.setenv("WARD_URL", f"postgresql://office:{CANARY}@db.example:5432/ward")
    assert Address.of("${WARD_URL}").place == address.place
    monkeypatch.delenv("WARD_PASSWORD")
    with pytest.raises(TableError, match="the variable WARD_PASSWORD, which is not set"):
        Address.of("postgresql://office:${WARD_PASSWORD}@db.example/ward")
    assert CANARY not in Reference.of("${WARD_URL}#stays").place


def test_texts_of_the_database_s_errors_are_withheld(url: str, tmp_path: Path) -> None:
    """The server quotes the cell that it cannot cast; dpsynth does not."""
    execute(url, f"UPDATE ward.stays SET note = '{CANARY}' WHERE patient = 'A9'")
    query = tmp_path / "q.sql"
    query.write_text(
        "SELECT patient, sex, CAST(note AS integer) AS age, weight, admitted, seen, smoker "
        "FROM ward.stays WHERE note IS NOT NULL"
    )
    table = open_table(f"{url}#@{query}", schema_of())
    with pytest.raises(TableError, match="the database refused .*SQLSTATE 22P02") as refused:
        list(table.chunks())
    assert CANARY not in str(refused.value) and refused.value.__suppress_context__


def test_a_time_of_day_is_read_as_its_text(url: str) -> None:
    execute(url, 'CREATE TABLE ward.times ("at" time, place time with time zone)')
    execute(
        url, "INSERT INTO ward.times VALUES ('08:30', '08:30+02'), (NULL, NULL), ('24:00', '1:0')"
    )
    number = {"value": 90, "basis": "made for this test"}
    facts = {"version": 1, "population": number, "rows": number}

    def times(name: str) -> pd.DataFrame:
        schema = Schema.from_dict({"fields": [{"name": name, "type": "time"}], "dpsynth": facts})
        return dpsynth.read_table(f"{url}#ward.times", schema)

    assert times("at")["at"].tolist() == ["08:30:00", None, "24:00:00"]
    with pytest.raises(TableError, match="times with a time zone"):
        times("place")
