"""CSV files, plain or gzipped, in the dialect that a schema declares.

The reader is strict: a record with fewer or more fields than the header, or quotes that match no
record, is an error with its line number (see `records`). Otherwise the rest of a record would
become a patient, or cells would shift between columns.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.errors import TableError
from dpsynth.files import cannot_read
from dpsynth.schema import Dialect
from dpsynth.tables.checks import (
    EXPORT_AGAIN,
    Progress,
    check_names,
    chunk_rows,
    header_below,
    no_rows,
)
from dpsynth.tables.records import SEPARATORS, RecordLog, RecordScanner, Row
from dpsynth.tables.spans import Span, Within, record_ends

BLOCK = 512  # rows


@dataclass(frozen=True)
class CsvTable:
    """A CSV file whose header has been checked.

    Attributes:
        path: of the file.
        columns: those that are read.
        dialect: how it is written.
        header: the names of all columns.
        span: the bytes that are read, whole rows; None for the whole file.
        log: where irregular records are noted and left out; without it, they are errors.
    """

    path: Path
    columns: tuple[str, ...]
    dialect: Dialect
    header: tuple[str, ...] = ()
    span: Span | None = None
    log: RecordLog | None = field(default=None, compare=False)

    @classmethod
    def open(cls, path: Path, needed: tuple[str, ...], dialect: Dialect) -> CsvTable:
        """Read the header and check it.

        Raises:
            TableError: the file cannot be read in this dialect, or columns are missing.
        """
        with _opened(path) as raw:
            header = _header(RecordScanner(path, raw, dialect).rows(), path)
        hint = ""
        if len(header) == 1 and len(needed) > 1:
            hint = f"; is {dialect.delimiter!r}, the declared dialect.delimiter, its separator?"
            other = next((sign for sign in SEPARATORS if sign in header[0]), None)
            if other is not None:
                hint += f" It has {other!r}: then write dialect: {{delimiter: {json.dumps(other)}}}"
        if not set(needed) <= set(header):
            with _opened(path) as raw:
                line = RecordScanner(path, raw, dialect).line_of_header(needed)
            hint += header_below(line)
        check_names(header, needed, str(path), hint)
        return cls(path, needed, dialect, tuple(header))

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of text cells."""
        size = max(1, self.path.stat().st_size)
        with _opened(self.path, self.span) as raw:
            headed = self.span is None or self.span.start == 0
            names = () if headed else self.header
            rows = RecordScanner(self.path, raw, self.dialect, header=names, log=self.log).rows()
            header = _header(rows, self.path) if headed else self.header
            places = [header.index(name) for name in self.columns]
            cells = _chunk(rows, places)
            if not cells.size:
                raise no_rows(str(self.path))
            while cells.size:
                yield pd.DataFrame(cells.T, columns=list(self.columns), copy=False)
                del cells  # before the next chunk is made
                if progress is not None:  # the end of the rows closes the file
                    progress(1.0 if raw.closed else min(1.0, raw.tell() / size))
                cells = _chunk(rows, places)

    def parts(self, count: int) -> list[CsvTable]:
        """Cut the file into about so many parts; there are none if it cannot be cut."""
        if self.path.name.lower().endswith(".gz"):
            return []
        try:
            ends = record_ends(self.path, self.dialect, count)
            cuts = [0, *ends, self.path.stat().st_size]
        except OSError as error:
            raise TableError(f"{self.path} cannot be read: {cannot_read(error)}") from None
        spans = [Span(start, stop) for start, stop in itertools.pairwise(cuts)] if ends else []
        return [replace(self, span=span) for span in spans]

    def check_records(self) -> None:
        """Refuse a file with an irregular record, before anything is paid for reading it.

        Raises:
            TableError: as `chunks`, at the first one.
        """
        with _opened(self.path) as raw:
            for _ in RecordScanner(self.path, raw, self.dialect).rows(cells=False):
                pass

    def logged(self, key: str | None) -> CsvTable:
        """Return the table, to be read once, with a log in which irregular records are noted.

        Args:
            key: the column by whose cells lines within a cell are told from records.
        """
        place = self.header.index(key) if key in self.header else 0
        return replace(self, log=RecordLog(key=place))

    def records(self) -> Iterator[tuple[str, Row]]:
        """Yield the text of each row as it stands in the file, and its cells; the header's first.

        Line ends are kept, blank lines and a byte order mark are not.

        Raises:
            TableError: as `chunks`.
        """
        lines: list[str] = []
        with _opened(self.path) as raw:
            for row in RecordScanner(self.path, raw, self.dialect, noted=lines).rows():
                yield "".join(lines), row
                lines.clear()


def _chunk(rows: Iterator[Row], places: Sequence[int]) -> npt.NDArray[np.object_]:
    """Return the next rows, ``[columns, rows]``; they are turned in blocks that fit a cache."""
    maximum = chunk_rows(len(places))
    cells = np.empty((len(places), maximum), dtype=object)
    count = 0
    while count < maximum and (block := list(islice(rows, min(BLOCK, maximum - count)))):
        columns = list(zip(*block, strict=True))
        for row, place in zip(cells, places, strict=True):
            row[count : count + len(block)] = columns[place]
        count += len(block)
    return cells[:, :count]


def _opened(path: Path, span: Span | None = None) -> BinaryIO:
    try:
        return path.open("rb") if span is None else Within(path, span).buffered()
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror}") from None


def _header(rows: Iterator[Row], path: Path) -> list[str]:
    """Return the trimmed names of the first row."""
    for row in rows:
        return [str(name).strip() for name in row]
    raise TableError(f"{path} is empty; {EXPORT_AGAIN}")
