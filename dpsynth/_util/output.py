"""The one place where text leaves the program for a screen: nothing in it obeys, hides or misleads.

A name in a message may be anybody's: of a file in a folder that was received, of a key in a
document. In a terminal an escape sequence clears the screen and writes what it likes, a
bidirectional mark turns text around, and a line break makes a line of its own. All that is written
to standard output and error passes here: lines by `write_line`, documents by `write_text`, and what
libraries write (a traceback, a warning, a log) through `Neutral` streams.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from dpsynth.errors import SPACES, printable


class Neutral(io.TextIOWrapper):
    """A text stream that escapes what a terminal obeys; tabs and line breaks stay."""

    def write(self, text: str) -> int:
        """Write text of anybody."""
        super().write(printable(text, "\n\t" + SPACES))
        return len(text)

    def draw(self, text: str) -> None:
        """Write text of dpsynth alone, with what moves the cursor of a terminal."""
        super().write(text)


class Drawing:
    """Writes to a terminal's stream what moves its cursor; for text without a name in it."""

    def __init__(self, stream: Any) -> None:
        """Draw on a stream."""
        self._stream = stream

    def write(self, text: str) -> int:
        """Write text of dpsynth alone."""
        getattr(self._stream, "draw", self._stream.write)(text)
        return len(text)

    def __getattr__(self, name: str) -> Any:
        """Be the stream in all else."""
        return getattr(self._stream, name)


def write_line(line: str, *, err: bool = False) -> None:
    r"""Write one line to standard output or error, whatever is in it.

    >>> write_line("a" + chr(10) + "verified" + chr(27) + "[2J")
    a\nverified\x1b[2J
    """
    _write(printable(line, SPACES) + "\n", err=err)


def write_text(text: str, *, err: bool = False) -> None:
    """Write lines, such as an error with what it lists, or a whole document."""
    _write(printable(text, "\n\t" + SPACES), err=err)


def write_json(document: Mapping[str, Any]) -> None:
    """Write an object as JSON in ASCII, for programs."""
    _write(json.dumps(document, indent=2).replace("\x7f", "\\u007f") + "\n", err=False)


def _write(text: str, *, err: bool) -> None:
    stream: TextIO | None = sys.stderr if err else sys.stdout
    if stream is not None:  # a program without a console has none
        stream.write(text)
        stream.flush()
