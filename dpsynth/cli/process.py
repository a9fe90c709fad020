"""What keeps a process of dpsynth from ending halfway: signals, and streams that cannot be written.

Signals that ask it to end all unwind as Ctrl-C does: the ledger's entry is closed, and temporary
files with real rows are removed. The exit code is 128 and the signal's number, as a shell would say
it. Standard output and error never stop the work, because a fit that is paid for must not die of a
line that nobody could read: a pipe whose reader has ended, a full disk behind a redirection, a
stream that was closed before dpsynth was started. What cannot be shown is noted for the end.
"""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from contextlib import suppress
from types import FrameType
from typing import Any, TextIO

from dpsynth._util.output import Neutral

ASKED = ("SIGTERM", "SIGHUP", "SIGQUIT", "SIGXCPU")
INTERRUPTED = 130

_came: list[int] = []  # the signals that asked this process to end


class Stopped(KeyboardInterrupt):
    """A signal asked the process to end."""

    def __init__(self, number: int) -> None:
        """Keep which."""
        super().__init__()
        self.exit_code = 128 + number


def unwind_on_signals() -> None:
    """Raise `Stopped` for signals that would end the process at once; keep those that are ignored.

    (``nohup`` ignores SIGHUP.) Only the main thread can set handlers.
    """
    if threading.current_thread() is not threading.main_thread():
        return
    _came.clear()
    for name in ASKED:
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) == signal.SIG_DFL:
            signal.signal(number, _stop)
    if signal.getsignal(signal.SIGINT) == signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def require_running(error: Exception) -> None:
    """Raise `Stopped`, with the notes of an error, where a signal came and a library made it.

    (Modules that are written in C say that they cannot be imported.)
    """
    if _came:
        stop = Stopped(_came[0])
        for note in getattr(error, "__notes__", ()):
            stop.add_note(note)
        raise stop from error


def exit_code(stop: BaseException | None) -> int:
    """Return the exit code of what was interrupted."""
    while stop is not None:
        if isinstance(stop, Stopped):
            return stop.exit_code
        stop = stop.__context__
    return INTERRUPTED


def _stop(number: int, frame: FrameType | None) -> None:
    for name in ASKED:  # a second one does not stop the cleaning up; a second Ctrl-C does
        if (other := getattr(signal, name, None)) is not None:
            signal.signal(other, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _came.append(number)
    raise Stopped(number)


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
