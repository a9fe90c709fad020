"""The fuzzer: a fast part of it, and what it keeps of an input that fails."""

from __future__ import annotations

import argparse
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from dpsynth.errors import TableError

BENCH = Path(__file__).parents[2] / "bench"
CELL = "Zq7Xv9Wk3Jp"  # one of the canaries
INPUTS = 1200


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


@pytest.mark.long
def test_no_input_of_the_fast_part_fails(tmp_path: Path) -> None:
    """Bad files of every kind; and of each kind some are read, and most are refused."""
    command = [sys.executable, BENCH / "fuzz.py", "--inputs", str(INPUTS), "--seed", "1"]
    done = subprocess.run(
        [*command, "--kept", tmp_path / "kept"], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\n{INPUTS} inputs in " in done.stdout
    lines = {line.split()[0]: line for line in done.stdout.splitlines()[:-1]}
    kinds = {"schema", "policy", "csv", "parquet", "run", "bundle", "ledger", "command", "office"}
    assert set(lines) == kinds
    for kind in kinds - {"command", "office", "bundle"}:
        assert re.search(r"\bread \d", lines[kind]), lines[kind]
    for kind in kinds - {"command", "office"}:
        assert re.search(r"Error \d", lines[kind]), lines[kind]
    assert not (tmp_path / "kept").exists()


def test_a_failing_input_is_kept_made_smaller_and_made_again(tmp_path: Path) -> None:
    """End to end, with a reader that quotes a cell, and with one that dies of some inputs."""
    from fuzz import Tally, fuzz
    from fuzz_engines import noted, replayed
    from fuzz_targets import Target

    def make(rng: Random, folder: Path) -> tuple[Callable[[], None]]:
        bad = rng.random() < 0.3
        file = folder / "table.csv"
        file.write_bytes(rng.randbytes(200) + CELL.encode() * bad + rng.randbytes(200))

        def read() -> None:
            if CELL.encode() in file.read_bytes():
                raise TableError(f"{file.name} holds {CELL}")
            if file.read_bytes()[0] < 20:
                os.kill(os.getpid(), signal.SIGKILL)

        return (read,)

    kept = tmp_path / "kept"
    chosen = argparse.Namespace(seed=3, seconds=5.0, memory=500, engine="chance", kept=kept)
    target = Target("toy", 1.0, make)
    tally = Tally()
    fuzz(target, range(60), tally, chosen, tmp_path / "scratch")
    assert tally.inputs == 60 or len(tally.failures) == 25
    assert tally.outcomes["Died"] > 0
    quoting = [number for number, failure, _ in tally.failures if "private cell" in failure]
    assert quoting and tally.outcomes["TableError"] == len(quoting)
    assert all(
        (kept / f"toy-{number}" / "input" / "table.csv").exists() for number, *_ in tally.failures
    )
    place = kept / f"toy-{quoting[0]}"
    assert (place / "smaller.csv").read_bytes() == CELL.encode()
    assert "private cell" in json.loads((place / "failure.json").read_text())["failure"]
    replayed(target, noted(place), tmp_path / "again")
    again = (tmp_path / "again" / "table.csv").read_bytes()
    assert again == (place / "input" / "table.csv").read_bytes()


@pytest.mark.parametrize("kind", ["schema", "policy", "csv", "parquet"])
def test_the_same_seed_gives_the_same_input(kind: str, tmp_path: Path) -> None:
    from fuzz_engines import Choices, emptied
    from fuzz_good import Good, files_of
    from fuzz_targets import targets

    [target] = [one for one in targets(Good({}, {}, b"")) if one.name == kind]
    inputs = []
    for seed in ("1", "1", "2"):
        target.make(Random(seed), emptied(tmp_path / "input"))
        inputs.append(files_of(tmp_path / "input"))
    assert inputs[0] == inputs[1] != inputs[2]
    for content in (b"", b"\xff" * 500, Random(1).randbytes(999)):  # what libFuzzer may choose
        target.make(Choices(content), emptied(tmp_path / "input"))
        assert files_of(tmp_path / "input")
