"""A ledger in one SQLite file: made private, locked by the first statement of each writer."""

from __future__ import annotations

import os
import sqlite3
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger_places import default_path

WAIT_SECONDS = 30


@dataclass(frozen=True)
class SqliteFile:
    """A SQLite file; see `dpsynth.ledger_store.Database`."""

    path: Path
    engine: sa.Engine

    @classmethod
    def at(cls, path: Path) -> SqliteFile:
        """Make the file, readable by its owner alone, unless there is one."""
        _make_file(path)
        return cls(path, _engine(path))

    @property
    def place(self) -> str:
        """The path."""
        return str(self.path)

    def now(self, connection: sa.Connection) -> datetime:
        """This machine's clock."""
        return datetime.now(UTC)

    def lock(self, connection: sa.Connection) -> None:
        """Nothing to do: writers begin with BEGIN IMMEDIATE, see `_engine`."""

    def guard(self, connection: sa.Connection, table: str) -> None:
        """Refuse edits and deletions."""
        for verb in ("UPDATE", "DELETE"):
            connection.exec_driver_sql(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            )

    def reason(self, error: DBAPIError) -> InputError | BudgetError:
        """Word SQLite's refusal."""
        said = str(error.orig).lower()
        if "not a database" in said or "malformed" in said:
            return InputError(
                f"{self.path} is damaged or no ledger; restore it from a backup, or name another "
                "file"
            )
        if "no such" in said:
            return InputError(f"{self.path} is no ledger of this version")
        if "locked" in said or "busy" in said:
            remedy = f"another process held it for {WAIT_SECONDS} s; try again"
        elif "unable to open" in said and not self.path.exists():
            remedy = "the file is gone; put it back, or restore it from a backup"
        elif "readonly" in said or "unable to open" in said:
            remedy = "it or its folder may not be written to; set DPSYNTH_LEDGER to one that may"
        elif "full" in said or "disk i/o error" in said:
            remedy = "the disk is full or failing; nothing was entered. Free some space, try again"
        elif "append-only" in said:
            remedy = "entries are never edited or deleted"
        else:
            remedy = "the database refused; check the disk and the file"
        return BudgetError(f"ledger {self.path}: {remedy}")


def _make_file(path: Path) -> None:
    """Make an empty file that only its owner can read, unless one exists."""
    try:
        if path == default_path():  # elsewhere, a folder that is missing is a slip of the pen
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError as error:
        if not path.is_file():
            wrong = f"{path} is no file" if path.parent.is_dir() else f"{path.parent} is no folder"
            raise InputError(f"{wrong}; name a file for the ledger") from error
    except OSError as error:
        raise BudgetError(
            f"ledger {path} cannot be made ({os.strerror(error.errno or 0)}); set DPSYNTH_LEDGER "
            "to a file in a folder that you may write to"
        ) from error


def _engine(path: Path) -> sa.Engine:
    """Connect anew for every transaction, so that nothing is shared with a forked process."""
    place = f"{path.absolute().as_uri()}?mode=rw"  # a file that was removed is not made anew
    wait = WAIT_SECONDS
    engine = sa.create_engine(
        "sqlite://",
        creator=lambda: sqlite3.connect(place, uri=True, timeout=wait),
        poolclass=sa.NullPool,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        # Python's sqlite3 would otherwise begin transactions on its own, too late.
        connection.isolation_level = None
        # Not FULL: that leaves the end of a journal to chance, and a commit could be undone by a
        # power cut. The second pragma matters on macOS alone.
        try:
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")
        except UnicodeDecodeError:  # of SQLite's own message, which quotes the file's tables
            raise sqlite3.DatabaseError("malformed") from None

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        writes = connection.get_execution_options().get("dpsynth_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine
