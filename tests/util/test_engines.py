"""Every piece of work is answered once, whoever does it and whoever dies at it."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.engines import (
    Answers,
    Engine,
    InProcess,
    LocalEngine,
    each_once,
    each_once_or_here,
    in_order,
)
from dpsynth._util.workers import Work
from dpsynth.errors import DpsynthError, DpsynthWarning, InputError


class Squares:
    """Squares of numbers; a piece of ``deadly`` kills its worker, as often as there are marks."""

    def __init__(self, folder: Path | None = None, deadly: int = -1, marks: int = 0) -> None:
        self.deadly = deadly
        self.marks = [] if folder is None else [folder / str(mark) for mark in range(marks)]

    def warm(self) -> None:
        pass

    def __call__(self, number: int) -> int:
        if number == self.deadly:
            for mark in self.marks:
                if not mark.exists():
                    mark.touch()
                    os.kill(os.getpid(), signal.SIGKILL)
            if not self.marks:
                raise InputError("say this")
        return number * number


class Loses:
    """A broken engine: it forgets one answer."""

    at_once, distant = 1, False

    def results(self, work: Work[int], count: int) -> Answers[int]:
        for number in range(count - 1):
            yield number, work(number)


class Repeats(Loses):
    """A broken engine: it gives one answer twice, as after a worker that was thought lost."""

    def results(self, work: Work[int], count: int) -> Answers[int]:
        for number in (*range(count), 1):
            yield number, work(number)


class Swaps(Loses):
    """It answers in place of one piece another that was never asked for."""

    def results(self, work: Work[int], count: int) -> Answers[int]:
        for number in range(1, count + 1):
            yield number, work(number)


class Exchanges(Loses):
    """It gives two answers in place of each other: each number comes once."""

    def results(self, work: Work[int], count: int) -> Answers[int]:
        for number in range(count):
            yield number, work({1: 2, 2: 1}.get(number, number))


class Doubles(Loses):
    """It does one piece twice, the second time in place of another."""

    def results(self, work: Work[int], count: int) -> Answers[int]:
        for number in range(count):
            yield number, work(max(number, 1))


def answers_of(engine: Engine, work: Squares, count: int) -> list[int]:
    found: list[int] = []
    in_order(engine, work, count, lambda number, answer: found.append(answer))
    return found


def test_a_piece_whose_worker_dies_is_done_again(tmp_path: Path) -> None:
    killed = Squares(tmp_path, deadly=2, marks=1)
    assert answers_of(LocalEngine(2), killed, 5) == [0, 1, 4, 9, 16]
    assert killed.marks[0].exists()


@pytest.mark.long
def test_a_piece_that_kills_every_worker_ends_the_work(tmp_path: Path) -> None:
    with pytest.raises(DpsynthError, match="a worker process died"):
        answers_of(LocalEngine(1), Squares(tmp_path, deadly=0, marks=4), 1)
    assert answers_of(LocalEngine(1), Squares(tmp_path / "..", deadly=0, marks=3), 1) == [0]


@pytest.mark.parametrize("engine", [InProcess(), LocalEngine(1)])
def test_our_errors_come_through(engine: Engine) -> None:
    with pytest.raises(InputError, match="say this"):
        answers_of(engine, Squares(deadly=1), 3)


@pytest.mark.parametrize(
    ("broken", "words"),
    [
        (Loses, "never answered"),
        (Repeats, "twice"),
        (Swaps, "not asked for"),
        (Exchanges, "answer of another piece"),
        (Doubles, "answer of another piece"),
    ],
)
def test_an_engine_that_loses_or_repeats_is_found_out(broken: type[Loses], words: str) -> None:
    with pytest.raises(DpsynthError, match=words):
        each_once(broken(), Squares(), 4, lambda number, answer: None)


@pytest.mark.parametrize("broken", [Loses, Repeats, Swaps, Exchanges, Doubles])
def test_what_a_broken_engine_answered_is_thrown_away(broken: type[Loses]) -> None:
    found: list[int] = []

    def begin() -> Callable[[int, int], None]:
        found.clear()
        return lambda number, answer: found.append(answer)

    with pytest.warns(DpsynthWarning, match="This process does the work again, alone"):
        each_once_or_here(broken(), Squares(), 4, begin)
    assert found == [0, 1, 4, 9]
    with pytest.raises(InputError, match="say this"):
        each_once_or_here(Loses(), Squares(deadly=1), 4, begin)
    with pytest.raises(InputError, match="say this"):
        each_once_or_here(InProcess(), Squares(deadly=1), 4, begin)


def test_a_worker_that_refuses_is_named_when_this_process_has_done_its_work() -> None:
    """One that came late, and does not see the folder: the work itself is right."""

    class Refuses(Loses):
        def results(self, work: Any, count: int) -> Any:
            raise InputError("the worker cannot write there")

    found: dict[int, int] = {}
    with pytest.warns(DpsynthWarning, match="cannot write there. This process did the work again"):
        each_once_or_here(Refuses(), Squares(), 3, lambda: found.__setitem__)
    assert found == {0: 0, 1: 1, 2: 4}
