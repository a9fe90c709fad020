"""A fit whose rows stay in their warehouse: what it gives, what it refuses, what it charges."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpsynth import Execution, fit
from dpsynth.encoding.sql import refusal_of
from dpsynth.errors import DpsynthError, InputError, TableError
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.synthesis import Run
from dpsynth.tables import Stored, WarehouseTable, open_table, warehouse_table

from ..support.evaluated_office import call
from ..support.warehouse_tables import FIELDS, duckdb_table, fresh, postgres_table, schema_of

NAMES = ("sex", "age", "seen")
KINDS = {"key": "text"} | {name: FIELDS[name][0] for name in NAMES}
BUDGET: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6, "dataset": "wards"}
THERE = Execution(in_warehouse=True)


ROWS = [
    [f"p{n % 300}", "FM"[n % 2], str(n % 90), f"2010-0{1 + n % 9}-{1 + n % 28:02}"]
    for n in range(500)
]


@pytest.fixture
def address(tmp_path: Path) -> str:
    return duckdb_table(fresh(tmp_path), KINDS, ROWS)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "ledger.sqlite")


@pytest.mark.parametrize(
    "model",
    [
        "independent",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("mixture", "distilled")),
    ],
)
def test_a_fit_reads_no_row(
    address: str, ledger: Ledger, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chunks(*_: Any) -> Any:
        raise AssertionError("rows were read")

    monkeypatch.setattr("dpsynth.tables.duckdb_tables.DuckdbTable.chunks", chunks)
    schema = schema_of(NAMES, few=True)
    run = fit(address, schema, model=model, ledger=ledger, execution=THERE, **BUDGET)
    assert run.certificate is not None and run.certificate["epsilon"] == 3.0
    rows = run.sample(50)
    assert [*rows.columns] == [*NAMES] and len(rows) == 50
    assert len(ledger.entries()) == 1


def test_a_fit_in_postgresql_reads_no_row(
    server: Any, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chunks(*_: Any) -> Any:
        raise AssertionError("rows were read")

    monkeypatch.setattr("dpsynth.tables.databases.DatabaseTable.chunks", chunks)
    address = postgres_table(server.new(), KINDS, ROWS)
    schema = schema_of(NAMES, few=True)
    run = fit(address, schema, model="independent", ledger=ledger, execution=THERE, **BUDGET)
    assert run.certificate is not None and len(run.sample(50)) == 50
    assert len(ledger.entries()) == 1


def refused(address: Any, ledger: Ledger, schema: Schema | None = None, **own: Any) -> str:
    options = BUDGET | {"model": "independent", "execution": THERE} | own
    with pytest.raises(DpsynthError) as error:
        fit(address, schema or schema_of(NAMES, few=True), ledger=ledger, **options)
    assert not ledger.entries()
    return str(error.value)


def test_what_cannot_be_counted_there_is_refused_before_a_charge(
    address: str, ledger: Ledger, tmp_path: Path
) -> None:
    assert "reads rows" in refused(address, ledger, model="autoregressive")
    with pytest.raises(InputError, match="need neither engine nor shards"):
        Execution(in_warehouse=True, shards=tmp_path)
    frame = open_table(address, schema_of(NAMES, few=True))
    csv = tmp_path / "rows.csv"
    next(iter(frame.chunks())).to_csv(csv, index=False)
    assert "only where there is one" in refused(csv, ledger)
    case = schema_of(NAMES, few=True, key={"case": True})
    assert "keys in column 'key' ignore case" in refused(address, ledger, case)


def test_an_error_of_the_warehouse_quotes_no_cell(address: str) -> None:
    table = warehouse_table(open_table(address, schema_of(NAMES, few=True)))
    with table.session() as session, pytest.raises(TableError) as error:
        session.fill("ready", ["x"], "SELECT CAST(key AS INTEGER) FROM stays")
    assert "p0" not in str(error.value) and error.value.__cause__ is None


@pytest.mark.parametrize(
    ("type_", "own", "stored", "words"),
    [
        ("integer", {}, Stored.TEXT, "stored as text and its type is integer"),
        ("date", {}, Stored.TEXT, "stored as text"),
        ("string", {}, None, "does not read in SQL"),
        ("string", {"case": False}, Stored.TEXT, "ignores case"),
        ("number", {"censored": {"low": 5}}, Stored.FLOAT, "limits of detection"),
        ("integer", {"missing": {"refused": ["-8"]}}, Stored.WHOLE, "reasons of missing cells"),
        ("boolean", {"values": {"J": "true"}}, Stored.TRUTH, "a value map"),
        ("integer", {"present_if": "age > 3"}, Stored.WHOLE, "declares present_if"),
    ],
)
def test_a_column_is_refused_by_name(type_: str, own: Any, stored: Any, words: str) -> None:
    limits: Any = {
        "string": {"enum": ["a", "b"]},
        "date": {"minimum": "2000-01-01", "maximum": "2020-12-31"},
        "boolean": {},
    }.get(type_, {"minimum": 0, "maximum": 100})
    field = {"name": "odd", "type": type_, "constraints": limits}
    field |= {"dpsynth": own | {"bounds_basis": "made for this test"}}
    fields = [FIELDS["age"][1], field]
    document = schema_of(NAMES, few=True).to_dict() | {"fields": fields}
    document["dpsynth"] = document["dpsynth"] | {"max_rows": {"value": 1, "basis": "m"}}
    schema = Schema.from_dict(document)
    table = WarehouseTable("duckdb", "a table", "stays", {"odd": stored, "age": Stored.WHOLE})
    reason = refusal_of(schema.column("odd"), schema, table)
    assert reason is not None and words in reason


def test_the_command_fits_there_and_refuses_what_reads_rows(
    address: str,
    ledger: Ledger,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "ledger.sqlite"))
    schema, run = tmp_path / "wards.schema.json", tmp_path / "run"
    schema.write_text(json.dumps(schema_of(NAMES, few=True).to_dict()))
    options = ["--epsilon", "3", "--delta", "1e-6", "--dataset", "wards", "--model", "independent"]
    asked = ["fit", str(schema), address, *options, "-o", str(run), "--in-warehouse"]
    assert call(*asked, "--workers", "2") == 2
    assert "--workers is for rows that are read" in capsys.readouterr().err
    assert not ledger.entries() and not run.exists()
    assert call(*asked) == 0
    assert len(ledger.entries()) == 1 and Run.load(run).certificate is not None
