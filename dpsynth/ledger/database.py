"""Databases that hold a ledger: one SQLite file, or a PostgreSQL server, each by its URLs.

A new kind is one line of `BACKENDS`, and a class that does what `Database` asks.
"""

from __future__ import annotations

import os
import secrets
import sqlite3
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.exc import DBAPIError

from dpsynth._util.arguments import path_text
from dpsynth._util.environment import variable
from dpsynth.errors import BudgetError, DpsynthWarning, InputError
from dpsynth.files import atomic_file, check_apart, write_new

WAIT_SECONDS = 300
"""How long a writer waits for others."""


class Database(Protocol):
    """What a kind of database has to say for itself."""

    @property
    def place(self) -> str:
        """Where it is, for messages; without a password."""

    @property
    def engine(self) -> sa.Engine:
        """Connections to it, each for one transaction."""

    @property
    def server(self) -> bool:
        """Whether it is on a server, where other tables may lie beside the ledger's."""

    def is_file(self, path: Path) -> bool:
        """Whether a path leads to the database itself, which no output may replace."""

    def backup(self, target: Path, check: Callable[[Path], None]) -> None:
        """Copy the database as of one moment into a new file of mode 0600.

        Args:
            target: the file, which must not exist.
            check: is called with the copy before it gets its name; what it raises ends the backup.

        Raises:
            InputError: the target exists, or the server's own tools have to make the backup.
            BudgetError: the copy cannot be written.
        """

    def appear(self, fill: Callable[[sa.Connection], None]) -> bool:
        """Make a place that is there whole or not at all; False where there is one to fill."""

    def lock(self, connection: sa.Connection) -> None:
        """Make this transaction the only writer, before its first read."""

    def now(self, connection: sa.Connection) -> datetime:
        """Tell the time, with its zone."""

    def guard(self, connection: sa.Connection, table: str) -> None:
        """Have the database refuse to edit or delete rows of a new table."""

    def reason(self, error: DBAPIError) -> InputError | BudgetError:
        """Word an error of the database, whose own text may hold statements with their values."""


SAY_AFTER_SECONDS = 10
_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 0.005, 0.4  # many that ask often leave no time to write


@dataclass(frozen=True)
class SqliteFile:
    """A SQLite file; see `Database`."""

    path: Path
    engine: sa.Engine

    @classmethod
    def at(cls, location: str | Path, must_exist: bool = True) -> SqliteFile:
        """Take a file that is there, or (``there`` is False) one that is to be made.

        Args:
            location: a path or a ``sqlite:///`` URL.
            must_exist: whether the file has to exist.

        Raises:
            InputError: it is another URL, or there is no file, or something else.
        """
        path = sqlite_path(location)
        if os.path.lexists(path) or not path.parent.is_dir():
            if not path.is_file() and (must_exist or path.parent.exists()):
                raise InputError(f"{_missing(path)}; name a file for the ledger")
        elif must_exist:
            raise InputError(
                f"there is no ledger at {path}. Check the name. To create a new ledger there: "
                f"dpsynth ledger create {path}"
            )
        return cls(path, _file_engine(path))

    @property
    def server(self) -> bool:
        """It is a file."""
        return False

    def is_file(self, path: Path) -> bool:
        """Whether a path leads to the file."""
        return os.path.exists(path) and os.path.samefile(path, self.path)

    def backup(self, target: Path, check: Callable[[Path], None]) -> None:
        """Copy the file, while others may write.

        Raises:
            InputError: the target exists.
            BudgetError: the copy cannot be written.
        """
        check_apart(target)
        if target.exists():
            raise InputError(f"{target} exists; choose a new file for the backup")
        try:
            with atomic_file(target, private=True) as temporary:
                place = self.path.absolute().as_uri()  # quotes what a URI forbids
                source = sqlite3.connect(f"{place}?mode=ro", uri=True)
                copy = sqlite3.connect(temporary)
                try:
                    source.backup(copy)
                finally:
                    copy.close()
                    source.close()
                check(temporary)
        except (OSError, sqlite3.Error) as error:
            raise BudgetError(
                f"the backup {target} cannot be written ({type(error).__name__}); choose another "
                "place"
            ) from error

    def appear(self, fill: Callable[[sa.Connection], None]) -> bool:
        """Make the file, for its owner alone, with its tables in it, in one step."""
        if os.path.lexists(self.path):
            with suppress(OSError):
                self.path.chmod(0o600)
            return False
        if self.path == default_path():  # elsewhere, a folder that is missing is a slip of the pen
            with suppress(OSError):
                self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not self.path.parent.is_dir():
            raise BudgetError(
                f"ledger {self.path} cannot be created: there is no folder {self.path.parent}; "
                "create it, or name another place"
            )
        try:
            write_new(self.path, _filled(fill), mode=0o600)
        except (InputError, OSError) as error:
            if os.path.lexists(self.path):  # somebody else was quicker
                return False
            reason = str(error) if isinstance(error, InputError) else type(error).__name__
            raise BudgetError(
                f"ledger {self.path} cannot be created ({reason}); set DPSYNTH_LEDGER to a file in "
                "a folder that you can write to"
            ) from error
        return True

    @property
    def place(self) -> str:
        """The path."""
        return str(self.path)

    def now(self, connection: sa.Connection) -> datetime:
        """This machine's clock."""
        return datetime.now(UTC)

    def lock(self, connection: sa.Connection) -> None:
        """Nothing to do: writers begin with BEGIN IMMEDIATE, see `_begin_to_write`."""

    def guard(self, connection: sa.Connection, table: str) -> None:
        """Refuse edits and deletions."""
        for verb in ("UPDATE", "DELETE"):
            connection.exec_driver_sql(
                f"CREATE TRIGGER {table}_no_{verb.lower()} BEFORE {verb} ON {table} "
                "BEGIN SELECT RAISE(ABORT, 'the ledger is append-only'); END"
            )

    def reason(self, error: DBAPIError) -> InputError | BudgetError:
        """Word SQLite's refusal."""
        message = str(error.orig).lower()
        if "not a database" in message or "malformed" in message:
            return InputError(
                f"{self.path} is damaged or not a ledger; restore it from a backup, or name "
                "another file"
            )
        if "no such" in message:
            return InputError(f"{self.path} is not a ledger of this version")
        if "locked" in message or "busy" in message:
            remedy = f"another process locked it for {WAIT_SECONDS} s; try again"
        elif "unable to open" in message and not self.path.exists():
            remedy = "the file is missing; put it back, or restore it from a backup"
        elif "readonly" in message or "unable to open" in message:
            remedy = "it or its folder is read-only; set DPSYNTH_LEDGER to a writable file"
        elif "full" in message or "disk i/o error" in message:
            remedy = "the disk is full or failing; nothing was entered. Free some space, try again"
        elif "append-only" in message:
            remedy = "entries are never edited or deleted"
        else:
            remedy = "the database refused; check the disk and the file"
        return BudgetError(f"ledger {self.path}: {remedy}")


def _missing(path: Path) -> str:
    """Say what is wrong with a path that is no file."""
    return f"{path} is not a file" if path.parent.is_dir() else f"{path.parent} is not a folder"


def _filled(fill: Callable[[sa.Connection], None]) -> bytes:
    """Return the bytes of a database that was filled in memory."""
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    with engine.connect() as connection:
        with connection.begin():
            fill(connection)
        memory: Any = connection.connection.dbapi_connection
        content: bytes = memory.serialize()
    engine.dispose()
    return content


def _file_engine(path: Path) -> sa.Engine:
    """Connect anew for every transaction, so that nothing is shared with a forked process."""
    place = f"{path.absolute().as_uri()}?mode=rw"  # a file that was removed is not made anew
    return _engine_at(path, place, WAIT_SECONDS)


@lru_cache(maxsize=16)  # an engine holds no connection; it keeps compiled statements
def _engine_at(path: Path, place: str, wait: float) -> sa.Engine:
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
        if connection.get_execution_options().get("dpsynth_writes", False):
            _begin_to_write(connection.connection.dbapi_connection, path, wait)
        else:
            connection.exec_driver_sql("BEGIN")

    return engine


def _begin_to_write(database: Any, path: Path, wait: float) -> None:
    """Begin the one transaction that may write now; wait for those of others.

    SQLite has no queue. Each of many writers tries again after a pause by chance, of at most 0.4 s
    for all of them, so that none is left behind; a write takes some milliseconds.
    """
    begun, pause, logged = time.monotonic(), _PAUSE_SECONDS, False
    database.execute("PRAGMA busy_timeout = 0")
    while True:
        try:
            database.execute("BEGIN IMMEDIATE")
            break
        except sqlite3.OperationalError as error:
            if not _is_busy(error) or time.monotonic() - begun > wait:
                raise sa.exc.OperationalError("BEGIN IMMEDIATE", None, error) from None
        if not logged and time.monotonic() - begun > SAY_AFTER_SECONDS:
            logged = True
            warnings.warn(
                f"others are writing to the ledger {path}; waiting for up to {wait:g} s",
                DpsynthWarning,
                stacklevel=2,
            )
        pause = min(_MAX_PAUSE_SECONDS, 1.5 * pause)
        time.sleep(pause * secrets.randbelow(1000) / 1000)
    database.execute(f"PRAGMA busy_timeout = {int(wait * 1000)}")  # for readers, at the commit


def _is_busy(error: sqlite3.OperationalError) -> bool:
    return "locked" in str(error).lower() or "busy" in str(error).lower()


def default_path() -> Path:
    """Return the file in the user's state folder."""
    from platformdirs import user_state_dir

    return Path(user_state_dir("dpsynth")) / "ledger.sqlite"


def sqlite_path(location: str | Path) -> Path:
    """Read the path out of a path or a ``sqlite:///`` URL.

    Raises:
        InputError: it is another URL.
    """
    text = path_text(location, "the place of a ledger")
    if not text.strip():
        raise InputError("the ledger's place is empty; name a file or a database")
    if "://" in text:
        if not text.startswith("sqlite:///") or "?" in text or len(text) == len("sqlite:///"):
            raise InputError(
                "a ledger's location is a path, or a URL such as sqlite:////var/lib/ledger.sqlite "
                "or postgresql://user@host/database"
            )
        text = text.removeprefix("sqlite:///")
    return Path(text).expanduser()


_LOCK = 0x64707379  # any number that all writers agree on; needs no right to the tables
_LOCK_TIMEOUT = "55P03"
_NO_RIGHT = "42501"
_READ_ONLY = "25006"
_DISK = ("53100", "58030")
_ABSENT = ("42P01", "42703")
_APPEND_ONLY = "DL001"


@dataclass(frozen=True)
class PostgresServer:
    """A database of a PostgreSQL server; see `Database`."""

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
        return cls(url.set(drivername="postgresql").render_as_string(), _server_engine(url))

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


def _server_engine(url: sa.URL) -> sa.Engine:
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


@dataclass(frozen=True)
class Backend:
    """A kind of database that can hold ledgers.

    Attributes:
        schemes: what stands before ``://`` in a URL of such a database.
        load: returns the database at a URL; nothing is made and no connection is opened. The
            second argument is False where a ledger is to be made there. Raises `InputError` for a
            URL that is not complete, and for a place without a ledger that has to be there.
    """

    schemes: tuple[str, ...]
    load: Callable[[str, bool], Database]


SQLITE = Backend(("sqlite",), SqliteFile.at)  # and every path
BACKENDS = [SQLITE, Backend(("postgresql", "postgres", "postgresql+psycopg"), PostgresServer.at)]


def default_location() -> str:
    """Return ``DPSYNTH_LEDGER``, else a file in the user's state folder.

    Raises:
        InputError: the variable is set and blank.
    """
    return variable("DPSYNTH_LEDGER") or str(default_path())


def database_at(location: str | Path, *, must_exist: bool = True) -> Database:
    """Return the database at a location; nothing is made.

    Args:
        location: a path or a URL.
        must_exist: whether the file has to exist; False where one is to be made.

    Raises:
        InputError: the location is neither a path nor a URL of a database that is known, or there
            is no file.
    """
    scheme, separator, _ = str(location).partition("://")
    known = (backend for backend in BACKENDS if separator and scheme in backend.schemes)
    return next(known, SQLITE).load(str(location), must_exist)
