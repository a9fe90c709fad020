"""The URL of a database: never with a password in it, and shown without credentials.

A password comes from the environment: from ``PGPASSWORD`` or ``~/.pgpass``, which PostgreSQL's own
library reads, or from a variable that the URL names, as in ``mysql://office:${DB_PASSWORD}@host/db``
or ``${DATABASE_URL}#schema.table``. So none is in a shell's history, a settings file or a log.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth.errors import TableError

if TYPE_CHECKING:
    from sqlalchemy import URL

_VARIABLE = re.compile(r"\$\{([A-Za-z_]\w*)\}")
_SECRET = re.compile(r"pass(word|wd|phrase)?$|^pwd$|secret|token|credential|odbc_connect", re.I)
_PORTS = {"postgresql": 5432, "mysql": 3306, "mariadb": 3306, "oracle": 1521, "mssql": 1433}
_PLACE_KEYS = ("host", "port", "service", "dbname")  # PostgreSQL's own, as in ?host=/run/postgresql
_NO_URL = (
    "a database's URL looks like postgresql://user@host/database; this one does not (it is not "
    "shown, because it may hold a password)"
)
_PASSWORD = (
    "the URL holds a password, which would stay in the shell's history and in settings files. "
    "Remove it, and give it by PGPASSWORD, by ~/.pgpass, or as ${VARIABLE} in the URL"
)


@dataclass(frozen=True)
class Address:
    """Where a database is, and how to log in.

    Attributes:
        url: with its variables replaced; it may hold a password, so it is never shown.
    """

    url: URL

    @classmethod
    def of(cls, text: str) -> Address:
        """Read a URL and replace its variables.

        Raises:
            TableError: it is not a URL, holds a password, or names a variable that is not set. No
                message quotes it.
        """
        if whole := _VARIABLE.fullmatch(text):
            return cls(_plain(_parsed(_value(whole))))
        url = _parsed(text)
        values = {key: one for key, one in url.query.items() if _SECRET.search(key)}
        secrets = [str(value) for value in (url.password, *values.values()) if value is not None]
        if not all(_VARIABLE.fullmatch(secret) for secret in secrets):
            raise TableError(_PASSWORD)
        parts = {
            name: _VARIABLE.sub(_value, part)
            for name in ("username", "password", "host", "database")
            if (part := getattr(url, name)) is not None
        }
        query = {
            key: _VARIABLE.sub(_value, one)
            if isinstance(one, str)
            else tuple(_VARIABLE.sub(_value, part) for part in one)
            for key, one in url.query.items()
        }
        return cls(_plain(url.set(**parts, query=query)))  # type: ignore[arg-type]

    @property
    def backend(self) -> str:
        """The kind of database, such as ``postgresql``."""
        return self.url.get_backend_name()

    @property
    def place(self) -> str:
        """The URL without user, password and options: for messages, and to tell sources apart."""
        where = {key: self.url.query[key] for key in _PLACE_KEYS if key in self.url.query}
        host = None if self.url.host is None else self.url.host.lower()
        database = self.url.database
        if self.backend == "sqlite" and database:
            database = str(Path(database).absolute())
        port = None if self.url.port == _PORTS.get(self.backend) else self.url.port
        from sqlalchemy import URL

        shown = URL.create(self.backend, host=host, port=port, database=database, query=where)
        return shown.render_as_string()


def _parsed(text: str) -> URL:
    import sqlalchemy as sa

    try:
        return sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):  # ValueError: a port that is not a number
        raise TableError(_NO_URL) from None


def _plain(url: URL) -> URL:
    """Name the driver that dpsynth installs for PostgreSQL."""
    if url.drivername in ("postgres", "postgresql"):
        return url.set(drivername="postgresql+psycopg")
    return url


def _value(match: re.Match[str]) -> str:
    value = os.environ.get(match[1])
    if not value:
        raise TableError(f"the database's URL names the variable {match[1]}, which is not set")
    return value
