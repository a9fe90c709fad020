"""The cells of a data dictionary as text, from a CSV file or a workbook, within limits."""

from __future__ import annotations

import codecs
import csv
import io
from dataclasses import dataclass
from pathlib import Path

from dpsynth._util.messages import shown
from dpsynth._util.whole_files import read_whole
from dpsynth.errors import InputError

MAX_FILE = 16 * 2**20  # bytes
MAX_ROWS = 20_000
MAX_COLUMNS = 500
MAX_CELL = 32_767  # characters, as in a workbook
Row = tuple[str, ...]


@dataclass(frozen=True)
class Sheet:
    """The rows of a document that are not blank, each with its number in the file.

    Attributes:
        title: the name of the sheet; empty for a CSV file.
        rows: number, from 1, and trimmed cells.
    """

    title: str
    rows: tuple[tuple[int, Row], ...]


def read_bytes(path: Path) -> bytes:
    """Read a document whole.

    Raises:
        InputError: it cannot be read, is empty, or is larger than 16 MB.
    """
    content = read_whole(path, largest=MAX_FILE, never="a data dictionary is not")
    if not content.strip():
        raise InputError(f"{path} is empty; give a data dictionary")
    return content


def read_text_sheets(path: Path, delimiter: str | None, encoding: str) -> list[Sheet]:
    """Read a CSV file: one sheet for each delimiter that it may have, the likeliest first.

    A dictionary is public, so its delimiter may be tried; for a private table it is declared.

    Raises:
        InputError: it is not text in this encoding, or not a CSV file.
    """
    content = read_bytes(path)
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    elif content.startswith(codecs.BOM_UTF8):
        encoding = "utf-8"
    try:
        codecs.lookup(encoding)
        text = content.decode("utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding)
    except LookupError:
        raise InputError(f"{shown(encoding)} is not an encoding; try utf-8 or cp1252") from None
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise InputError(
            f"{path}, line {line}: this is not {encoding}; add --encoding, such as --encoding "
            "cp1252"
        ) from None
    if "\0" in text:
        raise InputError(f"{path} is not a text file; save it as CSV or .xlsx")
    signs = [delimiter] if delimiter else sorted(",;\t|", key=text.count, reverse=True)
    return [_text_sheet(path, text, sign) for sign in signs if sign in text or delimiter] or [
        _text_sheet(path, text, ",")
    ]


def _text_sheet(path: Path, text: str, delimiter: str) -> Sheet:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows: list[tuple[int, Row]] = []
    try:
        for row in reader:
            add_row(rows, reader.line_num, row, str(path))
    except csv.Error:
        place = f"{path}, line {reader.line_num}"
        raise InputError(f"{place}: this is not CSV; check its quotes") from None
    return Sheet("", tuple(rows))


def add_row(rows: list[tuple[int, Row]], number: int, cells: list[str], source: str) -> None:
    """Add a row unless it is blank.

    Raises:
        InputError: a document has more rows, columns or text than a dictionary.
    """
    trimmed = [cell.strip() for cell in cells]
    while trimmed and not trimmed[-1]:
        trimmed.pop()
    if not trimmed:
        return
    if len(rows) >= MAX_ROWS or len(trimmed) > MAX_COLUMNS:
        raise InputError(
            f"{source} has more than {MAX_ROWS} rows or {MAX_COLUMNS} columns; this is a table and "
            "not a data dictionary (one row for each column of the table)"
        )
    if any(len(cell) > MAX_CELL for cell in trimmed):
        raise InputError(f"{source}, row {number}: a cell is longer than {MAX_CELL} characters")
    rows.append((number, tuple(trimmed)))
