"""JSON Lines: an object a line, plain or gzipped, each line read by itself.

A name that a line lacks, and null, are a missing cell. The kinds of all cells are checked when the
file is opened, as those of a workbook are: a program that wrote the file may have inferred the type
of a column from all of its rows. So a number or a truth value is taken only where its text would
get the same code. Each cell has its own type here, so a column may mix kinds, such as numbers and
``"<5"``, if each of them is allowed for the column.

Whole numbers of 2^53 or more may have been rounded by the program that wrote them, since JavaScript
and others keep every number as a floating-point one.
"""

from __future__ import annotations

import gzip
import itertools
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import pandas as pd

from dpsynth.errors import NoRowsError, TableError
from dpsynth.files import cannot_read
from dpsynth.schema import Schema
from dpsynth.tables.cell_kinds import EXACT, Held, check_kinds, must_be_exact
from dpsynth.tables.checks import Progress, check_names, chunk_rows, no_rows
from dpsynth.tables.csv import Span, Within
from dpsynth.tables.formats import GZIP
from dpsynth.tables.reference import Reference
from dpsynth.tables.text_columns import cell_text

MAX_LINE = 2**24  # bytes
MAX_DIGITS = 640  # of a whole number; Python refuses to read much longer ones
Row = dict[str, Any]


@dataclass(frozen=True)
class JsonLinesTable:
    """A file whose lines have been checked.

    Attributes:
        path: of the file.
        columns: those that are read.
        header: all names, in the order in which they first occur.
        schema: of the table.
        span: the bytes that are read, whole lines; None for the whole file.
    """

    path: Path
    columns: tuple[str, ...]
    header: tuple[str, ...]
    schema: Schema
    span: Span | None = None

    @classmethod
    def open(cls, reference: Reference, needed: tuple[str, ...], schema: Schema) -> JsonLinesTable:
        """Read all lines, and check names and the kinds of cells.

        Raises:
            TableError: a line is not an object; or columns are missing, or hold cells that have to
                be text and are not, or that are nested.
        """
        path = cast(Path, reference.path)
        header: dict[str, None] = {}
        kinds: dict[str, set[Held]] = {name: set() for name in needed}
        exact = {name: must_be_exact(schema, name) for name in needed}
        rows = 0
        for row in _rows(path):
            rows += 1
            header |= dict.fromkeys(row)
            for name in needed:
                if (cell := row.get(name)) is not None:
                    kinds[name].add(_kind(cell, exact=exact[name]))
        if not rows:
            raise NoRowsError(
                f"{path} has no rows, so it names no columns; give a table without rows as a CSV "
                "file with a header"
            )
        check_names(tuple(header), needed, str(path))
        for kind in Held:  # in a fixed order, whatever the rows hold
            here = {
                name: kind for name, found in kinds.items() if kind in (found or {Held.NOTHING})
            }
            check_kinds(here, schema, str(path), reference.format.remedy)
        return cls(path, needed, tuple(header), schema)

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of text cells, None where a cell is missing."""
        size, rows, is_empty = chunk_rows(len(self.columns)), _rows(self.path, self.span), True
        while block := list(islice(rows, size)):
            is_empty = False
            yield pd.DataFrame({name: self._texts(name, block) for name in self.columns})
        if is_empty:
            raise no_rows(str(self.path))
        if progress is not None:
            progress(1.0)

    def parts(self, count: int) -> list[JsonLinesTable]:
        """Cut the file into about so many parts; there are none if it is compressed."""
        if self.path.name.lower().endswith(GZIP):
            return []
        size = self.path.stat().st_size
        cuts = {0, size}
        with self.path.open("rb") as file:
            for part in range(1, count):
                file.seek(size * part // count)
                file.readline()  # a line end is never within a JSON text
                cuts.add(file.tell())
        spans = [Span(start, stop) for start, stop in itertools.pairwise(sorted(cuts))]
        return [replace(self, span=span) for span in spans] if len(spans) > 1 else []

    def _texts(self, name: str, block: Sequence[Row]) -> pd.Series[Any]:
        """Return the text of each cell of a column; None where it is missing or nested."""
        truth = self.schema.column(name).kind.is_truth
        decimal = self.schema.dialect.decimal
        cells = (row.get(name) for row in block)
        texts = [
            cell
            if cell is None or isinstance(cell, str)
            else None  # as if it were missing: a file with such a cell was refused
            if isinstance(cell, list)
            else cell_text(cell, decimal=decimal, boolean=truth)
            for cell in cells
        ]
        return pd.Series(texts, dtype=object)


_KINDS = {
    str: Held.TEXT,
    bool: Held.TRUTH,
    int: Held.WHOLE,
    Decimal: Held.FLOAT,  # with a point or an exponent, or too long
    float: Held.FLOAT,  # NaN and Infinity, which some programs write
    list: Held.OTHER,
}


def _kind(cell: Any, *, exact: bool) -> Held:
    """Return what one cell holds."""
    kind = _KINDS[type(cell)]
    return Held.ROUNDED if exact and kind is Held.WHOLE and abs(cell) >= EXACT else kind


def _rows(path: Path, span: Span | None = None) -> Iterator[Row]:
    """Yield the object of each line that is not blank; an object or list within it is a list.

    Raises:
        TableError: a line is not an object, names a column twice, or is not UTF-8; with its number,
            and no text of it.
    """
    try:
        with _opened(path, span) as file:
            for number in itertools.count(1):
                line = file.readline(MAX_LINE + 1)
                if not line:
                    return
                if line.strip():
                    yield _row(path, line, number)
    except (OSError, EOFError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise TableError(f"{path} cannot be read: {cannot_read(error)}") from None
        raise TableError(f"{path} is not a complete gzip file; compress it again") from None


def _row(path: Path, line: bytes, number: int) -> Row:
    if len(line) > MAX_LINE:
        raise TableError(f"{path}, line {number} is longer than {MAX_LINE} bytes")
    try:
        text = line.decode("utf-8-sig" if number == 1 else "utf-8")
        pairs = _DECODER.decode(text)
    except UnicodeDecodeError:
        raise TableError(f"{path}, line {number} is not UTF-8, as JSON is") from None
    except (ValueError, RecursionError):  # their texts and causes may quote the line
        pairs = None
    if pairs is None or not text.lstrip().startswith("{"):
        raise TableError(
            f"{path}, line {number} is not a JSON object; write each row as one object on one line"
        )
    row: Row = dict(pairs)
    if len(row) < len(pairs):
        raise TableError(f"{path}, line {number} has the same name twice; each cell needs its own")
    return row


def _whole(digits: str) -> int | Decimal:
    return int(digits) if len(digits) <= MAX_DIGITS else Decimal(digits)


# a nested object is a list, too: neither is a cell
_DECODER = json.JSONDecoder(object_pairs_hook=list, parse_float=Decimal, parse_int=_whole)


def _opened(path: Path, span: Span | None) -> BinaryIO:
    if span is not None:
        return Within(path, span).buffered()
    if path.name.lower().endswith(GZIP):
        return cast(BinaryIO, gzip.open(path, "rb"))
    return path.open("rb")
