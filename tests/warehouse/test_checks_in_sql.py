"""The check of a table that stays in its warehouse finds what the check of its rows finds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth import inspection
from dpsynth.errors import TableError
from dpsynth.inspection import CheckResult
from dpsynth.schema import Schema

from ..support.evaluated_office import call
from ..support.warehouse_tables import FIELDS, PAIRS, duckdb_table, fresh, postgres_table, schema_of

NAMES = ("sex", "word", "age", "weight", "smoker", "seen", "left", "note")
COLUMNS = {"key": "text"} | {name: FIELDS[name][0] for name in NAMES[:-1]} | {"note": "text"}
CODES = {"system": "own", "list": {"codes": ["a", "b", "c"], "parents": ["", "", "a"]}}
SETS = {"separator": ",", "most": 2}
NOTE = {
    "name": "note",
    "type": "string",
    "dpsynth": {"bounds_basis": "made", "codes": CODES | {"several": SETS}},
}


def declared(**own: Any) -> Schema:
    """Columns of all kinds, an order, rules of two columns, and a cell that SQL cannot code."""
    document = schema_of(NAMES[:-1], few=True, **own).to_dict()
    document["fields"].append(NOTE)
    document["dpsynth"]["rules"] = ["age >= 10 or sex == 'F'", "weight > age"]
    return Schema.from_dict(document)


def cells(rows: int, seed: int) -> list[list[str | None]]:
    """Rows of texts: good ones, bad ones of every sort, and some that repeat another."""
    rng = np.random.default_rng(seed)
    found: list[list[str | None]] = []
    for _ in range(rows):
        day = int(rng.integers(1, 29))
        found.append(
            [
                rng.choice(["p1", "p1 ", "p2", "p3", "", "p5", "p4"]),
                rng.choice(["F", "M", "-", "f", "x", " M"]),
                rng.choice(["NA", "x", "", "y"]),
                str(rng.choice([5, 40, 99, 130, -1, 77])),
                str(rng.choice([29.9, 50.5, 500.0, 99.9, 60.04])),
                rng.choice(["true", "false"]),
                f"20{rng.choice(['10', '25'])}-05-{day:02}",
                f"2010-06-{day:02}",
                rng.choice(["a", "a,b", "b,a,c", "", "d,a", "a,a"]),
            ]
        )
        if rng.random() < 0.2:
            found[-1][int(rng.integers(9))] = None
        if rng.random() < 0.1:
            found.append(found[-1])
    return found


def compared(found: CheckResult) -> Any:
    texts = {
        name: {kind: dict(sorted(one.items())) for kind, one in suspects.of_kind.items()}
        for name, suspects in found.suspects.items()
    }
    return found.to_dict(), texts


@pytest.mark.parametrize(("database", "missing_key"), PAIRS)
def test_findings_are_those_of_the_rows(
    database: str, missing_key: str, tmp_path: Path, request: Any
) -> None:
    rows = cells(150, seed=int(missing_key == "own"))
    schema = declared(missing_key=missing_key)
    if database == "duckdb":
        address = duckdb_table(fresh(tmp_path), COLUMNS, rows)
    else:
        address = postgres_table(request.getfixturevalue("server").new(), COLUMNS, rows)
    staying, read = (
        inspection.check(address, schema, in_warehouse=True),
        inspection.check(address, schema),
    )
    assert compared(staying) == compared(read)
    found = {finding.kind for finding in staying.findings}
    assert {"unknown", "clipped", "broken", "duplicates", "keyless"} <= found


def test_no_row_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def chunks(*_: Any) -> Any:
        raise AssertionError("rows were read")

    address = duckdb_table(fresh(tmp_path), COLUMNS, cells(150, seed=5))
    declared().save(tmp_path / "wide.schema.yaml")
    schema, values = str(tmp_path / "wide.schema.yaml"), str(tmp_path / "values.csv")
    ask = ("schema", "check", schema, address)
    assert call(*ask, "--show-values", values) == 3
    read, texts = capsys.readouterr().out, Path(values).read_text()
    Path(values).unlink()
    monkeypatch.setattr("dpsynth.tables.duckdb_tables.DuckdbTable.chunks", chunks)
    assert call(*ask, "--show-values", values, "--in-warehouse") == 3
    assert capsys.readouterr().out == read
    assert sorted(Path(values).read_text().splitlines()) == sorted(texts.splitlines())


@pytest.mark.parametrize(
    ("own", "rows", "words"),
    [
        ({"key": {"case": True}}, 20, "ignore case"),
        ({}, 0, "has a header but no rows"),
    ],
    ids=["keys", "empty"],
)
def test_what_cannot_be_checked_there_is_refused(
    tmp_path: Path, own: Any, rows: int, words: str
) -> None:
    address = duckdb_table(fresh(tmp_path), COLUMNS, cells(rows, seed=6))
    with pytest.raises(TableError, match=words):
        inspection.check(address, declared(**own), in_warehouse=True)


def test_a_file_is_read(tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "rows.csv").write_text(",".join(COLUMNS) + "\n")
    declared().save(tmp_path / "wide.schema.yaml")
    ask = ("schema", "check", str(tmp_path / "wide.schema.yaml"))
    assert call(*ask, str(tmp_path / "rows.csv"), "--in-warehouse") == 2
    assert "DuckDB or PostgreSQL" in capsys.readouterr().err.replace("\n", " ")
    assert call(*ask, "--in-warehouse") == 2
    assert "name DATA too" in capsys.readouterr().err
