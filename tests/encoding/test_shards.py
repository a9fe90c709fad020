"""Coded rows in shards: counted as those in memory, private, and gone at the end."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import (
    AnyRows,
    Codec,
    Derived,
    Lookup,
    ShardedRows,
    UnitRows,
    read_cohort,
    read_shards,
)
from dpsynth.encoding import shards as reading
from dpsynth.encoding.shards import Dealt, check_seated
from dpsynth.errors import DpsynthError, DpsynthWarning, InputError, TableError
from dpsynth.files import atomic, scratch_folder
from dpsynth.privacy import (
    ChosenHistograms,
    JointHistograms,
    OsEntropy,
    SeededEntropy,
    chosen_histograms,
    exact_counts,
    joint_histograms,
)
from dpsynth.schema import Schema
from dpsynth.tables import open_table

from ..support.bare_counts import Silence
from ..support.sharded_visits import visits

ROWS = 300


@pytest.fixture(autouse=True)
def _many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make each chunk of 40 rows a part."""
    monkeypatch.setattr("dpsynth.tables.checks.CHUNK", 40)
    monkeypatch.setattr(reading, "CELLS", 1)


def table(patients: int = 90, **changes: Any) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "patient": rng.integers(0, patients, ROWS).astype(str),
            "value": rng.integers(0, 200, ROWS),
            "visit": rng.integers(0, 50, ROWS),
        }
    )
    return frame.assign(**changes)


def sharded(frame: pd.DataFrame, schema: Schema, folder: Path, shards: int = 5) -> ShardedRows:
    source = open_table(frame, schema)
    return read_shards(source, Codec(schema), schema, OsEntropy(), folder, shards=shards)


def halved(codes: Any) -> Any:
    return codes[..., 0] // 2


def counted(rows: AnyRows, event: JointHistograms) -> list[list[int]]:
    """Visits of the unit, the value in parts of 50, half of the value, and all pairs of these."""
    cells = [
        UnitRows(),
        Lookup(1, (np.arange(200) // 50).astype(np.uint16)),
        Derived((1,), halved),
    ]
    twice = rows.recoded([Lookup(0), Lookup(0)]).recoded(cells)
    sizes = (event.rows_per_unit, 4, 100)
    one = joint_histograms(twice, sizes, event, Silence(0))
    chosen = ChosenHistograms("pairs", 2, event.rows_per_unit, 1e6, unit_mass=event.unit_mass)
    pairs = [(0, 1), (2, 1)]
    two = chosen_histograms(twice, sizes, pairs, [1e9, 1e9], chosen, Silence(0))
    return [table.ravel().tolist() for table in (*one, *two)]


@pytest.mark.parametrize(
    "own", [{}, {"missing_key": "own"}, {"keep": "window"}, {"key": {"case": True}}], ids=str
)
def test_counts_are_those_of_a_cohort(tmp_path: Path, own: dict[str, Any]) -> None:
    schema = visits(20, **own)
    patients = table()["patient"].map(lambda key: ["", "a", "A"][int(key) % 3] + key[1:])
    frame = table(patient=patients.where(patients.str.len() > 0, None))
    source = replace(schema, unit=replace(schema.unit, max_rows=ROWS))
    event = JointHistograms("rows", 3, ROWS, 500.0, unit_mass=ROWS)
    cohort = read_cohort(open_table(frame, source), Codec(source), source, SeededEntropy(1))
    assert counted(sharded(frame, source, tmp_path), event) == counted(cohort, event)


def test_whole_windows_by_text(tmp_path: Path) -> None:
    """Where nothing is drawn, the rows that are kept are the same ones."""
    schema = visits(2, order="string", keep="window")
    frame = pd.DataFrame(
        {"patient": list("aabb") * 2, "value": range(8), "visit": list("hgfedcba")}
    )
    event = JointHistograms("rows", 1, 2, 50.0)
    (counts,) = sharded(frame, schema, tmp_path).counts([(0,)], (200,), event)
    kept = [np.flatnonzero(counts)[np.flatnonzero(counts) % 4 // 2 == who] for who in (0, 1)]
    by_time = [[5, 4, 1, 0], [7, 6, 3, 2]]
    for found, order in zip(kept, by_time, strict=True):
        assert sorted(found.tolist()) in [sorted(order[i : i + 2]) for i in range(3)]


def test_rows_that_are_units(tmp_path: Path) -> None:
    schema = Schema.from_dict(
        {
            "fields": [
                field for field in visits(1).to_dict()["fields"] if field["name"] == "value"
            ],
            "dpsynth": {
                key: value
                for key, value in visits(1).to_dict()["dpsynth"].items()
                if key in ("version", "population", "rows")
            },
        }
    )
    rows = sharded(table(), schema, tmp_path)
    (counts,) = rows.counts([(0,)], (200,), JointHistograms("rows", 1, 1, 5.0))
    assert counts.tolist() == np.bincount(table()["value"], minlength=200).tolist()
    assert all(shard.rows for shard in rows.shards)


def test_files_are_for_their_owner_alone_and_gone_in_the_end(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with scratch_folder(tmp_path / "place") as folder:
            sharded(table(), visits(3), folder)
            modes = {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()}
            assert (stat.S_IMODE(folder.stat().st_mode), modes) == (0o700, {0o600})
            assert not list(folder.glob("part-*"))
            names = b"".join(file.read_bytes() for file in folder.iterdir())
            assert all(f"patient{n}".encode() not in names for n in range(3))
        assert not list((tmp_path / "place").iterdir())
        with pytest.raises(ZeroDivisionError), scratch_folder(tmp_path / "place") as folder:
            (folder / "codes").write_bytes(b"1")
            raise ZeroDivisionError
    finally:
        os.umask(before)
    assert not list((tmp_path / "place").iterdir())


def test_who_still_writes_when_it_ends_finds_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A worker of a cluster that failed may still be at work: none of its files stays."""
    late = []

    def removing(path: Path) -> None:
        late.append(folder.exists())
        shutil.rmtree(path, ignore_errors=True)

    monkeypatch.setattr(atomic, "_remove_tree", removing)
    with scratch_folder(tmp_path / "place") as folder:
        (folder / "codes").write_bytes(b"1")
    assert late and not any(late)
    assert not list((tmp_path / "place").iterdir())


def test_a_folder_that_cannot_be_removed_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(atomic, "_remove_tree", lambda path: None)
    with pytest.warns(DpsynthWarning, match="place still has a folder .* remove it"):
        with scratch_folder(tmp_path / "place") as folder:
            (folder / "codes").write_bytes(b"1")


def test_what_a_killed_process_left_is_removed_by_the_next(tmp_path: Path) -> None:
    code = (
        "import os, sys; from dpsynth.files import scratch_folder\n"
        "with scratch_folder(sys.argv[1]) as folder:\n"
        "    (folder / 'codes').write_bytes(b'1'); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert len(list(tmp_path.glob("*/codes"))) == 1
    with scratch_folder(tmp_path) as folder, scratch_folder(tmp_path) as other:
        assert {path.name for path in tmp_path.iterdir()} == {folder.name, other.name}


def test_a_lost_or_changed_shard_is_found(tmp_path: Path) -> None:
    rows, event = sharded(table(), visits(3), tmp_path), JointHistograms("rows", 1, 3, 50.0)
    lacking = replace(rows, shards=(replace(rows.shards[0], rows=9**9), *rows.shards[1:]))
    with pytest.raises(DpsynthError, match="lacks rows"):
        lacking.counts([(0,)], (200,), event)
    file = tmp_path / f"{rows.shards[0].groups[0].name}.codes"
    file.write_bytes(file.read_bytes()[:-2])
    with pytest.raises(DpsynthError, match="gone or damaged"):
        rows.counts([(0,)], (200,), event)
    file.unlink()
    with pytest.raises(DpsynthError, match="gone or damaged"):
        rows.counts([(0,)], (200,), event)
    dealt = (Dealt("part", 9**9, np.full(5, 9**9), (b"",) * 5),)
    with pytest.raises(DpsynthError, match="lacks rows or repeats them"):
        check_seated(dealt, rows.shards)


def test_each_shard_is_checked_as_a_cohort_is(tmp_path: Path) -> None:
    rows = sharded(table(), visits(3), tmp_path)
    with pytest.raises(InputError, match="accounts for 2 rows"):
        joint_histograms(rows, (200,), JointHistograms("rows", 1, 2, 50.0), Silence(0))
    with pytest.raises(InputError, match="outside its column"):
        joint_histograms(rows, (100,), JointHistograms("rows", 1, 3, 50.0), Silence(0))


def test_no_room_and_no_folder_are_said_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(InputError, match="is a file, not a folder"),
        scratch_folder(tmp_path / "file"),
    ):
        pass

    def full(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr(np, "save", full)
    with pytest.raises(InputError, match=r"^cannot write shards into .*: no space is left"):
        sharded(table(), visits(3), tmp_path)


def test_a_table_without_keys_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no row has a key"):
        sharded(table(patient=""), visits(3), tmp_path)


def test_exact_counts_of_nobody() -> None:
    nobody = np.zeros((0, 3, 1), np.uint16)

    class Rows:
        codes, mask = nobody, np.zeros((0, 3), bool)

    (counts,) = exact_counts(Rows(), [(0,)], (4,), JointHistograms("rows", 1, 3, 50.0))
    assert counts.tolist() == [0, 0, 0, 0]
