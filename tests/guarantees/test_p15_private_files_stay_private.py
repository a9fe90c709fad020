"""P15: real rows are never left where others can read them, nor put into what is given away.

Temporary files are for their owner alone from the start; signals remove them, and what a killed
process left is removed by the next one; internal outputs never lie in a run or a bundle.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.files import atomic, atomic_folder, check_apart, remove_leftovers, write_atomically
from dpsynth.schema import Schema
from dpsynth.tables import split_file

from ..support.some_cases import some_of

Visits = Callable[[int], pd.DataFrame]
Shell = Callable[..., Any]

SLOW = """
import os, signal, sys, time
for number in (signal.SIGHUP, signal.SIGQUIT):  # a job in the background ignores them
    signal.signal(number, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
from dpsynth.tables import splitting
write = splitting._{kind}
def waiting(*words):
    write(*words)
    print("here", flush=True); time.sleep(60)
splitting._{kind} = waiting
os.umask(0)
from dpsynth.cli import main; main(sys.argv[1:])
"""


@contextmanager
def splitting(folder: Path, kind: str) -> Iterator[subprocess.Popen[str]]:
    """A split in a process of its own, which has written its rows and not yet ended."""
    suffix = {"write_text": "csv", "write_parquet": "parquet"}[kind]
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW.format(kind=kind), "split", "clinic.schema.yaml",
         f"source.{suffix}", "-o", "split", "--quiet"],
        cwd=folder, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None and process.stdout.readline() == "here\n"
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def office(clinic: Schema, visits: Visits, tmp_path: Path) -> Path:
    clinic.save(tmp_path / "clinic.schema.yaml")
    visits(60).to_csv(tmp_path / "source.csv", index=False)
    visits(60).to_parquet(tmp_path / "source.parquet")
    return tmp_path


def open_to_others(folder: Path) -> list[str]:
    """Temporary names of a folder that anybody but their owner has any right to."""
    found = []
    for top in folder.glob(".tmp-*"):
        for path in (top, *top.rglob("*")):
            if path.stat().st_mode & 0o077:
                found.append(path.name)
    return found


@pytest.mark.parametrize("kind", ["write_text", "write_parquet"])
def test_what_a_killed_split_leaves_is_private_and_goes_with_the_next(
    kind: str, office: Path
) -> None:
    with splitting(office, kind) as process:
        assert list(office.glob(".tmp-*")) and open_to_others(office) == []
        write_atomically(office / "living.json", b"{}")  # its writer is alive: nothing is removed
        assert list(office.glob(".tmp-*"))
        process.send_signal(signal.SIGKILL)
        process.wait(20)
    assert list(office.glob(".tmp-*")) and open_to_others(office) == []
    write_atomically(office / "next.json", b"{}")
    assert not list(office.glob(".tmp-*"))


@pytest.mark.parametrize(
    "name", some_of(["SIGTERM", "SIGHUP", "SIGQUIT", "SIGINT", "SIGXCPU"], every=3)
)
def test_a_signal_leaves_nothing(name: str, office: Path) -> None:
    number = getattr(signal, name)
    with splitting(office, "write_text") as process:
        process.send_signal(number)
        assert process.wait(120) == 128 + number  # Python itself takes seconds on a busy machine
    assert not list(office.glob(".tmp-*")) and not (office / "split").exists()


def test_files_that_are_open_to_others_are_caught(office: Path) -> None:
    """Broken twin: permissions come when all is written, as they did before."""
    before = os.umask(0o022)
    try:
        with pytest.raises(KeyboardInterrupt), atomic_folder(office / "split") as folder:
            (folder / "train.csv").write_text("real")
            assert set(open_to_others(office)) == {folder.name, "train.csv"}
            raise KeyboardInterrupt
    finally:
        os.umask(before)


def test_leftovers_without_a_lock_are_removed_from_the_living_and_caught(
    office: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: whoever comes next removes every temporary name."""
    with atomic_folder(office / "split", private=True) as folder:
        remove_leftovers(office)
        assert folder.is_dir()
        monkeypatch.setattr(atomic, "_is_abandoned", lambda path: True)
        remove_leftovers(office)
        assert not folder.exists()
        folder.mkdir()


def test_another_machines_files_and_a_persons_stay(tmp_path: Path) -> None:
    foreign = tmp_path / ".tmp-0000000012345678-split"
    own = tmp_path / f".tmp-{atomic._machine()}12345678-split"
    mine = tmp_path / ".tmp-notes"
    for path in (foreign, own, mine):
        path.write_text("x")
    remove_leftovers(tmp_path)
    assert foreign.exists() and mine.exists() and not own.exists()


INTERNAL = {
    "split": "split clinic.schema.yaml source.csv -o {}",
    "not private": "fit clinic.schema.yaml source.csv --not-private --model tvae -o {}",
    "evaluate": "evaluate clinic.schema.yaml source.csv --synthetic source.csv -o {}",
    "compare": "compare clinic.schema.yaml source.csv a=source.csv b=source.csv -o {}",
    "audit": "audit clinic.schema.yaml --train source.csv --synthetic source.csv "
    "--holdout source.csv -o {}",
    "ledger export": "ledger export -o {}",
    "ledger backup": "ledger backup {}",
}


@pytest.mark.parametrize("holder", ["run.json", "datapackage.json"])
@pytest.mark.parametrize("command", INTERNAL)
def test_nothing_internal_goes_into_a_run_or_a_bundle(
    command: str, holder: str, office: Path, shell: Shell
) -> None:
    from dpsynth.ledger import Ledger

    Ledger.create(office / "ledger.sqlite")
    (office / "given").mkdir()
    (office / "given" / holder).write_text("{}")
    (office / "link").symlink_to("given")
    for place in ("given/x", "given/deep/x", "link/x", "given/../link/x"):
        output = shell(office, *INTERNAL[command].format(place).split())
        assert output.code == 2 and f"that contains {holder}" in output.err, output.err
    assert os.listdir(office / "given") == [holder]


def test_a_split_into_a_bundle_is_caught(
    office: Path, clinic: Schema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: nobody looks where the split goes."""
    (office / "bundle").mkdir()
    (office / "bundle" / "datapackage.json").write_text("{}")
    with pytest.raises(InputError, match="must not go into a run or a bundle"):
        split_file(office / "source.csv", clinic, office / "bundle" / "split")
    monkeypatch.setattr("dpsynth.tables.splitting.check_apart", lambda path: None)
    split_file(office / "source.csv", clinic, office / "bundle" / "split")
    assert (office / "bundle" / "split" / "train.csv").exists()


def test_a_place_that_will_be_a_bundle_counts_too(tmp_path: Path) -> None:
    check_apart(tmp_path / "bundle.internal", tmp_path / "bundle")
    (tmp_path / "link").symlink_to("bundle")
    for place in ("bundle", "bundle/internal", "link/internal"):
        with pytest.raises(InputError, match="that other people will receive"):
            check_apart(tmp_path / place, tmp_path / "bundle")


def test_a_pipe_is_refused_and_not_waited_for(office: Path, shell: Shell) -> None:
    os.mkfifo(office / "pipe.csv")
    started = time.monotonic()
    fit = "fit clinic.schema.yaml pipe.csv --dataset x --epsilon 1 --delta 1e-6 -o run"
    for line in (
        fit,
        "split clinic.schema.yaml pipe.csv -o split",
        "split clinic.schema.yaml source.csv --opt-out pipe.csv -o split",
        "schema check clinic.schema.yaml pipe.csv",
        "evaluate clinic.schema.yaml pipe.csv --synthetic source.csv",
        "evaluate clinic.schema.yaml source.csv --synthetic pipe.csv",
        "evaluate clinic.schema.yaml source.csv --synthetic source.csv --holdout pipe.csv",
        "audit clinic.schema.yaml --train pipe.csv --synthetic pipe.csv --holdout pipe.csv",
    ):
        output = shell(office, *line.split())
        assert output.code == 2 and "pipe.csv" in output.err, output.err
    assert time.monotonic() - started < 60
