"""Reading on a Dask cluster: the same codes, whoever dies, and no more sent than is needed."""

from __future__ import annotations

import io
import os
import pickle
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import LocalCluster

from dpsynth import Execution, fit
from dpsynth._util import engines
from dpsynth._util.engines import (
    DaskEngine,
    FileMark,
    each_once_or_here,
    in_order,
    open_engine,
    versions,
)
from dpsynth.encoding import Codec, CodedRows, Coding, coded_rows
from dpsynth.encoding.chunks import Reading
from dpsynth.errors import DpsynthWarning, InputError
from dpsynth.ledger import Ledger
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.tables import Divisible, open_table, simulate

from .test_engines import Squares, answers_of

SCHEMA = Schema.load("demo")


def cluster(**how: Any) -> LocalCluster:
    return LocalCluster(
        **{"n_workers": 2, "threads_per_worker": 1, "memory_limit": 0} | how,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
    )


@pytest.fixture(scope="module")
def threads() -> Iterator[str]:
    """The address of a cluster that is threads of this process; it is quick to start."""
    with cluster(processes=False, protocol="tcp") as one:
        yield one.scheduler_address


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("table") / "zzpathzz.csv"
    simulate(300, seed=1).to_csv(place, index=False)
    return place


def read(path: Path, engine: DaskEngine | None) -> CodedRows:
    return coded_rows(open_table(path, SCHEMA), Coding(SCHEMA, Codec(SCHEMA)), engine=engine)


def same(one: CodedRows, other: CodedRows) -> bool:
    return np.array_equal(one.codes, other.codes) and np.array_equal(one.units(), other.units())


@pytest.mark.filterwarnings("error::dpsynth.errors.DpsynthWarning")
def test_a_cluster_reads_the_same(threads: str, path: Path, monkeypatch: Any) -> None:
    engine = open_engine(threads, paths=[path])
    assert isinstance(engine, DaskEngine) and engine.at_once == 2 and engine.distant
    monkeypatch.chdir(path.parent)
    assert same(read(Path(path.name), engine), read(path, None))


def test_errors_of_pieces_come_through(threads: str) -> None:
    with pytest.raises(InputError, match="say this"):
        answers_of(DaskEngine(threads), Squares(deadly=3), 9)
    assert answers_of(DaskEngine(threads), Squares(), 9) == [n * n for n in range(9)]


def test_a_cluster_that_is_gone_after_the_check_costs_nothing(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then the budget is charged: this process does the work, and says so."""
    engine, found = DaskEngine(threads), dict[int, int]()
    engine.check()
    engine.address = "tcp://127.0.0.1:9"
    monkeypatch.setattr(engines, "STEP", 0.3)
    assert engine.at_once == 2
    with pytest.warns(DpsynthWarning, match="does not answer. This process does the work again"):
        each_once_or_here(engine, Squares(), 4, lambda: found.__setitem__)
    assert found == {0: 0, 1: 1, 2: 4, 3: 9}


def test_a_fit_is_the_same_and_nothing_is_charged_before_the_cluster_is_there(
    threads: str, path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    budget: dict[str, Any] = {"epsilon": 3, "delta": 1e-6, "dataset": "x", "model": "independent"}
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    monkeypatch.setattr(engines, "STEP", 0.3)
    with pytest.raises(InputError, match="does not answer"):
        nowhere = Execution(engine="tcp://127.0.0.1:9")
        fit(path, SCHEMA, ledger=ledger, execution=nowhere, **budget)
    assert not ledger.entries()
    alone, there = (
        fit(path, SCHEMA, without_ledger=True, entropy=SeededEntropy(1), execution=where, **budget)
        for where in (Execution(), Execution(engine=threads))
    )
    assert alone.arrays.keys() == there.arrays.keys()
    assert all(np.array_equal(alone.arrays[name], there.arrays[name]) for name in alone.arrays)


# what crosses the network ------------------------------------------------------------------------


def classes_within(pickled: bytes) -> set[str]:
    """Modules whose classes or functions are named by what was pickled."""
    found = set()

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            found.add(module)
            return super().find_class(module, name)

    Reader(io.BytesIO(pickled)).load()
    return found


def test_a_worker_gets_parts_schema_and_codec_and_nothing_else(path: Path) -> None:
    table = open_table(path, SCHEMA)
    assert isinstance(table, Divisible)
    parts = table.parts(3)
    reading = Reading(parts, Coding(SCHEMA, Codec(SCHEMA)))
    assert set(vars(reading)) == {"parts", "coding"}
    assert set(vars(reading.coding)) == {"schema", "codec", "refused"}
    pickled = pickle.dumps(engines._Task(reading, versions()))
    rooms = {name.split(".")[1] for name in classes_within(pickled) if name.startswith("dpsynth.")}
    assert rooms <= {"_util", "encoding", "schema", "tables"}
    assert not {name.partition(".")[0] for name in classes_within(pickled)} - {
        *("builtins", "collections", "copyreg", "datetime", "dpsynth", "numpy", "pathlib"),
    }
    assert b"ledger" not in pickled and b"epsilon" not in pickled and b"entropy" not in pickled
    cell = path.read_text().splitlines()[1].split(",")[0]
    assert cell.encode() not in pickled  # rows are read where they are


def test_what_dask_may_quote_shows_nothing(path: Path) -> None:
    table = open_table(path, SCHEMA)
    reading = Reading([table], Coding(SCHEMA, Codec(SCHEMA)))
    task = engines._Task(reading, versions())
    outcome = engines._Outcome(reading(0), None)
    shown = f"{task!r} {task} {outcome!r} {reading!r} {outcome.answer!r}"
    assert "zzpathzz" not in shown and not any(letter.isdigit() for letter in shown)


# what is refused, before anything is charged -----------------------------------------------------


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("tcp://10.1.2.3:8786", "not encrypted"),
        ("tcp://0.0.0.0:8786", "not encrypted"),
        ("dask://cluster", "dask://HOST:PORT"),
        ("dask://me:secret@cluster:8786", "dask://HOST:PORT"),
        ("http://cluster:8786", "dask://HOST:PORT"),
        ("cluster:8786", "dask://HOST:PORT"),
    ],
)
def test_addresses_that_are_refused(address: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as error:
        DaskEngine(address)
    assert "secret" not in str(error.value)


def test_another_machine_is_asked_with_tls_and_its_keys() -> None:
    assert DaskEngine("dask://cluster.org:8786").address == "tls://cluster.org:8786"
    assert DaskEngine("dask://localhost:8786").address == "tcp://localhost:8786"
    with pytest.raises(InputError, match="TLS__CA_FILE"):
        DaskEngine("tls://localhost:9").check()


def test_a_scheduler_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "STEP", 0.3)
    with pytest.raises(InputError, match="does not answer"):
        DaskEngine("tcp://127.0.0.1:9").check()


def test_a_worker_that_does_not_see_the_file_is_named(
    threads: str, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = DaskEngine(threads)
    engine.check([path])
    marks = FileMark.of(path)
    changed = FileMark(path, marks.size, marks.changed - 1)
    monkeypatch.setattr(FileMark, "of", lambda place: changed)
    monkeypatch.setattr(FileMark, "__eq__", lambda self, other: False)
    with pytest.raises(InputError, match="does not see the same"):
        engine.check([path])


def test_a_worker_of_another_version_is_named(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, older = DaskEngine(threads), versions() | {"pandas": "0.1"}
    asked = iter([older])  # by this process; workers say the truth
    monkeypatch.setattr(engines, "versions", lambda: next(asked, versions()))
    with pytest.raises(InputError, match=f"has pandas {versions()['pandas']}, and this .* 0.1"):
        engine.check()


def test_a_worker_that_may_spill_is_refused() -> None:
    with (
        cluster(processes=False, protocol="tcp", n_workers=1, memory_limit="1GiB") as one,
        pytest.raises(InputError, match="may spill private codes"),
    ):
        DaskEngine(one.scheduler_address).check()


# workers that die --------------------------------------------------------------------------------


@pytest.mark.long
def test_a_killed_worker_changes_no_row(tmp_path: Path) -> None:
    place = tmp_path / "t.csv"
    simulate(3000, seed=1).to_csv(place, index=False)
    table = open_table(place, SCHEMA)
    assert isinstance(table, Divisible)
    parts, coding = table.parts(12), Coding(SCHEMA, Codec(SCHEMA))
    rows = CodedRows(SCHEMA)
    with cluster(processes=True) as one:
        engine = DaskEngine(one.scheduler_address)

        def take(number: int, part: Any) -> None:
            for chunk in part.chunks:
                rows.add(chunk)
            if number in (1, 6):  # in the middle, whatever it does
                victim = next(iter(one.workers.values()))
                os.kill(victim.process.pid, 9)
                time.sleep(0.1)

        in_order(engine, Reading(parts, coding), len(parts), take)
    assert same(rows, read(place, None))


@pytest.mark.long
def test_a_piece_that_kills_its_worker_once_is_done_again(tmp_path: Path) -> None:
    killed = Squares(tmp_path, deadly=2, marks=1)
    with cluster(processes=True) as one:
        assert answers_of(DaskEngine(one.scheduler_address), killed, 5) == [0, 1, 4, 9, 16]
    assert killed.marks[0].exists()


@pytest.mark.long
def test_an_encrypted_cluster_reads_the_same(
    tmp_path: Path, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys come from files, as Dask's own settings name them; without them nobody is let in."""
    import dask
    from distributed import Security

    keys = Security.temporary()
    where = {}
    for name in ("ca_file", "client_cert", "client_key"):
        where[name] = tmp_path / name
        where[name].write_text(getattr(keys, f"tls_{name}"))
    with cluster(processes=False, protocol="tls", security=keys) as one:
        engine = DaskEngine(one.scheduler_address)
        assert engine.address.startswith("tls://")
        with pytest.raises(InputError, match="TLS__CA_FILE"):
            engine.check([path])
        tls = "distributed.comm.tls"
        settings = {
            f"{tls}.ca-file": str(where["ca_file"]),
            f"{tls}.client.cert": str(where["client_cert"]),
            f"{tls}.client.key": str(where["client_key"]),
        }
        with dask.config.set(settings):
            engine.check([path])
            assert same(read(path, engine), read(path, None))
