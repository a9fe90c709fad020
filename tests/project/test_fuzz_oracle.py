"""The judge of the fuzzer: each kind of broken reader is seen, and a refusal in words is none."""

from __future__ import annotations

import base64
import logging
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from dpsynth.errors import DpsynthError, TableError

BENCH = Path(__file__).parents[2] / "bench"
CELL = "Zq7Xv9Wk3Jp"  # one of the canaries


@pytest.fixture(autouse=True)
def bench_on_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCH))


@pytest.fixture
def failure_of() -> Callable[..., str | None]:
    """Judge a reader; give what is wrong with it."""
    from fuzz_oracle import Ear, judge

    def of(reader: Callable[[], Any], seconds: float = 5.0) -> str | None:
        with Ear().listening() as ear:
            failure: str | None = judge([reader], ear, seconds=seconds).failure
        return failure

    return of


def raising(error: BaseException) -> Callable[[], None]:
    def read() -> None:
        raise error

    return read


def with_cause() -> None:
    try:
        float(CELL)
    except ValueError as error:
        raise TableError("table.csv: damaged") from error


def without_cause() -> None:
    try:
        float(CELL)
    except ValueError:
        raise TableError("table.csv: damaged") from None


def test_a_refusal_in_words_is_no_failure(failure_of: Callable[..., str | None]) -> None:
    assert failure_of(lambda: None) is None
    assert failure_of(raising(TableError("table.csv line 3: a NUL byte"))) is None
    assert failure_of(without_cause) is None


@pytest.mark.parametrize("error", [KeyError("age"), AssertionError(), RecursionError(), OSError(2)])
def test_another_exception_is_seen(
    error: BaseException, failure_of: Callable[..., str | None]
) -> None:
    assert failure_of(raising(error)) == f"{type(error).__name__} left the reader"


def test_what_leaves_a_reader_by_the_back_door_is_seen(
    failure_of: Callable[..., str | None],
) -> None:
    assert failure_of(lambda: sys.exit(3)) == "SystemExit left the reader"


FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "a piece": lambda cell: cell[2:8],
    "another case": str.lower,
    "escaped": lambda cell: "".join(f"\\x{letter:02x}" for letter in cell.encode())[:24],
    "URL": lambda cell: quote(cell),
    "UTF-16": lambda cell: "\\x00".join(cell),
    "hex": lambda cell: cell.encode().hex(),
    "hex of UTF-16": lambda cell: cell.encode("utf-16").hex().upper(),
    "base64": lambda cell: base64.b64encode(cell.encode()).decode(),
    "base64 within more": lambda cell: base64.b64encode(f"age={cell}; sex=F".encode()).decode(),
    "base64 of UTF-16": lambda cell: base64.urlsafe_b64encode(cell.encode("utf-16")).decode(),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cell", [CELL, "Kr\u00fc\u00dfQz8Yv4Hx", "7141592653589"])
def test_a_quoted_cell_is_seen(form: str, cell: str, failure_of: Callable[..., str | None]) -> None:
    shown = FORMS[form](cell)
    failure = failure_of(raising(TableError(f"column 'age': {shown} is no number")))
    assert failure is not None and "the message shows a private cell" in failure


def loud() -> None:
    os.write(2, f"bad cell {CELL}\n".encode())  # as a library in C does


SAYING: dict[str, Callable[[], Any]] = {
    "print": lambda: print("bad cell", CELL),
    "stderr": lambda: sys.stderr.write(CELL),
    "descriptor": loud,
    "log": lambda: logging.getLogger("some.library").debug("bad cell %s", CELL),
    "warning": lambda: warnings.warn(f"bad cell {CELL}", stacklevel=1),
    "cause": with_cause,
}


@pytest.mark.parametrize("how", SAYING)
def test_a_cell_that_is_said_elsewhere_is_seen(
    how: str, failure_of: Callable[..., str | None]
) -> None:
    failure = failure_of(SAYING[how])
    assert failure is not None and "a private cell" in failure


BAD_MESSAGES = {
    "says nothing": " ",
    "a line of": "x" * 5000,
    "a terminal obeys": "key \x1b[2J",
    "'Traceback'": "Traceback (most recent call last)",
    "' object at 0x'": "<Column object at 0x7f00>",
}


class RawError(DpsynthError):
    """An error that shows its message as it is."""

    def __str__(self) -> str:
        return str(self.args[0])


@pytest.mark.parametrize("fault", BAD_MESSAGES)
def test_a_message_that_is_none_is_seen(fault: str, failure_of: Callable[..., str | None]) -> None:
    failure = failure_of(raising(RawError(BAD_MESSAGES[fault])))
    assert failure is not None and fault in failure


@pytest.mark.parametrize("sign", ["\x1b[2J", "\x9b2J", "\u202e", "\u200b", "\u2028", "\r"])
def test_what_a_terminal_obeys_is_seen_on_the_screen(
    sign: str, failure_of: Callable[..., str | None]
) -> None:
    failure = failure_of(lambda: print("key", sign, flush=True))
    assert failure is not None and "a terminal obeys" in failure


def busy() -> None:
    while True:
        try:
            sum(range(1000))
        except Exception:  # the alarm is none
            pass


def waiting() -> None:
    time.sleep(60)


@pytest.mark.long
@pytest.mark.parametrize("reader", [busy, waiting])
def test_a_hang_is_seen(reader: Callable[[], None], failure_of: Callable[..., str | None]) -> None:
    start = time.monotonic()
    assert failure_of(reader, 0.1) == "no answer within 0.1 s"
    assert time.monotonic() - start < 20


def in_child(reader: Callable[[], Any], patience: float = 30.0) -> list[Any]:
    """Judge a reader in a child with 100 MiB more than this process."""
    from fuzz_children import told_by
    from fuzz_oracle import Ear, judge

    def work(tell: Callable[[dict[str, Any]], None]) -> None:
        with Ear().listening() as ear:
            tell({"failure": judge([reader], ear).failure})

    return list(told_by(work, memory=100, patience=patience))


@pytest.mark.long
def test_memory_without_end_is_seen() -> None:
    blocks = []

    def greedy() -> None:
        while True:
            blocks.append(bytearray(2**24))

    assert in_child(greedy) == [{"failure": "more memory than the limit"}]
    assert in_child(lambda: bytearray(2**24)) == [{"failure": None}]


def out_of_time() -> None:
    """As the system ends a process, whatever an earlier test made of the signal."""
    signal.signal(signal.SIGXCPU, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGXCPU)


def deaf() -> None:
    """As a loop in C that never looks at signals."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(60)


@pytest.mark.long
@pytest.mark.parametrize(
    ("reader", "said"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "the process died of SIGKILL"),
        (out_of_time, "the process died of SIGXCPU"),
        (deaf, "no word for 2 s"),
    ],
)
def test_a_reader_that_takes_the_process_along_is_seen(
    reader: Callable[[], Any], said: str
) -> None:
    from fuzz_children import Died

    with pytest.raises(Died, match=said):
        in_child(reader, patience=2.0)
