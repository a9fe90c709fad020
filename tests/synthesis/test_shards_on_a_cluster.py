"""A fit whose rows are dealt, capped and counted on a cluster is the fit of one process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth import Execution, fit
from dpsynth._util.engines import DaskEngine, FolderMark
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.synthesis.readers import ShardsReader, TableReader
from dpsynth.tables import simulate

from ..support.short_training import shorten_mixture
from ..util.test_dask_engine import cluster

DEMO = Schema.load("demo")
SCHEMA = replace(DEMO, unit=replace(DEMO.unit, max_rows=1))
BUDGET: dict[str, Any] = {"epsilon": 3, "delta": 1e-6, "dataset": "x", "model": "mixture"}


@pytest.fixture(scope="module")
def threads() -> Iterator[str]:
    with cluster(processes=False, protocol="tcp") as one:
        yield one.scheduler_address


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("table") / "stays.csv"
    simulate(400, seed=1).to_csv(place, index=False)
    return place


@pytest.mark.filterwarnings("error::dpsynth.errors.DpsynthWarning")
def test_a_fit_is_the_same_to_the_bit(
    threads: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # workers have folders of their own
    shorten_mixture(monkeypatch)
    place = Path("place")
    alone, there = (
        fit(
            path,
            SCHEMA,
            without_ledger=True,
            entropy=SeededEntropy(1),
            execution=Execution(engine=engine, shards=place),
            **BUDGET,
        )
        for engine in (None, threads)
    )
    assert not list(place.iterdir())
    assert alone.arrays.keys() == there.arrays.keys()
    assert all(np.array_equal(alone.arrays[name], there.arrays[name]) for name in alone.arrays)


def test_a_folder_that_workers_cannot_write_into_is_refused_before_the_charge(
    threads: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    place = tmp_path / "place"
    seen: list[Path] = []

    def elsewhere(self: FolderMark) -> str | None:
        seen.append(self.path)
        return problem(replace(self, path=self.path / "of another machine" / "x"))

    problem = FolderMark.problem
    monkeypatch.setattr(FolderMark, "problem", elsewhere)
    with pytest.raises(InputError, match="cannot write into .*folder that all machines share"):
        there = Execution(engine=threads, shards=place)
        fit(path, SCHEMA, ledger=ledger, execution=there, **BUDGET)
    assert seen and all(folder.parent == place.absolute() for folder in seen)
    assert not ledger.entries() and not list(place.iterdir())


def test_a_folder_that_is_seen_is_left_as_it_was(threads: str, tmp_path: Path) -> None:
    DaskEngine(threads).check((), tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="cannot write into"):
        DaskEngine(threads).check((), tmp_path / "gone")


def test_a_large_file_stays_in_memory_where_no_folder_is_shared(
    threads: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsynth.encoding.shards.LARGE", 1)
    folders: list[Path | None] = []

    def stopped(reader: TableReader | ShardsReader, _: Any) -> Any:
        folders.append(reader.folder if isinstance(reader, ShardsReader) else None)
        raise InputError("enough")

    for kind in (TableReader, ShardsReader):
        monkeypatch.setattr(kind, "read", stopped)
    for engine in (threads, None):
        with pytest.raises(InputError, match="enough"):
            where = Execution(engine=engine)
            fit(path, SCHEMA, without_ledger=True, execution=where, **BUDGET)
    assert folders[0] is None and folders[1] is not None
