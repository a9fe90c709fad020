"""P14: a fit that would be charged and then find no place for its files is refused before.

Every place that a paid fit writes to is claimed before the charge: the run, the shards of coded
rows, and the open files of the process.
"""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import Any

import pytest

from dpsynth import Execution, fit
from dpsynth.errors import InputError
from dpsynth.files import check_open_files
from dpsynth.ledger import Ledger, charging
from dpsynth.schema import Schema
from dpsynth.synthesis import readers
from dpsynth.tables import simulate

ROOM = 100_000  # bytes that are left on the disk


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """A disk that has room for the run, and none for the shards."""

    def allocate(descriptor: int, start: int, size: int) -> None:
        if "dpsynth-shards" in os.readlink(f"/proc/self/fd/{descriptor}") and size > ROOM:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", allocate)


def fitted(folder: Path) -> Any:
    ledger = Ledger.create(folder / "ledger.sqlite")
    options = {"epsilon": 3.0, "delta": 1e-6, "dataset": "d", "model": "independent"}
    fit(
        simulate(50, seed=1),
        Schema.load("demo"),
        ledger=ledger,
        output=folder / "run",
        execution=Execution(shards=folder / "shards"),
        **options,
    )
    return ledger


@pytest.mark.usefixtures("full_disk")
def test_shards_without_room_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match="may take .* no space is left on the disk"):
        fitted(tmp_path)
    assert Ledger(tmp_path / "ledger.sqlite").entries() == []
    # the broken twin claims no room: the fit is charged, and only then is the disk found full
    monkeypatch.setattr(readers, "_room", lambda prepared: 0)
    (tmp_path / "twin").mkdir()
    assert len(fitted(tmp_path / "twin").entries()) == 1


def test_too_few_open_files_cost_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    opened = len(os.listdir("/proc/self/fd"))

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (20, hard))
        try:
            check_open_files()
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

    monkeypatch.setattr(charging, "check_open_files", limited)
    with pytest.raises(InputError, match="32 open files .* raise the limit .* Nothing was charged"):
        fitted(tmp_path)
    assert Ledger(tmp_path / "ledger.sqlite").entries() == []
    check_open_files()  # and all that were tried are closed again
    assert len(os.listdir("/proc/self/fd")) == opened
