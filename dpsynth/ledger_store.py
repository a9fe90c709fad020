"""Where the ledger lies: its tables in a database, and the transactions on them.

The database is one SQLite file, or a PostgreSQL server named by a URL; what differs between them is
in `ledger_sqlite` and `ledger_postgres`. Records are only ever appended: triggers refuse edits and
deletions, which stops mistakes, and the chain shows what somebody with the database's password did
all the same.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import sqlalchemy as sa
from sqlalchemy import Column, Integer, LargeBinary, String, Table
from sqlalchemy.exc import DBAPIError

from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger_chain import Head, Record, origin

VERSION = 2
KEY_BYTES = 32

METADATA = sa.MetaData()
LEDGER = Table(
    "dpsynth_ledger",
    METADATA,
    Column("id", String, primary_key=True),
    Column("version", Integer, nullable=False),
    Column("created", String, nullable=False),
    Column("key", LargeBinary, nullable=False),
)
RECORDS = Table(
    "dpsynth_records",
    METADATA,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("kind", String, nullable=False),
    Column("entry", String, nullable=False),
    Column("at", String, nullable=False),
    Column("who", String, nullable=False),
    Column("body", String, nullable=False),
    Column("hash", String, nullable=False),
)
SOURCES = Table(  # beside the chain: a keyed digest of private bytes enters no seal
    "dpsynth_sources",
    METADATA,
    Column("entry", String, nullable=False),
    Column("digest", String, nullable=False),
)


class Database(Protocol):
    """What a kind of database has to say for itself."""

    @property
    def place(self) -> str:
        """Where it is, for messages; without a password."""

    @property
    def engine(self) -> sa.Engine:
        """Connections to it, each for one transaction."""

    def lock(self, connection: sa.Connection) -> None:
        """Make this transaction the only writer, before its first read."""

    def now(self, connection: sa.Connection) -> datetime:
        """Tell the time, with its zone."""

    def guard(self, connection: sa.Connection, table: str) -> None:
        """Have the database refuse to edit or delete rows of a new table."""

    def reason(self, error: DBAPIError) -> InputError | BudgetError:
        """Word an error of the database, whose own text may hold statements with their values."""


@dataclass(frozen=True)
class Facts:
    """What a ledger is: its random identity, when it was made, and its secret key."""

    id: str
    version: int
    created: str
    key: bytes

    @property
    def origin(self) -> Head:
        """The head of the chain before the first record."""
        return origin(self.id, self.version, self.created, self.key)


@dataclass(frozen=True)
class Store:
    """An open ledger."""

    database: Database

    @classmethod
    def open(cls, database: Database) -> Store:
        """Open the ledger in a database; make its tables where there are none.

        Raises:
            InputError: the place is no ledger, is damaged, or is of another version.
            BudgetError: the ledger cannot be made or read there, or is locked.
        """
        store = cls(database)
        with store.reading() as connection:
            tables = set(sa.inspect(connection).get_table_names())
        if not tables & set(METADATA.tables):
            if tables and not store.shared:
                raise InputError(f"{store.place} is a database, but no ledger; name another file")
            store._make_tables()
        elif not set(METADATA.tables) <= tables:
            raise InputError(f"{store.place} is no ledger of this version")
        if store.facts().version != VERSION:
            raise InputError(
                f"{store.place} is a ledger of another version than {VERSION}; use the dpsynth "
                "that wrote it"
            )
        return store

    @property
    def place(self) -> str:
        """Where the ledger is, for messages."""
        return self.database.place

    @property
    def shared(self) -> bool:
        """Whether other tables may lie beside the ledger's: on a server, not in a file."""
        return self.database.engine.dialect.name != "sqlite"

    @contextmanager
    def reading(self) -> Iterator[sa.Connection]:
        """Read in one transaction; works where nothing may be written."""
        with self._clear_errors(), self.database.engine.connect() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sa.Connection]:
        """Write in one transaction that no other writer can enter before it is on the disk."""
        with self._clear_errors(), self.database.engine.connect() as connection:
            connection = connection.execution_options(dpsynth_writes=True)
            with connection.begin():
                # The lock comes before the first read, so what is read stays true until commit.
                self.database.lock(connection)
                yield connection

    def facts(self) -> Facts:
        """Read what the ledger is.

        Raises:
            InputError: it does not say so once, or in values of another type than it was made with.
        """
        types = {"id": str, "version": int, "created": str, "key": bytes}
        stored = [sa.type_coerce(LEDGER.c[name], sa.types.NullType()).label(name) for name in types]
        with self.reading() as connection:
            rows = connection.execute(sa.select(*stored)).mappings().all()
        if len(rows) != 1 or any(type(rows[0][name]) is not kind for name, kind in types.items()):
            raise InputError(
                f"{self.place} is damaged: it does not say once which ledger it is; restore it "
                "from a backup"
            )
        return Facts(**rows[0])

    def records(self, connection: sa.Connection | None = None) -> list[Record]:
        """Read all records in the order of their numbers, in this transaction or one of its own."""
        if connection is None:
            with self.reading() as connection:
                return self.records(connection)
        rows = connection.execute(sa.select(RECORDS).order_by(RECORDS.c.number))
        return [Record.stored({**row}) for row in rows.mappings()]

    def append(self, connection: sa.Connection, record: Record) -> None:
        """Add a record; its number must be free."""
        connection.execute(RECORDS.insert().values(vars(record)))

    def sources(self, connection: sa.Connection) -> dict[str, str]:
        """Read the keyed digest of what each entry's fit read."""
        rows = connection.execute(sa.select(SOURCES.c.entry, SOURCES.c.digest))
        return {row.entry: row.digest for row in rows}

    def add_source(self, connection: sa.Connection, entry: str, digest: str) -> None:
        """Add the keyed digest of what an entry's fit reads."""
        connection.execute(SOURCES.insert().values(entry=entry, digest=digest))

    def _make_tables(self) -> None:
        """Make the tables and their guards; whoever comes second finds them made."""
        with self.writing() as connection:
            if sa.inspect(connection).has_table(LEDGER.name):
                return
            METADATA.create_all(connection)
            for table in METADATA.tables:
                self.database.guard(connection, table)
            row = {
                "id": str(uuid.uuid4()),
                "version": VERSION,
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "key": secrets.token_bytes(KEY_BYTES),
            }
            connection.execute(LEDGER.insert().values(row))

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """Word the database's refusals."""
        try:
            yield
        except DBAPIError as error:
            raise self.database.reason(error) from error
