"""The judge of one input: what may leave a reader, how long it may take, what it may say.

A reader takes an input or refuses it: by a `DpsynthError` whose message is short lines of printable
text. Anything else is a failure: another exception, no answer in time, memory beyond the limit, a
traceback on the screen, and a canary in the message, on the screen or in the log.
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import signal
import sys
import tempfile
import time
import traceback
import unicodedata
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from fuzz_canaries import shown_in

from dpsynth.errors import DpsynthError

SECONDS = 10.0  # of processor time; an input that takes longer hangs
PATIENCE = 6  # so many times as much wall time may pass, on a machine that has other things to do
LONGEST = 2000  # characters of a line of a message
MOST = 2**20  # characters of a message; a schema's lists every mistake
READ = "read"
SIGNS_OF_PYTHON = ("Traceback", "<class '", " object at 0x", "Exception ignored", "<frozen ")


class Hang(BaseException):
    """Raised by the alarm; no reader catches it as an ordinary error."""


@dataclass(frozen=True)
class Verdict:
    """What a reader did with an input.

    Attributes:
        outcome: ``read``, or the class of what was raised.
        seconds: of processor time.
        failure: what is wrong; None if nothing is.
        said: the message, or where an exception came from.
    """

    outcome: str
    seconds: float
    failure: str | None = None
    said: str = ""


class Ear:
    """Hears all that a process says: both descriptors, both streams, warnings, all log records."""

    def __init__(self) -> None:
        """Hear nothing yet."""
        self._file = tempfile.TemporaryFile("w+", encoding="utf-8", errors="backslashreplace")
        flags = fcntl.fcntl(self._file, fcntl.F_GETFL)
        fcntl.fcntl(self._file, fcntl.F_SETFL, flags | os.O_APPEND)  # it is cut to nothing often

    def heard(self) -> str:
        """Return what was said since the last call."""
        self._file.flush()
        descriptor = self._file.fileno()
        size = os.fstat(descriptor).st_size
        if not size:
            return ""
        said = os.pread(descriptor, size, 0).decode(errors="replace")
        os.ftruncate(descriptor, 0)
        return said

    def _show(self, message: Warning | str, category: type[Warning], *rest: Any) -> None:
        self._file.write(f"{category.__name__}: {message}\n")

    @contextlib.contextmanager
    def listening(self) -> Iterator[Ear]:
        """Listen within the block."""
        root, handler = logging.getLogger(), logging.StreamHandler(self._file)
        level, kept = root.level, [os.dup(1), os.dup(2)]
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        try:
            for number in (1, 2):
                os.dup2(self._file.fileno(), number)
            root.addHandler(handler)
            root.setLevel(logging.DEBUG)
            with (
                contextlib.redirect_stdout(self._file),
                contextlib.redirect_stderr(self._file),
                warnings.catch_warnings(),
            ):
                warnings.simplefilter("always")
                warnings.simplefilter("ignore", ResourceWarning)
                warnings.showwarning = self._show
                yield self
        finally:
            root.removeHandler(handler)
            root.setLevel(level)
            for number, descriptor in enumerate(kept, start=1):
                os.dup2(descriptor, number)
                os.close(descriptor)


def judge(ways: Sequence[Callable[[], Any]], ear: Ear, *, seconds: float = SECONDS) -> Verdict:
    """Read an input in several ways and judge each; the first failure or refusal is told.

    Args:
        ways: each reads the input once; what one refuses, the next is asked all the same.
        ear: that listens.
        seconds: of processor time, within which each has to answer.
    """
    start, verdicts = time.process_time(), []
    for way in ways:
        verdicts.append(_judged(way, ear, seconds))
        if verdicts[-1].failure is not None:
            break
    worst = next((verdict for verdict in verdicts if verdict.outcome != READ), verdicts[0])
    worst = next((one for one in verdicts if one.failure is not None), worst)
    return Verdict(worst.outcome, time.process_time() - start, worst.failure, worst.said)


def _judged(way: Callable[[], Any], ear: Ear, seconds: float) -> Verdict:
    start = time.process_time()
    outcome, failure, said = READ, None, ""
    try:
        with _alarm(seconds):
            way()
    except DpsynthError as error:
        outcome, said = type(error).__name__, str(error)
        failure = fault_of(said) or _quoted("its causes show", _chain(error))
    except Hang as error:
        outcome, failure, said = "Hang", f"no answer within {seconds:g} s", _place(error)
    except MemoryError as error:
        outcome, failure, said = "MemoryError", "more memory than the limit", _place(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        outcome, said = type(error).__name__, _place(error)
        failure = f"{outcome} left the reader"
    spent = time.process_time() - start
    if failure is None and spent > seconds:
        failure = f"the answer took {spent:.1f} s"
    heard = ear.heard()
    if failure is None and (sign := _sign(heard)):
        failure, said = f"the screen or the log has {sign!r}", heard[-LONGEST:]
    if failure is None and not is_plain(heard):
        failure, said = "the screen or the log has characters that a terminal obeys", ascii(heard)
    if failure is None:
        failure = _quoted("the screen or the log shows", heard)
    return Verdict(outcome, spent, failure, said)


def fault_of(message: str) -> str | None:
    """Say what is wrong with a message; None if nothing is."""
    if not message.strip():
        return "a message that says nothing"
    if len(message) > MOST:
        return f"a message of {len(message)} characters"
    if (longest := max(map(len, message.split("\n")))) > LONGEST:
        return f"a message with a line of {longest} characters"
    if not message.replace("\n", "").isprintable():
        return "a message with characters that a terminal obeys"
    if sign := _sign(message):
        return f"a message with {sign!r}"
    return _quoted("the message shows", message)


def is_plain(text: str) -> bool:
    """Whether a text has nothing that a terminal obeys or hides, but tabs and line breaks.

    Spelt out here, apart from the function of dpsynth that it judges.
    """
    return not any(
        unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp")
        for sign in text.replace("\n", "").replace("\t", "")
    )


def _quoted(where: str, text: str) -> str | None:
    form = shown_in(text) if text else None
    return None if form is None else f"{where} a private cell: {form!r}"


def _sign(text: str) -> str | None:
    return next((sign for sign in SIGNS_OF_PYTHON if sign in text), None)


def _chain(error: BaseException) -> str:
    """Give the messages that Python would print above an error's own."""
    cause = error.__cause__
    if cause is None and not error.__suppress_context__:
        cause = error.__context__
    return "" if cause is None else f"{cause}\n{_chain(cause)}"


def _place(error: BaseException) -> str:
    """Say where an error came from, and what it says."""
    frames = traceback.extract_tb(error.__traceback__)[-4:]
    way = " < ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in reversed(frames))
    return f"{way}: {str(error)[:300]}"


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Raise `Hang` in the block when time is up, and again until it is left."""
    start, begun = time.process_time(), time.monotonic()

    def ring(number: int, frame: FrameType | None) -> None:
        waited = time.monotonic() - begun > PATIENCE * seconds
        if waited or time.process_time() - start >= seconds:
            raise Hang

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds, 0.5)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
