"""A ledger out of reach: held by another, removed, no room, no connection; nothing is lost."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from dpsynth.errors import BudgetError
from dpsynth.ledger import Ledger, database
from dpsynth.ledger.ledger import Entry

from ..support.unprivileged import unprivileged

Reserve = Callable[..., Entry]


def test_a_place_that_cannot_be_written_is_a_clear_error(reserve: Reserve) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chmod(folder, 0o755)
        path = folder / "ledger.sqlite"
        reserve(Ledger.create(path))
        os.chmod(path, 0o444)
        os.chmod(folder, 0o555)
        with unprivileged():
            with pytest.raises(BudgetError, match="set DPSYNTH_LEDGER"):
                Ledger.create(folder / "new.sqlite")
            ledger = Ledger(path)
            assert ledger.spent("cardio").fits == 1  # an auditor may still read
            with pytest.raises(BudgetError, match="is read-only; set DPSYNTH_LEDGER"):
                reserve(ledger)
        os.chmod(folder, 0o755)


def test_a_ledger_held_by_another_is_a_clear_error(
    location: str, reserve: Reserve, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert database.WAIT_SECONDS == 300
    monkeypatch.setattr(database, "WAIT_SECONDS", 0.1)
    impatient = Ledger.create(location)
    with impatient.writing(), pytest.raises(BudgetError, match="another process locked it"):
        reserve(impatient)
    assert reserve(impatient).status == "reserved"


def test_a_ledger_that_was_removed_is_not_made_anew(sqlite: Ledger, reserve: Reserve) -> None:
    """A fit that began with one ledger must not go on with an empty one."""
    reserve(sqlite)
    Path(sqlite.place).unlink()
    with pytest.raises(BudgetError, match="the file is missing"):
        reserve(sqlite)
    assert not Path(sqlite.place).exists()


def test_a_commit_outlives_a_power_cut(sqlite: Ledger) -> None:
    """EXTRA (3) also writes down that the journal is gone; with FULL a commit could come undone."""
    with sqlite.store.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == 3


@contextmanager
def little_room(ledger: Ledger) -> Iterator[None]:
    """Let a SQLite file grow no more: what a full disk says, from the same place in SQLite."""

    def limit(connection: Any, record: Any) -> None:
        connection.execute("PRAGMA max_page_count = 1")  # means: as large as it is

    engine = ledger.store.database.engine
    sa.event.listen(engine, "connect", limit)
    try:
        yield
    finally:
        sa.event.remove(engine, "connect", limit)


def test_a_full_disk_enters_nothing_and_loses_nothing(sqlite: Ledger, reserve: Reserve) -> None:
    reserve(sqlite)
    fits = 1
    with little_room(sqlite), pytest.raises(BudgetError, match="the disk is full"):
        for _ in range(1000):
            reserve(sqlite, purpose="x" * 200)
            fits += 1
    assert sqlite.spent("cardio").fits == fits < 1000
    reserve(sqlite)  # as soon as there is room
    assert sqlite.spent("cardio").fits == fits + 1


def test_a_lost_connection_is_a_clear_error_and_loses_nothing(
    server: Any, reserve: Reserve
) -> None:
    ledger = Ledger.create(server.new())
    entry = reserve(ledger)
    try:
        with pytest.raises(BudgetError, match="the connection was lost"), ledger.writing() as pen:
            server.stop()  # in the middle of a transaction
            pen.write("charged", entry.id, {"note": ""})
        with pytest.raises(BudgetError, match="cannot be reached; nothing was entered"):
            reserve(ledger)
    finally:
        server.start()
    assert [entry.status for entry in ledger.entries()] == ["reserved"]
    assert reserve(ledger).status == "reserved"


def test_a_password_is_never_shown() -> None:
    with pytest.raises(BudgetError) as caught:
        Ledger("postgresql://office:hunter2@127.0.0.1:1/ledger")
    assert "hunter2" not in str(caught.value)
    assert "office" in str(caught.value)


def test_a_user_without_rights_is_told(server: Any, reserve: Reserve) -> None:
    import psycopg

    url = server.new()
    reserve(Ledger.create(url))
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS auditor")
        connection.execute("CREATE ROLE auditor LOGIN")
        connection.execute("GRANT SELECT ON dpsynth_ledger, dpsynth_records TO auditor")
    auditor = Ledger(url.replace("office@", "auditor@"))
    assert auditor.spent("cardio").fits == 1
    with pytest.raises(BudgetError, match="cannot write to it"):
        reserve(auditor)
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "GRANT SELECT, INSERT ON dpsynth_sources, dpsynth_records, dpsynth_state TO auditor"
        )
    auditor.saw(reserve(auditor).id, "digest")  # SELECT and INSERT are all that a fit needs
