"""Outputs of paid or long work: claimed before it begins, and saved elsewhere if all else fails.

A claim is a hidden file beside the destination, which one process at a time can hold. It takes as
much room as the result will, so that a full disk is known before anything is charged; the room is
given back just before the result is written.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from dpsynth._util.arguments import path_of
from dpsynth.errors import InputError
from dpsynth.files.atomic import (
    CLAIM,
    PREFIX,
    check_vacant,
    clear_errors,
    hold,
    remove_leftovers,
    temporary_file,
)
from dpsynth.files.os_errors import reason

_ATTEMPTS = 10
_NO_ROOM_KEPT = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)  # a file system that cannot


@dataclass(frozen=True)
class Saved:
    """Where a result was saved.

    Attributes:
        target: where it should be.
        place: where it is; None if it could be saved nowhere.
        problem: why it is not at its target; None if it is.
    """

    target: Path
    place: Path | None
    problem: Exception | None

    def require_target(self, noun: str, standing: str) -> None:
        """Say where a result is that could not be saved at its target.

        Args:
            noun: what it is: ``the run``.
            standing: what holds all the same: ``the ledger counts it as charged``.

        Raises:
            InputError: it is elsewhere, or nowhere.
        """
        if self.problem is None:
            return
        if self.place is None:
            raise InputError(
                f"{self.problem}. {noun[0].upper()}{noun[1:]} is lost, because it could not be "
                f"saved anywhere else either. {standing}."
            ) from self.problem
        raise InputError(
            f"{self.problem}. Nothing is lost: {noun} was saved as {self.place}; move it to "
            f"{self.target}, or use it there. {standing}."
        ) from self.problem


@dataclass(frozen=True)
class OutputClaim:
    """A destination that this process alone may write to, and room for what goes there."""

    target: Path
    descriptor: int

    def save(self, write: Callable[[Path], object]) -> Saved:
        """Write the result to its target, or somewhere else; only `write`'s other errors pass.

        Args:
            write: writes all of it to the path that it is given.
        """
        with suppress(OSError):
            os.ftruncate(self.descriptor, 0)
        return save_somewhere(self.target, write)


@contextmanager
def claimed(path: str | Path, room: int = 0) -> Iterator[OutputClaim]:
    """Hold a destination, where there is nothing yet, and room for what will be written there.

    Args:
        path: the file or folder that will be made.
        room: bytes that it will take at most.

    Raises:
        InputError: something is there, another process is about to write it, the folder cannot be
            written to, or the disk is too full.
    """
    target = path_of(path)
    check_vacant(target)
    with clear_errors(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        remove_leftovers(target.parent)
        claim = target.with_name(f"{PREFIX}{CLAIM}-{target.name}")
        descriptor = _opened(claim, target)
    try:
        check_vacant(target)  # whoever held it before may have written it by now
        make_room(descriptor, target, room)
        yield OutputClaim(target, descriptor)
    finally:
        with suppress(OSError):
            claim.unlink()
        os.close(descriptor)


OPEN_FILES = 32
"""Files that a fit may have open at once."""


def check_open_files() -> None:
    """Refuse to begin paid work in a process that may open too few files, by opening as many.

    Raises:
        InputError: with the remedy.
    """
    opened: list[int] = []
    try:
        while len(opened) < OPEN_FILES:
            opened.append(os.open(os.devnull, os.O_RDONLY))
    except OSError as error:
        raise InputError(
            f"a fit may need {OPEN_FILES} open files at once, and this process may not open so "
            f"many: {reason(error)}. Nothing was charged"
        ) from error
    finally:
        for descriptor in opened:
            os.close(descriptor)


def check_room(folder: Path, room: int) -> None:
    """Refuse a folder whose disk has too little room, by taking the room for a moment.

    Args:
        folder: it exists.
        room: bytes that files in it may take together.

    Raises:
        InputError: there is not enough of it.
    """
    probe = folder / "room"
    try:
        descriptor = os.open(probe, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
        try:
            make_room(descriptor, folder, room)
        finally:
            os.close(descriptor)
            probe.unlink()
    except OSError as error:
        raise InputError(f"cannot write into {folder}: {reason(error)}") from error


def check_writable(path: str | Path) -> None:
    """Refuse a destination in whose folder no file can be made, by making one.

    Raises:
        InputError: with the reason and the remedy.
    """
    folder = Path(os.path.abspath(path)).parent
    while not os.path.lexists(folder):
        folder = folder.parent
    with clear_errors(Path(path)):
        try:
            with temporary_file(folder / "check") as probe:
                probe.write_bytes(b"0" * 4096)
                probe.unlink()
        except OSError as error:
            raise InputError(f"cannot write {path}: {reason(error)}") from error


def make_room(descriptor: int, target: Path, room: int) -> None:
    """Take the room that a file will need, before what it will hold is known or may be written.

    Args:
        descriptor: of the file, open for writing.
        target: what messages call it.
        room: bytes.

    Raises:
        InputError: there is not enough of it.
    """
    try:
        if room and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(descriptor, 0, room)
            return
    except OSError as error:
        if error.errno not in _NO_ROOM_KEPT:
            raise InputError(
                f"cannot write {target}, which may take {_megabytes(room)}: {reason(error)}"
            ) from error
    if room > shutil.disk_usage(target.parent).free:
        raise InputError(
            f"cannot write {target}, which may take {_megabytes(room)}: "
            f"{reason(OSError(errno.ENOSPC, ''))}"
        )


def save_somewhere(target: Path, write: Callable[[Path], object]) -> Saved:
    """Write a result to its target; if that fails, beside it, or into a folder of temporary files.

    Args:
        target: where it should be.
        write: writes all of it to the path that it is given.

    Raises:
        Exception: of `write`, if it is neither an `InputError` nor an `OSError`.
    """
    try:
        write(target)
    except (InputError, OSError) as error:
        problem: Exception = error
        if isinstance(error, OSError):
            problem = InputError(f"cannot write {target}: {reason(error)}")
    else:
        return Saved(target, target, None)
    for place in _other_places(target):
        with suppress(InputError, OSError):
            write(place)
            return Saved(target, place, problem)
    return Saved(target, None, problem)


def _other_places(target: Path) -> Iterator[Path]:
    """Yield free paths for a result that has no place at its target."""
    stem = target.name.removesuffix(target.suffix)
    for number in range(1, 100):
        beside = target.with_name(f"{stem}-saved-{number}{target.suffix}")
        if not os.path.lexists(beside):
            yield beside
            break
    for parent in (tempfile.gettempdir, Path.home, Path.cwd):
        with suppress(OSError, RuntimeError):
            folder = Path(tempfile.mkdtemp(prefix="dpsynth-saved-", dir=parent()))  # mode 0700
            yield folder / target.name
            with suppress(OSError):
                folder.rmdir()  # only if nothing came of it


def _opened(claim: Path, target: Path) -> int:
    """Open and hold the file of a claim."""
    for _ in range(_ATTEMPTS):
        descriptor = os.open(claim, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        if hold(descriptor, claim):
            return descriptor
        os.close(descriptor)
        if os.path.lexists(claim):
            break
    raise InputError(
        f"another process is about to write {target}; choose another name, or wait until it has "
        "ended"
    )


def _megabytes(room: int) -> str:
    return f"{max(room / 1e6, 0.1):.1f} MB"
