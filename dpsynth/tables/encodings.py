"""What encoding a text file is likely in, where its bytes do not fit the declared one.

Only a message uses this: a table is read in the encoding that its schema declares, or not at all.
"""

from __future__ import annotations

import codecs
import zlib
from collections.abc import Iterator
from typing import Any

LIKELY = ("utf-8", "cp1252", "latin-1")  # latin-1 takes any bytes
_BLOCK = 2**20  # bytes
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)


def misfit(raw: Any, declared: str) -> tuple[int, str]:
    """Return the line of the first byte that does not fit, and the likely encoding of the file.

    Args:
        raw: the file, open for reading bytes; it is read from the start.
        declared: an encoding that does not fit.

    The line is counted from 1, as line ends are in the bytes. Nothing that the file holds is given
    out.
    """
    raw.seek(0)
    start = raw.read(4)
    marked = next((name for mark, name in _MARKS if start.startswith(mark)), None)
    if marked is None and b"\0" in start:
        marked = "utf-16-le" if start[1:2] == b"\0" else "utf-16-be"
    candidates = [name for name in LIKELY if name != codecs.lookup(declared).name]
    likely = marked or next((name for name in candidates if _fits(raw, name)), "utf-16")
    return _line(raw, declared), likely


def _blocks(raw: Any) -> Iterator[bytes]:
    raw.seek(0)
    try:
        while block := raw.read(_BLOCK):
            yield block
    except (EOFError, OSError, zlib.error):  # of a gzip file that is cut off: what it has counts
        return


def _fits(raw: Any, encoding: str) -> bool:
    """Tell whether all bytes of a file are text in an encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for block in _blocks(raw):
            decoder.decode(block)
        decoder.decode(b"", final=True)
    except UnicodeError:
        return False
    return True


def _line(raw: Any, encoding: str) -> int:
    """Return the line of the first byte that is not text in an encoding."""
    decoder = codecs.getincrementaldecoder(encoding)()
    lines = 1
    for block in _blocks(raw):
        waiting, _ = decoder.getstate()
        try:
            decoder.decode(block)
        except UnicodeDecodeError as error:
            return lines + (waiting + block)[: error.start].count(b"\n")
        except UnicodeError:
            return lines
        lines += block.count(b"\n")
    return lines
