"""CSV files, plain or gzipped, in the dialect that a schema declares.

The reader is strict: a record with fewer or more fields than the header, or quotes that match no
record, is an error with its line number (see `records`). Otherwise the rest of a record would
become a patient, or cells would shift between columns.

A file cut into parts that can be read apart: byte ranges, each with whole rows, in order. A file is
cut after the end of a line that no quotes enclose. Whether they do is told by counting quotes from
the start, which is right if each quote opens a field, closes one, or is doubled within one. A file
where a quote stands elsewhere, as in `5" tube`, is not cut.
"""

from __future__ import annotations

import codecs
import io
import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.errors import TableError
from dpsynth.files import cannot_read
from dpsynth.schema import Dialect, Schema
from dpsynth.tables.checks import (
    Progress,
    check_names,
    chunk_rows,
    header_elsewhere,
    no_header,
    no_rows,
)
from dpsynth.tables.formats import GZIP
from dpsynth.tables.records import SEPARATORS, RecordLog, RecordScanner, Row
from dpsynth.tables.reference import Reference

BLOCK = 512  # rows
SPAN_BLOCK = 2**22  # bytes
NEWLINE = ord("\n")
_BREAKS = b"\r\n"
Bytes = npt.NDArray[np.uint8]


@dataclass(frozen=True)
class Span:
    """Bytes of a file, from ``start`` up to ``stop``."""

    start: int
    stop: int


class Within(io.RawIOBase):
    """The bytes of a span, as a file of its own."""

    def __init__(self, path: Path, span: Span) -> None:
        """Open the file where the span begins.

        Raises:
            OSError: it cannot be opened.
        """
        super().__init__()
        self._file = path.open("rb", buffering=0)
        self._file.seek(span.start)
        self._left = span.stop - span.start

    def buffered(self) -> BinaryIO:
        """Return it with a buffer."""
        return cast(BinaryIO, io.BufferedReader(self, SPAN_BLOCK))

    def readable(self) -> bool:
        """It can be read."""
        return True

    def readinto(self, buffer: object, /) -> int:
        """Read the next bytes, up to the end of the span."""
        into = memoryview(cast(bytearray, buffer))[: self._left]
        count = self._file.readinto(into) or 0
        self._left -= count
        return count

    def close(self) -> None:
        """Close the file."""
        if not self.closed:
            self._file.close()
        super().close()


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
    def open(cls, reference: Reference, needed: tuple[str, ...], schema: Schema) -> CsvTable:
        """Read the header and check it.

        Raises:
            TableError: the file cannot be read in the schema's dialect, or columns are missing.
        """
        path, dialect = cast(Path, reference.path), dialect_of(reference, schema.dialect)
        with _opened(path) as raw:
            header = _header(RecordScanner(path, raw, dialect).rows(), path, dialect)
        hint = ""
        if len(header) == 1 and len(needed) > 1:
            hint = f"; is {dialect.delimiter!r}, the declared dialect.delimiter, its separator?"
            other = next((sign for sign in SEPARATORS if sign in header[0]), None)
            if other is not None:
                hint += f" It has {other!r}: then write dialect: {{delimiter: {json.dumps(other)}}}"
        if not set(needed) <= set(header):
            with _opened(path) as raw:
                whole = RecordScanner(path, raw, replace(dialect, header_row=1))
                line = whole.line_of_header(needed)
            hint += header_elsewhere(dialect.header_row, line)
        check_names(header, needed, str(path), hint)
        return cls(path, needed, dialect, tuple(header))

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of text cells."""
        size = max(1, self.path.stat().st_size)
        with _opened(self.path, self.span) as raw:
            headed = self.span is None or self.span.start == 0
            names = () if headed else self.header
            rows = RecordScanner(self.path, raw, self.dialect, header=names, log=self.log).rows()
            header = _header(rows, self.path, self.dialect) if headed else self.header
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
        if self.path.name.lower().endswith(GZIP):
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


def dialect_of(reference: Reference, dialect: Dialect) -> Dialect:
    """Return the dialect of a text file: that of the schema, or with the format's own separator.

    Raises:
        TableError: the schema declares another separator than the file's name.
    """
    delimiter = reference.format.delimiter
    if not delimiter:
        return dialect
    if dialect.delimiter not in (delimiter, Dialect().delimiter):
        raise TableError(
            f"{reference.place} is {reference.format.noun}, and the schema declares "
            f"dialect.delimiter {dialect.delimiter!r}; remove it, or call the file .csv"
        )
    return replace(dialect, delimiter=delimiter)


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


def _header(rows: Iterator[Row], path: Path, dialect: Dialect) -> list[str]:
    """Return the trimmed names of the first row."""
    for row in rows:
        return [str(name).strip() for name in row]
    raise no_header(str(path), dialect.header_row)


def record_ends(path: Path, dialect: Dialect, parts: int) -> list[int]:
    """Return where a CSV file can be cut into about so many parts of equal size.

    Args:
        path: a file that is not compressed.
        dialect: how it is written.
        parts: how many parts are wanted.

    Returns:
        Offsets in bytes, rising, each just after the end of a record; none if the file cannot be
        cut, because of its encoding or of a quote that neither opens nor closes a field.

    Raises:
        OSError: the file cannot be read.
    """
    if not _one_byte_each(dialect):
        return []
    size = path.stat().st_size
    wanted = [size * part // parts for part in range(1, parts)]
    found: list[int] = []
    for start, block, inside in _blocks(path, dialect):
        if inside is None:
            return []
        while wanted and wanted[0] < start + len(block):
            first = max(wanted[0] - start, 0)
            ends = first + np.flatnonzero((block[first:] == NEWLINE) & ~inside[first:])
            if not len(ends):
                break  # in the next block
            found.append(start + int(ends[0]) + 1)
            wanted = [offset for offset in wanted if offset >= found[-1]]
    return [offset for offset in found if offset < size]


def _blocks(
    path: Path, dialect: Dialect
) -> Iterator[tuple[int, Bytes, npt.NDArray[np.bool_] | None]]:
    """Yield where each block begins, its bytes, and which of them lie between quotes.

    The last is None from the first quote on that neither opens nor closes a field.
    """
    quote = ord(dialect.quote) if dialect.quote else None
    beside = np.frombuffer(_BREAKS + (dialect.delimiter + dialect.quote).encode(), np.uint8)
    first = start = _above(path, dialect)
    quotes, before, closing = 0, NEWLINE, False
    with path.open("rb") as file:
        file.seek(first)
        while content := file.read(SPAN_BLOCK):
            block = np.frombuffer(content, np.uint8)
            if quote is None:
                yield start, block, np.zeros(len(block), dtype=bool)
                start += len(block)
                continue
            is_quote = block == quote
            inside = ((quotes + np.cumsum(is_quote)) & 1).astype(bool)
            places = np.flatnonzero(is_quote)
            previous = np.concatenate([[before], block])
            if start == first and content.startswith(codecs.BOM_UTF8):
                previous[len(codecs.BOM_UTF8)] = NEWLINE
            opens, closes = places[inside[places]], places[~inside[places]]
            after = block[closes[closes < len(block) - 1] + 1]
            if closing:  # what the block before ended with
                after = np.append(after, block[0])
            sound = np.isin(previous[opens], beside).all() and np.isin(after, beside).all()
            if not sound:
                yield start, block, None
                return
            yield start, block, inside
            start, quotes, before = start + len(block), quotes + len(places), int(block[-1])
            closing = bool(len(closes)) and int(closes[-1]) == len(block) - 1


def _above(path: Path, dialect: Dialect) -> int:
    """Return how many bytes stand above the header; quotes among them enclose no record."""
    with path.open(encoding="latin-1", newline="") as file:  # a character a byte
        return sum(len(file.readline()) for _ in range(dialect.header_row - 1))


def _one_byte_each(dialect: Dialect) -> bool:
    """Whether line ends, quotes and separators are bytes that occur nowhere within a letter."""
    try:
        name = codecs.lookup(dialect.encoding).name
    except LookupError:
        return False
    signs = dialect.delimiter + dialect.quote
    single = name in ("utf-8", "ascii") or name.startswith(("iso8859", "cp125"))
    return single and signs.isascii() and len(dialect.delimiter) == 1
