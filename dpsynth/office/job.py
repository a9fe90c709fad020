"""One command at work beside the server: it outlives the server, and files say what became of it.

    python -m dpsynth.office.job FOLDER NAME TOKEN ABOUT COMMAND...

A lock on ``NAME.lock`` is held by this process and by the command, so it is free only when both
have ended. ``NAME.json`` says what was started, ``NAME.out`` and ``NAME.err`` hold what the command
wrote, and ``NAME.end`` its exit code. Without that file, a free lock means that the command was
killed.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsynth._util.whole_files import read_whole
from dpsynth.errors import InputError
from dpsynth.files import create_private, write_atomically

PROGRAM = (sys.executable, "-m", "dpsynth")
NONE, RUNNING, ENDED, KILLED = "none", "running", "ended", "killed"
_SHOWN = 64 * 1024  # bytes of what a command wrote, from the end
_PATIENCE = 60.0  # seconds in which a command begins
_MAX = 64 * 2**20  # bytes of a document that a command wrote


@dataclass(frozen=True)
class JobState:
    """What became of a command.

    Attributes:
        state: one of those above.
        code: its exit code, where it ended.
        words: what it wrote to standard error, the end of it.
        about: what the page that started it wanted to know later.
    """

    state: str
    code: int | None = None
    words: str = ""
    about: str = ""


def start(folder: Path, name: str, line: Sequence[str], *, about: str = "") -> None:
    """Start a command, unless it is at work already.

    Args:
        folder: private, for its files.
        name: of the job.
        line: the arguments of ``dpsynth``.
        about: kept for the pages.

    Raises:
        InputError: it is at work already, or does not begin.
    """
    if job_state(folder, name).state == RUNNING:
        raise InputError("this is at work already; wait until it has ended")
    token = secrets.token_hex(8)
    command = [sys.executable, "-m", __name__, str(folder), name, token, about, *PROGRAM, *line]
    subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    end = time.monotonic() + _PATIENCE
    while _started(folder, name).get("token") != token:
        if time.monotonic() > end:
            raise InputError("the command does not start, or another one was quicker; try again")
        time.sleep(0.05)


def job_state(folder: Path, name: str) -> JobState:
    """Return what became of a command."""
    lock = folder / f"{name}.lock"
    started = _started(folder, name)
    if not started or not lock.exists():
        return JobState(NONE)
    words = _tail(folder / f"{name}.err")
    about = str(started["about"])
    if _is_held(lock):
        return JobState(RUNNING, None, words, about)
    end = folder / f"{name}.end"
    killed = JobState(KILLED, None, words, about)
    if not end.exists():
        return killed
    code = read_whole(end, largest=16).decode("ascii", "replace")
    return JobState(ENDED, int(code), words, about) if code.isdecimal() else killed


def output_of(folder: Path, name: str) -> str:
    """Return what a command wrote to standard output."""
    path = folder / f"{name}.out"
    return read_whole(path, largest=_MAX).decode("utf-8", "replace") if path.exists() else ""


def _started(folder: Path, name: str) -> dict[str, Any]:
    path = folder / f"{name}.json"
    with suppress(ValueError, InputError):
        document = json.loads(read_whole(path, largest=2**20)) if path.exists() else {}
        if isinstance(document, dict) and {"token", "about"} <= set(document):
            return document
    return {}


def _tail(path: Path) -> str:
    if not path.exists():
        return ""
    text = read_whole(path, largest=_MAX)[-_SHOWN:].decode("utf-8", "replace")
    return "\n".join(line for line in text.splitlines() if line.strip())


def _is_held(lock: Path) -> bool:
    import fcntl

    descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def _work(folder: Path, name: str, token: str, about: str, command: Sequence[str]) -> int:
    """Hold the lock, run the command, and write down how it ended."""
    import fcntl

    lock = folder / f"{name}.lock"
    with suppress(FileExistsError):
        os.close(create_private(lock))
    descriptor = os.open(lock, os.O_RDWR)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return 2
    streams = []
    for ending in ("end", "out", "err"):
        (folder / f"{name}.{ending}").unlink(missing_ok=True)
        if ending != "end":
            streams.append(create_private(folder / f"{name}.{ending}"))
    document = {"token": token, "about": about}
    write_atomically(folder / f"{name}.json", json.dumps(document).encode(), private=True)
    os.set_inheritable(descriptor, True)
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=streams[0],
        stderr=streams[1],
        pass_fds=(descriptor,),
    )
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    write_atomically(folder / f"{name}.end", str(code).encode(), private=True)
    return 0


if __name__ == "__main__":
    place, job, sign, note, *rest = sys.argv[1:]
    sys.exit(_work(Path(place), job, sign, note, rest))
