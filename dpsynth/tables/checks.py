"""What every table must be, whatever its format: a file with the needed columns, and with rows.

Messages quote declared names only, never the file's: a file without a header has cells there.
"""

from __future__ import annotations

import stat
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

from dpsynth._util.formatting import counted
from dpsynth._util.messages import closest
from dpsynth.errors import NoRowsError, TableError
from dpsynth.files import cannot_read
from dpsynth.tables.formats import WRITTEN

CHUNK = 65_536  # rows
CHUNK_CELLS = 2**22  # fewer rows where columns are many, to keep within a few hundred MB
FEW, MIN_NEEDED = 0.25, 3  # a table with so few of the needed columns is likely another one
MAX_NEAR = 5  # misspelt names that a message points at
EXPORT_AGAIN = "export it again, with the names of its columns in the first line"

Progress = Callable[[float], None]


def chunk_rows(columns: int) -> int:
    """Return how many rows of a table of so many columns are read at a time."""
    return min(CHUNK, max(1, CHUNK_CELLS // columns))


def check_file(path: Path) -> None:
    """Refuse a path that is no readable file, or an empty one; a pipe is not even opened.

    Raises:
        TableError: with the reason.
    """
    try:
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise TableError(f"{path} is a folder; name a file that ends in {', '.join(WRITTEN)}")
        if not stat.S_ISREG(kind):
            raise TableError(
                f"{path} is a pipe or a device, not a file: a table is read more than once; write "
                "it to a file first, and name that"
            )
        with path.open("rb") as file:
            if not file.read(1):
                raise TableError(f"{path} is empty; {EXPORT_AGAIN}")
    except FileNotFoundError:
        hint = "" if str(path) != "-" else "; a table cannot come from standard input: name a file"
        raise TableError(f"{path}: there is no such file{hint}") from None
    except (OSError, ValueError) as error:  # ValueError: a name with a null byte
        raise TableError(f"{path} cannot be read: {cannot_read(error)}") from None


def check_names(header: Sequence[str], needed: Sequence[str], place: str, hint: str = "") -> None:
    """Refuse a header that lacks needed columns, or has one of them twice.

    Raises:
        TableError: all such columns are named.
    """
    absent = [name for name in needed if name not in header]
    if absent:
        columns = "a column" if len(absent) == 1 else f"{len(absent)} columns"
        raise TableError(
            f"{place} lacks {columns} of the schema: {', '.join(absent)} "
            f"(its header has {counted(len(header), 'name')}{hint})"
            f"{_meant(header, needed, absent)}"
        )
    doubled = [name for name in needed if list(header).count(name) > 1]
    if doubled:
        raise TableError(
            f"{place} has more than one column called {', '.join(doubled)}; rename or remove one"
        )


def header_elsewhere(declared: int, line: int, noun: str = "line") -> str:
    """Say that the names may stand in another line than the declared one.

    Args:
        declared: where the schema says that they are.
        line: which has all that are needed; 0 for none.
        noun: what a line of the table is called.
    """
    if line:
        return f"; {noun} {line} has all of them: write dialect: {{header_row: {line}}}"
    if declared == 1:
        return ""
    return f"; do the names stand in {noun} {declared}, as dialect.header_row says?"


def no_header(place: str, declared: int, noun: str = "line") -> TableError:
    """Word the error for a table that ends above its header."""
    if declared == 1:
        return TableError(f"{place} is empty; {EXPORT_AGAIN}")
    return TableError(
        f"{place} has nothing from {noun} {declared} on, where dialect.header_row says that the "
        "names of its columns stand; correct header_row"
    )


def _meant(header: Sequence[str], needed: Sequence[str], absent: Sequence[str]) -> str:
    """Say what may be wrong with a header: another file, or a name that is spelt otherwise.

    A name of the header is called by its place: it may be the cell of a row.
    """
    rewritten = _rewritten(header, needed, absent)
    present = len(needed) - len(absent) + len(rewritten)
    if rewritten:
        return (
            f"; {', '.join(rewritten[:MAX_NEAR])}{', ...' * (len(rewritten) > MAX_NEAR)}: change "
            "the names in the table, or write them in the schema exactly as the table has them"
        )
    if len(needed) > MIN_NEEDED and present <= FEW * len(needed):
        return (
            f"; {present} of {len(needed)} are there: is this the right file, and is its first "
            "line the header?"
        )
    others = {str(name): n for n, name in enumerate(header, 1) if name not in needed}
    near = {name: closest(name, others) for name in absent}
    words = [
        f"column {others[other]} is spelt like {name}" for name, other in near.items() if other
    ]
    return f"; did you mean: {', '.join(words[:MAX_NEAR])}?" if words else ""


def _rewritten(header: Sequence[str], needed: Sequence[str], absent: Sequence[str]) -> list[str]:
    """Say which columns have the name of one that is absent, except for how it is written."""
    columns: dict[str, tuple[int, str]] = {}
    for number, name in enumerate(map(str, header), 1):
        if name not in needed:
            columns.setdefault(_letters(name), (number, name))
    found = []
    for name in absent:
        number, other = columns.get(_letters(name), (0, ""))
        if number and _letters(name):
            found.append(f"column {number} is {name} except for {_difference(name, other)}")
    return found


def _letters(name: str) -> str:
    """Return the letters and digits of a name, in lower case and in one form of Unicode."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    return "".join(letter for letter in folded if letter.isalnum())


def _difference(name: str, other: str) -> str:
    """Say how two names differ that have the same letters."""
    if name == other.strip():
        return "blanks around it"
    if name.casefold() == other.strip().casefold():
        return "upper and lower case"
    if name.split() == other.split():
        return "the blanks within it"
    return "signs between its words, or characters that cannot be seen"


def no_rows(place: str) -> NoRowsError:
    """Word the error for a table that is nothing but a header."""
    return NoRowsError(f"{place} has a header and no rows")
