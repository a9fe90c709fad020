"""Worker processes of this machine, one core each."""

from __future__ import annotations

from typing import TypeVar

from dpsynth._util.engines.engine import Answers, Engine, InProcess, Numbered
from dpsynth._util.short_repr import short_repr
from dpsynth._util.workers import Work, WorkerPool

Answer = TypeVar("Answer")

RESTARTS = 3  # workers that are replaced: more die when memory is too small, not by accident


def local_engine(workers: int) -> Engine:
    """Return an engine of this machine: this process if there is one worker, else a pool.

    >>> local_engine(1), local_engine(4)
    (<InProcess this process>, <LocalEngine 4 processes>)
    """
    return InProcess() if workers == 1 else LocalEngine(workers)


class LocalEngine:
    """Spawned processes of this machine; they start with each piece of work and end with it.

    Attributes:
        workers: how many.
    """

    distant = False

    def __init__(self, workers: int) -> None:
        """Start nothing yet."""
        self.workers = workers

    def __repr__(self) -> str:
        """Say how many there are."""
        return short_repr(self, f"{self.workers} processes")

    @property
    def at_once(self) -> int:
        """One piece for each process."""
        return self.workers

    def results(self, work: Work[Answer], count: int) -> Answers[Answer]:
        """Give each process a piece when it has answered its last one."""
        numbers, answered = iter(range(count)), 0
        with WorkerPool(Numbered(work), restarts=RESTARTS) as pool:
            pool.start_workers(min(self.workers, count))
            while answered < count:
                while pool.idle and (number := next(numbers, None)) is not None:
                    pool.start(number)
                if (answer := pool.next()) is not None:
                    answered += 1
                    yield answer
