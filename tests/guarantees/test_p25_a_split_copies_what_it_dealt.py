"""P25: a split that reads a file twice copies the rows that it dealt out, or refuses.

Who goes where is decided by a first reading, row by row; the rows are copied in a second. Were the
file sorted anew in between, people who opted out would be in train, and patients of train in the
holdout. The broken version trusts the places of the rows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables import OptOut, leave_out, split_file, splitting

PATIENTS, GONE = 200, tuple(f"p{number:03d}" for number in range(0, 200, 4))
CHANGES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    "sorted anew": lambda table: table.sort_values("patient", ascending=False),
    "two rows swapped": lambda table: table.iloc[[1, 0, *range(2, len(table))]],
    "turned round within": lambda table: table.iloc[[0, *range(len(table) - 2, 0, -1), -1]],
    "a row less": lambda table: table.iloc[:-1],
    "a row more": lambda table: table.iloc[[*range(len(table)), 0]],
    "another patient": lambda table: table.assign(
        patient=table["patient"].where(table["patient"] != "p001", "p000")
    ),
    "cells run together": lambda table: table.assign(
        patient=["t".join(table["patient"][:2]), None, *table["patient"][2:]]
    ),
    "a key is gone": lambda table: table.assign(
        patient=table["patient"].where(table["patient"] != "p199", "")
    ),
    "without the column": lambda table: table.rename(columns={"patient": "person"}),
    "columns in another order": lambda table: table[["weight", "patient"]].assign(
        patient=table["patient"].to_numpy()[::-1]
    ),
}  # fmt: skip


def schema() -> Schema:
    number = {"value": 200, "basis": "made for this test"}
    limits = {"minimum": 0, "maximum": 300}
    weight = {"name": "weight", "type": "integer", "constraints": limits}
    return Schema.from_dict(
        {
            "fields": [
                {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
                weight | {"dpsynth": {"bounds_basis": "the scale"}},
            ],
            "dpsynth": {
                "version": 1, "max_rows": {"value": 1, "basis": "one visit"},
                "population": number, "rows": number,
            },
        }
    )  # fmt: skip


def put(table: pd.DataFrame, path: Path) -> Path:
    if path.suffix == ".parquet":
        table.to_parquet(path, index=False)
    else:
        table.to_csv(path, index=False)
    return path


def source() -> pd.DataFrame:
    order = np.random.default_rng(3).permutation(PATIENTS)
    keys = np.array([f"p{number:03d}" for number in range(PATIENTS)])[order]
    return pd.DataFrame({"patient": keys, "weight": (70 + order % 30).astype(str)})


@pytest.fixture(params=[".csv", ".csv.gz", ".parquet"])
def table(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return put(source(), tmp_path / f"extract{request.param}")


def change_between(
    monkeypatch: pytest.MonkeyPatch, path: Path, change: Callable[[pd.DataFrame], pd.DataFrame]
) -> None:
    """Let somebody else write the file anew after the first reading of it."""
    deal = splitting.deal

    def late(*facts: object) -> None:
        put(change(source()), path)
        deal(*facts)  # type: ignore[arg-type]

    monkeypatch.setattr(splitting, "deal", late)


@pytest.mark.parametrize("change", CHANGES)
def test_a_file_that_changes_between_both_readings_is_refused(
    table: Path, change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_between(monkeypatch, table, CHANGES[change])
    gone = OptOut.of(GONE, schema())
    with pytest.raises(TableError, match="changed while it was split; split it again"):
        split_file(table, schema(), tmp_path / "out", opt_out=gone)
    monkeypatch.undo()
    put(source(), table)
    change_between(monkeypatch, table, CHANGES[change])
    with pytest.raises(TableError, match="changed while it was split"):
        leave_out(table, schema(), tmp_path / "out", gone)
    assert [path.name for path in tmp_path.iterdir()] == [table.name]


def test_places_alone_would_let_them_through(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken version, and the same check."""
    change_between(monkeypatch, table, CHANGES["sorted anew"])
    monkeypatch.setattr(splitting.SeenRows, "digest", property(lambda seen: b"the same"))
    train, _ = split_file(table, schema(), tmp_path / "out", opt_out=OptOut.of(GONE, schema()))
    read = pd.read_parquet if table.suffix == ".parquet" else pd.read_csv
    assert set(read(train)["patient"]) & set(GONE)


def test_a_file_that_stays_is_split_and_one_written_anew_with_the_same_rows_too(
    table: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    change_between(monkeypatch, table, lambda rows: rows)
    gone = OptOut.of(GONE, schema())
    sides = split_file(table, schema(), tmp_path / "out", opt_out=gone, seed=1)
    read = pd.read_parquet if table.suffix == ".parquet" else pd.read_csv
    train, holdout = (set(read(path)["patient"]) for path in sides)
    assert not train & holdout and not (train | holdout) & set(GONE)
    assert len(train | holdout) == PATIENTS - len(GONE)
