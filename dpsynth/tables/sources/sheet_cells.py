"""What the cells of a sheet hold, column by column, from its XML: kinds only, no value.

A program that wrote the workbook may have inferred a column's type from all of its rows, so a
number is taken only where its text would get the same code, as in a DataFrame or in Parquet. Each
cell has its own type here. So a column may mix kinds, such as numbers and ``<5``, if each of them
is allowed for the column.

Formulas without a stored value are refused: a program wrote them, and Excel never ran them. The
reader of cells returns the same for such a formula and for an empty cell.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables.cell_kinds import Held, check_kinds
from dpsynth.tables.sources.workbook_file import MAX_COLUMNS, MAX_ROWS

_PLACE = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,7})")
_SPACES = (
    "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}",
    "{http://purl.oclc.org/ooxml/spreadsheetml/main}",
)
_TYPES = {"b": Held.TRUTH, "d": Held.TIME, "n": Held.FLOAT}  # of the attribute t; the rest is text
_REMEDY = (
    "in Excel, give the column the format Text and enter or import it again; dialect.decimal and a "
    "column's format are for text, so leave them out for numbers and dates of Excel"
)
Kinds = dict[int, set[Held]]


def check_cells(
    path: Path, sheet: Any, places: Mapping[int, str], schema: Schema, place: str
) -> None:
    """Refuse columns with cells that could be coded otherwise as text.

    Args:
        path: of the workbook.
        sheet: as openpyxl opens it, read only.
        places: the names of the columns that are read, by their places from 0.
        schema: of the table.
        place: what messages call the sheet.

    Raises:
        TableError: it names the column; also for a formula without a value, and for damaged XML.
    """
    try:
        kinds = _kinds(path, sheet, places)
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
        check_kinds(here, schema, place, _REMEDY)


def _kinds(path: Path, sheet: Any, places: Mapping[int, str]) -> Kinds:
    """Return the kinds of cells in each column, the header's row left out."""
    from openpyxl.xml.functions import iterparse  # that of defusedxml, where it is installed

    tags = {space + name: name for space in _SPACES for name in ("c", "f", "v", "t", "row")}
    kinds, row, headed = defaultdict[int, set[Held]](set), Kinds(), False
    formula = value = False
    column = -1
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
                    raise TableError(
                        f"{path}: column '{places[column]}' has formulas without a stored value; "
                        "open the workbook in Excel and save it, or paste values"
                    )
                if value:
                    row.setdefault(column, set()).add(_kind(element, sheet.parent))
                formula = value = False
            elif name == "row":
                _check_row(element.get("r"), path)
                if headed:
                    for at, found in row.items():
                        kinds[at] |= found
                headed, row, column = headed or bool(row), {}, -1
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


def _check_row(number: str | None, path: Path) -> None:
    """Refuse a row so far down that a reader would count to it for ever."""
    if number is not None and not (number.isdecimal() and int(number[:9]) <= MAX_ROWS):
        raise TableError(f"{path} is damaged: a row has a place that no sheet has")


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
