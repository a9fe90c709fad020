"""docs/extending.md: a database from outside the package holds a ledger."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

import dpsynth
from dpsynth.bundle import evidence_by_folder
from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger import Backend, Ledger, back_up, exported, verify_ledger
from dpsynth.ledger.database import BACKENDS
from dpsynth.schema import Schema

PLACE = "memory://office"


@dataclass(frozen=True)
class Memory:
    """A database in the memory of this process, by its name."""

    place: str
    engine: sa.Engine
    server: bool = False

    @classmethod
    def at(cls, location: str, must_exist: bool = True) -> Memory:
        """Return the database of that name; a new one is empty."""
        name = location.removeprefix("memory://")
        if not name.isalnum():
            raise InputError("a ledger in memory is named like memory://office")
        if name not in ENGINES:
            ENGINES[name] = engine_of(name)
        return cls(location, ENGINES[name])

    def is_file(self, path: Path) -> bool:
        """No file is the database."""
        return False

    def backup(self, target: Path, check: Callable[[Path], None]) -> None:
        """There is nothing to copy."""
        raise InputError("a ledger in memory has no backup")

    def appear(self, fill: Callable[[sa.Connection], None]) -> bool:
        """It is there already; its tables can be made."""
        return False

    def lock(self, connection: sa.Connection) -> None:
        """Nothing to do: a writer begins with BEGIN IMMEDIATE."""

    def now(self, connection: sa.Connection) -> datetime:
        """This machine's clock."""
        return datetime.now(UTC)

    def guard(self, connection: sa.Connection, table: str) -> None:
        """Refuse edits and deletions."""
        for verb in ("UPDATE", "DELETE"):
            connection.exec_driver_sql(
                f"CREATE TRIGGER {table}_no_{verb} BEFORE {verb} ON {table} "
                "BEGIN SELECT RAISE(ABORT, 'append-only'); END"
            )

    def reason(self, error: DBAPIError) -> InputError | BudgetError:
        """Word every refusal alike."""
        return BudgetError(f"ledger {self.place}: the database refused")


ENGINES: dict[str, sa.Engine] = {}


def engine_of(name: str) -> sa.Engine:
    """Connect to a database that lives as long as one connection to it is open."""
    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(f"file:{name}?mode=memory&cache=shared", uri=True),
        poolclass=sa.StaticPool,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        connection.isolation_level = None

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("dpsynth_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


@pytest.fixture(autouse=True)
def _memory(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    kinds = "dpsynth.ledger.database.BACKENDS"
    monkeypatch.setattr(kinds, [*BACKENDS, Backend(("memory",), Memory.at)])
    yield
    for engine in ENGINES.values():
        engine.dispose()
    ENGINES.clear()


@pytest.fixture
def ledger(monkeypatch: pytest.MonkeyPatch) -> Ledger:
    Ledger.create(PLACE)
    monkeypatch.setenv("DPSYNTH_LEDGER", PLACE)
    return Ledger.default()


def test_a_fit_is_charged_there_and_the_chain_holds(ledger: Ledger, tmp_path: Path) -> None:
    counted = {"value": 50, "basis": "a test"}
    own = {"version": 1, "population": counted, "rows": counted}
    schema = Schema.from_dict(
        {"name": "ward", "fields": [{"name": "fever", "type": "boolean"}], "dpsynth": own}
    )
    rows = pd.DataFrame({"fever": ["true", "false"] * 25})
    dpsynth.fit(
        *(rows, schema),
        epsilon=1.0,
        delta=1e-6,
        dataset="ward",
        model="independent",
        output=tmp_path / "run",
    )
    (entry,) = Ledger(PLACE).entries()
    assert entry.status == "charged"
    assert entry.epsilon == 1.0
    assert verify_ledger(Ledger(PLACE), evidence_by_folder([tmp_path / "run"]))


def test_rows_of_the_ledger_cannot_be_edited(ledger: Ledger) -> None:
    with (
        pytest.raises(BudgetError, match=f"ledger {PLACE}: the database refused"),
        ledger.store.writing() as connection,
    ):
        connection.exec_driver_sql("DELETE FROM dpsynth_ledger")


def test_what_depends_on_the_kind_of_database_is_asked_of_it(
    ledger: Ledger, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="has no backup"):
        back_up(ledger, tmp_path / "copy.sqlite")
    assert exported(ledger, tmp_path / "ledger.json").exists()
    with pytest.raises(InputError, match="is a ledger already"):
        Ledger.create(PLACE)
    with pytest.raises(InputError, match="named like memory://office"):
        Ledger("memory://../elsewhere")
