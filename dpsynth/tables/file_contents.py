"""What a file is by its first bytes, where its name says that it is a table of another kind.

Messages name kinds of files only; no byte of a file is shown.
"""

from __future__ import annotations

import zipfile
from pathlib import Path

from dpsynth.errors import TableError
from dpsynth.files import cannot_read

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
