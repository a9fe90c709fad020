"""The rows above and with the headings of a workbook's sheet, and no row below them.

The library of workbooks reads all texts of a file when it opens it. So the XML is read here: a
sheet row by row until its headings are found, then of the texts that sheets share those of the
headings. Other texts pass through the parser and are not kept. A cell that is not a text is never
read as one.
"""

from __future__ import annotations

import zipfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import IO, Any

from dpsynth.errors import InputError

MAX_BLANK = 1_048_576  # empty rows above a table: as many rows as a sheet has
_NOT_TEXT = "0"  # stands for a number, a date or a truth value: not a heading
_BOOK, _LINKS, _TEXTS = "xl/workbook.xml", "xl/_rels/workbook.xml.rels", "xl/sharedStrings.xml"
_TARGET = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_STRICT = "{http://purl.oclc.org/ooxml/officeDocument/relationships}id"


def sheet_names(path: Path) -> list[str]:
    """Return the names of the sheets.

    Raises:
        InputError: it is not a workbook, or it is damaged.
    """
    with _opened(path) as archive:
        return list(_parts(path, archive))


def sheet_rows(path: Path, sheet: str) -> Iterator[list[str]]:
    """Yield the rows of a sheet, read no further than they are taken.

    Raises:
        InputError: there is no such sheet, or it is damaged.
    """
    with _opened(path) as archive:
        parts = _parts(path, archive)
        if sheet not in parts:
            raise InputError(
                f"{path} has no sheet with this name; write it as on the tab of the sheet"
            )
        try:
            with archive.open(parts[sheet]) as file:
                number = 0
                for place, cells in _cells(file):
                    while place is not None and number + 1 < min(place, MAX_BLANK):
                        number += 1
                        yield []  # an empty row, which the sheet leaves out
                    number += 1
                    shared = {int(text) for kind, text in cells.values() if kind == "s"}
                    texts = _shared(archive, shared) if shared else {}
                    row = [""] * (max(cells) + 1 if cells else 0)
                    for column, (kind, text) in cells.items():
                        row[column] = texts[int(text)] if kind == "s" else text
                    row = [text.strip() for text in row]
                    while row and not row[-1]:
                        row.pop()
                    yield row
        except InputError:
            raise
        except Exception:  # whatever damaged XML does to its reader
            raise _damaged(path) from None


def _opened(path: Path) -> zipfile.ZipFile:
    from dpsynth._util.dependencies import need
    from dpsynth.tables.checks import check_file
    from dpsynth.tables.workbooks import WorkbookFile

    need("openpyxl")
    check_file(path)
    WorkbookFile(path).check()
    return zipfile.ZipFile(path)


def _damaged(path: Path) -> InputError:
    return InputError(f"{path} is damaged; open it in Excel and save it again")


def _parts(path: Path, archive: zipfile.ZipFile) -> dict[str, str]:
    """Return which part of the archive each sheet is."""
    try:
        with archive.open(_LINKS) as file:
            targets = {
                one.get("Id"): str(one.get("Target"))
                for one in _elements(file, "Relationship")
                if str(one.get("Type")).endswith("/worksheet")
            }
        with archive.open(_BOOK) as file:
            sheets = {
                str(one.get("name")): one.get(_TARGET) or one.get(_STRICT)
                for one in _elements(file, "sheet")
            }
    except Exception:  # whatever a damaged archive does to its reader
        raise _damaged(path) from None
    return {
        name: targets[link].lstrip("/") if targets[link].startswith("/") else f"xl/{targets[link]}"
        for name, link in sheets.items()
        if link in targets
    }


def _elements(file: IO[bytes], *names: str) -> Iterator[Any]:
    """Yield the elements of these names as they end."""
    from openpyxl.xml.functions import iterparse  # that of defusedxml, where it is installed

    for _, element in iterparse(file):
        if _name(element) in names:
            yield element


def _name(element: Any) -> str:
    return str(element.tag).rpartition("}")[2]


def _text(element: Any) -> str:
    """Return the text of an element, without the way that East Asian text is spoken."""
    runs = [one for one in element if _name(one) in ("t", "r")]
    texts = [one if _name(one) == "t" else _first(one, "t") for one in runs]
    return "".join(one.text or "" for one in texts if one is not None)


def _first(element: Any, name: str) -> Any:
    return next((one for one in element if _name(one) == name), None)


def _cells(file: IO[bytes]) -> Iterator[tuple[int | None, dict[int, tuple[str, str]]]]:
    """Yield for each row its number, and the kind and text of its cells, by columns from 0."""
    from openpyxl.utils import column_index_from_string

    for row in _elements(file, "row"):
        cells: dict[int, tuple[str, str]] = {}
        column = -1
        for cell in row:
            place = "".join(filter(str.isalpha, cell.get("r") or ""))
            column = column_index_from_string(place) - 1 if place else column + 1
            kind, value, inline = cell.get("t", "n"), _first(cell, "v"), _first(cell, "is")
            if inline is not None:
                cells[column] = kind, _text(inline)
            elif value is not None and value.text:
                cells[column] = kind, value.text if kind in ("s", "str") else _NOT_TEXT
        number = str(row.get("r") or "")
        row.clear()
        yield int(number) if number.isdecimal() else None, cells


def _shared(archive: zipfile.ZipFile, wanted: Collection[int]) -> dict[int, str]:
    """Return some of the texts that sheets share, by their numbers."""
    found: dict[int, str] = {}
    with archive.open(_TEXTS) as file:
        for number, element in enumerate(_elements(file, "si")):
            if number in wanted:
                found[number] = _text(element)
            element.clear()
            if len(found) == len(wanted):
                break
    return found
