"""One table through every door: whoever stores it, codes, keys and reasons are those of its CSV.

The table has a whole-number key, whole and decimal numbers, dates, dates as numbers, times of day,
truth values, numeric and textual categories, missing cells and reasons of missing cells. Each
writer stores it with the types of its own; the schema is the same for all, but for declarations of
how a text is written (dialect, format), which each format of text needs for itself.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections.abc import Callable
from datetime import date, time
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pyreadstat
import pytest
import sqlalchemy as sa

import dpsynth
from dpsynth._util.engines import local_engine
from dpsynth.encoding import Codec, Coding, coded_rows
from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import Divisible, Keys, open_table, split_file, statistical

from ..support.sas_files import DOUBLE, STRING, Special, write_sas

ROWS = 12
KEYS = [7, 7, 12, 2**40, 99, 99, 3, 4, 5, 6, 8, 9]
AGES = [34, None, 0, 120, 50, 51, 52, 53, 54, 55, 56, 57]
INCOMES = [10, 998, 999, None, 250, 500, 0, 999, 998, 31, 32, 33]  # 998 and 999: reasons
WEIGHTS = [70.1, 80.25, None, 0.1, 36.6, 99.9, 55.5, 1.3, 2.7, 64.15, 12.35, 7.05]
GRADES = [1, 2, 3, None, 1, 1, 2, 2, 3, 3, 1, 2]
SEXES = ["F", "M", None, "F", "M", "F", "M", "F", "M", "F", "M", "F"]
SMOKES = [1, 0, None, 1, 0, 1, 0, 1, 0, 1, 0, 1]
SEEN = [date(2015, 1, 31), None, *(date(2016, 1 + n, 3 + n) for n in range(10))]
TIMES = [time(8, 30), None, *(time(n, 5 * n) for n in range(10))]
NAMES = ("pid", "age", "inc", "weight", "grade", "sex", "smoke", "seen", "day", "hour")


def schema_of(**table: Any) -> Schema:
    basis = {"bounds_basis": "made for this test"}
    number = {"value": 90, "basis": "made for this test"}
    days = {"minimum": "2015-01-01", "maximum": "2020-12-31"}

    def field(name: str, kind: str, limits: dict[str, Any], **own: Any) -> dict[str, Any]:
        top = {"format": own.pop("format")} if "format" in own else {}
        return {"name": name, "type": kind, "constraints": limits, "dpsynth": basis | own} | top

    reasons = {"do not know": ["998"], "refused": ["999"]}
    fields = [
        {"name": "pid", "type": "integer", "dpsynth": {"role": "unit"}},
        field("age", "integer", {"minimum": 0, "maximum": 120}),
        field("inc", "integer", {"minimum": 0, "maximum": 500}, missing=reasons),
        field("weight", "number", {"minimum": 0, "maximum": 200}, step=0.05),
        field("grade", "string", {"enum": ["1", "2", "3"]}),
        field("sex", "string", {"enum": ["F", "M"]}),
        field("smoke", "boolean", {}),
        field("seen", "date", days),
        field("day", "date", {"minimum": "20150101", "maximum": "20201231"}, format="%Y%m%d"),
        field("hour", "time", {}, step=300),
    ]
    facts = {"version": 1, "population": number, "rows": number, "max_rows": number}
    return Schema.from_dict({"fields": fields, "dpsynth": facts | table})


SCHEMA = schema_of()
COMMA = schema_of(dialect={"delimiter": ";", "decimal": ",", "encoding": "latin-1"})


def days() -> list[int | None]:
    return [None if one is None else int(f"{one:%Y%m%d}") for one in SEEN]


def columns() -> dict[str, list[Any]]:
    cells = (KEYS, AGES, INCOMES, WEIGHTS, GRADES, SEXES, SMOKES, SEEN, days(), TIMES)
    return dict(zip(NAMES, map(list, cells), strict=True))


def texts(decimal: str = ".") -> dict[str, list[str]]:
    def text(cell: Any) -> str:
        if isinstance(cell, date | time):
            return cell.isoformat()
        return "" if cell is None else str(cell).replace(".", decimal)

    return {name: [*map(text, cells)] for name, cells in columns().items()}


def csv_text(delimiter: str = ",", decimal: str = ".") -> str:
    lines = [NAMES, *zip(*texts(decimal).values(), strict=True)]
    return "".join(delimiter.join(line) + "\n" for line in lines)


def arrow() -> pa.Table:
    kinds = {
        "pid": pa.int64(),
        "age": pa.int16(),
        "inc": pa.int32(),
        "weight": pa.float64(),
        "grade": pa.uint8(),
        "sex": pa.dictionary(pa.int8(), pa.string()),
        "smoke": pa.bool_(),
        "seen": pa.date32(),
        "day": pa.int64(),
        "hour": pa.time64("us"),
    }
    cells = columns()
    cells["smoke"] = [None if one is None else bool(one) for one in cells["smoke"]]
    return pa.table({name: pa.array(cells[name], kind) for name, kind in kinds.items()})


def frame() -> pd.DataFrame:
    table = pd.DataFrame(columns())
    whole = dict.fromkeys(("age", "inc", "grade", "day"), "Int64")
    return table.astype(whole).assign(seen=pd.to_datetime(table["seen"]))


def numbers() -> pd.DataFrame:
    """What statistics programs keep: numbers, and texts."""
    table = pd.DataFrame(columns()).drop(columns=["seen", "hour"])
    for name in ("age", "inc", "weight", "grade", "smoke", "day"):
        table[name] = table[name].astype("float64")
    return table.assign(pid=[str(key) for key in KEYS], sex=[one or "" for one in SEXES])


def rows() -> list[tuple[Any, ...]]:
    return [*zip(*columns().values(), strict=True)]


SQL = {
    "pid": "BIGINT",
    "age": "INTEGER",
    "inc": "SMALLINT",
    "weight": "DECIMAL(9, 2)",
    "grade": "SMALLINT",
    "sex": "VARCHAR(9)",
    "smoke": "SMALLINT",
    "seen": "DATE",
    "day": "INTEGER",
    "hour": "TIME",
}
CREATE = "CREATE TABLE t (" + ", ".join(f"{name} {kind}" for name, kind in SQL.items()) + ")"


def to_csv(folder: Path) -> Any:
    (folder / "t.csv").write_text(csv_text())
    return folder / "t.csv"


def to_gzip(folder: Path) -> Any:
    (folder / "t.csv.gz").write_bytes(gzip.compress(csv_text().encode()))
    return folder / "t.csv.gz"


def to_tabs(folder: Path) -> Any:
    (folder / "t.tsv").write_text(csv_text("\t"))
    return folder / "t.tsv"


def json_lines() -> str:
    """What is missing is null in one row, and left out in the next."""
    lines = []
    for place, row in enumerate(rows()):
        cells = [one.isoformat() if isinstance(one, date | time) else one for one in row]
        named = dict(zip(NAMES, cells, strict=True))
        named["smoke"] = None if named["smoke"] is None else bool(named["smoke"])
        kept = {name: one for name, one in named.items() if place % 2 or one is not None}
        lines.append(json.dumps(kept, ensure_ascii=bool(place % 2)))
    return "\n".join(lines) + "\n"


def to_json_lines(folder: Path) -> Any:
    (folder / "t.jsonl").write_text(json_lines())
    return folder / "t.jsonl"


def to_json_lines_gzip(folder: Path) -> Any:
    (folder / "t.ndjson.gz").write_bytes(gzip.compress(json_lines().encode()))
    return folder / "t.ndjson.gz"


def to_parts(folder: Path) -> Any:
    """As Spark writes a table: a folder of parts, one of them without rows, and a mark."""
    place = folder / "t"
    place.mkdir()
    for number, part in enumerate((arrow()[:0], arrow()[:5], arrow()[5:])):
        pyarrow.parquet.write_table(part, place / f"part-{number:05}.snappy.parquet")
    (place / "_SUCCESS").touch()
    (place / ".part-00000.snappy.parquet.crc").write_bytes(b"crc")
    return place


def to_parquet(folder: Path) -> Any:
    pyarrow.parquet.write_table(arrow(), folder / "t.parquet")
    return folder / "t.parquet"


def to_feather(folder: Path) -> Any:
    """dpsynth reads no such file; pyarrow does."""
    pyarrow.feather.write_feather(arrow(), folder / "t.feather")
    return pyarrow.feather.read_table(folder / "t.feather")


def to_workbook(folder: Path) -> Any:
    book = openpyxl.Workbook()
    book.active.append(NAMES)
    for pid, *rest in rows():
        book.active.append([str(pid), *rest])  # a number of Excel is a floating-point one
    for cell in book.active["E"][1:]:
        cell.value = None if cell.value is None else str(cell.value)
    book.save(folder / "t.xlsx")
    return folder / "t.xlsx"


def to_duckdb(folder: Path) -> Any:
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute(CREATE)
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(NAMES))})", rows())
    return folder / "t.duckdb"


def to_sqlite(folder: Path) -> Any:
    with sqlite3.connect(folder / "t.db") as connection:
        connection.execute(CREATE)
        plain = [
            [cell.isoformat() if isinstance(cell, date | time) else cell for cell in row]
            for row in rows()
        ]
        connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(NAMES))})", plain)
    return f"sqlite:///{folder / 't.db'}#t"


def to_sqlite_file(folder: Path) -> Any:
    to_sqlite(folder)
    return folder / "t.db"


def to_objects(folder: Path) -> Any:
    cells = columns() | {"weight": [None if w is None else Decimal(str(w)) for w in WEIGHTS]}
    return pd.DataFrame({name: pd.Series(one, dtype=object) for name, one in cells.items()})


DOORS: dict[str, Callable[[Path], Any]] = {
    "CSV": to_csv,
    "CSV, gzipped": to_gzip,
    "tabs": to_tabs,
    "JSON Lines": to_json_lines,
    "JSON Lines, gzipped": to_json_lines_gzip,
    "Parquet": to_parquet,
    "Parquet, a folder of parts": to_parts,
    "Feather": to_feather,
    "Excel": to_workbook,
    "DuckDB": to_duckdb,
    "SQLite": to_sqlite,
    "SQLite, the file": to_sqlite_file,
    "pandas": lambda folder: frame(),
    "pandas, Arrow types": lambda folder: arrow().to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, objects": to_objects,
    "read_table": lambda folder: dpsynth.read_table(to_parquet(folder), SCHEMA),
    "polars": lambda folder: pl.from_arrow(arrow()),
    "PyArrow": lambda folder: arrow(),
    "PyArrow, read once": lambda folder: arrow().to_reader(),
    "PyArrow, views": lambda folder: with_views(arrow()),
}


def with_views(table: pa.Table) -> pa.Table:
    """The texts as views, as polars hands them over; few functions of Arrow know these."""
    kinds = {pa.string(): pa.string_view(), pa.large_string(): pa.string_view()}
    return table.cast(
        pa.schema([field.with_type(kinds.get(field.type, field.type)) for field in table.schema])
    )


def test_views_of_texts_are_split_as_texts(tmp_path: Path) -> None:
    frames = dpsynth.split(with_views(arrow()), SCHEMA, holdout=0.5, seed=1)
    pa.parquet.write_table(with_views(arrow()), tmp_path / "views.parquet")
    files = split_file(tmp_path / "views.parquet", SCHEMA, tmp_path / "out", holdout=0.5, seed=1)
    assert sum(map(len, frames)) == len(arrow())
    assert sum(pa.parquet.read_table(file).num_rows for file in files) == len(arrow())


def coded(source: Any, schema: Schema = SCHEMA) -> tuple[list[list[int]], list[int]]:
    """Return the codes of all columns, status columns included, and the units of the rows."""
    table = open_table(source, schema)
    chunk = pd.concat(table.chunks(), ignore_index=True)
    units = Keys(schema).units(chunk)
    return Codec(schema).encode(chunk).tolist(), np.asarray(units).tolist()


@pytest.fixture(name="expected")
def codes_of_csv(tmp_path: Path) -> tuple[list[list[int]], list[int]]:
    return coded(to_csv(tmp_path))


@pytest.mark.parametrize("door", DOORS)
def test_codes_and_keys_are_those_of_the_csv(door: str, tmp_path: Path, expected: Any) -> None:
    assert coded(DOORS[door](tmp_path)) == expected
    assert expected[1][:6] == [0, 0, 1, 2, 3, 3]


def test_another_dialect(tmp_path: Path, expected: Any) -> None:
    (tmp_path / "t.csv").write_text(csv_text(";", ","), encoding="latin-1")
    assert coded(tmp_path / "t.csv", COMMA) == expected


def test_a_server(server: Any, expected: Any) -> None:
    url = server.new()
    engine = sa.create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.exec_driver_sql(CREATE)
        connection.exec_driver_sql(
            f"INSERT INTO t VALUES ({', '.join(['%s'] * len(NAMES))})", rows()
        )
    engine.dispose()
    assert coded(f"{url}#t") == expected


def reduced(expected: tuple[list[list[int]], list[int]]) -> tuple[Any, Any]:
    """The codes without those of dates and times of day, for programs that keep them otherwise."""
    names = Codec(SCHEMA).names
    left = [place for place, name in enumerate(names) if name not in ("seen", "hour")]
    return [[row[place] for place in left] for row in expected[0]], expected[1]


def without_times() -> Schema:
    document = SCHEMA.to_dict()
    fields = [one for one in document["fields"] if one["name"] not in ("seen", "hour")]
    return Schema.from_dict(document | {"fields": fields})


LABELS = {"inc": {998: "do not know", 999: "refused"}}


def to_spss(folder: Path) -> Path:
    missing = {"inc": [{"lo": 998, "hi": 999}]}
    text = numbers().assign(grade=texts()["grade"])
    pyreadstat.write_sav(
        text, folder / "t.sav", missing_ranges=missing, variable_value_labels=LABELS
    )
    return folder / "t.sav"


def to_zsav(folder: Path) -> Path:
    missing = {"inc": [{"lo": 998, "hi": 999}]}
    text = numbers().assign(grade=texts()["grade"])
    place = folder / "t.zsav"
    pyreadstat.write_sav(text, place, missing_ranges=missing, row_compress=False, compress=True)
    return place


def to_transport(folder: Path, version: int = 8) -> Path:
    text = numbers().assign(grade=texts()["grade"])
    place = folder / f"t{version}.xpt"
    pyreadstat.write_xport(text, place, file_format_version=version, table_name="T")
    return place


def to_stata(folder: Path) -> Path:
    """What is 998 and 999 elsewhere is .a and .b there."""
    table = numbers().assign(grade=texts()["grade"])
    table["inc"] = table["inc"].astype(object).replace({998.0: "a", 999.0: "b"})
    labels = {"inc": {"a": "do not know", "b": "refused"}}
    pyreadstat.write_dta(
        table,
        folder / "t.dta",
        version=15,
        missing_user_values={"inc": ["a", "b"]},
        variable_value_labels=labels,
    )
    return folder / "t.dta"


def to_sas(folder: Path) -> Path:
    table = numbers().assign(grade=texts()["grade"])
    kinds = {name: STRING if name in ("pid", "grade", "sex") else DOUBLE for name in table}
    special = {998.0: Special(b"A"), 999.0: Special(b"B")}
    cells = [
        [None if pd.isna(cell) else special.get(cell, cell) for cell in row]
        for row in table.itertuples(index=False)
    ]
    return write_sas(folder / "t.sas7bdat", [(n, k, None) for n, k in kinds.items()], cells)


def lettered(schema: Schema, first: str, second: str) -> Schema:
    """Declare the reasons of a column by the letters of a program."""
    document = schema.to_dict()
    for field in document["fields"]:
        if field["name"] == "inc":
            field["dpsynth"]["missing"] = {"do not know": [first], "refused": [second]}
    return Schema.from_dict(document)


def test_statistics_programs(tmp_path: Path, expected: Any) -> None:
    schema = without_times()
    assert coded(to_spss(tmp_path), schema) == reduced(expected)
    assert coded(to_zsav(tmp_path), schema) == reduced(expected)
    assert coded(to_transport(tmp_path), schema) == reduced(expected)
    assert coded(to_transport(tmp_path, 5), schema) == reduced(expected)
    assert coded(to_stata(tmp_path), lettered(schema, ".a", ".b")) == reduced(expected)
    assert coded(to_sas(tmp_path), lettered(schema, ".A", ".B")) == reduced(expected)
    assert coded(to_sas(tmp_path), lettered(schema, "a", "b")) == reduced(expected)


def test_missing_values_that_the_schema_does_not_declare_are_missing(
    tmp_path: Path, expected: Any
) -> None:
    document = without_times().to_dict()
    for field in document["fields"]:
        field["dpsynth"].pop("missing", None)
    plain = Schema.from_dict(document)
    (tmp_path / "empty.csv").write_text(csv_text().replace(",998,", ",,").replace(",999,", ",,"))
    wanted = coded(tmp_path / "empty.csv", plain)
    for source in (to_spss(tmp_path), to_stata(tmp_path), to_sas(tmp_path)):
        assert coded(source, plain) == wanted


def test_the_check_finds_a_reader_that_drops_reasons(
    tmp_path: Path, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken version: what the dictionary calls missing is missing, whatever is declared."""
    monkeypatch.setattr(statistical._Declared, "one_of", lambda self, *texts: None)
    assert coded(to_spss(tmp_path), without_times()) != reduced(expected)


def to_single(folder: Path) -> Path:
    """Stata's usual type of a number is one of 32 bits."""
    table = numbers().drop(columns="inc").assign(grade=texts()["grade"])
    table["weight"] = table["weight"].astype("float32")
    table.to_stata(folder / "single.dta", write_index=False, version=118)
    return folder / "single.dta"


def weighed(maximum: float = 200) -> Schema:
    document = without_times().to_dict()
    fields = [one for one in document["fields"] if one["name"] != "inc"]
    for field in fields:
        if field["name"] == "weight":
            field["constraints"]["maximum"] = maximum
    return Schema.from_dict(document | {"fields": fields})


def test_single_precision_is_read_where_the_grid_can_be_told_apart(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(csv_text())
    assert coded(to_single(tmp_path), weighed()) == coded(tmp_path / "t.csv", weighed())
    with pytest.raises(TableError, match="column 'weight' holds .* reduced precision"):
        coded(to_single(tmp_path), weighed(maximum=1_000_000))


def test_the_check_finds_single_precision_read_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken version: 0.1 of 32 bits is read as 0.10000000149."""
    source, wanted = to_single(tmp_path), texts()["weight"]

    def weights() -> list[str]:
        return [one or "" for one in dpsynth.read_table(source, weighed())["weight"]]

    assert weights() == wanted
    monkeypatch.setattr(statistical, "_shortest", lambda value: value)
    assert weights() != wanted


CUT = ("CSV", "JSON Lines", "Parquet, a folder of parts")


@pytest.mark.filterwarnings("error::dpsynth.errors.DpsynthWarning")
@pytest.mark.parametrize("door", CUT)
def test_two_processes_code_the_same_rows_as_one(door: str, tmp_path: Path) -> None:
    table, coding = open_table(DOORS[door](tmp_path), SCHEMA), Coding(SCHEMA, Codec(SCHEMA))
    assert isinstance(table, Divisible) and len(table.parts(4)) > 1
    alone, shared = (coded_rows(table, coding, engine=local_engine(n)) for n in (1, 2))
    assert np.array_equal(alone.codes, shared.codes)
    assert np.array_equal(alone.units(), shared.units())
