"""What a user names as a private table: a file, a part of one, or a table or query of a database.

- ``extract.csv``, ``.csv.gz``, ``.txt``, ``.txt.gz``, ``.tsv``, ``.tsv.gz``, ``.parquet``
- ``extract.sav``, ``extract.sas7bdat``, ``extract.dta``
- ``extract.xlsx`` or ``extract.xlsx#Sheet``; ``extract.duckdb`` or ``extract.duckdb#schema.table``
- ``postgresql://host/db#schema.table``; ``postgresql://host/db#@query.sql`` for a query in a file

A file whose whole name exists is that file, even if its name has a ``#``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dpsynth._util.arguments import path_text
from dpsynth._util.strict_json import BLOCK
from dpsynth.errors import TableError
from dpsynth.tables.addresses import Address, read_query
from dpsynth.tables.checks import check_contents, check_file

TEXT = (".csv", ".csv.gz", ".txt", ".txt.gz", ".tsv", ".tsv.gz")
STATISTICAL = (".sav", ".sas7bdat", ".dta")
WITH_PARTS = (".xlsx", ".duckdb")
FILES = (*TEXT, ".parquet", *STATISTICAL, *WITH_PARTS)
COPIED = (*TEXT, ".parquet")
"""Kinds that a split writes as they are; of the others it writes Parquet."""

DATABASE = "database"
_URL = re.compile(r"[A-Za-z][\w+.-]+://|\$\{\w+\}(#|$)")
_CUT_URL = re.compile(r"(postgres|postgresql|mysql|mariadb|oracle|mssql|sqlite)(\+\w+)?:/[^/]")


@dataclass(frozen=True)
class Reference:
    """A private table by its name; making one reads no row.

    Attributes:
        kind: the suffix of a file, or `DATABASE`.
        path: of a file; of the query in a file; None for a table of a database.
        part: the sheet or table, None where none is named.
        url: of a database, with its variables as they are written; None for a file.
    """

    kind: str
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
            return cls(DATABASE, query, None if query else part, url)
        if _CUT_URL.match(text) and not Path(text).exists():
            raise TableError(
                "a Path drops a slash of a database's URL; give the URL as text, not as a Path"
            )
        name, sign, part = text.rpartition("#")
        if sign and not Path(text).exists():
            kind = _kind(Path(name))
            if kind not in WITH_PARTS:
                raise TableError(f"{name} has no parts; leave out the # and what follows it")
            if not part:
                raise TableError(f"{name}#: write the name of a sheet or table after the #")
            return cls(kind, Path(name), part)
        return cls(_kind(Path(text)), Path(text))

    @property
    def place(self) -> str:
        """What messages and internal pages call it; without credentials."""
        part = "" if self.part is None else f"#{self.part}"
        if self.url is not None:
            return Address.of(self.url).place + (part or f"#@{self.path}")
        return f"{self.path}{part}"

    @property
    def title(self) -> str:
        """The same without the folder of a file."""
        if self.url is not None or self.path is None:
            return self.place
        return self.path.name + ("" if self.part is None else f"#{self.part}")

    @property
    def copied_as(self) -> str:
        """The suffix of the files that a split makes of it."""
        return self.kind if self.kind in COPIED else ".parquet"

    def check(self) -> None:
        """Refuse a file that is not there or not readable; no database is reached.

        Raises:
            TableError: with the reason; also for a URL that holds a password.
        """
        if self.url is not None:
            Address.of(self.url)
        if self.path is not None:
            check_file(self.path)
            if self.url is None:
                check_contents(self.path, self.kind)

    def content(self) -> Iterator[bytes]:
        """Yield the bytes by which sources are told apart.

        Of a file, these are its own bytes, and the name of the part that is read. Of a database,
        they are the URL without credentials, and the name of the table or the text of the query:
        the rows behind it may change.

        Raises:
            TableError: the file cannot be read.
        """
        if self.url is not None:
            target = self.part if self.path is None else read_query(self.path)
            yield f"{Address.of(self.url).place}\n{target}".encode()
            return
        assert self.path is not None
        with self.path.open("rb") as file:
            while block := file.read(BLOCK):
                yield block
        if self.kind in WITH_PARTS:
            yield f"#{self._only_part()}".encode()

    def _only_part(self) -> str:
        assert self.path is not None
        if self.kind == ".xlsx":
            from dpsynth.tables.workbooks import WorkbookFile

            return WorkbookFile(self.path).sheet(self.part)
        from dpsynth.tables.duckdb_tables import table_of

        return ".".join(table_of(self.path, self.part))


def is_url(text: str) -> bool:
    """Tell whether a name is the URL of a database, or the variable that holds one."""
    return _URL.match(text) is not None


def names_table(text: str) -> bool:
    """Tell whether a word looks like the name of a table: for messages about the order of words."""
    name = text.rpartition("#")[0] or text
    return is_url(text) or name.lower().endswith(FILES)


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


def _kind(path: Path) -> str:
    name = path.name.lower()
    for suffix in FILES:
        if name.endswith(suffix):
            return suffix
    if name.endswith((".xls", ".xlsm", ".xlsb", ".ods")):
        raise TableError(f"{path}: save the workbook as .xlsx, which dpsynth reads")
    check_file(path)  # a folder, a pipe and a missing file have messages of their own
    check_contents(path)
    raise TableError(
        f"{path}: unknown kind of table; use {', '.join(FILES)}, or the URL of a database"
    )
