"""A query in a file: one SELECT, and nothing else.

The check is stricter than SQL, so that it needs no parser of each database's language. It refuses
every semicolon except a last one, and every word that could write, wherever it stands. The database
then gets the query inside ``SELECT ... FROM (query)``, in a transaction that can only read.
"""

from __future__ import annotations

import re
from pathlib import Path

from dpsynth._util.whole_files import read_whole
from dpsynth.errors import TableError
from dpsynth.tables.checks import check_file

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
