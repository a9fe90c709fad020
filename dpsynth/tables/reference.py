"""What a user names as a private table: a file, a part of one, or a table or query of a database.

- ``extract.csv``, or a file of another of the `FORMATS`; a folder of parts, where these allow it
- ``extract.xlsx#Sheet``, ``extract.duckdb#schema.table``: a part of a file
- ``postgresql://host/db#schema.table``; ``postgresql://host/db#@query.sql`` for a query in a file

A file whose whole name exists is that file, even if its name has a ``#``.

The URL of a database has no password in it, and is shown without credentials.

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
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpsynth._util.arguments import path_text
from dpsynth._util.strict_json import BLOCK
from dpsynth._util.whole_files import read_whole
from dpsynth.errors import TableError
from dpsynth.tables.checks import check_file
from dpsynth.tables.formats import (
    FORMATS,
    Format,
    check_contents,
    files_of,
    format_of,
    suffix_of,
    suffixes,
)

if TYPE_CHECKING:
    from sqlalchemy import URL

    from dpsynth.schema import Schema

COPY = FORMATS["parquet"].suffixes[0]
"""What a split writes of a format whose rows it does not copy."""

_URL = re.compile(r"[A-Za-z][\w+.-]+://|\$\{\w+\}(#|$)")
_CUT_URL = re.compile(r"(postgres|postgresql|mysql|mariadb|oracle|mssql|sqlite)(\+\w+)?:/[^/]")


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
MAX_QUERY = 2**20  # bytes
_COMMENTS = re.compile(r"\A(\s|--[^\n]*(\n|\Z)|/\*.*?\*/)*", re.DOTALL)
_WRITES = re.compile(
    r"\b(insert|update|delete|merge|replace\s+into|into|drop|alter|create|truncate|grant|revoke"
    r"|exec|execute|call|copy|attach|pragma|commit|rollback)\b",
    re.IGNORECASE,
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

    @classmethod
    def of_file(cls, path: Path) -> Address:
        """Return the address of an SQLite file."""
        from sqlalchemy import URL

        return cls(URL.create("sqlite", database=str(path)))

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


@dataclass(frozen=True)
class Reference:
    """A private table by its name; making one reads no row.

    Attributes:
        format: how it is read.
        path: of a file or folder; of the query in a file; None for a table of a database.
        part: the sheet or table, None where none is named.
        url: of a database, with its variables as they are written; None for a file.
    """

    format: Format
    path: Path | None
    part: str | None = None
    url: str | None = None

    @classmethod
    def of(cls, source: str | Path) -> Reference:
        """Read a name.

        Raises:
            TableError: it is of a kind that dpsynth does not read, or a URL names no table.

        >>> Reference.of("extract.xlsx#Stays").part
        'Stays'
        """
        text = path_text(source, "the path of a table", TableError)
        if is_url(text):
            url, _, part = text.partition("#")
            if not part.lstrip("@"):
                raise TableError(
                    f"{Address.of(url).place} names no table; write URL#schema.table, or give a "
                    "file with one SELECT (--query)"
                )
            query = Path(part[1:]) if part.startswith("@") else None
            return cls(FORMATS["database"], query, None if query else part, url)
        name, sign, part = _divided(text)
        if sign:
            format_ = _format(Path(name))
            if not format_.part:
                raise TableError(f"{name} has no parts; leave out the # and what follows it")
            if not part:
                raise TableError(f"{name}#: write the name of a {format_.part} after the #")
            return cls(format_, Path(name), part)
        return cls(_format(Path(text)), Path(text))

    @classmethod
    def of_parts(cls, source: str | Path) -> Reference | None:
        """Read the name of a file or database whose parts are tables; None for any other name.

        What follows a ``#`` is the database's own schema that has the tables.

        Raises:
            TableError: it names a query, or a part that has no tables within it.
        """
        text = path_text(source, "the path of tables", TableError)
        name, _, part = text.partition("#") if is_url(text) else _divided(text)
        if is_url(text):
            reference = cls(FORMATS["database"], None, part or None, name)
            if part.startswith("@"):
                raise TableError(
                    f"{reference.address.place}: a query is one table, and linked tables are "
                    "several; make views of the queries, and name their database alone"
                )
            return reference
        format_ = None if Path(name).is_dir() else format_of(Path(name))
        if format_ is None or not format_.part:
            return None
        return cls(format_, Path(name), part or None)

    @property
    def place(self) -> str:
        """What messages and internal pages call it; without credentials."""
        part = "" if self.part is None else f"#{self.part}"
        if self.url is not None:
            return Address.of(self.url).place + (part if self.query is None else f"#@{self.query}")
        return f"{self.path}{part}"

    @property
    def query(self) -> Path | None:
        """The file of a query."""
        return self.path if self.url is not None else None

    @property
    def address(self) -> Address:
        """Where a database is, on a server or in the file."""
        if self.url is not None:
            return Address.of(self.url)
        assert self.path is not None
        return Address.of_file(self.path)

    @property
    def title(self) -> str:
        """The same without the folder of a file."""
        if self.url is not None or self.path is None:
            return self.place
        return self.path.name + ("" if self.part is None else f"#{self.part}")

    @property
    def copied_as(self) -> str:
        """The suffix of the files that a split makes of it."""
        suffix = "" if self.path is None else suffix_of(self.path)
        return suffix if suffix and self.format.copied else COPY

    def check(self) -> None:
        """Refuse a file that is not there or not readable; no database is reached.

        Raises:
            TableError: with the reason; also for a URL that holds a password.
        """
        if self.url is not None:
            Address.of(self.url)
            if self.path is not None:
                check_file(self.path)
            return
        assert self.path is not None
        for file in files_of(self.path):
            check_file(file)
            check_contents(file, self.format)

    def content(self) -> Iterator[bytes]:
        """Yield the bytes by which sources are told apart.

        Of a file, these are its own bytes, and the name of the part that is read. Of a database,
        they are the URL without credentials, and the name of the table or the text of the query:
        the rows behind it may change.

        Raises:
            TableError: the file cannot be read.
        """
        if self.url is not None:
            target = self.part if self.query is None else read_query(self.query)
            yield f"{Address.of(self.url).place}\n{target}".encode()
            return
        assert self.path is not None
        for path in files_of(self.path):
            with path.open("rb") as file:
                while block := file.read(BLOCK):
                    yield block
        if self.format.part:
            yield f"#{self.format.tables.part_of(self)}".encode()


def open_reference(reference: Reference, needed: tuple[str, ...], schema: Schema | None) -> Any:
    """Open a table, by the reader of its format; see `dpsynth.tables.open_table`.

    Args:
        reference: of the table.
        needed: the columns to read.
        schema: of the table; None for a synthetic one whose columns may have any type.

    Raises:
        TableError: it cannot be read, lacks columns, or has some that must be text and are not.
    """
    reference.check()
    titled = reference.format.titled or COPY in reference.format.suffixes  # as split from a sheet
    if schema is not None and schema.dialect.header_row > 1 and not titled:
        raise TableError(
            f"{reference.place} is {reference.format.noun}, in which no line stands above the "
            "names of columns; remove header_row from the dialect"
        )
    return reference.format.tables.open(reference, needed, schema)


def _divided(text: str) -> tuple[str, str, str]:
    """Divide the name of a file at the last ``#``, unless a file has the whole name."""
    if Path(text).exists():
        return text, "", ""
    if _CUT_URL.match(text):
        raise TableError(
            "a Path drops a slash of a database's URL; give the URL as text, not as a Path"
        )
    return text.rpartition("#") if "#" in text else (text, "", "")


def is_url(text: str) -> bool:
    """Tell whether a name is the URL of a database, or the variable that holds one."""
    return _URL.match(text) is not None


def names_table(text: str) -> bool:
    """Tell whether a word looks like the name of a table: for messages about the order of words."""
    return is_url(text) or bool(suffix_of(text.rpartition("#")[0] or text))


def with_query(data: str, query: str | None) -> str:
    """Return the name of a query, from a URL and the file of the query.

    Raises:
        TableError: the name is not a URL, or names a table already.

    >>> with_query("postgresql://host/db", "stays.sql")
    'postgresql://host/db#@stays.sql'
    """
    if query is None:
        return data
    if not is_url(data):
        raise TableError(
            "--query needs the URL of a database as DATA, such as postgresql://host/db"
        )
    if "#" in data:
        raise TableError("give either --query or the name of a table after the #, not both")
    return f"{data}#@{query}"


def _format(path: Path) -> Format:
    found = format_of(path)
    if found is not None:
        return found
    if path.name.lower().endswith((".xls", ".xlsm", ".xlsb", ".ods")):
        raise TableError(f"{path}: save the workbook as .xlsx, which dpsynth reads")
    check_file(path)  # a folder, a pipe and a missing file have messages of their own
    check_contents(path)
    raise TableError(
        f"{path}: unknown kind of table; use {', '.join(suffixes())}, or the URL of a database"
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
