"""What every engine promises, how callers check it, and the engine that is this process.

A piece of work has a number and an answer. What it does depends on its number and on the work
alone, and it changes nothing but its own numbered output, if it has any. So it may be done again
after a worker was lost, by any worker, and its answer is taken once.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from dpsynth._util.short_repr import short_repr
from dpsynth._util.workers import Work
from dpsynth.errors import DpsynthError

Answer = TypeVar("Answer")
Take = Callable[[int, Answer], None]
Answers = Generator[tuple[int, Answer], None, None]
"""Numbers of pieces with their answers. Closing it ends the work."""


class Engine(Protocol):
    """Does numbered pieces of one kind of work: in this process, in others, or on other machines.

    Attributes:
        at_once: how many pieces it works on at once; cut the work into a few times as many.
        distant: whether other machines work: then files that pieces read or write have to be in a
            folder that all of them see.
    """

    @property
    def at_once(self) -> int:
        """How many pieces it works on at once."""
        ...

    @property
    def distant(self) -> bool:
        """Whether other machines work."""
        ...

    def results(self, work: Work[Answer], count: int) -> Answers[Answer]:
        """Do pieces 0 to ``count - 1`` and yield each number once with its answer, in any order.

        At most a few pieces for each worker are begun before their answers are taken. A piece whose
        worker is lost is done again. Closing the iterator ends the work. Callers use `each_once`,
        which closes it and checks the numbers.

        Raises:
            DpsynthError: a piece failed; an `InputError` stays one. Or too many workers were lost.
        """
        ...


class InProcess:
    """The engine that is this process: piece after piece, in order."""

    at_once = 1
    distant = False

    def __repr__(self) -> str:
        """Name it."""
        return short_repr(self, "this process")

    def results(self, work: Work[Answer], count: int) -> Answers[Answer]:
        """Do each piece when its answer is asked for."""
        for number in range(count):
            yield number, work(number)


@dataclass(frozen=True)
class Numbered(Generic[Answer]):
    """Work whose answers say which piece they are of, wherever it is done."""

    work: Work[Answer]

    def __repr__(self) -> str:
        """Show what the work shows: logs of other programs may quote it."""
        return short_repr(self, repr(self.work))

    def warm(self) -> None:
        """Do the same."""
        self.work.warm()

    def __call__(self, number: int) -> tuple[int, Answer]:
        """Do a piece."""
        return number, self.work(number)


def each_once(engine: Engine, work: Work[Answer], count: int, take: Take[Answer]) -> None:
    """Do all pieces, and take each answer as it comes, in any order.

    The numbers that come back are checked against those that were given out, and each answer says
    itself of which piece it is. So an engine that loses an answer, gives one twice, or gives that
    of another piece is found out, and no row is missing or counted twice.

    Args:
        engine: who does the work.
        work: what is done.
        count: of pieces.
        take: called with the number of a piece and its answer, in this process.

    Raises:
        DpsynthError: as `Engine.results`; or an answer came twice, never, for another piece, or was
            not asked for.

    >>> class Square:
    ...     def warm(self): ...
    ...     def __call__(self, number): return number * number
    >>> each_once(InProcess(), Square(), 3, print)
    0 0
    1 1
    2 4
    """
    with closing(numbered_once(engine, work, count)) as answers:
        for number, answer in answers:
            take(number, answer)


def numbered_once(engine: Engine, work: Work[Answer], count: int) -> Answers[Answer]:
    """Do all pieces, and yield each with its number, checked as `each_once` checks them."""
    missing = set(range(count))
    with closing(engine.results(Numbered(work), count)) as answers:
        for number, (own, answer) in answers:
            if number not in missing:
                raise DpsynthError(f"piece {number} of {count} was answered twice or not asked for")
            if own != number:
                raise DpsynthError(f"piece {number} of {count} got the answer of another piece")
            missing.remove(number)
            yield number, answer
    if missing:
        raise DpsynthError(f"{len(missing)} of {count} pieces of work were never answered")


def ordered(engine: Engine, work: Work[Answer], count: int) -> Generator[Answer, None, None]:
    """Do all pieces as `each_once`, and yield the answers by number, from 0, as they are asked for.

    An answer that comes early is kept until those before it have been taken.

    >>> class Square:
    ...     def warm(self): ...
    ...     def __call__(self, number): return number * number
    >>> list(ordered(InProcess(), Square(), 3))
    [0, 1, 4]
    """
    early: dict[int, Answer] = {}
    done = 0
    with closing(numbered_once(engine, work, count)) as answers:
        for number, answer in answers:
            early[number] = answer
            while done in early:
                yield early.pop(done)
                done += 1


def in_order(engine: Engine, work: Work[Answer], count: int, take: Take[Answer]) -> None:
    """Do all pieces as `each_once`, and take the answers by number, from 0."""
    with closing(ordered(engine, work, count)) as answers:
        for number, answer in enumerate(answers):
            take(number, answer)
