"""A crew: processes that do numbered pieces of work, one core each.

Each is a fresh process (spawned) with one thread for arithmetic. It ends when its crew is left, by
an error or by Ctrl-C, and also when the process that started it is killed: then a thread of its
own notices.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Generic, Protocol, Self, TypeVar

from dpsynth.errors import DpsynthError, InputError

Result = TypeVar("Result")
Answer = TypeVar("Answer", covariant=True)

_ONE = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


class Work(Protocol[Answer]):
    """What a crew does; it travels to the processes, and its results travel back."""

    def warm(self) -> None:
        """Do what takes time once in each process, such as importing libraries."""
        ...

    def __call__(self, number: int) -> Answer:
        """Do one piece."""
        ...


class WorkerPool(Generic[Result]):
    """Processes at one kind of work; to be used in a ``with`` block.

    Attributes:
        idle: how many wait for a number.
        busy: how many are at work, or still starting.
    """

    def __init__(self, work: Work[Result]) -> None:
        """Name the work; nobody is hired yet."""
        self._work = work
        self._lines: dict[Connection, BaseProcess] = {}
        self._free: list[Connection] = []

    def __enter__(self) -> Self:
        """Begin."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all processes, whatever they are doing."""
        for line, process in self._lines.items():
            process.terminate()
            line.close()
        for process in self._lines.values():
            process.join()

    @property
    def idle(self) -> int:
        """How many wait for a number."""
        return len(self._free)

    @property
    def busy(self) -> int:
        """How many are at work, or still starting."""
        return len(self._lines) - len(self._free)

    def hire(self, count: int) -> None:
        """Start so many processes; each is idle when it has warmed up."""
        context = multiprocessing.get_context("spawn")
        for _ in range(count):
            line, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs, self._work), daemon=True)
            with _environment(_ONE):
                process.start()
            theirs.close()
            self._lines[line] = process

    def start(self, number: int) -> None:
        """Give a number to one that is idle."""
        self._free.pop().send(number)

    def next(self, seconds: float | None = None) -> Result | None:
        """Wait until one of them has warmed up, or has done its piece.

        Args:
            seconds: to wait at most; for ever if None.

        Returns:
            The result; None if one has warmed up, or if the time is over.

        Raises:
            DpsynthError: a piece failed, or a process died.
        """
        ready = wait(list(self._lines), seconds)
        if not ready:
            return None
        line = ready[0]
        assert isinstance(line, Connection)
        try:
            result, problem = line.recv()
        except (EOFError, OSError):
            raise DpsynthError(
                "a process of the crew died at work; if memory ran out, take fewer workers"
            ) from None
        if problem is not None:
            raise problem
        self._free.append(line)
        finished: Result | None = result
        return finished


def _serve(line: Connection, work: Work[Any]) -> None:
    """Do pieces of work until the line is cut."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that hired
    threading.Thread(target=_follow, daemon=True).start()
    try:
        line.send(_done(work.warm))
        single_threaded()
        while True:
            number = line.recv()
            line.send(_done(lambda: work(number)))  # noqa: B023
    except (EOFError, OSError):
        return


def _done(piece: Callable[[], Any]) -> tuple[Any, DpsynthError | None]:
    """Return a result, or what went wrong; an error of others only by its name."""
    try:
        return piece(), None
    except InputError as error:
        return None, InputError(str(error))
    except DpsynthError as error:
        return None, DpsynthError(str(error))
    except Exception as error:
        return None, DpsynthError(f"a piece of work failed with {type(error).__name__}")


def _follow() -> None:
    """End with the process that hired."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def single_threaded() -> None:
    """Keep torch to one thread, where it is loaded."""
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(1)


@contextmanager
def _environment(names: Mapping[str, str]) -> Iterator[None]:
    """Set variables for the processes that are started in the block."""
    earlier = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    try:
        yield
    finally:
        for name, value in earlier.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
