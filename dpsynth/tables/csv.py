"""CSV files, plain or gzipped, in the dialect that a schema declares.

The reader is strict where leniency would shift cells between columns: a row with more fields than
the header, or text after a closing quote, is an error with its line number. Rows with too few
fields end in missing cells. Blank lines and a byte order mark are skipped.
"""

from __future__ import annotations

import csv
import gzip
import io
import itertools
import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO, cast

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.errors import TableError, printable
from dpsynth.files import cannot_read
from dpsynth.schema import Dialect
from dpsynth.tables.checks import EXPORT_AGAIN, Progress, check_names, chunk_rows, no_rows
from dpsynth.tables.encodings import misfit
from dpsynth.tables.spans import Span, Within, record_ends

BLOCK = 512  # rows
MAX_LINE_LENGTH = 2**24  # characters; keeps a file without line ends from filling the memory
GZIP_MAGIC = b"\x1f\x8b"

Row = Sequence[str | None]


@dataclass(frozen=True)
class CsvTable:
    """A CSV file whose header has been checked."""

    path: Path
    columns: tuple[str, ...]
    dialect: Dialect
    header: tuple[str, ...] = ()
    span: Span | None = None  # the bytes that are read, whole rows; None: the whole file

    @classmethod
    def open(cls, path: Path, needed: tuple[str, ...], dialect: Dialect) -> CsvTable:
        """Read the header and check it.

        Raises:
            TableError: the file cannot be read in this dialect, or columns are missing.
        """
        with _opened(path) as raw:
            header = _header(_rows(path, raw, dialect), path)
        hint = ""
        if len(header) == 1 and len(needed) > 1:
            hint = f"; is {dialect.delimiter!r}, the declared dialect.delimiter, its separator?"
            other = next((sign for sign in ";,\t|" if sign in header[0]), None)
            if other is not None:
                hint += f" It has {other!r}: then write dialect: {{delimiter: {json.dumps(other)}}}"
        check_names(header, needed, str(path), hint)
        return cls(path, needed, dialect, tuple(header))

    def chunks(self, progress: Progress | None = None) -> Iterator[pd.DataFrame]:
        """Yield frames of text cells, None where a row ended early."""
        size = max(1, self.path.stat().st_size)
        with _opened(self.path, self.span) as raw:
            headed = self.span is None or self.span.start == 0
            rows = _rows(self.path, raw, self.dialect, width=-1 if headed else len(self.header))
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

    def records(self) -> Iterator[tuple[str, Row]]:
        """Yield the text of each row as it stands in the file, and its cells; the header's first.

        Line ends are kept, blank lines and a byte order mark are not.

        Raises:
            TableError: as `chunks`.
        """
        lines: list[str] = []
        with _opened(self.path) as raw:
            for row in _rows(self.path, raw, self.dialect, lines):
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


def _rows(
    path: Path,
    raw: BinaryIO,
    dialect: Dialect,
    noted: list[str] | None = None,
    *,
    width: int = -1,
) -> Iterator[Row]:
    """Yield the rows that are not blank, the header first, all as wide as the header.

    Args:
        path: for messages.
        raw: the file.
        dialect: how it is written.
        noted: gets the lines that each row is made of; the caller clears it row by row.
        width: of the header, if the file is a part without one.

    Raises:
        TableError: the bytes, the text or the fields are not those of such a file. The errors of
            the reader are replaced, not chained: they may quote what they stumbled on.
    """
    text = _decoded(path, raw, dialect, marked=width < 0)
    lines = _lines(path, text, dialect)
    reader = csv.reader(
        lines if noted is None else _noted(lines, noted),
        delimiter=dialect.delimiter,
        quotechar=dialect.quote or None,
        quoting=csv.QUOTE_MINIMAL if dialect.quote else csv.QUOTE_NONE,
        strict=True,
    )
    try:
        for row in reader:
            if len(row) == width:
                yield row
            elif not row:
                if noted is not None:
                    noted.clear()
            elif width < 0:
                width = len(row)
                yield row
            elif len(row) < width:
                yield [*row, *[None] * (width - len(row))]
            else:
                raise TableError(
                    f"{path} line {reader.line_num}: {len(row)} fields, the header has {width}; "
                    "put fields that hold the separator between quotes"
                )
    except UnicodeError:
        line, likely = misfit(text.buffer, dialect.encoding)
        raise TableError(
            f"{path} line {line}: not valid {dialect.encoding}, the declared dialect.encoding; the "
            f"file is likely in {likely}: write dialect: {{encoding: {likely}}}"
        ) from None
    except csv.Error as error:
        if "field limit" in str(error):
            raise TableError(
                f"{path} line {reader.line_num}: a cell has more than {csv.field_size_limit():,} "
                "characters, which no column of a table has. Either a quote that is opened there "
                "is never closed, or the column holds whole documents: leave it out of the extract"
            ) from None
        reason = printable(str(error))  # it may name the declared separator, such as a tab
        raise TableError(
            f"{path} line {reader.line_num}: the quotes do not match the declared dialect "
            f"({reason})"
        ) from None
    except (EOFError, OSError, zlib.error) as error:
        if isinstance(error, OSError) and error.errno is not None:  # of the disk, not of gzip
            raise TableError(f"{path} cannot be read: {cannot_read(error)}") from None
        raise TableError(f"{path}, after line {reader.line_num}: damaged or cut off") from None


def _noted(lines: Iterator[str], noted: list[str]) -> Iterator[str]:
    """Put down each line as it is asked for; the reader asks for no more than a row needs."""
    for line in lines:
        noted.append(line)
        yield line


def _decoded(path: Path, raw: BinaryIO, dialect: Dialect, *, marked: bool) -> io.TextIOWrapper:
    """Return the text of a plain or gzipped file, as its name says which.

    Args:
        path: its name.
        raw: the file.
        dialect: how it is written.
        marked: whether a byte order mark may come first.
    """
    zipped = cast(io.BufferedReader, raw).peek(2)[:2] == GZIP_MAGIC
    named = path.name.lower().endswith(".gz")
    if zipped and not named:
        raise TableError(f"{path} is gzipped; call it .csv.gz")
    if named and not zipped:
        raise TableError(f"{path} is not a gzip file; rename it to .csv if it is plain text")
    stream: Any = gzip.GzipFile(fileobj=raw, mode="rb") if zipped else raw
    encoding = dialect.encoding
    if marked and encoding.lower().replace("_", "-") in ("utf-8", "utf8"):
        encoding = "utf-8-sig"  # the same, but skips a byte order mark
    try:
        return io.TextIOWrapper(stream, encoding=encoding, errors="strict", newline="")
    except LookupError:
        raise TableError(f"dialect.encoding {dialect.encoding!r} is not known") from None


def _wide(line: str) -> str:
    """Name the encoding whose letters have two bytes, if a line with NUL bytes looks like it."""
    if line.startswith(("\xff\xfe", "\xfe\xff")):
        likely = "utf-16"
    elif line.count("\0") * 3 < len(line):
        return ""
    else:
        likely = "utf-16-be" if line.startswith("\0") else "utf-16-le"
    return f"; it is likely in {likely}: write dialect: {{encoding: {likely}}}"


def _lines(path: Path, text: io.TextIOWrapper, dialect: Dialect) -> Iterator[str]:
    """Yield the lines of a text; refuse those that no table has."""
    number = 0
    while line := text.readline(MAX_LINE_LENGTH):
        number += 1
        if "\0" in line:
            raise TableError(
                f"{path} line {number} has a NUL byte, so this is not a text file in "
                f"{dialect.encoding}, the declared dialect.encoding{_wide(line)}"
            )
        if len(line) == MAX_LINE_LENGTH:
            raise TableError(f"{path} line {number}: longer than {MAX_LINE_LENGTH} characters")
        yield line
