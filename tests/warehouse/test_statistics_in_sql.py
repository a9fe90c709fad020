"""Statistics of rows that stay in a warehouse: they are those of rows that are read."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import counted_rows, read_cohort
from dpsynth.errors import DpsynthError
from dpsynth.ledger import Ledger
from dpsynth.privacy import OsEntropy
from dpsynth.stats import StatisticsRequest, statistics
from dpsynth.stats.answering import UNREAD, StayingRows
from dpsynth.stats.statistic import Rows
from dpsynth.tables import open_table, warehouse_table

from ..support.bare_counts import Silence
from ..support.evaluated_office import call
from ..support.warehouse_tables import FIELDS, PAIRS, duckdb_table, fresh, postgres_table, schema_of

NAMES = ("sex", "age", "weight", "smoker", "seen", "stamp")
KINDS = {"key": "text"} | {name: FIELDS[name][0] for name in NAMES}
BUDGET: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6, "dataset": "wards"}
AGES = {"age": [40, 65]}
ENTRIES: list[dict[str, Any]] = [
    {"name": "all", "count": "patients"},
    {"name": "rows", "count": "rows", "by": ["sex", AGES]},
    {"name": "patients", "count": "patients", "by": ["sex", AGES]},
    {"name": "smokers", "proportion": {"smoker": ["True"]}, "by": ["sex"]},
    {"name": "weight", "mean": "weight", "by": [AGES], "per": "patient"},
    {"name": "spread", "variance": "weight"},
    {"name": "quarters", "quantiles": "age", "by": ["sex"]},
    {"name": "commonest", "top": "sex", "most": 2},
    {"name": "months", "count": "patients", "by": [{"seen": "month"}], "smooth": True},
    {"name": "beds", "occupancy": {"from": "seen", "for": "age"}, "period": "month", "by": ["sex"]},
    {"name": "curve", "survival": {"time": "age", "event": "smoker", "of": ["True"]}, "cuts": [50]},
    {"name": "apart", "compare": "weight", "between": {"sex": ["F", "M"]}},
    {"name": "related", "independence": ["sex", "smoker"]},
]


def rows(units: int, seed: int) -> list[list[str | None]]:
    """Rows of texts, one to three of each unit, and some that are exactly alike."""
    rng = np.random.default_rng(seed)
    found: list[list[str | None]] = []
    for unit in range(units):
        for _ in range(int(rng.integers(1, 4))):
            place = int(rng.integers(12))
            found.append(
                [
                    None if unit in (7, 8) else f"p{unit}",
                    ["F", "M", "-", "x"][place % 4],
                    str(10 * place),
                    f"{50 + place % 5}.5",
                    [None, "true", "false"][place % 3],
                    f"2010-0{1 + place % 9}-05",
                    f"2010-01-0{1 + place % 9} 0{place % 10}:30:00",
                ]
            )
    return found


def asked(entries: list[dict[str, Any]] = ENTRIES, **own: Any) -> StatisticsRequest:
    schema = schema_of(NAMES, few=True, **own)
    return StatisticsRequest.from_dict({"schema": schema.to_dict(), "statistics": entries})


@contextmanager
def staying(address: str, request: StatisticsRequest) -> Iterator[StayingRows]:
    table = warehouse_table(open_table(address, request.schema))
    with counted_rows(table, request.codec, numbered=True) as counted:
        yield StayingRows(counted)


def exact(request: StatisticsRequest, found: Any) -> list[dict[str, list[Any]]]:
    """The answers of a request without any noise."""
    events = {one.name: one for one in request.plan(epsilon=3, delta=1e-6).events}
    return [
        {
            name: [part.tolist() for part in parts]
            for name, parts in one.answer(found.reading(one.reads), events, Silence()).items()
        }
        for one in request.statistics
    ]


@pytest.mark.parametrize(("database", "missing_key"), PAIRS)
def test_answers_are_those_of_the_rows(
    database: str, missing_key: str, tmp_path: Path, request: Any
) -> None:
    cells = rows(60, seed=3)
    if database == "duckdb":
        address = duckdb_table(fresh(tmp_path), KINDS, cells)
    else:
        address = postgres_table(request.getfixturevalue("server").new(), KINDS, cells)
    wanted = asked(missing_key=missing_key)
    source = open_table(address, wanted.schema)
    read = Rows.of(read_cohort(source, wanted.codec, wanted.schema, OsEntropy()))
    with staying(address, wanted) as found:
        assert exact(wanted, found) == exact(wanted, read)
        alike = found.reading(wanted.statistics[0].reads)
    assert alike.like is not None and alike.like.max() > 1  # so one unit has stood for several


@pytest.fixture
def address(tmp_path: Path) -> str:
    return duckdb_table(fresh(tmp_path), KINDS, rows(60, seed=4))


def test_no_row_is_read(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    def chunks(*_: Any) -> Any:
        raise AssertionError("rows were read")

    monkeypatch.setattr("dpsynth.tables.duckdb_tables.DuckdbTable.chunks", chunks)
    schema_of(NAMES, few=True).save(tmp_path / "wide.schema.yaml")
    request = tmp_path / "request.yaml"
    request.write_text(
        "schema: wide.schema.yaml\nstatistics:\n- {name: sexes, count: patients, by: [sex]}\n"
    )
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    budget = ["--dataset", "wards", "--epsilon", "3", "--delta", "1e-6"]
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "ledger.sqlite"))
    out = str(tmp_path / "statistics")
    assert call("stats", str(request), address, *budget, "--in-warehouse", "-o", out) == 0
    assert (tmp_path / "statistics" / "statistics.json").is_file() and len(ledger.entries()) == 1


def test_a_column_that_is_not_asked_has_no_code(address: str) -> None:
    wanted = asked([ENTRIES[2]])
    with staying(address, wanted) as found:
        codes = found.reading(wanted.statistics[0].reads).codes
        assert found.reading(wanted.statistics[0].reads).codes is codes  # asked once
    read = [wanted.codec.names.index(name) for name in ("sex", "age")]
    assert (np.delete(codes, read, axis=1) == UNREAD).all()
    assert len(np.unique(codes[:, read[1]])) <= 4  # ages as they were cut, not each by itself


def test_what_cannot_be_counted_there_is_refused_before_the_charge(
    tmp_path: Path, address: str
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    pd.DataFrame(rows(9, seed=1), columns=[*KINDS]).to_csv(tmp_path / "rows.csv", index=False)
    for source, words in ((tmp_path / "rows.csv", "DuckDB"), (address, "present_if")):
        own = {"present_if": "sex == 'F'"} if source == address else {}
        document = schema_of(NAMES, few=True).to_dict()
        document["fields"][2]["dpsynth"] |= own
        request = StatisticsRequest.from_dict({"schema": document, "statistics": ENTRIES[:1]})
        with pytest.raises(DpsynthError, match=words):
            statistics(source, request, ledger=ledger, in_warehouse=True, **BUDGET)
    assert ledger.entries() == []
