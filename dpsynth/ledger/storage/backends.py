"""From what a user names (a path, a URL, an environment variable) to a ledger's database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth._util.environment import variable
from dpsynth.ledger.storage.sqlite import SqliteFile, default_path, sqlite_path

if TYPE_CHECKING:
    from dpsynth.ledger.storage.database import Database

_POSTGRES = ("postgresql://", "postgres://", "postgresql+psycopg://")


def default_location() -> str:
    """Return ``DPSYNTH_LEDGER``, else a file in the user's state folder.

    Raises:
        InputError: the variable is set and blank.
    """
    return variable("DPSYNTH_LEDGER") or str(default_path())


def database_at(location: str | Path, *, there: bool = True) -> Database:
    """Return the database at a location; nothing is made.

    Args:
        location: a path or a URL.
        there: whether a file has to be there; False where one is to be made.

    Raises:
        InputError: the location is neither a path nor a URL of a database that is known, or there
            is no file.
    """
    if str(location).startswith(_POSTGRES):
        from dpsynth.ledger.storage.postgres import PostgresServer

        url = str(location)
        return PostgresServer.at("postgresql://" + url.split("://", 1)[1])
    return SqliteFile.at(sqlite_path(location), there=there)


def exists(location: str | Path) -> bool:
    """Whether something is at a location: a file that is there, or a server by its name."""
    return str(location).startswith(_POSTGRES) or os.path.lexists(sqlite_path(location))
