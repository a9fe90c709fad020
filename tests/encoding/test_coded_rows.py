"""A cohort is the same however many processes read the file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth._util import engines
from dpsynth._util.engines import LocalEngine
from dpsynth.encoding import Codec, Cohort, read_cohort
from dpsynth.errors import TableError
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.tables import open_table, simulate

SCHEMA = Schema.load("demo")


class AtOnce:
    """A pool whose workers are this process; the last piece that was started ends first."""

    def __init__(self, work: Any, restarts: int) -> None:
        self.work, self.idle, self.started = work, 0, list[int]()

    def __enter__(self) -> AtOnce:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start_workers(self, count: int) -> None:
        self.idle = count

    def start(self, number: int) -> None:
        self.idle -= 1
        self.started.append(number)

    def next(self) -> Any:
        self.idle += 1
        return self.work(self.started.pop())


def cohort_of(path: Path, schema: Schema = SCHEMA, **how: Any) -> Cohort:
    return read_cohort(open_table(path, schema), Codec(schema), schema, SeededEntropy(1), **how)


def equal(one: Cohort, other: Cohort) -> bool:
    return np.array_equal(one.codes, other.codes) and np.array_equal(one.mask, other.mask)


@pytest.fixture(params=["table.csv", "table.parquet", "table.csv.gz"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    place: Path = tmp_path / request.param
    table = simulate(400, seed=1)
    if place.suffix == ".parquet":
        table.to_parquet(place, row_group_size=90)
    else:
        table.to_csv(place, index=False)
    return place


@pytest.mark.parametrize("refused", ["stop", "drop"])
def test_whoever_reads_a_row_codes_it_the_same(
    path: Path, refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = cohort_of(path, refused=refused)
    monkeypatch.setattr(engines, "WorkerPool", AtOnce)
    parts = list[float]()
    assert equal(
        cohort_of(path, refused=refused, engine=LocalEngine(3), progress=parts.append), alone
    )
    assert parts[-1] == 1.0 and (len(parts) > 3 or path.suffix == ".gz")


def test_windows_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    document = SCHEMA.to_dict()
    document["dpsynth"]["keep"] = "window"
    (visited,) = (field for field in document["fields"] if field["name"] == "visit_date")
    visited["dpsynth"]["role"] = "order"
    schema = Schema.from_dict(document)
    assert schema.unit.keep == "window"
    simulate(400, seed=1).to_csv(tmp_path / "t.csv", index=False)
    alone = cohort_of(tmp_path / "t.csv", schema)
    monkeypatch.setattr(engines, "WorkerPool", AtOnce)
    assert equal(cohort_of(tmp_path / "t.csv", schema, engine=LocalEngine(2)), alone)


def test_an_error_names_the_line_that_it_names_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "t.csv"
    simulate(400, seed=1).to_csv(place, index=False)
    lines = place.read_text().splitlines()
    lines[500] += ",more,fields"
    place.write_text("\n".join(lines))
    with pytest.raises(TableError) as alone:
        cohort_of(place)
    monkeypatch.setattr(engines, "WorkerPool", AtOnce)
    with pytest.raises(TableError) as several:
        cohort_of(place, engine=LocalEngine(3))
    assert "line 501" in str(several.value) and str(several.value) == str(alone.value)


@pytest.mark.long
def test_processes_read_the_same(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    simulate(3000, seed=1).to_csv(place, index=False)
    assert equal(cohort_of(place, engine=LocalEngine(2)), cohort_of(place))
