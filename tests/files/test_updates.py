"""Lists beside a run: what several commands add at once is all there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dpsynth._util.strict_json import file_digest
from dpsynth.synthesis import read_samples
from dpsynth.tables import simulate

from ..support.quick_fit import quick_fit

COMMAND = [sys.executable, "-m", "dpsynth"]
SAMPLE = [*COMMAND, "sample", "run", "--rows", "20", "--quiet", "-o"]


def made(folder: Path) -> None:
    quick_fit(simulate(60, seed=1), "demo", output=folder / "run")


@pytest.mark.long
@pytest.mark.parametrize(("own", "same"), [(2, 2), pytest.param(4, 3, marks=pytest.mark.long)])
def test_every_one_of_many_samples_at_once_is_recorded(own: int, same: int, tmp_path: Path) -> None:
    """Some into files of their own, and some into one: of these, one wins and is recorded."""
    made(tmp_path)
    names = [f"{number}.csv" for number in range(own)] + ["same.csv"] * same
    processes = [
        subprocess.Popen([*SAMPLE, name], cwd=tmp_path, stderr=subprocess.DEVNULL) for name in names
    ]
    codes = [process.wait(120) for process in processes]
    assert codes[:own] == [0] * own and sorted(codes[own:]) == [0] + [2] * (same - 1)
    samples = read_samples(tmp_path / "run")
    assert sorted(one.name for one in samples) == sorted({*names})
    assert all(file_digest(tmp_path / one.name) == one.sha256 for one in samples)


@pytest.mark.long
def test_output_that_nobody_reads_stops_nothing(tmp_path: Path) -> None:
    """A closed pipe, closed streams and a full disk: the table is made and recorded."""
    made(tmp_path)
    line = f"{sys.executable} -m dpsynth sample run --rows 20 -o"
    ends = {
        "pipe.csv": ("| true; exit ${PIPESTATUS[0]}", (0, 141)),
        "closed.csv": (">&-", (2,)),
        "full.csv": (">/dev/full", (2,)),
        "silent.csv": ("2>&-", (0,)),
        "full2.csv": ("2>/dev/full", (0,)),
    }
    for name, (end, codes) in ends.items():
        done = subprocess.run(
            ["bash", "-c", f"{line} {name} {end}"], cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode in codes, (name, done)
        assert "Traceback" not in done.stderr and "unexpected" not in done.stderr
        if codes == (2,):
            assert "could not be written to standard output" in done.stderr
    assert {sample.name for sample in read_samples(tmp_path / "run")} == {*ends}
    assert sorted(path.name for path in tmp_path.glob("*.csv")) == sorted(ends)
    assert not [name for name in os.listdir(tmp_path) if name.startswith(".tmp-")]
