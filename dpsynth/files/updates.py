"""Lists beside a run that several commands add to: one at a time, so that no entry is lost."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dpsynth._util.arguments import path_of
from dpsynth.errors import InputError
from dpsynth.files.atomic import clear_errors, hold

WAIT_SECONDS = 60.0


@contextmanager
def updating(folder: str | Path) -> Iterator[None]:
    """Hold a folder while a file in it is read, changed and written back.

    The lock is on the folder itself (``flock``): it leaves no file, and ends with its process.
    Where a file system knows no locks, nothing is held.

    Raises:
        InputError: another process holds it for more than a minute, or there is no such folder.
    """
    folder = path_of(folder)
    with clear_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        _wait_for(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


@contextmanager
def held(folder: str | Path) -> Iterator[None]:
    """Hold a folder for as long as a block takes, and wait for nobody.

    Raises:
        InputError: another process holds it, or there is no such folder.
    """
    folder = path_of(folder)
    with clear_errors(folder):
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not hold(descriptor, folder):
            raise InputError(f"another process uses {folder}; wait until it has ended")
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, folder: Path) -> None:
    try:
        import fcntl
    except ImportError:
        return
    end = time.monotonic() + WAIT_SECONDS
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            if time.monotonic() > end:
                raise InputError(
                    f"another process has been writing into {folder} for more than "
                    f"{WAIT_SECONDS:g} seconds; wait until it has ended, and try again"
                ) from None
            time.sleep(0.02)
        except OSError:
            return
