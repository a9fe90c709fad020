"""The kinds of databases, each by its URLs; from what a user names to a ledger's database.

A new kind is one line of `BACKENDS`, and a file beside `sqlite.py` that does what `Database` asks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dpsynth._util.environment import variable
from dpsynth.ledger.storage.database import Database
from dpsynth.ledger.storage.postgres import PostgresServer
from dpsynth.ledger.storage.sqlite import SqliteFile, default_path


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
