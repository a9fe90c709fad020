"""Where the ledger lies: its tables in a database, and the transactions on them.

The database is one SQLite file, or a PostgreSQL server named by a URL; what differs between them is
in `dpsynth.ledger.database`. Rows are only ever appended: triggers refuse edits and deletions,
which stops mistakes, and the chain shows what somebody with the database's password did all the
same.

Tables are made by `Store.create` alone. An empty file or database may be what is left of a ledger,
so nothing else ever makes one of it.
"""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy import Column, Index, Integer, LargeBinary, String, Table
from sqlalchemy.exc import DBAPIError

from dpsynth.errors import InputError
from dpsynth.ledger import Head, Record, origin
from dpsynth.ledger.database import Database

VERSION = 3
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
    Column("state", String, nullable=False),
    Column("hash", String, nullable=False),
    Index("dpsynth_records_entry", "entry", "number"),
)
SOURCES = Table(  # beside the chain: a keyed digest of private bytes enters no seal
    "dpsynth_sources",
    METADATA,
    Column("entry", String, nullable=False),
    Column("dataset", String, nullable=False),
    Column("digest", String, nullable=False),
    Index("dpsynth_sources_digest", "digest", "dataset"),
)
STATE = Table(  # nodes of the sums that each record seals, each under the SHA-256 of its text
    "dpsynth_state",
    METADATA,
    Column("hash", String, primary_key=True),
    Column("text", String, nullable=False),
)


@dataclass(frozen=True)
class LedgerFacts:
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
        """Open the ledger in a database; whatever is found there, nothing is made.

        Raises:
            InputError: there is no ledger, or it is empty, damaged or of another version.
            BudgetError: the ledger cannot be read, or is locked.
        """
        store = cls(database)
        with store.reading() as connection:
            tables = set(sa.inspect(connection).get_table_names())
        if not tables & set(METADATA.tables):
            raise store._no_ledger(tables)  # never made here
        version = store._version() if LEDGER.name in tables else None
        if version is not None and version < VERSION:
            raise InputError(
                f"{store.place} is a ledger of version {version}, and this dpsynth writes version "
                f"{VERSION}. The dpsynth that wrote it still reads it. What was spent there still "
                "counts: keep it, and lower the caps of the new ledger's policy by it. To start a "
                "new one: dpsynth ledger create PLACE"
            )
        if version is not None and version > VERSION:
            raise InputError(
                f"{store.place} is a ledger of another version than {VERSION}; use the dpsynth "
                "that wrote it"
            )
        if not set(METADATA.tables) <= tables:
            raise InputError(
                f"{store.place} is damaged: tables of the ledger are missing; restore it from a "
                "backup"
            )
        return store

    @classmethod
    def create(cls, database: Database) -> Store:
        """Make a ledger, whole or not at all: where there is nothing, or in what is empty.

        Raises:
            InputError: there is a ledger, or something else.
            BudgetError: it cannot be made there.
        """
        store = cls(database)
        if database.appear(store._make_tables):
            return store
        with store.writing() as connection:
            tables = set(sa.inspect(connection).get_table_names())
            if tables & set(METADATA.tables):
                raise InputError(f"{store.place} is a ledger already; nothing was changed")
            if tables and not store.shared:
                raise store._no_ledger(tables)
            store._make_tables(connection)
        return store

    @property
    def place(self) -> str:
        """Where the ledger is, for messages."""
        return self.database.place

    @property
    def shared(self) -> bool:
        """Whether other tables may lie beside the ledger's: on a server, not in a file."""
        return self.database.server

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

    def facts(self) -> LedgerFacts:
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
        return LedgerFacts(**rows[0])

    def records(self, connection: sa.Connection | None = None) -> list[Record]:
        """Read all records in the order of their numbers, in this transaction or one of its own."""
        if connection is None:
            with self.reading() as connection:
                return self.records(connection)
        rows = connection.execute(sa.select(RECORDS).order_by(RECORDS.c.number))
        return [Record.stored({**row}) for row in rows.mappings()]

    def last(self, connection: sa.Connection) -> tuple[Record | None, Record | None]:
        """Read the last record but one, and the last; None where there is none."""
        query = sa.select(RECORDS).order_by(RECORDS.c.number.desc()).limit(2)
        records = [Record.stored({**row}) for row in connection.execute(query).mappings()]
        last, before, *_ = *records, None, None
        return before, last

    def record(self, number: int, connection: sa.Connection) -> Record | None:
        """Read one record; None where there is none."""
        rows = connection.execute(sa.select(RECORDS).where(RECORDS.c.number == number))
        row = rows.mappings().first()
        return None if row is None else Record.stored({**row})

    def records_of(self, begins: str, connection: sa.Connection) -> list[tuple[str, Record]]:
        """Read the records of entries whose id begins so, each with the hash before it.

        Args:
            begins: hexadecimal digits, in lower case.
            connection: a transaction.
        """
        before = RECORDS.alias()
        query = (
            sa.select(RECORDS, before.c.hash.label("before"))
            .join(before, before.c.number == RECORDS.c.number - 1, isouter=True)
            .where(RECORDS.c.entry >= begins, RECORDS.c.entry <= begins + "g")
            .order_by(RECORDS.c.number)
        )
        records = []
        for row in connection.execute(query).mappings():
            columns = {**row}
            previous = columns.pop("before")
            records.append((str(previous or ""), Record.stored(columns)))
        return records

    def append(self, connection: sa.Connection, record: Record) -> None:
        """Add a record; its number must be free."""
        connection.execute(RECORDS.insert().values(vars(record)))

    def sources(self, connection: sa.Connection) -> dict[str, set[str]]:
        """Read the keyed digests of all that each entry's fit read."""
        digests: dict[str, set[str]] = {}
        for row in connection.execute(sa.select(SOURCES.c.entry, SOURCES.c.digest)):
            digests.setdefault(row.entry, set()).add(row.digest)
        return digests

    def datasets_of(self, connection: sa.Connection, digest: str) -> set[str]:
        """Read under which names what has this keyed digest was read."""
        query = sa.select(SOURCES.c.dataset).where(SOURCES.c.digest == digest).distinct()
        return {row.dataset for row in connection.execute(query)}

    def add_source(self, connection: sa.Connection, entry: str, dataset: str, digest: str) -> None:
        """Add the keyed digest of what an entry's fit reads."""
        connection.execute(SOURCES.insert().values(entry=entry, dataset=dataset, digest=digest))

    def _no_ledger(self, tables: set[str]) -> InputError:
        """Say what is there in the place of a ledger."""
        if tables and not self.shared:
            return InputError(f"{self.place} is a database, but no ledger; name another file")
        return InputError(
            f"{self.place} is empty: it is not a ledger. If there was one, restore it from a "
            f"backup. To start a new one: dpsynth ledger create {self.place}"
        )

    def _version(self) -> int | None:
        """Read the version, as it is stored; None where that is no number."""
        stored: sa.Label[Any] = sa.type_coerce(LEDGER.c.version, sa.types.NullType()).label("of")
        with self.reading() as connection:
            version = connection.execute(sa.select(stored)).scalars().first()
        return version if isinstance(version, int) else None

    def _make_tables(self, connection: sa.Connection) -> None:
        """Make the tables and their guards."""
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
