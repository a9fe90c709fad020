"""A ledger on a PostgreSQL server: for an office whose people fit on several machines."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger.storage.database import WAIT_SECONDS

_LOCK = 0x64707379  # any number that all writers agree on; needs no right to the tables
_LOCK_TIMEOUT = "55P03"
_NO_RIGHT = "42501"
_READ_ONLY = "25006"
_DISK = ("53100", "58030")
_ABSENT = ("42P01", "42703")
_APPEND_ONLY = "DL001"


@dataclass(frozen=True)
class PostgresServer:
    """A database of a PostgreSQL server; see `dpsynth.ledger.storage.store.Database`."""

    place: str
    engine: sa.Engine

    @classmethod
    def at(cls, location: str, must_exist: bool = True) -> PostgresServer:
        """Prepare connections to ``postgresql://user:password@host/database``; open none yet.

        Args:
            location: the URL.
            must_exist: of no meaning here: a server's databases are made by its administrator.

        Raises:
            InputError: the URL is not complete, or psycopg is not installed.
        """
        address = "postgresql://" + location.split("://", 1)[1]
        try:
            url = sa.make_url(address).set(drivername="postgresql+psycopg")
        except (sa.exc.ArgumentError, ValueError) as error:  # ValueError: a port, an IPv6 address
            raise InputError(
                "a ledger's URL looks like postgresql://user@host/database; this one does not"
            ) from error
        try:
            import psycopg  # noqa: F401
        except ImportError as error:
            raise InputError(
                "a ledger on PostgreSQL needs psycopg; run: pip install 'dpsynth[postgres]'"
            ) from error
        return cls(url.set(drivername="postgresql").render_as_string(), _engine(url))

    @property
    def server(self) -> bool:
        """It is a server."""
        return True

    def is_file(self, path: Path) -> bool:
        """No file of this machine is the database."""
        return False

    def backup(self, target: Path, check: Callable[[Path], None]) -> None:
        """Leave it to the server's tools.

        Raises:
            InputError: always; it names the tool.
        """
        raise InputError("back up a ledger on PostgreSQL with the server's own tools: pg_dump")

    def appear(self, fill: Callable[[sa.Connection], None]) -> bool:
        """Leave it to the server's administrator to make a database; its tables can be made."""
        return False

    def lock(self, connection: sa.Connection) -> None:
        """Let one writer in at a time; readers go on."""
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_LOCK})")

    def now(self, connection: sa.Connection) -> datetime:
        """The server's clock: one for all machines, and no user's to set."""
        moment: datetime = connection.exec_driver_sql("SELECT clock_timestamp()").scalar_one()
        return moment.astimezone(UTC)

    def guard(self, connection: sa.Connection, table: str) -> None:
        """Refuse edits, deletions and truncation."""
        connection.exec_driver_sql(
            "CREATE OR REPLACE FUNCTION dpsynth_append_only() RETURNS trigger LANGUAGE plpgsql AS "
            f"$$ BEGIN RAISE EXCEPTION 'append-only' USING ERRCODE = '{_APPEND_ONLY}'; END $$"
        )
        connection.exec_driver_sql(
            f"CREATE TRIGGER {table}_append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON {table} "
            "FOR EACH STATEMENT EXECUTE FUNCTION dpsynth_append_only()"
        )

    def reason(self, error: DBAPIError) -> InputError | BudgetError:
        """Word PostgreSQL's refusal, by its code: its texts differ between languages."""
        code = getattr(error.orig, "sqlstate", None)
        if code in _ABSENT:
            return InputError(f"{self.place} is not a ledger of this version")
        if code == _LOCK_TIMEOUT:
            remedy = f"another process locked it for {WAIT_SECONDS} s; try again"
        elif code in (_NO_RIGHT, _READ_ONLY):
            remedy = "this user cannot write to it; ask its administrator for SELECT and INSERT"
        elif code in _DISK:
            remedy = "the server's disk is full or failing; nothing was entered"
        elif code == _APPEND_ONLY:
            remedy = "entries are never edited or deleted"
        elif error.connection_invalidated:
            remedy = (
                "the connection was lost, so it is not known whether the last record was entered. "
                "Check with `dpsynth ledger show`. Until then it counts"
            )
        elif code is None or code.startswith(("08", "57", "28", "3D")):
            remedy = "the server or its database cannot be reached; nothing was entered"
        else:
            remedy = f"the database refused (SQLSTATE {code})"
        return BudgetError(f"ledger {self.place}: {remedy}")


def _engine(url: sa.URL) -> sa.Engine:
    """Connect anew for every transaction; one that reads sees one state of the ledger."""
    engine = sa.create_engine(
        url,
        connect_args={"connect_timeout": 10, "application_name": "dpsynth"},
        poolclass=sa.NullPool,
    )

    @event.listens_for(engine, "begin")
    def begin(connection: sa.Connection) -> None:
        options: dict[str, Any] = dict(connection.get_execution_options())
        if options.get("dpsynth_writes", False):
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL READ COMMITTED")
            connection.exec_driver_sql("SET LOCAL synchronous_commit = on")
            connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{WAIT_SECONDS}s'")
        else:
            connection.exec_driver_sql("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")

    return engine
