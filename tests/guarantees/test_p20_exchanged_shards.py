"""P20: exchanged, lost and repeated shards are found, and workers know neither plan nor entropy."""

from __future__ import annotations

import io
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.engines import Answers
from dpsynth._util.workers import Work
from dpsynth.encoding import ShardedRows, shards
from dpsynth.encoding.shards import Digest
from dpsynth.errors import DpsynthError

from ..support.sharded_visits import counted, read, write_visits


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_visits(tmp_path_factory.mktemp("table") / "visits.csv")


# what is exchanged, lost or repeated -------------------------------------------------------------


def twins(rows: ShardedRows) -> tuple[str, str]:
    """Names of groups of two shards that differ, with as many units and as much room."""
    groups = [group for shard in rows.shards for group in shard.groups]
    return next(
        (one.name, other.name)
        for place, one in enumerate(groups)
        for other in groups[:place]
        if (one.units, one.width) == (other.units, other.width) and one.digest != other.digest
    )


def exchange(folder: Path, one: str, other: str) -> None:
    for kind in ("codes", "rows"):
        first, second = folder / f"{one}.{kind}", folder / f"{other}.{kind}"
        content = first.read_bytes()
        first.write_bytes(second.read_bytes())
        second.write_bytes(content)


def repeat(folder: Path, one: str, other: str) -> None:
    for kind in ("codes", "rows"):
        (folder / f"{one}.{kind}").write_bytes((folder / f"{other}.{kind}").read_bytes())


@pytest.mark.parametrize("damage", [exchange, repeat])
def test_shards_of_as_many_rows_cannot_be_exchanged(
    path: Path, tmp_path: Path, damage: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = read(path, tmp_path)
    damage(tmp_path, *twins(rows))
    with pytest.raises(DpsynthError, match="was changed; fit again"):
        counted(rows)
    with pytest.raises(DpsynthError, match="was changed; fit again"):
        list(rows.cohorts())
    with monkeypatch.context() as broken:  # without digests nobody sees it
        blind = [
            replace(shard, groups=tuple(replace(group, digest=b"") for group in shard.groups))
            for shard in rows.shards
        ]
        broken.setattr(Digest, "value", lambda self: b"")
        counted(replace(rows, shards=tuple(blind)))


def test_parts_of_as_many_rows_cannot_be_exchanged(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsynth.tables.checks.CHUNK", 300)
    monkeypatch.setattr(shards, "CELLS", 1)
    dealt = shards._dealt

    def exchanged(*how: Any) -> Any:
        parts = dealt(*how)
        one, other = (tmp_path / f"{part.name}.codes" for part in parts[:2])
        content = one.read_bytes()
        one.write_bytes(other.read_bytes())
        other.write_bytes(content)
        return parts

    monkeypatch.setattr(shards, "_dealt", exchanged)
    with pytest.raises(DpsynthError, match="was changed; fit again"):
        read(path, tmp_path)
    monkeypatch.setattr(Digest, "value", lambda self: b"")  # broken twin: no digests
    assert read(path, tmp_path).shards


# what workers get --------------------------------------------------------------------------------


class Spy:
    """Keeps what would be sent to workers, and what logs could quote of it."""

    at_once, distant = 2, False

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.shown = ""

    def results(self, work: Work[Any], count: int) -> Answers[Any]:
        self.sent.append(pickle.dumps(work))
        self.shown += f"{work!r} {work}"
        for number in range(count):
            answer = work(number)
            self.shown += repr(answer[1])
            yield number, answer


def modules_of(pickled: bytes) -> set[str]:
    found = set()

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            found.add(module)
            return super().find_class(module, name)

    Reader(io.BytesIO(pickled)).load()
    return found


def test_workers_get_neither_entropy_nor_plan_nor_noise(path: Path, tmp_path: Path) -> None:
    spy = Spy()
    counted(read(path, tmp_path, spy))
    assert len(spy.sent) == 4
    for sent in spy.sent:
        own = {name for name in modules_of(sent) if name.startswith("dpsynth.")}
        assert {name.split(".")[1] for name in own} <= {
            *("_util", "encoding", "schema", "tables", "privacy")
        }
        assert {name for name in own if ".privacy" in name} <= {"dpsynth.privacy.mechanisms"}
        for word in (b"entropy", b"Entropy", b"ledger", b"sigma", b"epsilon", b"delta"):
            assert word not in sent
    assert not any(letter.isdigit() for letter in spy.shown) and "visits" not in spy.shown
