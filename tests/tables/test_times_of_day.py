"""Columns of type time: declared, read from every source, fitted, drawn, published and judged."""

from __future__ import annotations

import json
from datetime import time
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import openpyxl
import pandas as pd
import pyarrow.parquet as pq
import pyreadstat
import pytest

import dpsynth
from dpsynth import inspection
from dpsynth.assessment import Candidate, evaluate
from dpsynth.bundle import release, verify
from dpsynth.draft import draft_schema
from dpsynth.draft.entry import Entry
from dpsynth.draft.proposal import propose
from dpsynth.encoding import Codec
from dpsynth.errors import SchemaError, TableError
from dpsynth.schema import Schema
from dpsynth.tables import open_table

from ..support.sas_files import DOUBLE, STRING, write_sas

ROWS = 400
BASIS = {"bounds_basis": "made for this test"}
TEXTS = ["08:30:00", "23:59:00", None]


def schema_of(*rules: str, rows: int = ROWS, **field: Any) -> Schema:
    counted = {"value": rows, "basis": "made for this test"}
    columns = [
        {"name": "key", "type": "string", "dpsynth": {"role": "unit"}},
        {"name": "at", "type": "time"} | field,
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}}
        | {"dpsynth": BASIS},
    ]
    facts = {"version": 1, "population": counted, "rows": counted, "max_rows": counted}
    facts["max_rows"] = {"value": 1, "basis": "made for this test"}
    return Schema.from_dict({"fields": columns, "dpsynth": facts | {"rules": list(rules)}})


def drawn(schema: Schema, texts: list[str]) -> list[Any]:
    frame = pd.DataFrame({"key": map(str, range(len(texts))), "at": texts, "age": "1"})
    return Codec(schema).read(frame)[1]["at"].tolist()


def test_the_day_is_the_default_and_documents_come_back() -> None:
    for field in (
        {},
        {"format": "%H.%M"},
        {"format": "%H"},
        {"constraints": {"minimum": "06:00"}, "dpsynth": BASIS | {"step": 900}},
    ):
        schema = schema_of(**field)
        assert Schema.from_dict(schema.to_dict()) == schema
    assert schema_of().column("at").maximum == time(23, 59, 59)
    assert schema_of(format="%H.%M").column("at").maximum == time(23, 59)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ({"format": "%d.%m. %H:%M"}, "is not a format of times, such as '%H:%M'"),
        ({"format": "%I:%M"}, "is not a format of times"),
        ({"constraints": {"minimum": 510}}, "a time of day in quotes, like '08:30'"),
        ({"constraints": {"minimum": "22:00", "maximum": "06:00"}}, "maximum is below minimum"),
        ({"constraints": {"minimum": "06:00"}, "dpsynth": {}}, "is missing for the bounds"),
        ({"constraints": {"enum": ["06:00"]}}, "type time has bounds"),
        ({"format": "%H", "constraints": {"minimum": "06:30"}}, "cannot hold 06:30:00"),
    ],
)
def test_mistakes_are_named(field: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError, match=message.replace("(", r"\(")):
        schema_of(**({"dpsynth": BASIS} | field))


def test_cells_are_rounded_to_the_step_and_moved_to_the_bounds() -> None:
    texts = ["8:30", "08:37:29", "08:37:31", "23:00", "24:00", "", "x", "2020-01-01 08:30:00"]
    limits = {"minimum": "06:00", "maximum": "22:00"}
    schema = schema_of(constraints=limits, dpsynth=BASIS | {"step": 900})
    expected = [time(8, 30), time(8, 30), time(8, 45), time(22), None, None, None, None]
    assert drawn(schema, texts) == expected
    assert drawn(schema_of(format="%I:%M %p"), ["8:30 PM", "20:30"]) == [time(20, 30)] * 2


def test_rules_compare_times_with_texts() -> None:
    schema = schema_of('at >= "06:00" or age < 18')
    frame = pd.DataFrame({"at": [time(5), time(6), None], "age": [20, 20, 20]})
    assert schema.rules[0].holds(frame).tolist() == [False, True, True]
    with pytest.raises(SchemaError, match="write times like '08:30'"):
        schema_of('at >= "six"')
    with pytest.raises(SchemaError, match="compares time of day with number"):
        schema_of("at >= 6")


def sources(folder: Path, clock: list[Any]) -> dict[str, str]:
    """The same cells in files of other kinds, each with a type of its own for times."""
    keys, ages = ["a", "b", "c"], [1.0, 2.0, 3.0]
    frame = pd.DataFrame({"key": keys, "at": clock, "age": ages})
    book = openpyxl.Workbook()
    for row in [list(frame), *frame.values.tolist()]:
        book.active.append([None if cell is pd.NaT else cell for cell in row])
    book.save(folder / "t.xlsx")
    frame.to_parquet(folder / "t.parquet")
    with duckdb.connect(str(folder / "t.duckdb")) as connection:
        connection.execute('CREATE TABLE t (key TEXT, "at" TIME, age DOUBLE)')
        for row in frame.to_records(index=False).tolist():
            connection.execute("INSERT INTO t VALUES (?, ?, ?)", row)
    seconds = [None if t is None else 3600.0 * t.hour + 60 * t.minute for t in clock]
    numeric = pd.DataFrame({"key": keys, "at": seconds, "age": ages})
    pyreadstat.write_sav(numeric, folder / "t.sav", variable_format={"at": "TIME8"})
    milli = numeric.assign(at=numeric["at"] * 1000)
    pyreadstat.write_dta(milli, folder / "t.dta", variable_format={"at": "%tcHH:MM:SS"})
    variables = [("key", STRING, None), ("at", DOUBLE, "TIME8"), ("age", DOUBLE, None)]
    rows = [list(row) for row in zip(keys, seconds, ages, strict=True)]
    write_sas(folder / "t.sas7bdat", variables, rows)
    return {path.suffix: str(path) for path in sorted(folder.glob("t.*"))}


def test_every_source_gives_the_cells_of_the_text(tmp_path: Path) -> None:
    clock = [time.fromisoformat(text) if text else None for text in TEXTS]
    files = sources(tmp_path, clock)
    schema = schema_of()
    expected = drawn(schema, ["08:30:00", "23:59:00", ""])
    assert len(files) == 6
    for suffix, path in files.items():
        frame = pd.concat(open_table(path, schema).chunks())
        assert Codec(schema).read(frame)[1]["at"].tolist() == expected, suffix


def test_a_format_and_a_column_of_dates_refuse_typed_times(tmp_path: Path) -> None:
    files = sources(tmp_path, [time(8, 30), time(9), None])
    for suffix, path in files.items():
        with pytest.raises(TableError, match="its dates and times must be text"):
            open_table(path, schema_of(format="%H.%M"))
        if suffix != ".xlsx":  # where each cell has a type of its own
            dates = {"type": "date", "constraints": {"minimum": "2020-01-01"}}
            dates["constraints"]["maximum"] = "2020-12-31"  # type: ignore[index]
            with pytest.raises(TableError, match="its type is date"):
                open_table(path, schema_of(dpsynth=BASIS, **dates))


@pytest.fixture(scope="module")
def extract(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(1)
    minutes = np.clip(rng.normal(540, 90, ROWS), 0, 1439).astype(int)
    clock = [f"{minute // 60:02}:{minute % 60:02}" for minute in minutes]
    clock[:3] = ["", "8h30", "9h15"]
    path = tmp_path_factory.mktemp("times") / "t.csv"
    keys = [f"P{n}" for n in range(ROWS)]
    pd.DataFrame({"key": keys, "at": clock, "age": minutes % 90}).to_csv(path, index=False)
    return path


def test_it_goes_from_a_file_to_a_bundle_and_an_evaluation(extract: Path, tmp_path: Path) -> None:
    schema = schema_of('at >= "00:00"', dpsynth={"step": 900})
    run = dpsynth.fit(
        extract, schema, epsilon=5.0, delta=1e-6, dataset="times", model="independent"
    )
    run.save(tmp_path / "run")
    bundle = release(tmp_path / "run", tmp_path / "bundle", size=300, seed=1)
    assert verify(bundle)
    parquet = pq.read_table(bundle / "data" / "synthetic.parquet").column("at")
    assert str(parquet.type) == "time32[ms]"
    text = pd.read_csv(bundle / "data" / "synthetic.csv", dtype=str)["at"].dropna()
    assert text.tolist() == [str(cell) for cell in parquet.to_pylist() if cell is not None]
    assert text.str.fullmatch("[0-2][0-9]:(00|15|30|45):00").all()
    hours = text.str[:2].astype(int)
    assert abs(hours.median() - 9) <= 1
    document = json.loads((bundle / "croissant.json").read_text())
    kinds = {one["name"]: one["dataType"] for one in document["recordSet"][0]["field"]}
    assert kinds["at"] == "sc:Time"
    found = evaluate(schema, extract, Candidate("out", bundle / "data" / "synthetic.parquet"))
    columns = found["parts"]["fidelity"]["columns"]
    bins = next(column["bins"] for column in columns if column["name"] == "at")
    assert any(":00 to " in label for label in bins)


def test_a_check_names_the_format(extract: Path) -> None:
    findings = inspection.check(extract, schema_of()).findings
    unreadable = next(finding for finding in findings if finding.place == "at")
    assert 'are times in the format "%Hh%M"' in str(unreadable.causes)


def test_drafts_propose_times(tmp_path: Path) -> None:
    proposal = propose(Entry("arrived", kind="time"), "header")
    assert proposal.document["type"] == "time" and not proposal.is_open
    files = sources(tmp_path, [time(8, 30), time(9), None])
    for suffix in (".sav", ".sas7bdat", ".dta"):
        assert "type: time" in draft_schema(dictionary=Path(files[suffix])).text


@pytest.mark.parametrize("suffix", [".parquet", ".dta", ".xlsx"])
def test_typed_dates_are_read_once_the_format_is_left_out(tmp_path: Path, suffix: str) -> None:
    """The remedy that the refusal names."""
    path = tmp_path / f"t{suffix}"
    days = pd.to_datetime(["2020-01-31", "2020-02-01"])
    frame = pd.DataFrame({"key": ["P1", "P2"], "at": days, "age": [1, 1]})
    if suffix == ".dta":
        frame.to_stata(path, write_index=False, convert_dates={"at": "td"})
    elif suffix == ".xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.assign(at=days.date).to_parquet(path)
    limits = {"minimum": "2020-01-01", "maximum": "2020-12-31"}
    date = {"type": "date", "constraints": limits, "dpsynth": BASIS}
    with pytest.raises(TableError, match="leave the format out of the schema"):
        list(open_table(path, schema_of(format="%d.%m.%Y", **date)).chunks())
    schema = schema_of(**date)
    read = pd.concat(open_table(path, schema).chunks())
    coded = Codec(schema).read(read)[1]["at"]
    assert coded.tolist() == drawn(schema, ["2020-01-31", "2020-02-01"])
