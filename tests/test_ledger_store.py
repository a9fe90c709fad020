"""Where the ledger lies: whose file it is, and what is said when it is none or not writable."""

from __future__ import annotations

import os
import sqlite3
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dpsynth import ledger_store
from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger import Entry, Ledger


def reserve(ledger: Ledger) -> Entry:
    return ledger.reserve(
        "cardio",
        purpose="test",
        plan={"events": ["histograms"]},
        epsilon=0.5,
        delta=1e-6,
        model="independent",
        schema_hash="f" * 64,
        allow_refuse=False,
    )


@contextmanager
def unprivileged() -> Iterator[None]:
    """Act as a user without rights: permissions do not bind root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65_534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger(tmp_path / "ledger.sqlite")


def test_file_and_folder_are_the_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "ledger.sqlite"
    reserve(Ledger(path))
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_ledger_keeps_its_identity(tmp_path: Path) -> None:
    first = Ledger(tmp_path / "a.sqlite")
    assert Ledger(tmp_path / "a.sqlite").id == first.id
    assert Ledger(tmp_path / "b.sqlite").id != first.id


def test_the_location_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "env.sqlite"))
    assert Ledger().path == tmp_path / "env.sqlite"
    assert Ledger(f"sqlite:///{tmp_path}/url.sqlite").path == tmp_path / "url.sqlite"
    monkeypatch.delenv("DPSYNTH_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Ledger().path.is_relative_to(tmp_path)


@pytest.mark.parametrize(
    "url", ["postgresql://host/db", "sqlite://", "sqlite:///", "sqlite:///x?mode=ro"]
)
def test_an_unknown_location_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="a ledger's location is"):
        Ledger(url)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.sqlite"
    text.write_text("patient,age\n" * 100)
    with pytest.raises(InputError, match="damaged or no ledger"):
        Ledger(text)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE patients (id)")
    connection.close()
    with pytest.raises(InputError, match="is a database, but no ledger"):
        Ledger(other)
    with pytest.raises(InputError, match="is no file"):
        Ledger(tmp_path)


def test_a_damaged_ledger_is_a_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger(path)
    for _ in range(50):
        reserve(ledger)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged or no ledger"):
        reserve(Ledger(path))


def test_a_ledger_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger(path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER ledger_no_update")
        connection.execute("UPDATE ledger SET version = 2")
    connection.close()
    with pytest.raises(InputError, match="another version"):
        Ledger(path)


def test_a_place_that_cannot_be_written_is_a_clear_error() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chmod(folder, 0o755)
        path = folder / "ledger.sqlite"
        reserve(Ledger(path))
        os.chmod(path, 0o444)
        os.chmod(folder, 0o555)
        with unprivileged():
            with pytest.raises(BudgetError, match="set DPSYNTH_LEDGER"):
                Ledger(folder / "new.sqlite")
            ledger = Ledger(path)
            assert ledger.spent("cardio").fits == 1  # an auditor may still read
            with pytest.raises(BudgetError, match="may not be written to; set DPSYNTH_LEDGER"):
                reserve(ledger)
        os.chmod(folder, 0o755)


def test_a_ledger_held_by_another_is_a_clear_error(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ledger_store.WAIT_SECONDS == 30
    monkeypatch.setattr(ledger_store, "WAIT_SECONDS", 0.1)
    impatient = Ledger(ledger.path)
    holder = sqlite3.connect(ledger.path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(BudgetError, match="another process held it"):
        reserve(impatient)
    holder.execute("ROLLBACK")
    holder.close()
    assert reserve(impatient).status == "reserved"
