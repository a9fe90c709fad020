"""Where the ledger lies: whose file it is, which is asked for, what is said when it is none."""

from __future__ import annotations

import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dpsynth.errors import BudgetError, InputError, VerificationError
from dpsynth.ledger import Ledger, verify_ledger
from dpsynth.ledger.ledger import Entry

Reserve = Callable[..., Entry]


def test_file_and_folder_are_the_owners_alone(
    tmp_path: Path, reserve: Reserve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DPSYNTH_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    reserve(Ledger.default())
    path = tmp_path / "state" / "dpsynth" / "ledger.sqlite"
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_folder_that_is_named_and_missing_is_not_made(tmp_path: Path) -> None:
    """A share that is not mounted must not become an empty ledger."""
    with pytest.raises(BudgetError, match="cannot be created"):
        Ledger.create(tmp_path / "share" / "ledger.sqlite")
    assert not (tmp_path / "share").exists()


def test_the_ledger_keeps_its_identity_and_key(location: str, tmp_path: Path) -> None:
    first, again, other = (
        Ledger.create(location),
        Ledger(location),
        Ledger.create(tmp_path / "other.sqlite"),
    )
    assert (first.id, first.key) == (again.id, again.key)
    assert first.id != other.id and first.key != other.key
    assert len(first.key) == 32


def test_the_location_comes_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "env.sqlite"))
    for opened in (Ledger, Ledger.existing, Ledger.default):
        with pytest.raises(InputError, match=r"there is no ledger at .*dpsynth ledger create"):
            opened()
    assert Ledger.create().place == str(tmp_path / "env.sqlite")
    assert Ledger.existing() is not None
    assert Ledger.create(f"sqlite:///{tmp_path}/url.sqlite").place == str(tmp_path / "url.sqlite")
    monkeypatch.delenv("DPSYNTH_LEDGER")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert Ledger.existing() is None
    assert Path(Ledger.default().place).is_relative_to(tmp_path)


@pytest.mark.parametrize(
    "url", ["mysql://host/db", "sqlite://", "sqlite:///", "sqlite:///x?mode=ro"]
)
def test_an_unknown_location_is_refused(url: str) -> None:
    with pytest.raises(InputError, match="a ledger's location is"):
        Ledger(url)


def test_a_file_of_another_kind_is_refused(tmp_path: Path) -> None:
    text = tmp_path / "text.sqlite"
    text.write_text("patient,age\n" * 100)
    with pytest.raises(InputError, match="damaged or not a ledger"):
        Ledger(text)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE patients (id)")
    connection.close()
    with pytest.raises(InputError, match="is a database, but no ledger"):
        Ledger(other)
    with pytest.raises(InputError, match="is not a file"):
        Ledger(tmp_path)


def test_a_damaged_ledger_is_a_clear_error(tmp_path: Path, reserve: Reserve) -> None:
    path = tmp_path / "ledger.sqlite"
    ledger = Ledger.create(path)
    for _ in range(50):
        reserve(ledger)
    content = bytearray(path.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    path.write_bytes(content)
    with pytest.raises(InputError, match="damaged or not a ledger"):
        reserve(Ledger(path))


def test_a_ledger_of_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    Ledger.create(path)
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TRIGGER dpsynth_ledger_no_update")
        connection.execute("UPDATE dpsynth_ledger SET version = 99")
    connection.close()
    with pytest.raises(InputError, match="another version"):
        Ledger(path)


@pytest.mark.parametrize("table", ["dpsynth_ledger", "dpsynth_records", "dpsynth_sources"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET {} = {}", "DELETE FROM {0}", "TRUNCATE {0}"])
def test_the_database_refuses_edits(
    ledger: Ledger, reserve: Reserve, table: str, statement: str
) -> None:
    if "TRUNCATE" in statement and not ledger.store.shared:
        statement = "DELETE FROM {0}"  # SQLite has no other way
    reserve(ledger)
    ledger.saw(ledger.entries()[0].id, "digest")
    column = "entry" if table == "dpsynth_sources" else "version"
    column = "who" if table == "dpsynth_records" else column
    engine = ledger.store.database.engine
    with pytest.raises(sa.exc.DBAPIError, match="append-only"), engine.connect() as connection:
        connection = connection.execution_options(dpsynth_writes=True)
        with connection.begin():
            connection.exec_driver_sql(statement.format(table, column, column))
    assert ledger.spent("cardio").fits == 1


@pytest.mark.parametrize("year", [1970, 9999])
def test_a_clock_out_of_all_reason_writes_nothing(
    ledger: Ledger, reserve: Reserve, year: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = datetime(year, 1, 1, tzinfo=UTC)
    monkeypatch.setattr(type(ledger.store.database), "now", lambda self, connection: moment)
    with pytest.raises(BudgetError, match="the clock says"):
        reserve(ledger)
    assert ledger.records() == []


def test_a_clock_that_was_set_forward_shows(
    ledger: Ledger, reserve: Reserve, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = datetime.now(UTC) + timedelta(days=366)
    monkeypatch.setattr(type(ledger.store.database), "now", lambda self, connection: moment)
    reserve(ledger)
    with pytest.raises(VerificationError, match="a clock was set forward"):
        verify_ledger(ledger)


def test_other_tables_may_lie_beside_it_on_a_server(server: Any, reserve: Reserve) -> None:
    import psycopg

    url = server.new()
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE ledger (id int)")
    assert reserve(Ledger.create(url)).status == "reserved"


def test_two_makers_of_one_ledger_agree(location: str) -> None:
    code = (
        "import sys\n"
        "from dpsynth.errors import InputError\nfrom dpsynth.ledger import Ledger\n"
        "try: Ledger.create(sys.argv[1])\n"
        "except InputError as error: print('already' in str(error), file=sys.stderr)\n"
        "print(Ledger(sys.argv[1]).id)"
    )
    makers = [
        subprocess.Popen([sys.executable, "-c", code, location], stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    outputs = {maker.communicate(timeout=120)[0] for maker in makers}
    assert [maker.returncode for maker in makers] == [0] * 4
    assert outputs == {f"{Ledger(location).id}\n"}
