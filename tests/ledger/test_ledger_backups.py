"""Backups by the command line: whole, taken while others write, and put back."""

from __future__ import annotations

import shutil
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest

from dpsynth.ledger import Ledger

from ..support.office_commands import Cli, fit


def test_a_backup_is_whole_and_can_be_put_back(cli: Cli) -> None:
    fit(cli, "one")
    backup = cli("ledger", "backup", "copy.sqlite")
    assert backup.code == 0
    assert stat.S_IMODE(Path("copy.sqlite").stat().st_mode) == 0o600
    fit(cli, "two", data="other.csv")
    assert cli("ledger", "backup", "copy.sqlite").code == 2  # nothing is written over
    shutil.copy("copy.sqlite", "ledger.sqlite")  # the last fit is lost with it
    output = cli("ledger", "show")  # whoever used it since notices
    assert output.code == 4 and "is not as you last saw it" in output.err
    assert cli("ledger", "verify", "--against", "one").code == 5
    assert fit(cli, "three").code == 4
    assert cli("ledger", "verify", "--accept", "--against", "one").code == 0
    lost = cli("ledger", "verify", "--against", "two")
    assert lost.code == 5 and "it was replaced with an old backup" in lost.err
    assert fit(cli, "three").code == 0


@pytest.mark.parametrize("name", ["led#1.sqlite", "led?2%20.sqlite", "a b.sqlite"])
def test_a_backup_of_any_name_is_that_ledger(
    cli: Cli, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / name))
    Ledger.create()
    assert fit(cli, "one").code == 0
    assert cli("ledger", "backup", "copy.sqlite").code == 0
    assert Ledger("copy.sqlite").records() == Ledger().records() != []
    assert {path.name for path in tmp_path.glob("led*")} <= {name, "ledger.sqlite"}


def test_a_copy_that_is_none_is_no_backup(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Broken twin: whatever is copied, it is another ledger."""
    fit(cli, "one")
    connect = sqlite3.connect

    def elsewhere(place: Any, *rest: Any, **more: Any) -> Any:
        if "mode=ro" in str(place):
            place = ":memory:"
        return connect(place, *rest, **more)

    monkeypatch.setattr("sqlite3.connect", elsewhere)
    refused = cli("ledger", "backup", "copy.sqlite")
    assert refused.code == 4 and "differs from it" in refused.err
    assert not Path("copy.sqlite").exists()


def test_a_backup_is_taken_while_others_write(cli: Cli) -> None:
    fit(cli, "one")
    with Ledger().writing():
        assert cli("ledger", "backup", "copy.sqlite").code == 0
    assert Ledger("copy.sqlite").spent("ward-2019").fits == 1


def test_a_backup_that_cannot_be_written_leaves_nothing(cli: Cli) -> None:
    fit(cli, "one")
    Path("file").write_text("")
    refused = cli("ledger", "backup", "file/copy.sqlite")
    assert refused.code in (2, 4) and "file" in refused.err
    assert sorted(path.name for path in Path().iterdir() if "copy" in path.name) == []


def test_a_ledger_on_a_server_is_backed_up_there(
    cli: Cli, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_LEDGER", server.new())
    Ledger.create()
    assert fit(cli, "one").code == 0
    refused = cli("ledger", "backup", "copy.sqlite")
    assert refused.code == 2 and "pg_dump" in refused.err
    assert cli("ledger", "verify", "--against", "one").code == 0


def test_a_server_s_dump_is_put_back_whole(
    cli: Cli, server: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Backup and restore as the server's own tools do it: key, chain and guards come along."""
    first, second = server.new(), server.new()
    monkeypatch.setenv("DPSYNTH_LEDGER", first)
    Ledger.create()
    assert fit(cli, "one").code == 0
    server.copy(first, second)
    monkeypatch.setenv("DPSYNTH_LEDGER", second)
    assert cli("ledger", "verify", "--against", "one").code == 0
    assert fit(cli, "two", data="other.csv").code == 0
    assert Ledger().spent("ward-2019").fits == 2
    monkeypatch.setenv("DPSYNTH_LEDGER", first)
    lost = cli("ledger", "verify", "--against", "two")
    assert lost.code == 5 and "it was replaced with an old backup" in lost.err
