"""A pool of worker processes that do numbered pieces of work, one core each.

Each worker is a fresh process (spawned) with one thread for arithmetic. It ends when the ``with``
block of its pool ends, normally or by an error or Ctrl-C. It also ends when the process that
started it is killed: a thread in each worker waits for that. (`concurrent.futures` ends no worker
that is busy, and its workers outlive a parent that was killed.)

A worker that dies (killed, or out of memory) ends the work, unless the pool may start others in its
place: then one of those does the piece again, and the piece is answered once. This holds from its
first moment on. A worker gets the work over its own line, of which the pool keeps no copy of the
worker's end: so the line is closed when the worker is gone, and no write or read waits for it.
(`multiprocessing` hands what a process is started with through a pipe whose other end it keeps
open: if the process dies before it has read more than the pipe holds, the parent waits for ever.)
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from multiprocessing.reduction import ForkingPickler
from typing import Any, Generic, Protocol, Self, TypeVar

from dpsynth.errors import DpsynthError, InputError

Result = TypeVar("Result")
Answer = TypeVar("Answer", covariant=True)

_ONE = {name: "1" for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")}


class Work(Protocol[Answer]):
    """The work of a pool. It is pickled to the workers, and its results are pickled back."""

    def warm(self) -> None:
        """Do what takes time once in each worker, such as importing libraries."""
        ...

    def __call__(self, number: int) -> Answer:
        """Do one piece."""
        ...


class WorkerPool(Generic[Result]):
    """Worker processes for one kind of work; use it in a ``with`` block.

    Attributes:
        idle: number of workers that wait for a piece.
    """

    def __init__(self, work: Work[Result], *, restarts: int = 0) -> None:
        """Name the work; no worker has been started yet.

        Args:
            work: what the workers do.
            restarts: how many workers that died are replaced, all together.
        """
        self._work, self._restarts = work, restarts
        self._lines: dict[Connection, BaseProcess] = {}
        self._free: list[Connection] = []
        self._doing: dict[Connection, int] = {}
        self._lost: list[int] = []

    def __enter__(self) -> Self:
        """Return the pool."""
        return self

    def __exit__(self, *_: object) -> None:
        """End all workers, whatever they are doing."""
        for line, process in self._lines.items():
            process.kill()  # it has nothing to put in order, and one that is stopped ends, too
            line.close()
        for process in self._lines.values():
            process.join()

    @property
    def idle(self) -> int:
        """Number of workers that wait for a piece."""
        return len(self._free)

    def start_workers(self, count: int) -> None:
        """Start this many workers; each is idle once it has warmed up."""
        context = multiprocessing.get_context("spawn")
        work = ForkingPickler.dumps(self._work)
        started = []
        for _ in range(count):
            line, theirs = context.Pipe()
            process = context.Process(target=_serve, args=(theirs,), daemon=True)
            with _environment(_ONE):
                process.start()
            theirs.close()
            self._lines[line] = process
            started.append(line)
        for line in started:  # all of them load meanwhile
            with suppress(OSError):  # it has died, which `next` finds
                line.send_bytes(work)

    def start(self, number: int) -> None:
        """Give the piece of this number to an idle worker."""
        line = self._free.pop()
        self._doing[line] = number
        with suppress(OSError):  # it has died while it was idle, which `next` finds
            line.send(number)

    def next(self, seconds: float | None = None) -> Result | None:
        """Wait until a worker has warmed up or has done its piece.

        Args:
            seconds: longest wait; no limit if None.

        Returns:
            The result; None if a worker has warmed up or was replaced, or the time is over.

        Raises:
            DpsynthError: a piece failed, or a worker died and none may take its place.
        """
        ready = wait(list(self._lines), seconds)
        if not ready:
            return None
        line = ready[0]
        assert isinstance(line, Connection)
        try:
            result, problem = line.recv()
        except (EOFError, OSError):
            self._replace(line)
            return None
        if problem is not None:
            raise problem
        self._doing.pop(line, None)
        self._free.append(line)
        if self._lost:
            self.start(self._lost.pop())
        finished: Result | None = result
        return finished

    def _replace(self, line: Connection) -> None:
        """Start a worker in place of one that has died, and keep the number of its piece."""
        if not self._restarts:
            raise DpsynthError("a worker process died; if memory ran out, use fewer workers")
        self._restarts -= 1
        dead = self._lines.pop(line)
        dead.kill()
        dead.join()
        line.close()
        if line in self._free:
            self._free.remove(line)
        if line in self._doing:
            self._lost.append(self._doing.pop(line))
        self.start_workers(1)


def _serve(line: Connection) -> None:
    """Take the work, and do pieces of it until the connection closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the parent process
    threading.Thread(target=_follow, daemon=True).start()
    try:
        work: Work[Any] = line.recv()
        line.send(outcome_of(work.warm))
        single_threaded()
        while True:
            number = line.recv()
            line.send(outcome_of(lambda: work(number)))  # noqa: B023
    except (EOFError, OSError):
        return


def outcome_of(piece: Callable[[], Any]) -> tuple[Any, DpsynthError | None]:
    """Return a result, or the error; one that is not ours only by its name."""
    try:
        return piece(), None
    except InputError as error:
        return None, InputError(*error.args, items=error.items)
    except DpsynthError as error:
        return None, DpsynthError(*error.args, items=error.items)
    except Exception as error:
        return None, DpsynthError(f"a piece of work failed with {type(error).__name__}")


def _follow() -> None:
    """End when the parent process ends."""
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
    """Set environment variables for the processes that the block starts."""
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
