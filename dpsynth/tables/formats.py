"""The formats of sources: each is one entry of `FORMATS`, over which everything else loops.

To add a format, write its reader beside its nearest kin, and add the entry. Readers, messages, the
help of commands, drafts, splits and linked tables then know it; see docs/extending.md.

This file also says what a file is by its first bytes, where its name says something else. Messages
name kinds of files only; no byte of a file is shown.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from dpsynth._util.arguments import type_name
from dpsynth._util.dependencies import need
from dpsynth.errors import TableError
from dpsynth.files import cannot_read

START = 512  # bytes, by which a file is recognised
GZIP = ".gz"
UNREAD = (".", "_")
"""At the start of a name in a folder of parts: what writers put beside the parts, not rows."""

Recognise = Callable[[bytes, bytes], bool]


def starts_with(*magic: bytes) -> Recognise:
    """Recognise a file by what it starts with."""
    return lambda start, end: start.startswith(magic)


@dataclass(frozen=True)
class Format:
    """How one kind of source is named, recognised and read.

    Attributes:
        name: its key in `FORMATS`.
        title: what docs/sources.md calls it.
        noun: what messages call a file of it.
        suffixes: of its files; none for a database, which is named by a URL.
        table: its reader, as ``module:class``, which is loaded when it is first used. The class
            has ``open(reference, needed, schema)``, which returns a `dpsynth.tables.Table`.
        typed: whether cells have types of their own. Otherwise each cell is a text.
        remedy: of typed cells: what to do about a column that has to be text and is not.
        part: what a file or database has several of, each of them a table. Then the reader also has
            ``part_of(reference)``, the name of the part that is read, and ``parts_in(reference)``:
            the name of each part, and how it is written after the ``#``. Of a database, these are
            the parts of the schema that the reference names, or of the usual one.
        recognise: tells a file by its first 512 and its last 4 bytes.
        library: the package that reads it, if a light installation lacks it.
        extra: the extra of dpsynth that installs this package.
        reader: the function of the library, where one reader of dpsynth knows several formats.
        program: whose conventions its dates and missing values keep.
        delimiter: between the cells of a text file; empty for the one that the schema declares.
        titled: whether lines may stand above the names of its columns (``dialect.header_row``).
        copied: whether a split copies its rows as they stand; of other formats it writes Parquet.
        written: the suffixes under which synthetic tables are written.
        folder: whether the files of a folder can be the parts of one table.
        draft: how a draft reads the columns without reading a row: ``"first line"``,
            ``"dictionary"``, or ``"names"`` where the names stand apart from the rows; empty where
            they stand among the rows.
    """

    name: str
    title: str
    noun: str
    suffixes: tuple[str, ...]
    table: str
    typed: bool = True
    remedy: str = ""
    part: str = ""
    recognise: Recognise = starts_with()
    library: str = ""
    extra: str = ""
    reader: str = ""
    program: str = ""
    delimiter: str = ""
    titled: bool = False
    copied: bool = False
    written: tuple[str, ...] = ()
    folder: bool = False
    draft: str = ""

    @property
    def tables(self) -> Any:
        """The class of its tables.

        Raises:
            InputError: the library that reads it is not installed.
        """
        if self.library:
            need(self.library)
        module, _, name = self.table.partition(":")
        return getattr(import_module(module), name)


FIRST_LINE, DICTIONARY, NAMES = "first line", "dictionary", "names"
_LABELS = "or, if its value labels are the categories, write dialect: {labels: true} in the schema"
_STATISTICAL: dict[str, Any] = {
    "table": "dpsynth.tables.statistical:StatisticalTable",
    "library": "pyreadstat",
    "extra": "formats",
    "draft": DICTIONARY,
}
_SAS_REMEDY = "make it a character variable, or a number of length 8, in SAS"

FORMATS: dict[str, Format] = {
    one.name: one
    for one in (
        Format(
            "csv",
            title="CSV or other text, in the schema's dialect",
            noun="a CSV file",
            suffixes=(".csv", ".csv.gz", ".txt", ".txt.gz"),
            table="dpsynth.tables.csv:CsvTable",
            typed=False,
            titled=True,
            copied=True,
            written=(".csv", ".csv.gz"),
            draft=FIRST_LINE,
        ),
        Format(
            "tsv",
            title="text with tabs",
            noun="a text file with tabs",
            suffixes=(".tsv", ".tsv.gz"),
            table="dpsynth.tables.csv:CsvTable",
            typed=False,
            delimiter="\t",
            titled=True,
            copied=True,
            draft=FIRST_LINE,
        ),
        Format(
            "jsonl",
            title="JSON Lines, an object a line",
            noun="a JSON document",
            suffixes=(".jsonl", ".jsonl.gz", ".ndjson", ".ndjson.gz"),
            table="dpsynth.tables.json_lines:JsonLinesTable",
            remedy='write the column as JSON strings, such as "007", straight from the source and '
            "not from a table in memory; write nested values as columns of their own",
            recognise=lambda start, end: (
                start.decode("utf-8-sig", "ignore").lstrip().startswith('{"')
            ),
        ),
        Format(
            "parquet",
            title="Parquet, a file or a folder of parts",
            noun="a Parquet file",
            suffixes=(".parquet",),
            table="dpsynth.tables.parquet:ParquetTable",
            remedy="write the column as text, directly from the source and not from a table in "
            "memory",
            recognise=lambda start, end: start.startswith(b"PAR1") and end == b"PAR1",
            copied=True,
            written=(".parquet",),
            folder=True,
            draft=NAMES,
        ),
        Format(
            "excel",
            title="Excel, a sheet",
            noun="an Excel workbook",
            suffixes=(".xlsx",),
            table="dpsynth.tables.workbooks:WorkbookTable",
            remedy="save the sheet as CSV, where all cells are text, or in Excel give the column "
            "the format Text and enter or import it again; "
            "dialect.decimal and a column's format are for text, so leave them out for numbers and "
            "dates of Excel",
            part="sheet",
            titled=True,
            library="openpyxl",
            extra="formats",
            draft=NAMES,
        ),
        Format(
            "spss",
            title="SPSS",
            noun="a file of SPSS",
            suffixes=(".sav", ".zsav"),
            remedy="make it a string variable in SPSS (ALTER TYPE), and check leading zeros; "
            + _LABELS,
            recognise=starts_with(b"$FL2@(#)", b"$FL3@(#)"),
            reader="read_sav",
            program="SPSS",
            **_STATISTICAL,
        ),
        Format(
            "sas",
            title="SAS",
            noun="a file of SAS",
            suffixes=(".sas7bdat",),
            remedy=_SAS_REMEDY,
            recognise=starts_with(b"\0" * 12 + b"\xc2\xea\x81\x60\xb3\x14\x11\xcf"),
            reader="read_sas7bdat",
            program="SAS",
            **_STATISTICAL,
        ),
        Format(
            "xport",
            title="SAS transport, versions 5 and 8",
            noun="a SAS transport file",
            suffixes=(".xpt",),
            remedy=_SAS_REMEDY,
            recognise=starts_with(
                b"HEADER RECORD*******LIBRARY HEADER RECORD", b"HEADER RECORD*******LIBV8"
            ),
            reader="read_xport",
            program="SAS",
            **_STATISTICAL,
        ),
        Format(
            "stata",
            title="Stata",
            noun="a file of Stata",
            suffixes=(".dta",),
            remedy="keep it as str or double in Stata (import delimited with stringcols or "
            "asdouble); " + _LABELS,
            recognise=starts_with(b"<stata_dta>"),
            reader="read_dta",
            program="Stata",
            **_STATISTICAL,
        ),
        Format(
            "duckdb",
            title="DuckDB, a table or view",
            noun="a DuckDB database",
            suffixes=(".duckdb",),
            table="dpsynth.tables.duckdb_tables:DuckdbTable",
            remedy="make a view in the file that selects the column as text, CAST(... AS VARCHAR), "
            "straight from the source, and name the view",
            part="table",
            recognise=lambda start, end: start[8:12] == b"DUCK",
            library="duckdb",
            extra="formats",
            draft=NAMES,
        ),
        Format(
            "sqlite",
            title="SQLite, a table or view",
            noun="an SQLite database",
            suffixes=(".sqlite", ".sqlite3", ".db"),
            table="dpsynth.tables.databases:DatabaseTable",
            remedy="make a view that selects the column as text, CAST(... AS TEXT), straight from "
            "the source, and name the view",
            part="table",
            recognise=starts_with(b"SQLite format 3\0"),
            draft=NAMES,
        ),
        Format(
            "database",
            title="a database, a table or view, or a query",
            noun="a database",
            suffixes=(),
            table="dpsynth.tables.databases:DatabaseTable",
            remedy="select the column as text, straight from the source: CAST(... AS TEXT) in a "
            "query",
            part="table",
            extra="postgres",
            draft=NAMES,
        ),
    )
}
"""The formats by their names; the first that knows a suffix reads it."""

WRITTEN = tuple(suffix for one in FORMATS.values() for suffix in one.written)
"""The suffixes of synthetic tables."""


def suffixes(draft: str | None = None) -> tuple[str, ...]:
    """Return the suffixes of all files that are read, or of those of which a draft reads so much.

    >>> suffixes(FIRST_LINE)[-2:]
    ('.tsv', '.tsv.gz')
    """
    formats = [one for one in FORMATS.values() if draft in (None, one.draft)]
    return tuple(suffix for one in formats for suffix in one.suffixes)


def usual_suffixes() -> str:
    """List one suffix of each format, for messages and help."""
    return ", ".join(one.suffixes[0] for one in FORMATS.values() if one.suffixes)


def suffix_of(name: str | Path, among: Sequence[str] | None = None) -> str:
    """Return the suffix by which a name is that of a table; empty if it has none.

    >>> suffix_of("extract.CSV.GZ"), suffix_of("notes.docx")
    ('.csv.gz', '')
    """
    lowered = Path(name).name.lower()
    known = suffixes() if among is None else among
    return max((one for one in known if lowered.endswith(one)), key=len, default="")


def format_by(suffix: str) -> Format:
    """Return the format of a suffix."""
    return next(one for one in FORMATS.values() if suffix in one.suffixes)


def format_of(path: Path) -> Format | None:
    """Return the format of a file or of a folder of parts, by its name; None if there is none."""
    suffix = suffix_of(path)
    if suffix:
        return format_by(suffix)
    names = [part.name for part in _parts(path)] if path.is_dir() else []
    folders = (one for one in FORMATS.values() if one.folder and names)
    return next((one for one in folders if all(suffix_of(n, one.suffixes) for n in names)), None)


def files_of(path: Path) -> list[Path]:
    """Return the files of a table: the file itself, or the parts in its folder by their names.

    Raises:
        TableError: the folder has no part, or holds what is not one.
    """
    if not path.is_dir():
        return [path]
    format_ = format_of(path)
    if format_ is None or not format_.folder:
        raise TableError(f"{path} is a folder; name a file that ends in {', '.join(WRITTEN)}")
    parts = _parts(path)
    if any(part.is_dir() for part in parts):
        raise TableError(
            f"{path} has folders within it: the files of a table that is partitioned lack the "
            "columns by which it is; write it again without partitions"
        )
    if not parts or not all(suffix_of(part, format_.suffixes) for part in parts):
        raise TableError(
            f"{path} is a folder, and is read as one table only if it holds nothing but the parts "
            f"of the table, files that end in {', '.join(format_.suffixes)}"
        )
    return parts


def _parts(folder: Path) -> list[Path]:
    try:
        return sorted(one for one in folder.iterdir() if not one.name.startswith(UNREAD))
    except OSError as error:
        raise TableError(f"{folder} cannot be read: {cannot_read(error)}") from None


def size_of(path: Path) -> int:
    """Return the bytes of a table's file, or of all parts in its folder.

    Raises:
        OSError: there is no such file.
    """
    return sum(file.stat().st_size for file in files_of(path))


def table_kind(path: Path) -> str:
    """Return the suffix that says how a synthetic table is written.

    Raises:
        TableError: it is none of those that dpsynth writes.
    """
    if not isinstance(path, Path):
        raise TableError(f"{type_name(path)} was given in place of the path of a table")
    suffix = suffix_of(path, WRITTEN)
    if not suffix:
        raise TableError(f"{path}: unknown kind of table; use {', '.join(WRITTEN)}")
    return suffix


_UNPACK = "unpack it, and name the table in it"
_SAVE = "open it with its program and save it as .xlsx or CSV"
_EXPORT = "export the table as CSV or Parquet"

# What is not read: the first bytes, what the file is, and what to do.
_OTHERS: tuple[tuple[bytes, str, str], ...] = (
    (
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "a workbook of an older Excel, or an encrypted one",
        _SAVE,
    ),
    (b"**COMPRESSED** ", "a file of PROC CPORT", "write it with the XPORT engine of SAS instead"),
    (b"ARROW1\0\0", "an Arrow (Feather) file", "write it as Parquet"),
    (b"RDX3\nX\n", "a file of R", _EXPORT),
    (b"RDX2\nX\n", "a file of R", _EXPORT),
    (b"%PDF-", "a PDF document", _EXPORT),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (b"\xfd7zXZ\0", "a file that xz compressed", _UNPACK),
    (b"\x28\xb5\x2f\xfd", "a file that zstd compressed", _UNPACK),
)
_TEXTS: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        ("<!doctype html", "<html", "<table"),
        "a web page, as some programs export workbooks",
        _EXPORT,
    ),
    (("<?xml",), "an XML document", _EXPORT),
    (
        ("[{",),
        "a JSON document",
        f"{_EXPORT}, or as JSON Lines, with one object a line and without the brackets around them",
    ),
)


def check_contents(path: Path, named: Format | None = None) -> None:
    """Refuse a file whose first bytes are of another kind than its name says.

    Args:
        path: of the file.
        named: the format by which it would be read; None for a name that dpsynth does not know.

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
    found = _recognised(path, start, end)
    if found is None and start.startswith(b"\x1f\x8b\x08"):
        if not path.name.lower().endswith(GZIP):
            raise TableError(f"{path} is a gzipped file: call it {_packed(path, named)}")
        return
    if isinstance(found, Format):
        if found is not named:
            new = f"{_stem(path)}{found.suffixes[0]}"
            raise TableError(f"{path} is {found.noun}: call it {new}")
        return
    if found is not None:
        what, remedy = found
        raise TableError(f"{path} is {what}: {remedy}")


def _stem(path: Path) -> str:
    suffix = suffix_of(path)
    return path.name[: -len(suffix)] if suffix else path.stem


def _packed(path: Path, named: Format | None) -> str:
    """Return the name that a gzipped file should have."""
    suffix = suffix_of(path)
    packed = named is not None and f"{suffix}{GZIP}" in named.suffixes
    return f"{_stem(path)}{suffix if packed else FORMATS['csv'].suffixes[0]}{GZIP}"


def _recognised(path: Path, start: bytes, end: bytes) -> Format | tuple[str, str] | None:
    """Return what a file is: a format, or else its kind and a remedy; None if nothing says so."""
    if start.startswith(b"PK\x03\x04"):
        return _zipped(path)
    for one in FORMATS.values():
        if one.recognise(start, end):
            return one
    for magic, what, remedy in _OTHERS:
        if start.startswith(magic):
            return what, remedy
    text = start.decode("utf-8-sig", "ignore").lstrip()
    for beginnings, what, remedy in _TEXTS:
        if text.lower().startswith(beginnings):
            return what, remedy
    return None


def _zipped(path: Path) -> Format | tuple[str, str] | None:
    """Tell a workbook from another archive; None for a damaged one that is called a workbook."""
    excel = FORMATS["excel"]
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        if format_of(path) is excel:
            return None  # its reader says more
        names = []
    if any(name.startswith("xl/") for name in names):
        return excel
    if "mimetype" in names or any(name.endswith("content.xml") for name in names):
        return "a document of an office program", _SAVE
    return "a zip archive", _UNPACK
