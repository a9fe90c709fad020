"""Signals that ask a process to end: all of them unwind as Ctrl-C does.

The ledger's entry is closed, and temporary files with real rows are removed. The exit code is 128
and the signal's number, as a shell would say it.
"""

from __future__ import annotations

import signal
import threading
from types import FrameType

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
