"""The URL of a database: never with a password in it, and shown without credentials.

A password comes from the environment: from ``PGPASSWORD`` or ``~/.pgpass``, which PostgreSQL's own
library reads, or from a variable that the URL names, as in ``mysql://office:${DB_PASSWORD}@host/db``
or ``${DATABASE_URL}#schema.table``. So none is in a shell's history, a settings file or a log.

A query in a file: one SELECT, and nothing else.

The check is stricter than SQL, so that it needs no parser of each database's language. It refuses
every semicolon except a last one, and every word that could write, wherever it stands. The database
then gets the query inside ``SELECT ... FROM (query)``, in a transaction that can only read.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dpsynth._util.whole_files import read_whole
from dpsynth.errors import TableError
from dpsynth.tables.checks import check_file

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


MAX_QUERY = 2**20  # bytes
_COMMENTS = re.compile(r"\A(\s|--[^\n]*(\n|\Z)|/\*.*?\*/)*", re.DOTALL)
_WRITES = re.compile(
    r"\b(insert|update|delete|merge|replace\s+into|into|drop|alter|create|truncate|grant|revoke"
    r"|exec|execute|call|copy|attach|pragma|commit|rollback)\b",
    re.IGNORECASE,
)


def read_query(path: Path) -> str:
    """Read a file that holds one SELECT; return it without a last semicolon.

    Raises:
        TableError: it cannot be read, or could do something else than read.
    """
    check_file(path)
    content = read_whole(path, largest=MAX_QUERY, never="a query is not", error=TableError)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise TableError(f"{path} is not readable as UTF-8 text") from None
    return checked_query(text, str(path))


def checked_query(text: str, place: str) -> str:
    """Return a query if it is a single SELECT.

    Raises:
        TableError: with what stands in the way.

    >>> checked_query("SELECT * FROM stays; -- all", "q.sql")
    Traceback (most recent call last):
    dpsynth.errors.TableError: q.sql has a semicolon before its end: give one SELECT, ...
    """
    query = text.strip().removesuffix(";").rstrip()
    if ";" in query or "\0" in query:
        raise TableError(
            f"{place} has a semicolon before its end: give one SELECT, and write a semicolon in a "
            "text as CHR(59)"
        )
    opening = _COMMENTS.match(query)
    start = query[opening.end() if opening else 0 :]
    if not re.match(r"(select|with)\b", start, re.IGNORECASE):
        raise TableError(f"{place} does not start with SELECT or WITH: give one SELECT")
    if match := _WRITES.search(query):
        raise TableError(
            f"{place} has the word {match[1].upper()}, which can write: give one SELECT that only "
            "reads; if it stands in a comment or a text, remove it there, or make a view"
        )
    return query
