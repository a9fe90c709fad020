"""Formulas of a sheet that have no stored value: a program wrote them, and Excel never ran them.

The reader of cells returns the same for such a formula and for an empty cell, so the XML of the
sheet is looked at once. Of a cell, only its place is read, and whether it has a formula and a
value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpsynth.errors import TableError
from dpsynth.tables.sources.workbook_file import MAX_COLUMNS, MAX_ROWS

_PLACE = re.compile(r"([A-Z]{1,3})([1-9][0-9]{0,7})")
_SPACE = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_STRICT = "{http://purl.oclc.org/ooxml/spreadsheetml/main}"


def check_formulas(path: Path, sheet: Any, places: Mapping[int, str]) -> None:
    """Refuse formulas without a stored value in columns that are read, and impossible places.

    Args:
        path: of the workbook.
        sheet: as openpyxl opens it, read only.
        places: the names of the columns that are read, by their places from 0.

    Raises:
        TableError: it names the column.
    """
    from openpyxl.xml.functions import iterparse  # that of defusedxml, where it is installed

    tags = {space + name: name for space in (_SPACE, _STRICT) for name in ("c", "f", "v", "row")}
    formula = value = False
    try:
        with sheet._get_source() as source:
            for _, element in iterparse(source):
                name = tags.get(element.tag)
                if name == "f":
                    formula = True
                elif name == "v":
                    value = element.text is not None
                elif name == "c":
                    column = _column(element.get("r"), path)
                    if formula and not value and column in places:
                        raise TableError(
                            f"{path}: column '{places[column]}' has formulas without a stored "
                            "value; open the workbook in Excel and save it, or paste values"
                        )
                    formula = value = False
                elif name == "row":
                    _check_row(element.get("r"), path)
                    element.clear()
    except TableError:
        raise
    except Exception:  # whatever damaged XML does to its reader
        raise TableError(f"{path} is damaged; open it in Excel and save it again") from None


def _check_row(number: str | None, path: Path) -> None:
    """Refuse a row so far down that a reader would count to it for ever."""
    if number is not None and not (number.isdecimal() and int(number[:9]) <= MAX_ROWS):
        raise TableError(f"{path} is damaged: a row has a place that no sheet has")


def _column(place: str | None, path: Path) -> int:
    """Return the column of a cell, from 0; -1 for a cell that does not say its place."""
    if place is None:
        return -1
    found = _PLACE.fullmatch(place)
    column = 0
    for letter in found[1] if found else "":
        column = 26 * column + ord(letter) - ord("A") + 1
    if found is None or column > MAX_COLUMNS or int(found[2]) > MAX_ROWS:
        raise TableError(f"{path} is damaged: a cell has a place that no sheet has")
    return column - 1
