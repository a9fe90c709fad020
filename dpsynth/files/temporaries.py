"""Temporary names beside a destination: held by the process that writes, removed once it is dead.

A name is ``.tmp-TOKEN-NAME``. The process that writes holds a lock (``flock``) on the file or
folder, which the system gives back however the process ends. Whoever gets the lock knows that no
process writes there any more: each new temporary first removes what dead processes left in its
folder. The token says on which machine it was made, because a lock may not reach across machines;
what another machine left is removed there, or by hand.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

PREFIX = ".tmp-"
CLAIM = "claim"  # in the place of a token; see `dpsynth.files.output_claim`
_NAME = re.compile(rf"\.tmp-({CLAIM}|[0-9a-f]{{16}})-.", re.DOTALL)
_ATTEMPTS = 10


@contextmanager
def temporary_file(target: Path, mode: int = 0o666) -> Iterator[Path]:
    """Give an empty file beside ``target``; it is removed if the block is left by an exception.

    Args:
        target: its folder is there, and its name is the end of the temporary one.
        mode: permissions from the start, less those that the umask withholds.
    """

    def make(path: Path) -> int:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _CLOEXEC, mode)
        if mode == 0o600:  # a umask that withholds even more would stop the writer itself
            os.fchmod(descriptor, mode)
        return descriptor

    with _temporary(target, make, _unlink) as path:
        yield path


@contextmanager
def temporary_folder(target: Path, *, private: bool) -> Iterator[Path]:
    """Give an empty folder beside ``target``; it is removed if the block is left by an exception.

    Args:
        target: its folder is there, and its name is the end of the temporary one.
        private: for its owner alone, from the start.
    """

    def make(path: Path) -> int:
        os.mkdir(path, 0o700 if private else 0o777)
        if private:
            os.chmod(path, 0o700)
        return os.open(path, os.O_RDONLY | _CLOEXEC)

    with _temporary(target, make, _remove_tree) as path:
        yield path


def remove_for_good(path: Path) -> bool:
    """Remove a temporary folder that others may still write into; say whether it is gone.

    It gets another name first, so that whoever knows the old one finds nothing to write into.
    """
    away = path
    with suppress(OSError):
        away = path.rename(_named(path.name.split("-", 2)[-1], path.parent))
    for _ in range(_ATTEMPTS):
        _remove_tree(away)
        if not away.exists():
            return True
    return False


def remove_leftovers(folder: Path, name: str = "", *, alone: bool = False) -> None:
    """Remove what dead processes left in a folder; never what a living one writes.

    Args:
        folder: where to look; what cannot be removed stays.
        name: what they were writing; with it, files of a dpsynth without locks are removed too, so
            that nobody else may be writing it.
        alone: no other process writes into the folder at all; then the same holds for every name.
    """
    with suppress(OSError):
        leftovers = [path for path in folder.iterdir() if path.name.startswith(PREFIX)]
        by_token: dict[str, list[Path]] = {}
        for path in leftovers:
            match = _NAME.match(path.name)
            if match is None:
                ending = ".*" if alone else re.escape(name)
                unlocked = rf"\.tmp-[0-9a-f]{{8}}-{ending}"
                if (name or alone) and re.fullmatch(unlocked, path.name, re.DOTALL):
                    _remove(path)
            elif match[1] == CLAIM or _is_ours(match[1]):
                key = path.name if match[1] == CLAIM else match[1]
                by_token.setdefault(key, []).append(path)
        for paths in by_token.values():
            if all(map(_is_abandoned, paths)):  # a database has a journal beside it
                for path in paths:
                    _remove(path)


def is_leftover(path: Path) -> bool:
    """Whether a path has the name of what is being written, or was when a process was killed."""
    return path.name.startswith(PREFIX)


def hold(descriptor: int, path: Path) -> bool:
    """Hold a file or folder that was just opened, until the descriptor is closed.

    Returns:
        False if another process holds it, or removed it meanwhile. True too where the file system
        knows no locks.
    """
    locked = _lock(descriptor)
    return locked is not False and _is_same(descriptor, path)


@contextmanager
def _temporary(
    target: Path, make: Callable[[Path], int], remove: Callable[[Path], None]
) -> Iterator[Path]:
    remove_leftovers(target.parent)
    path, descriptor = target, -1
    try:
        for attempt in range(_ATTEMPTS):
            path = _named(target.name, target.parent)
            descriptor = make(path)
            if hold(descriptor, path) or attempt == _ATTEMPTS - 1:
                break
            os.close(descriptor)  # somebody took it for a leftover before it was held
            descriptor = -1
        yield path
    except BaseException:
        if path != target:
            remove(path)
        raise
    finally:
        if descriptor >= 0:
            os.close(descriptor)


def _named(name: str, folder: Path) -> Path:
    """Return a new temporary name."""
    return folder / f"{PREFIX}{_machine()}{secrets.token_hex(4)}-{name}"


def _is_abandoned(path: Path) -> bool:
    """Whether no living process holds a path, as far as its file system can tell."""
    try:
        descriptor = os.open(path, os.O_RDONLY | _CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return _lock(descriptor) is True and _is_same(descriptor, path)
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> bool | None:
    """Lock without waiting; False if another one has the lock, None if there are no locks here."""
    try:
        import fcntl
    except ImportError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def _is_same(descriptor: int, path: Path) -> bool:
    """Whether a path still names what was opened."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except OSError:
        return False


def _is_ours(token: str) -> bool:
    """Whether a token was made on this machine: by its name, or since it was started."""
    return token[:4] == _machine()[:4] or token[4:8] == _machine()[4:]


@cache
def _machine() -> str:
    """Return eight hexadecimal digits: four of the machine's name, four of its present start."""
    try:
        start = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        start = platform.node()
    return "".join(
        hashlib.sha256(text.encode(errors="replace")).hexdigest()[:4]
        for text in (platform.node(), start)
    )


def _remove(path: Path) -> None:
    (_remove_tree if path.is_dir() and not path.is_symlink() else _unlink)(path)


def _unlink(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _remove_tree(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
