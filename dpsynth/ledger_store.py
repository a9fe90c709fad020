"""Where the ledger lies: one SQLite file, its tables, and the transactions on it."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import sqlalchemy as sa
from sqlalchemy import Boolean, Column, Float, ForeignKey, Integer, String, Table, event
from sqlalchemy.exc import DatabaseError

from dpsynth.errors import BudgetError, InputError

VERSION = 1
WAIT_SECONDS = 30

_METADATA = sa.MetaData()

LEDGER = Table(
    "ledger",
    _METADATA,
    Column("id", String, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("created", String, nullable=False),
)
ENTRIES = Table(
    "entries",
    _METADATA,
    Column("number", Integer, primary_key=True),
    Column("id", String, nullable=False, unique=True),
    Column("dataset", String, nullable=False),
    Column("at", String, nullable=False),
    Column("who", String, nullable=False),
    Column("purpose", String, nullable=False),
    Column("model", String, nullable=False),
    Column("schema_hash", String, nullable=False),
    Column("epsilon", Float, nullable=False),
    Column("delta", Float, nullable=False),
    Column("plan", String, nullable=False),
    Column("allow_refuse", Boolean, nullable=False),
)
STATUSES = Table(
    "statuses",
    _METADATA,
    Column("number", Integer, primary_key=True),
    Column("entry_id", String, ForeignKey("entries.id"), nullable=False),
    Column("at", String, nullable=False),
    Column("status", String, nullable=False),
    Column("note", String, nullable=False),
)


@dataclass(frozen=True)
class Store:
    """An open ledger file."""

    path: Path
    engine: sa.Engine

    @classmethod
    def open(cls, location: str | Path) -> Store:
        """Open the ledger at a path or a ``sqlite:///`` URL; make it where there is none.

        A new file has mode 0600, and its folder, if new, 0700.

        Raises:
            InputError: the file is no ledger, is damaged, or is of another version.
            BudgetError: the ledger cannot be made or read there, or is locked.
        """
        path = _path(location)
        _make_file(path)
        store = cls(path, _engine(path))
        with store.reading() as connection:
            tables = set(sa.inspect(connection).get_table_names())
        if not tables:
            store._make_tables()
        elif not set(_METADATA.tables) <= tables:
            raise InputError(f"{path} is a database, but no ledger; name another file")
        store._check_version()
        return store

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Read in one transaction; works on a file that may not be written to."""
        with self._clear_errors(), self.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Write in one transaction that no other writer can enter before it is on the disk."""
        with self._clear_errors(), self.engine.connect() as connection:
            # The lock is taken before the first read, so what is read cannot change until commit.
            connection = connection.execution_options(dpsynth_begin="BEGIN IMMEDIATE")
            with connection.begin():
                yield connection

    def _make_tables(self) -> None:
        """Make the tables and their guards; whoever comes second finds them made."""
        with self.writing() as connection:
            if sa.inspect(connection).get_table_names():
                return
            _METADATA.create_all(connection)
            for table in _METADATA.tables:
                for verb in ("UPDATE", "DELETE"):
                    connection.exec_driver_sql(
                        f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                        "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
                    )
            created = datetime.now(UTC).isoformat(timespec="seconds")
            row = {"id": str(uuid.uuid4()), "version": VERSION, "created": created}
            connection.execute(LEDGER.insert().values(row))

    def _check_version(self) -> None:
        with self.reading() as connection:
            versions = connection.execute(sa.select(LEDGER.c.version)).scalars().all()
        if list(versions) != [VERSION]:
            raise InputError(
                f"{self.path} is a ledger of another version than {VERSION}; use the dpsynth that "
                "wrote it"
            )

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Word the database's refusals; its own messages hold statements and their values."""
        try:
            yield
        except DatabaseError as error:
            self._refuse(str(error.orig).lower(), error)

    def _refuse(self, reason: str, error: DatabaseError) -> NoReturn:
        if "not a database" in reason or "malformed" in reason:
            raise InputError(
                f"{self.path} is damaged or no ledger; restore it from a backup, or name another "
                "file"
            ) from error
        if "no such" in reason:
            raise InputError(f"{self.path} is no ledger of this version") from error
        if "locked" in reason or "busy" in reason:
            remedy = f"another process held it for {WAIT_SECONDS} s; try again"
        elif "readonly" in reason or "unable to open" in reason:
            remedy = "it or its folder may not be written to; set DPSYNTH_LEDGER to one that may"
        elif "full" in reason:
            remedy = "the disk is full; free some space"
        elif "append-only" in reason:
            remedy = "entries are never edited or deleted"
        else:
            remedy = "the database refused; check the disk and the file"
        raise BudgetError(f"ledger {self.path}: {remedy}") from error


def _path(location: str | Path) -> Path:
    """Read a location; only SQLite is known."""
    text = str(location)
    if "://" in text:
        if not text.startswith("sqlite:///") or "?" in text or len(text) == len("sqlite:///"):
            raise InputError(
                "a ledger's location is a path, or a URL such as sqlite:////var/lib/ledger.sqlite"
            )
        text = text.removeprefix("sqlite:///")
    return Path(text).expanduser()


def _make_file(path: Path) -> None:
    """Make an empty file that only its owner can read, unless one exists."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
    except FileExistsError as error:
        if not path.is_file():
            wrong = f"{path} is no file" if path.exists() else f"{path.parent} is no folder"
            raise InputError(f"{wrong}; name a file for the ledger") from error
    except OSError as error:
        raise BudgetError(
            f"ledger {path} cannot be made ({os.strerror(error.errno or 0)}); set DPSYNTH_LEDGER "
            "to a file in a folder that you may write to"
        ) from error


def _engine(path: Path) -> sa.Engine:
    """Connect anew for every transaction, so that nothing is shared with a forked process."""
    engine = sa.create_engine(
        sa.URL.create("sqlite", database=str(path.absolute())),
        connect_args={"timeout": WAIT_SECONDS},
        poolclass=sa.NullPool,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: Any, record: Any) -> None:
        # Python's sqlite3 would otherwise begin transactions on its own, too late.
        connection.isolation_level = None
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        options = connection.get_execution_options()
        connection.exec_driver_sql(options.get("dpsynth_begin", "BEGIN"))

    return engine
