"""Workbooks (.xlsx) with a data dictionary, read as values only and as data from a stranger.

A workbook is a ZIP file of XML. Before it is opened, its size when unpacked is limited (a "bomb" of
a few kilobytes can unpack to gigabytes), and macros and entity declarations are refused. It is
opened read-only and without links to other files. A formula is refused, not computed.
"""

from __future__ import annotations

import zipfile
from datetime import date, datetime, time
from io import BytesIO
from pathlib import Path
from typing import Any

from dpsynth._util.messages import listed, plain, shown
from dpsynth.draft.sheets import Row, Sheet, add_row, read_bytes
from dpsynth.errors import InputError

MAX_PARTS = 2000
MAX_UNPACKED = 64 * 2**20  # bytes, of all parts together


def read_workbook(path: Path, title: str | None = None) -> list[Sheet]:
    """Read the sheets of a workbook.

    Args:
        path: a file that ends in ``.xlsx``.
        title: the only sheet to read; None for all.

    Raises:
        InputError: it is not a workbook, has macros or formulas, or is too large.
    """
    content = read_bytes(path)
    _check_parts(path, content)
    import openpyxl

    try:
        book = openpyxl.load_workbook(BytesIO(content), read_only=True, keep_links=False)
        titles = [sheet.title for sheet in book.worksheets]
        if title is not None and title not in titles:
            raise InputError(f"{path} has no sheet {shown(title)}; it has {listed(titles)}")
        return [_sheet(path, sheet) for sheet in book.worksheets if title in (None, sheet.title)]
    except InputError:
        raise
    except Exception:  # whatever a library does with a damaged file
        raise InputError(
            f"{path} cannot be read as a workbook; open it in a spreadsheet and save it again as "
            ".xlsx or .csv"
        ) from None


def _check_parts(path: Path, content: bytes) -> None:
    """Look at the ZIP file before a library unpacks it.

    Raises:
        InputError: it is not a workbook, or more than one with a dictionary can be.
    """
    try:
        with zipfile.ZipFile(BytesIO(content)) as archive:
            parts = archive.infolist()
            unpacked = sum(part.file_size for part in parts)
            if len(parts) > MAX_PARTS or unpacked > MAX_UNPACKED:
                raise InputError(
                    f"{path} unpacks to more than {MAX_UNPACKED // 2**20} MB; a data dictionary "
                    "does not. Save its sheet as CSV"
                )
            if any(part.filename.lower().endswith(("vbaproject.bin", ".exe")) for part in parts):
                raise InputError(f"{path} has macros; save it as .xlsx without them, or as .csv")
            for part in parts:
                if b"<!ENTITY" in archive.read(part).replace(b"\0", b""):
                    raise InputError(f"{path} declares XML entities, which a workbook does not")
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, OSError, EOFError) as error:
        locked = isinstance(error, RuntimeError) or content.startswith(b"\xd0\xcf\x11\xe0")
        why = "is locked by a password or in an old format (.xls)" if locked else "is damaged"
        raise InputError(f"{path} {why}; save it as .xlsx without a password") from None
    except (ValueError, zipfile.LargeZipFile, MemoryError):
        raise InputError(f"{path} is damaged; save it again as .xlsx") from None


def _sheet(path: Path, sheet: Any) -> Sheet:
    rows: list[tuple[int, Row]] = []
    source = f"{path}, sheet {plain(sheet.title)}"
    for number, row in enumerate(sheet.iter_rows(), 1):
        for cell in row:
            if cell.data_type == "f":
                raise InputError(
                    f"{source}, cell {cell.coordinate}: a formula is not computed; paste its value"
                )
        add_row(rows, number, [_text(cell.value) for cell in row], source)
        if number > 10 * 20_000:
            raise InputError(f"{source} has too many blank rows; save it as CSV")
    return Sheet(sheet.title, tuple(rows))


def _text(value: object) -> str:
    """Write a cell as a person reads it: 3 for 3.0, dates in ISO 8601."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value == int(value) and abs(value) < 1e15:
        return str(int(value))
    if isinstance(value, datetime):
        midnight = value == datetime(value.year, value.month, value.day)
        return value.date().isoformat() if midnight else value.isoformat()
    return value.isoformat() if isinstance(value, date | time) else str(value)
