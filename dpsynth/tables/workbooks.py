"""Sheets of Excel workbooks (``.xlsx``): each cell becomes text, by itself alone.

Excel gives every cell a type of its own. Which types a column may have is checked when the sheet is
opened. Then a number or a date is the text that it would be in a CSV with decimal
points and ISO dates, a truth value is TRUE or FALSE, an error such as #N/A is its own text, and a
formula is its stored value.

The file of an Excel workbook: what it is, before any of its rows is read.

A workbook is a ZIP archive of XML. Sizes are limited before anything is unpacked: the archive
states them, and Python's reader unpacks no more than it states.

What the cells of a sheet hold, column by column, from its XML: kinds only, no value.

A program that wrote the workbook may have inferred a column's type from all of its rows, so a
number is taken only where its text would get the same code, as in a DataFrame or in Parquet. Each
cell has its own type here. So a column may mix kinds, such as numbers and ``<5``, if each of them
is allowed for the column.

Formulas without a stored value are refused: a program wrote them, and Excel never ran them. The
reader of cells returns the same for such a formula and for an empty cell.
"""

from __future__ import annotations

import re
import warnings
import zipfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, cast

import pandas as pd

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables.cell_kinds import Held, check_kinds
from dpsynth.tables.checks import (
    Progress,
    check_names,
    chunk_rows,
    header_elsewhere,
    no_header,
    no_rows,
)
from dpsynth.tables.reference import Reference
from dpsynth.tables.text_columns import cell_text

BLOCK = 512  # rows


@dataclass(frozen=True)
class WorkbookTable:
    """A sheet whose header has been checked."""

    path: Path
    sheet: str
    columns: tuple[str, ...]
    header: tuple[str, ...]
    header_row: int = 1

    @classmethod
    def open(cls, reference: Reference, needed: tuple[str, ...], schema: Schema) -> WorkbookTable:
        """Find the sheet, read the row of its header, and check the kinds of its cells.

        Raises:
            TableError: the workbook is encrypted, damaged, too large, or has several sheets and
                none is named; columns are missing, or hold cells that have to be text and are
                not; or a formula has no stored value.
        """
        path, name = cast(Path, reference.path), cls.part_of(reference)
        number = schema.dialect.header_row
        with WorkbookFile(path).opened() as book:
            header, hint = _header(_rows(book[name], path, number), path, number), ""
            places = {header.index(one): one for one in needed if one in header}
            if len(places) < len(needed):
                hint = header_elsewhere(number, _row_of(book[name], path, needed), "row")
            check_names(header, needed, reference.place, hint)
            check_cells(book[name], places, schema, reference)
        return cls(path, name, needed, tuple(header), number)

    @classmethod
    def part_of(cls, reference: Reference) -> str:
        """Return the name of the sheet that is read; see `WorkbookFile.sheet`."""
        return WorkbookFile(cast(Path, reference.path)).sheet(reference.part)

    @classmethod
    def parts_in(cls, reference: Reference) -> dict[str, str]:
        """Return the names of all sheets."""
        return {name: name for name in WorkbookFile(cast(Path, reference.path)).sheets()}

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of text cells, None where a cell is empty; empty rows are skipped."""
        with WorkbookFile(self.path).opened() as book:
            rows = _rows(book[self.sheet], self.path, self.header_row)
            header = _header(rows, self.path, self.header_row)
            places = [header.index(name) for name in self.columns]
            records = _records(rows, len(header), self.path)
            size, has_rows = chunk_rows(len(self.columns)), False
            while block := list(islice(records, size)):
                has_rows = True
                yield pd.DataFrame(
                    {
                        name: pd.Series([_text(row[place]) for row in block], dtype=object)
                        for name, place in zip(self.columns, places, strict=True)
                    }
                )
        if not has_rows:
            raise no_rows(str(self.path))
        if progress is not None:
            progress(1.0)  # a sheet does not say how many rows it has


def _text(cell: Any) -> str | None:
    """Return the text of a cell, None where it is empty."""
    value = None if cell is None else cell.value
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, datetime):
        midnight = not (value.hour or value.minute or value.second or value.microsecond)
        return value.date().isoformat() if midnight else value.isoformat(sep=" ")
    return cell_text(value)


def _rows(sheet: Any, path: Path, first: int = 1) -> Iterator[Sequence[Any]]:
    """Yield the rows of a sheet from a number on; the errors of the reader may quote cells."""
    sheet.reset_dimensions()  # a workbook may state them wrongly
    rows = sheet.iter_rows(min_row=first)
    while True:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # a warning of openpyxl quotes a date out of range
                block = list(islice(rows, BLOCK))
        except Exception:  # whatever damaged XML does to its reader
            raise TableError(f"{path} is damaged; open it in Excel and save it again") from None
        if not block:
            return
        yield from block


def _header(rows: Iterator[Sequence[Any]], path: Path, number: int) -> list[str]:
    """Return the trimmed names of the first row with any, without empty ones at its end."""
    for row in rows:
        if names := _names(row):
            return names
    raise no_header(f"{path}: the sheet", number, "row")


def _names(row: Sequence[Any]) -> list[str]:
    names = ["" if cell.value is None else str(cell.value).strip() for cell in row]
    while names and not names[-1]:
        names.pop()
    return names


def _row_of(sheet: Any, path: Path, needed: Sequence[str]) -> int:
    """Return the number of the first row that names all columns that are needed; 0 if none."""
    rows = enumerate(_rows(sheet, path), 1)
    return next((number for number, row in rows if {*needed} <= {*_names(row)}), 0)


def _records(rows: Iterator[Sequence[Any]], width: int, path: Path) -> Iterator[Sequence[Any]]:
    """Yield the rows that are not empty, as wide as the header."""
    for row in rows:
        filled = [place for place, cell in enumerate(row) if cell.value not in (None, "")]
        if not filled:
            continue
        if filled[-1] >= width:
            raise TableError(
                f"{path}: a row has a cell to the right of the last column of the header; give "
                "every column a name in the first row, or remove what stands beside the table"
            )
        yield [*row[:width], *[None] * (width - len(row))]


MAX_ROWS, MAX_COLUMNS = 1_048_576, 16_384  # of Excel
MAX_MEMBER = 4 * 2**30  # bytes, unpacked
MAX_TEXTS = 2**30  # bytes of the texts that cells share: they are kept in memory
MAX_RATIO = 1_000  # real workbooks are packed to a tenth or a twentieth
MIN_CHECKED = 2**24  # bytes; what is smaller may be packed as densely as it likes

_OLE = b"\xd0\xcf\x11\xe0"
_ENCRYPTED = "EncryptedPackage".encode("utf-16-le")


@dataclass(frozen=True)
class WorkbookFile:
    """A workbook that can be opened safely."""

    path: Path

    def check(self) -> None:
        """Refuse what is not a workbook of the current format, or unpacks to too much.

        Raises:
            TableError: with the reason and what to do.
        """
        with self.path.open("rb") as file:
            start = file.read(len(_OLE))
            if start == _OLE:
                if _ENCRYPTED in file.read(2**26):
                    raise TableError(
                        f"{self.path} is encrypted: open it in Excel, remove its password (File, "
                        "Info, Protect Workbook), and save it on an encrypted disk"
                    )
                raise TableError(f"{self.path} is an old workbook (.xls); save it as .xlsx")
        try:
            with zipfile.ZipFile(self.path) as archive:
                members = archive.infolist()
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
            raise TableError(f"{self.path} is not an Excel workbook, or it is damaged") from None
        if any(member.flag_bits & 1 for member in members):
            raise TableError(f"{self.path} is encrypted; save it without a password")
        for member in members:
            limit = MAX_TEXTS if member.filename.endswith("sharedStrings.xml") else MAX_MEMBER
            dense = member.file_size > MAX_RATIO * max(1, member.compress_size)
            if member.file_size > limit or (dense and member.file_size > MIN_CHECKED):
                raise TableError(
                    f"{self.path} unpacks to more than a table of its size can hold; save the "
                    "sheet as CSV in Excel"
                )

    @contextmanager
    def opened(self) -> Iterator[Any]:
        """Open the workbook for reading, with the stored values of its formulas.

        Raises:
            TableError: it is damaged. The reader's own text is withheld: it may quote cells.
        """
        self.check()
        import openpyxl

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they may quote what the file holds
                book = openpyxl.load_workbook(
                    self.path, read_only=True, data_only=True, keep_links=False
                )
        except Exception:  # whatever a damaged archive does to its reader
            raise TableError(f"{self.path} is not an Excel workbook, or it is damaged") from None
        try:
            yield book
        finally:
            book.close()

    def sheet(self, name: str | None) -> str:
        """Return the name of the sheet that is read: the one that is named, or the only one.

        Raises:
            TableError: there is no such sheet, or there are several and none is named. Sheets are
                not listed: their names may be private.
        """
        names = self.sheets()
        if name is not None:
            if name not in names:
                raise TableError(
                    f"{self.path} has no sheet with the name given after the #; write it as on the "
                    "tab of the sheet, upper and lower case included"
                )
            return name
        if len(names) != 1:
            raise TableError(
                f"{self.path} has {len(names)} sheets; name the one to read: "
                f"'{self.path.name}#NAME'"
            )
        return names[0]

    def sheets(self) -> list[str]:
        """Return the names of all sheets."""
        with self.opened() as book:
            return [str(sheet.title) for sheet in book.worksheets]


_PLACE = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,7})")
_SPACES = (
    "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}",
    "{http://purl.oclc.org/ooxml/spreadsheetml/main}",
)
_TYPES = {"b": Held.TRUTH, "d": Held.TIME, "n": Held.FLOAT}  # of the attribute t; the rest is text
Kinds = dict[int, set[Held]]


def check_cells(
    sheet: Any, places: Mapping[int, str], schema: Schema, reference: Reference
) -> None:
    """Refuse columns with cells that could be coded otherwise as text.

    Args:
        sheet: as openpyxl opens it, read only.
        places: the names of the columns that are read, by their places from 0.
        schema: of the table.
        reference: the sheet.

    Raises:
        TableError: it names the column; also for a formula without a value, and for damaged XML.
    """
    path = cast(Path, reference.path)
    try:
        kinds = _kinds(path, sheet, places, schema.dialect.header_row)
    except TableError:
        raise
    except Exception:  # whatever damaged XML does to its reader
        raise TableError(f"{path} is damaged; open it in Excel and save it again") from None
    if not kinds:
        return  # a header and no rows
    for at, name in places.items():  # a time of day in a column of dates is a cell like any other
        if schema.column(name).kind.is_time and Held.CLOCK in kinds.get(at, ()):
            kinds[at] = kinds[at] - {Held.CLOCK} | {Held.TIME}
    for kind in Held:  # in a fixed order, whatever the rows hold
        here = {name: kind for at, name in places.items() if kind in kinds.get(at, {kind.NOTHING})}
        check_kinds(here, schema, reference.place, reference.format.remedy)


def _kinds(path: Path, sheet: Any, places: Mapping[int, str], first: int) -> Kinds:
    """Return the kinds of cells in each column, without rows up to that of the header.

    Args:
        path: of the workbook, for messages.
        sheet: as openpyxl opens it, read only.
        places: the names of the columns that are read, by their places from 0.
        first: the number of the row from which on the header is looked for.
    """
    from openpyxl.xml.functions import iterparse  # that of defusedxml, where it is installed

    tags = {space + name: name for space in _SPACES for name in ("c", "f", "v", "t", "row")}
    kinds, row, headed = defaultdict[int, set[Held]](set), Kinds(), False
    formula = value = False
    column, number, unstored = -1, 0, ""
    with sheet._get_source() as source:
        for _, element in iterparse(source):
            name = tags.get(element.tag)
            if name == "f":
                formula = True
            elif name in ("v", "t"):
                value = value or element.text is not None
            elif name == "c":
                column = _column(element.get("r"), column, path)
                if formula and not value and column in places:
                    unstored = places[column]
                if value:
                    row.setdefault(column, set()).add(_kind(element, sheet.parent))
                formula = value = False
            elif name == "row":
                number = _row_number(element.get("r"), number, path)
                if unstored and number >= first:
                    raise TableError(
                        f"{path}: column '{unstored}' has formulas without a stored value; open "
                        "the workbook in Excel and save it, or paste values"
                    )
                if headed:
                    for at, found in row.items():
                        kinds[at] |= found
                headed = headed or (bool(row) and number >= first)
                row, column, unstored = {}, -1, ""
                element.clear()
    return kinds


def _kind(element: Any, book: Any) -> Held:
    """Return what one cell holds; whether a number is a date is a matter of its format."""
    kind = _TYPES.get(element.get("t", "n"), Held.TEXT)
    if kind is not Held.FLOAT:
        return kind
    style = int(element.get("s", 0))
    if style in book._timedelta_formats:
        return Held.OTHER
    if style not in book._date_formats:
        return Held.FLOAT
    return Held.CLOCK if _shows_clock(book, style) else Held.TIME


def _shows_clock(book: Any, style: int) -> bool:
    """Tell whether a format of dates and times shows a time of day only."""
    from openpyxl.styles.numbers import BUILTIN_FORMATS, BUILTIN_FORMATS_MAX_SIZE, is_datetime

    number = book._cell_styles[style].numFmtId
    is_declared = number >= BUILTIN_FORMATS_MAX_SIZE
    form = book._number_formats[number - BUILTIN_FORMATS_MAX_SIZE] if is_declared else ""
    form = form or BUILTIN_FORMATS.get(number, "")
    return is_datetime(form) == "time" and "h" in form.lower()


def _row_number(number: str | None, before: int, path: Path) -> int:
    """Return the number of a row; refuse one to which a reader would count for ever."""
    if number is None:
        return before + 1
    if not (number.isdecimal() and int(number[:9]) <= MAX_ROWS):
        raise TableError(f"{path} is damaged: a row has a place that no sheet has")
    return int(number)


def _column(place: str | None, before: int, path: Path) -> int:
    """Return the column of a cell, from 0; a cell that does not say its place follows the last."""
    if place is None:
        return before + 1
    match = _PLACE.fullmatch(place)
    column = 0
    for letter in match[1] if match else "":
        column = 26 * column + ord(letter) - ord("A") + 1
    if match is None or column > MAX_COLUMNS or int(match[2]) > MAX_ROWS:
        raise TableError(f"{path} is damaged: a cell has a place that no sheet has")
    return column - 1
