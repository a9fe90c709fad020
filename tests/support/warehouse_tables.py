"""Tables of DuckDB and PostgreSQL with a column of each kind, filled with cells given as text."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth.schema import Schema

BASIS = {"bounds_basis": "made for this test"}
NUMBER = {"value": 500, "basis": "made for this test"}
DAYS = {"minimum": "2000-01-01", "maximum": "2020-12-31"}
TIMES = {"minimum": "2000-01-01T00:00:00", "maximum": "2020-12-31T00:00:00"}

LONG = pytest.mark.long
# databases and what becomes of rows without a key: each once, and every pair among the long tests
PAIRS = [
    pytest.param("duckdb", "own", id="duckdb-own"),
    pytest.param("postgres", "drop", id="postgres-drop"),
    pytest.param("duckdb", "drop", id="duckdb-drop", marks=LONG),
    pytest.param("postgres", "own", id="postgres-own", marks=LONG),
]

Kind = str
FIELDS: dict[str, tuple[Kind, dict[str, Any]]] = {}


def column(
    name: str, stored: Kind, type_: str, limits: Any = None, own: Any = None, **top: Any
) -> None:
    """Declare a column of the widest table."""
    constraints = {} if limits is None else {"constraints": limits}
    FIELDS[name] = (
        stored,
        {"name": name, "type": type_, "dpsynth": BASIS | (own or {})} | constraints | top,
    )


column(
    "sex", "text", "string", {"enum": ["F", "M"]}, {"on_unknown": "other"}, missingValues=["", "-"]
)
column("word", "text", "string", {"enum": ["NA", "x", "ß", "e\u0301", "\u00e9"], "required": True})
column("sign", "text", "string", {"enum": ["O'Neil", 'a"b', "%s", "back\\slash", ":p", "a b", "a"]})
column(
    "mapped",
    "text",
    "string",
    {"enum": ["F", "M"]},
    {"values": {"f": "F", "m": "M", "u": "missing"}},
)
column(
    "why", "text", "string", {"enum": ["yes", "no"]}, {"missing": {"refused": ["-8", "no answer"]}}
)
column("strict", "text", "string", {"enum": ["a", "b"]}, {"on_unknown": "refuse"})
column("age", "bigint", "integer", {"minimum": 0, "maximum": 120}, missingValues=["", "99"])
column("age_float", "double", "integer", {"minimum": -5, "maximum": 120}, missingValues=["", "-9"])
column(
    "age_exact",
    "decimal(20,3)",
    "integer",
    {"minimum": 1, "maximum": 9, "required": True},
    {"on_bad": "maximum"},
)
column("five", "double", "integer", {"minimum": 0, "maximum": 100}, {"step": 5})
column(
    "weight",
    "double",
    "number",
    {"minimum": 30, "maximum": 200},
    {"step": 0.1},
    missingValues=["", "99.9"],
)
column(
    "exact",
    "decimal(20,5)",
    "number",
    {"minimum": -1, "maximum": 1},
    {"step": 0.01, "on_bad": "refuse"},
)
column("income", "double", "number", {"minimum": 0, "maximum": 1_000_000}, {"step": 0.5})
column("grade", "double", "integer", {"enum": [1, 2, 3]}, missingValues=["", "9"])
column("dose", "double", "number", {"enum": [0.5, 1.5, 0], "required": True}, {"on_unknown": "1.5"})
column("smoker", "boolean", "boolean")
column("ill", "integer", "boolean", {"required": True}, {"on_bad": "false"})
column(
    "seen",
    "date",
    "date",
    DAYS,
    {"calendar": ["weekday", "month"]},
    missingValues=["", "2001-01-01"],
)
column("stamp", "timestamp", "datetime", TIMES, {"calendar": ["hour", "weekday", "month"]})
column("noon", "timestamp", "date", DAYS | {"required": True}, {"on_bad": "minimum"})
column("night", "date", "datetime", TIMES, {"step": 86_400})
column("clock", "time", "time")
column("left", "date", "date", None, {"after": "seen", "unit": "wk", "longest": 50, "shortest": -3})
column("back", "timestamp", "datetime", None, {"before": "seen", "unit": "h", "longest": 5_000})
column("late", "timestamp", "date", None, {"after": "stamp", "unit": "d", "longest": 300})
column(
    "gone",
    "timestamp",
    "datetime",
    None,
    {"after": "stamp", "unit": "d", "longest": 90, "calendar": ["hour"]},
)


# so few days and half hours that the query that codes them is short; DuckDB plans a long one slowly
FEW: dict[str, Any] = {
    "seen": {"constraints": {"minimum": "2010-01-01", "maximum": "2011-12-31"}},
    "stamp": {
        "constraints": {"minimum": "2010-01-01T00:00:00", "maximum": "2010-01-31T00:00:00"},
        "dpsynth": FIELDS["stamp"][1]["dpsynth"] | {"step": 1800},
    },
}


def schema_of(names: Sequence[str] | None = None, *, few: bool = False, **own: Any) -> Schema:
    """Return a schema with some of the columns, or all of them, and a key.

    Args:
        names: of the columns.
        few: whether dates and times are of a short span.
        own: settings of the table.
    """
    fields = [
        FIELDS[name][1] | (FEW.get(name, {}) if few else {})
        for name in (FIELDS if names is None else names)
    ]
    key = {"name": "key", "type": "string", "dpsynth": {"role": "unit"}}
    table = {
        "version": 1,
        "population": NUMBER,
        "rows": NUMBER,
        "max_rows": {"value": 3, "basis": "m"},
    }
    return Schema.from_dict({"name": "wide", "fields": [key, *fields], "dpsynth": table | own})


def duckdb_table(path: Path, columns: Mapping[str, Kind], rows: Sequence[Sequence[Any]]) -> str:
    """Write rows of texts into a table of a DuckDB file; return its address."""
    import duckdb

    texts = pd.DataFrame([list(row) for row in rows], columns=[*columns], dtype=object)
    with duckdb.connect(str(path)) as connection:
        connection.execute(f"CREATE TABLE stays ({_layout(columns)})")
        if rows:
            connection.register("texts", texts)
            kinds = {name: kind.partition(" collate")[0] for name, kind in columns.items()}
            cells = ", ".join(f'CAST("{name}" AS {kind})' for name, kind in kinds.items())
            connection.execute(f"INSERT INTO stays SELECT {cells} FROM texts")
    return f"{path}#stays"


def postgres_table(url: str, columns: Mapping[str, Kind], rows: Sequence[Sequence[Any]]) -> str:
    """Write rows of texts into a table of a PostgreSQL database; return its address."""
    import psycopg

    names = {"double": "double precision"}
    kinds = {name: names.get(kind, kind) for name, kind in columns.items()}
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS stays")
        cursor.execute(f"CREATE TABLE stays ({_layout(kinds)})")
        holes = ", ".join(f"CAST(%s AS {kind})" for kind in kinds.values())
        if rows:
            cursor.executemany(f"INSERT INTO stays VALUES ({holes})", [list(row) for row in rows])
    return f"{url}#stays"


def _layout(columns: Mapping[str, Kind]) -> str:
    return ", ".join(f'"{name}" {kind}' for name, kind in columns.items())


def fresh(folder: Path) -> Path:
    """Return a path in a folder that nothing has."""
    return folder / f"{uuid.uuid4().hex}.duckdb"
