"""Standard output and error that never stop the work: what cannot be shown is noted for the end.

A fit that is paid for must not die of a line that nobody could read: a pipe whose reader has ended,
a full disk behind a redirection, a stream that was closed before dpsynth was started.
"""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from dpsynth._util.output import Neutral


class Lenient(io.FileIO):
    """A file descriptor that takes every write; ``problem`` is the first error there was."""

    problem: OSError | None = None

    def write(self, content: Any) -> int:
        """Write, or note why that was not possible."""
        view = memoryview(content).cast("B")
        done = 0
        try:
            while self.problem is None and done < len(view):
                done += super().write(view[done:]) or 0
        except OSError as error:
            self.problem = error
        return len(view)


def make_lenient() -> None:
    """Put lenient streams in the place of the process's standard ones.

    A descriptor that is closed is opened on the null device, or else the next file that is opened
    would get its number, and with it everything that is printed.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            with suppress(OSError):  # the lowest number that is free; read-only, so writing fails
                os.open(os.devnull, os.O_RDONLY)
    if sys.stdout is sys.__stdout__:
        sys.stdout = _over(1, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _over(2, sys.stderr)


def stdout_problem() -> OSError | None:
    """Write out what is held back, and say why standard output could not be written, if so."""
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    raw = getattr(sys.stdout, "buffer", None)
    return raw.problem if isinstance(raw, Lenient) else None


def _over(descriptor: int, stream: TextIO | None) -> TextIO:
    encoding = "utf-8" if stream is None else stream.encoding
    errors = "backslashreplace" if stream is None or descriptor == 2 else stream.errors
    raw = Lenient(descriptor, "w", closefd=False)
    # No buffer between: one would write again what a signal interrupted just after it was written.
    unbuffered: Any = raw
    return Neutral(unbuffered, encoding=encoding, errors=errors, write_through=True)
