"""A worker that dies in any phase of its life stops no command for ever.

Workers are killed while they start, before and after they are handed their work, in the middle of
it and afterwards. Either others do the work, with the same answers, or the command ends with an
error. Every wait here has a limit.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util import workers
from dpsynth._util.engines import RESTARTS, LocalEngine, in_order
from dpsynth.errors import DpsynthError

from ..support.dying_workers import PHASES, deaths, dying

PATIENCE = 240  # seconds; far more than any of these takes
SHOWN = 1.5  # seconds after the death of a worker for which the broken version is seen to hang


class Squares:
    """Squares of numbers, and more to hand over than a pipe holds."""

    def __init__(self) -> None:
        self.weight = b"x" * 2**20

    def warm(self) -> None:
        pass

    def __call__(self, number: int) -> int:
        return number * number


def squares() -> list[int]:
    found: list[int] = []
    in_order(LocalEngine(2), Squares(), 6, lambda _, answer: found.append(answer))
    return found


def ended(play: Callable[[], Any], seconds: float, hook: Path | None = None) -> int | None:
    """Play in a process of its own; its exit code, or None if it had to be killed.

    The seconds count from the first death that the hook has noted, if one is given.
    """
    child = os.fork()
    if not child:
        os.setpgrp()
        code = 3
        try:
            code = 0 if play() == [0, 1, 4, 9, 16, 25] else 2
        except DpsynthError as error:
            code = 1 if "a worker process died" in str(error) else 4
        finally:
            os._exit(code)
    begun = time.monotonic()
    limit = begun + seconds
    while (now := time.monotonic()) < limit:
        if hook and not deaths(hook) and now < begun + PATIENCE:
            limit = now + seconds
        process, status = os.waitpid(child, os.WNOHANG)
        if process:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


@pytest.mark.parametrize("phase", PHASES)
def test_others_do_the_work_of_a_worker_that_died(
    phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in dying(tmp_path / "hook", phase, 1).items():
        monkeypatch.setenv(name, value)
    assert ended(squares, PATIENCE) == 0
    assert deaths(tmp_path / "hook") == 1


@pytest.mark.parametrize("phase", ["interpreter", "working"])
def test_if_all_die_the_work_ends_with_an_error(
    phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in dying(tmp_path / "hook", phase, 99).items():
        monkeypatch.setenv(name, value)
    assert ended(squares, PATIENCE) == 1
    assert deaths(tmp_path / "hook") >= RESTARTS + 1


def started_with_its_work(pool: Any, count: int) -> None:
    """The broken version: the work goes through the pipe with which a process is started."""
    context = multiprocessing.get_context("spawn")
    for _ in range(count):
        line, theirs = context.Pipe()
        process = context.Process(target=served, args=(theirs, pool._work), daemon=True)
        process.start()
        theirs.close()
        pool._lines[line] = process


def served(line: Any, work: Any) -> None:
    while True:
        line.send(workers.outcome_of(work.warm))


@pytest.mark.parametrize("phase", ["interpreter", "unpacking"])
def test_the_broken_version_is_caught(
    phase: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workers.WorkerPool, "start_workers", started_with_its_work)
    for name, value in dying(tmp_path / "hook", phase, 1).items():
        monkeypatch.setenv(name, value)
    assert ended(squares, SHOWN, tmp_path / "hook") is None
    assert deaths(tmp_path / "hook") == 1


def stopped_and_left() -> list[int]:
    with workers.WorkerPool(Squares()) as pool:
        pool.start_workers(1)
        while not pool.idle:
            pool.next()
        [child] = multiprocessing.active_children()
        os.kill(child.pid or 0, signal.SIGSTOP)
    return [0, 1, 4, 9, 16, 25]


def test_a_worker_that_is_stopped_ends_with_its_pool() -> None:
    """It never comes to a signal that asks it to end."""
    assert ended(stopped_and_left, PATIENCE) == 0
