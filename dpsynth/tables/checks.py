"""What every table must be, whatever its format: a file with the needed columns, and with rows.

Messages quote declared names only, never the file's: a file without a header has cells there.

What a file is by its first bytes, where its name says that it is a table of another kind.

Messages name kinds of files only; no byte of a file is shown.
"""

from __future__ import annotations

import stat
import unicodedata
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path

from dpsynth._util.arguments import type_name
from dpsynth._util.formatting import counted
from dpsynth._util.messages import closest
from dpsynth.errors import NoRowsError, TableError
from dpsynth.files import cannot_read

CHUNK = 65_536  # rows
CHUNK_CELLS = 2**22  # fewer rows where columns are many, to keep within a few hundred MB
FEW, MIN_NEEDED = 0.25, 3  # a table with so few of the needed columns is likely another one
MAX_NEAR = 5  # misspelt names that a message points at
EXPORT_AGAIN = "export it again, with the names of its columns in the first line"
SUFFIXES = (".csv", ".csv.gz", ".parquet")

Progress = Callable[[float], None]


def table_kind(path: Path) -> str:
    """Return the suffix that says how a table is written.

    Raises:
        TableError: it is none of those that dpsynth reads and writes.
    """
    if not isinstance(path, Path):
        raise TableError(f"{type_name(path)} was given in place of the path of a table")
    for suffix in SUFFIXES:
        if path.name.lower().endswith(suffix):
            return suffix
    raise TableError(f"{path}: unknown kind of table; use {', '.join(SUFFIXES)}")


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
            raise TableError(f"{path} is a folder; name a file that ends in {', '.join(SUFFIXES)}")
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


def header_below(line: int) -> str:
    """Say where a file has its header, if other lines stand above it; 0 for no such line."""
    if line <= 1:
        return ""
    return (
        f"; line {line} has all of them: remove the {counted(line - 1, 'line')} above it, such as "
        "a title"
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


START = 512  # bytes
_UNPACK = "unpack it, and name the table in it"
_SAVE = "open it with its program and save it as .xlsx or CSV"
_EXPORT = "export the table as CSV or Parquet"

# The first bytes, what the file is, the suffix under which dpsynth reads it, and what to do else.
_KINDS: tuple[tuple[bytes, str, str, str], ...] = (
    (b"SQLite format 3\0", "an SQLite database", "", "name one of its tables by a URL"),
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "a workbook of an older Excel, or an encrypted one",
        "",
        _SAVE,
    ),
    (b"$FL2@(#)", "a file of SPSS", ".sav", ""),
    (b"$FL3@(#)", "a compressed file of SPSS", ".sav", ""),
    (b"<stata_dta>", "a file of Stata", ".dta", ""),
    (b"\0" * 12 + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf", "a file of SAS", ".sas7bdat", ""),
    (b"ARROW1\0\0", "an Arrow (Feather) file", "", "write it as Parquet"),
    (b"RDX3\nX\n", "a file of R", "", _EXPORT),
    (b"RDX2\nX\n", "a file of R", "", _EXPORT),
    (b"%PDF-", "a PDF document", "", _EXPORT),
    (b"\x1f\x8b\x08", "a gzipped file", ".gz", ""),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", "", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", "", _UNPACK),
    (b"\xfd7zXZ\0", "a file that xz compressed", "", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a file that zstd compressed", "", _UNPACK),
)
_TEXTS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("<!doctype html", "<html", "<table"), "a web page, as some programs export workbooks"),
    (("<?xml",), "an XML document"),
    (('{"', "[{"), "a JSON document"),
)


def check_contents(path: Path, kind: str = "") -> None:
    """Refuse a file whose first bytes are of another kind than its name says.

    Args:
        path: of the file.
        kind: the suffix by which it would be read; empty for one that dpsynth does not know.

    Raises:
        TableError: it says what the file is, and what to do.
    """
    try:
        with path.open("rb") as file:
            start = file.read(START)
            file.seek(-min(4, file.seek(0, 2)), 2)
            end = file.read(4)
    except OSError as error:
        raise TableError(f"{path} cannot be read: {cannot_read(error)}") from None
    found = _binary(path, start, end) or _text(start)
    if found is None or (found[1] and kind.endswith(found[1])):
        return
    what, suffix, remedy = found
    if suffix and not remedy:
        name = path.name[: -len(kind)] if kind else path.stem
        text = kind if kind in (".csv", ".tsv", ".txt") else ".csv"
        remedy = f"call it {name}{text if suffix == '.gz' else ''}{suffix}"
    raise TableError(f"{path} is {what}: {remedy}")


def _binary(path: Path, start: bytes, end: bytes) -> tuple[str, str, str] | None:
    """Return what a file is, its suffix and a remedy; None if its first bytes do not say."""
    if start.startswith(b"PAR1") and end == b"PAR1":
        return "a Parquet file", ".parquet", ""
    if start[8:12] == b"DUCK":
        return "a DuckDB database", ".duckdb", ""
    if start.startswith(b"PK\x03\x04"):
        return _zipped(path)
    for magic, what, suffix, remedy in _KINDS:
        if start.startswith(magic):
            if magic.startswith(b"SQLite"):
                remedy += f": sqlite:///{path}#TABLE"
            return what, suffix, remedy
    return None


def _zipped(path: Path) -> tuple[str, str, str] | None:
    """Tell a workbook from another archive; None for a damaged one that is called a workbook."""
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        if path.name.lower().endswith(".xlsx"):
            return None  # its reader says more
        names = []
    if any(name.startswith("xl/") for name in names):
        return "an Excel workbook", ".xlsx", ""
    if "mimetype" in names or any(name.endswith("content.xml") for name in names):
        return "a document of an office program", "", _SAVE
    return "a zip archive", "", _UNPACK


def _text(start: bytes) -> tuple[str, str, str] | None:
    """Recognise texts that are no tables."""
    text = start.decode("utf-8-sig", "ignore").lstrip()
    for beginnings, what in _TEXTS:
        if text.lower().startswith(beginnings):
            return what, "", _EXPORT
    return None
