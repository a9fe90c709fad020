"""P14, end to end: a fit that is killed counts, and leaves nothing that looks like a run.

The check: fits in processes of their own are ended by a signal, while they read and at the last
moment of saving. The entry stays open after SIGKILL and is closed after SIGTERM; either way it
counts, and no run is left, whole or in part.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth.errors import ArtifactError
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.synthesis import Run

from ..support.forked_command import ForkedCommand

Visits = Callable[[int], pd.DataFrame]
Shell = Callable[..., Any]


def runs_in(folder: Path) -> list[str]:
    """Folders that a person, a glob or a tool would take for a run."""
    shown = [path for path in folder.iterdir() if path.is_dir() and not path.name.startswith(".")]
    return [path.name for path in shown if (path / "run.json").exists()]


WAIT = "print('here', flush=True); time.sleep(60)"
STOPPED = {
    "reading": f"""
from dpsynth.tables.csv import CsvTable
def waiting(self, progress=None):
    {WAIT}
    yield
CsvTable.chunks = waiting
""",
    "saving": f"""
replace = os.replace
def waiting(source, target):
    if os.path.basename(target) == "run":
        {WAIT}
    replace(source, target)
os.replace = waiting
""",
}
SIGNALS = {"killed": signal.SIGKILL, "asked to end": signal.SIGTERM}
FIT = "fit clinic.schema.yaml source.csv --dataset clinic --epsilon 2 --delta 1e-5".split()
FIT += ["--model", "independent", "-o", "run", "--quiet"]


@pytest.fixture(scope="module")
def ended(
    clinic: Schema, visits: Visits, tmp_path_factory: pytest.TempPathFactory
) -> dict[tuple[str, str], Path]:
    """Run fits in processes of their own; end each by a signal while it is reading, or saving."""
    folders: dict[tuple[str, str], Path] = {}
    processes: dict[tuple[str, str], ForkedCommand] = {}
    for how in SIGNALS:
        for place, patch in STOPPED.items():
            folder = folders[how, place] = tmp_path_factory.mktemp("office")
            clinic.save(folder / "clinic.schema.yaml")
            visits(40).to_csv(folder / "source.csv", index=False)
            Ledger.create(folder / "ledger.sqlite")
            processes[how, place] = ForkedCommand(
                f"import os, time\n{patch}", FIT, folder, DPSYNTH_LEDGER="ledger.sqlite"
            )
    try:
        for (how, _), process in processes.items():
            assert (line := process.output.readline()) == "here\n", line + process.output.read()
            process.end(SIGNALS[how])
    finally:
        for process in processes.values():
            process.close()
    return folders


@pytest.mark.parametrize("place", STOPPED)
def test_a_killed_fit_counts_and_leaves_no_run(
    place: str, ended: dict[tuple[str, str], Path], shell: Shell
) -> None:
    folder = ended["killed", place]
    ledger = Ledger(folder / "ledger.sqlite")
    assert [entry.status for entry in ledger.entries()] == ["reading"]
    assert ledger.spent("clinic").epsilon_sum == 2.0
    assert runs_in(folder) == []
    with pytest.raises(ArtifactError, match="is not a run folder: it does not exist"):
        Run.load(folder / "run")
    output = shell(folder, *FIT)  # the name is free, and the next certificate counts both
    assert output.code == 0, output.err
    charge = Run.load(folder / "run").certificate["ledger"]
    assert (charge["fits"], charge["epsilon_total"]) == (2, 4.0)


@pytest.mark.parametrize("place", STOPPED)
def test_a_fit_that_is_asked_to_end_closes_its_entry(
    place: str, ended: dict[tuple[str, str], Path]
) -> None:
    """As a scheduler does it, by SIGTERM; then nothing is left of it but the entry."""
    folder = ended["asked to end", place]
    [entry] = Ledger(folder / "ledger.sqlite").entries()
    assert (entry.status, entry.note) == ("failed", "KeyboardInterrupt")
    names = sorted(path.name for path in folder.iterdir())
    assert names == ["clinic.schema.yaml", "ledger.sqlite", "source.csv"]


def test_a_run_that_is_written_in_place_is_caught(
    clinic: Schema, visits: Visits, shell: Shell, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Broken twin: files appear one by one in the run's own folder, and stay there."""

    @contextmanager
    def in_place(folder: str | Path, **_: object) -> Iterator[Path]:
        Path(folder).mkdir()
        yield Path(folder)
        raise KeyboardInterrupt

    clinic.save(tmp_path / "clinic.schema.yaml")
    visits(40).to_csv(tmp_path / "source.csv", index=False)
    monkeypatch.setattr("dpsynth.synthesis.run.atomic_folder", in_place)
    assert shell(tmp_path, *FIT).code == 130
    assert runs_in(tmp_path) == ["run"]
