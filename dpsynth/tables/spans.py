"""A table cut into parts that can be read apart: byte ranges of a CSV file, row groups of Parquet.

The parts have the rows of the table, each in one part, in order. A CSV file is cut after the end of
a line that no quotes enclose. Whether they do is told by counting quotes from the start, which is
right if each quote opens a field, closes one, or is doubled within one. A file where a quote stands
elsewhere, as in `5" tube`, is not cut.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from dpsynth.schema import Dialect

BLOCK = 2**22  # bytes
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
        return cast(BinaryIO, io.BufferedReader(self, BLOCK))

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
    start, quotes, before, closing = 0, 0, NEWLINE, False
    with path.open("rb") as file:
        while content := file.read(BLOCK):
            block = np.frombuffer(content, np.uint8)
            if quote is None:
                yield start, block, np.zeros(len(block), dtype=bool)
                start += len(block)
                continue
            is_quote = block == quote
            inside = ((quotes + np.cumsum(is_quote)) & 1).astype(bool)
            places = np.flatnonzero(is_quote)
            previous = np.concatenate([[before], block])
            if start == 0 and content.startswith(codecs.BOM_UTF8):
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


def _one_byte_each(dialect: Dialect) -> bool:
    """Whether line ends, quotes and separators are bytes that occur nowhere within a letter."""
    try:
        name = codecs.lookup(dialect.encoding).name
    except LookupError:
        return False
    signs = dialect.delimiter + dialect.quote
    single = name in ("utf-8", "ascii") or name.startswith(("iso8859", "cp125"))
    return single and signs.isascii() and len(dialect.delimiter) == 1
