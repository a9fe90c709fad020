"""Sheets of Excel workbooks (``.xlsx``): each cell becomes text, by itself alone.

Excel gives every cell a type of its own, so a column may hold numbers beside texts and dates. A
cell's text is what the schema's own CSV would have there:

- a number has the declared decimal sign; in a key or a string column, one that is shown with
  leading zeros (number format ``000``) has them, and one of more than 15 digits is refused, because
  Excel has cut it
- a date is in ISO 8601, or in the column's declared ``format``
- a truth value is TRUE or FALSE, and an error such as #N/A is its own text
- a formula is its stored value; a formula without one is refused
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pandas as pd

from dpsynth.errors import TableError
from dpsynth.schema import Column, Schema
from dpsynth.tables.checks import Progress, check_names, chunk_rows, no_rows
from dpsynth.tables.sources.formulas import check_formulas
from dpsynth.tables.sources.workbook_file import WorkbookFile
from dpsynth.tables.text_columns import cell_text

BLOCK = 512  # rows
_ZEROS = re.compile(r"0+")
_MAX_DIGITS = 15  # that Excel keeps of a number

Text = Callable[[Any], str | None]


@dataclass(frozen=True)
class WorkbookTable:
    """A sheet whose header has been checked."""

    path: Path
    sheet: str
    columns: tuple[str, ...]
    header: tuple[str, ...]
    schema: Schema

    @classmethod
    def open(
        cls, path: Path, part: str | None, needed: tuple[str, ...], schema: Schema
    ) -> WorkbookTable:
        """Find the sheet, read its first row, and look for formulas without a value.

        Raises:
            TableError: the workbook is encrypted, damaged, too large, or has several sheets and
                none is named; columns are missing; or a formula has no stored value.
        """
        file = WorkbookFile(path)
        name = file.sheet(part)
        with file.opened() as book:
            header = _header(_rows(book[name], path), path)
            places = {header.index(one): one for one in needed if one in header}
            check_names(header, needed, f"{path}#{name}" if part else str(path))
            check_formulas(path, book[name], places)
        return cls(path, name, needed, tuple(header), schema)

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of text cells, None where a cell is empty; empty rows are skipped."""
        texts = [self._text(self.schema.column(name)) for name in self.columns]
        with WorkbookFile(self.path).opened() as book:
            rows = _rows(book[self.sheet], self.path)
            header = _header(rows, self.path)
            places = [header.index(name) for name in self.columns]
            records = _records(rows, len(header), self.path)
            size, seen = chunk_rows(len(self.columns)), False
            while block := list(islice(records, size)):
                seen = True
                yield pd.DataFrame(
                    {
                        name: pd.Series([text(row[place]) for row in block], dtype=object)
                        for name, place, text in zip(self.columns, places, texts, strict=True)
                    }
                )
        if not seen:
            raise no_rows(str(self.path))
        if progress is not None:
            progress(1.0)  # a sheet does not say how many rows it has

    def _text(self, column: Column) -> Text:
        """Return what makes a text of a cell of a column."""
        as_text = column.kind.text_only or column.name == self.schema.unit.column
        decimal, form = self.schema.dialect.decimal, column.format

        def text(cell: Any) -> str | None:
            value = None if cell is None else cell.value
            if value is None or isinstance(value, str):
                return value
            if isinstance(value, bool):
                return "TRUE" if value else "FALSE"
            if isinstance(value, datetime | date):
                return _date_text(value, form if column.kind.is_time else None)
            if isinstance(value, time | timedelta):
                return str(value)
            if as_text and _digits(value) > _MAX_DIGITS:
                raise TableError(
                    f"{self.path}: column '{column.name}' has numbers of more than 15 digits, "
                    "which Excel has cut; give the column the format Text in Excel, and enter or "
                    "import it again"
                )
            written = cell_text(value, decimal=decimal)
            shown = cell.number_format if as_text else None
            if written is not None and isinstance(shown, str) and _ZEROS.fullmatch(shown):
                return written.zfill(len(shown)) if written.isdigit() else written
            return written

        return text


def _digits(value: Any) -> int:
    """Return how many digits the whole part of a number has."""
    return len(str(abs(int(value)))) if value == value and abs(value) != float("inf") else 0


def _date_text(value: date, form: str | None) -> str:
    if form is not None:
        return value.strftime(form)
    if isinstance(value, datetime) and (value.hour or value.minute or value.second):
        return value.isoformat(sep=" ")
    return (value.date() if isinstance(value, datetime) else value).isoformat()


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
