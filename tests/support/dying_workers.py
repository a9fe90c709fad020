"""Worker processes that are killed in a chosen phase of their lives, and commands that start them.

A ``sitecustomize`` module, which every Python process imports first, kills workers (and no other
process) as often as there are marks left to set.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import dpsynth

HOOK = """
import os, signal, sys

def die():
    for number in range(int(os.environ["DYING_TIMES"])):
        try:
            os.close(os.open(os.environ["DYING_MARKS"] + f"/mark{number}", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            continue
        os.kill(os.getpid(), signal.SIGKILL)

def install(phase):
    if phase == "interpreter":
        return die()
    import multiprocessing.spawn as spawn
    if phase == "unpacking":
        prepare = spawn.prepare
        def prepared(data):
            die()
            prepare(data)
        spawn.prepare = prepared
        return
    from dpsynth._util import workers
    calls = []
    outcome_of = workers.outcome_of
    def outcome(piece):
        calls.append(piece)
        if len(calls) == {"warming": 1, "working": 2, "answered": 3}.get(phase):
            die()
        answer = outcome_of(piece)
        if len(calls) == 2 and phase == "answering":
            die()
        return answer
    workers.outcome_of = outcome
    if phase == "handed":
        workers._follow = die

if "spawn_main" in " ".join(sys.orig_argv) and "DYING_PHASE" in os.environ:
    install(os.environ["DYING_PHASE"])
"""
PHASES = ("interpreter", "unpacking", "handed", "warming", "working", "answering", "answered")


def dying(folder: Path, phase: str, times: int) -> dict[str, str]:
    """Return the environment in which the first workers die in a phase.

    Args:
        folder: for the hook and the marks; a new one for each use.
        phase: one of `PHASES`.
        times: how many workers die.
    """
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(HOOK)
    tested = Path(dpsynth.__file__).parents[1]
    paths = [str(folder), str(tested), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {
        "PYTHONPATH": os.pathsep.join(paths),
        "DYING_PHASE": phase,
        "DYING_TIMES": str(times),
        "DYING_MARKS": str(folder),
    }


def deaths(folder: Path) -> int:
    """Count the workers that died."""
    return len(list(folder.glob("mark*")))


def command(
    folder: Path, words: Sequence[object], environment: dict[str, str], seconds: float = 300
) -> subprocess.CompletedProcess[str]:
    """Run a command of dpsynth; it fails the test if it has not ended in time."""
    line = [sys.executable, "-m", "dpsynth", *map(str, words)]
    try:
        return subprocess.run(
            line,
            cwd=folder,
            env=os.environ | environment,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.fail(f"dpsynth {words[0]} hangs: it has not ended in {seconds:g} s")


@contextmanager
def ends_in_time(name: str, seconds: float = 300) -> Iterator[None]:
    """Fail the test if a command of this process has not ended in time."""

    def hangs(*_: object) -> None:
        pytest.fail(f"dpsynth {name} hangs: it has not ended in {seconds:g} s")

    earlier = signal.signal(signal.SIGALRM, hangs)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, earlier)
