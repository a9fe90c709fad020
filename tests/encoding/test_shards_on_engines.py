"""Shards on other processes and machines: the counts of one process, whoever dies at the work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth._util.engines import Answers, DaskEngine, Engine, LocalEngine
from dpsynth._util.workers import Work
from dpsynth.encoding import Derived, shards
from dpsynth.errors import DpsynthError, DpsynthWarning

from ..support.sharded_visits import (
    CAP,
    CELLS,
    ROWS,
    DeadlyChooser,
    DeadlyDealer,
    DeadlyThird,
    counted,
    read,
    visits,
    write_visits,
)
from ..util.test_dask_engine import cluster


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_visits(tmp_path_factory.mktemp("table") / "visits.csv")


@contextmanager
def dask(**how: Any) -> Iterator[Engine]:
    with cluster(**how) as one:
        yield DaskEngine(one.scheduler_address)


@pytest.mark.filterwarnings("error::dpsynth.errors.DpsynthWarning")
@pytest.mark.parametrize("keep", ["random", "window"])
@pytest.mark.parametrize("name", ["threads", pytest.param("pool", marks=pytest.mark.long)])
def test_counts_are_those_of_one_process(path: Path, tmp_path: Path, keep: str, name: str) -> None:
    schema = visits(CAP, missing_key="own", keep=keep)
    alone = counted(read(path, tmp_path / "alone", None, schema))
    assert sum(alone[0]) < ROWS  # some rows are beyond the cap
    with dask(processes=False, protocol="tcp") if name == "threads" else pool() as engine:
        assert counted(read(path, tmp_path / name, engine, schema)) == alone
    again = read(path, tmp_path / "again", None, schema, seed=2)
    assert counted(again) != alone  # other keys choose other rows


@pytest.mark.long
@pytest.mark.filterwarnings("error::dpsynth.errors.DpsynthWarning")
def test_counts_of_worker_processes_are_those_of_one_process(path: Path, tmp_path: Path) -> None:
    with dask(processes=True) as engine:
        assert counted(read(path, tmp_path / "dask", engine)) == counted(
            read(path, tmp_path / "alone", None)
        )


# workers that die --------------------------------------------------------------------------------


@contextmanager
def pool() -> Iterator[Engine]:
    yield LocalEngine(2)


@pytest.mark.filterwarnings("error::dpsynth.errors.DpsynthWarning")
@pytest.mark.parametrize(
    "opened", [pool, pytest.param(lambda: dask(processes=True), marks=pytest.mark.long)]
)
def test_workers_that_die_lead_to_no_row_twice(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Any
) -> None:
    alone = counted(read(path, tmp_path / "alone", None))

    def chooser(*how: Any) -> DeadlyChooser:
        deadly = DeadlyChooser(*how)
        object.__setattr__(deadly, "place", tmp_path)
        return deadly

    monkeypatch.setattr(shards, "Dealer", DeadlyDealer)
    monkeypatch.setattr(shards, "Chooser", chooser)
    with opened() as engine:
        rows = read(path, tmp_path / "shards", engine)
        assert counted(rows, [*CELLS[:2], Derived((0,), DeadlyThird(tmp_path))]) == alone
    assert {mark.name for mark in tmp_path.glob("died *")} == {
        *("died dealing", "died choosing", "died counting")
    }
    keys = pd.read_csv(path, dtype=str)["patient"]
    units = sum(group.units for shard in rows.shards for group in shard.groups)
    assert units == keys.nunique() + int(keys.isna().sum())


class Fails:
    """A cluster that is gone: it answers some pieces, and then no more."""

    at_once, distant = 2, False

    def results(self, work: Work[Any], count: int) -> Answers[Any]:
        for number in range(count // 2):
            yield number, work(number)
        raise DpsynthError("the cluster failed")


def test_a_cluster_that_is_gone_costs_no_budget(path: Path, tmp_path: Path) -> None:
    with pytest.warns(DpsynthWarning, match="the cluster failed. This process") as warned:
        found = counted(read(path, tmp_path / "shards", Fails()))
    ours = [warning for warning in warned if warning.category is DpsynthWarning]
    assert len(ours) == 4  # reading, laying out, and each time that it counts
    assert found == counted(read(path, tmp_path / "alone", None))
