"""Sheets of Excel workbooks (``.xlsx``): each cell becomes text, by itself alone.

Excel gives every cell a type of its own. Which types a column may have is checked when the sheet is
opened (`sheet_cells`). Then a number or a date is the text that it would be in a CSV with decimal
points and ISO dates, a truth value is TRUE or FALSE, an error such as #N/A is its own text, and a
formula is its stored value.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth.errors import TableError
from dpsynth.schema import Schema
from dpsynth.tables.checks import Progress, check_names, chunk_rows, no_rows
from dpsynth.tables.sources.sheet_cells import check_cells
from dpsynth.tables.sources.workbook_file import WorkbookFile
from dpsynth.tables.text_columns import cell_text

BLOCK = 512  # rows


@dataclass(frozen=True)
class WorkbookTable:
    """A sheet whose header has been checked."""

    path: Path
    sheet: str
    columns: tuple[str, ...]
    header: tuple[str, ...]

    @classmethod
    def open(
        cls, path: Path, part: str | None, needed: tuple[str, ...], schema: Schema
    ) -> WorkbookTable:
        """Find the sheet, read its first row, and check the kinds of its cells.

        Raises:
            TableError: the workbook is encrypted, damaged, too large, or has several sheets and
                none is named; columns are missing, or hold cells that have to be text and are
                not; or a formula has no stored value.
        """
        file = WorkbookFile(path)
        name = file.sheet(part)
        with file.opened() as book:
            header = _header(_rows(book[name], path), path)
            places = {header.index(one): one for one in needed if one in header}
            place = f"{path}#{name}" if part else str(path)
            check_names(header, needed, place)
            check_cells(path, book[name], places, schema, place)
        return cls(path, name, needed, tuple(header))

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of text cells, None where a cell is empty; empty rows are skipped."""
        with WorkbookFile(self.path).opened() as book:
            rows = _rows(book[self.sheet], self.path)
            header = _header(rows, self.path)
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


def _rows(sheet: Any, path: Path) -> Iterator[Sequence[Any]]:
    """Yield the rows of a sheet; the errors of the reader may quote cells."""
    sheet.reset_dimensions()  # a workbook may state them wrongly
    rows = sheet.iter_rows()
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


def _header(rows: Iterator[Sequence[Any]], path: Path) -> list[str]:
    """Return the trimmed names of the first row with any, without empty ones at its end."""
    for row in rows:
        names = ["" if cell.value is None else str(cell.value).strip() for cell in row]
        while names and not names[-1]:
            names.pop()
        if names:
            return names
    raise TableError(f"{path}: the sheet is empty")


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
