"""Files that are read whole: plain files of a limited size, whatever a path leads to.

A path may lead to a pipe, which waits for ever, or to a device that never ends. So the kind of a
file is known before it is opened, and no more of it is read than its reader allows.
"""

from __future__ import annotations

import csv
import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dpsynth.errors import DpsynthError, InputError

_FLAGS = sum(getattr(os, name, 0) for name in ("O_CLOEXEC", "O_NONBLOCK", "O_NOCTTY", "O_BINARY"))


def read_whole(
    path: str | Path,
    *,
    largest: int,
    noun: str = "",
    never: str = "",
    error: type[DpsynthError] = InputError,
    links: bool = True,
) -> bytes:
    """Read a plain file of at most ``largest`` bytes.

    Args:
        path: the file.
        largest: bytes; no more are read.
        noun: what kind of file it is, for messages: ``policy file``.
        never: what is never so large: ``a policy is not``.
        error: the class that is raised.
        links: whether a symbolic link is followed.

    Raises:
        DpsynthError: of this class: it is missing, not a plain file, too large, or cannot be read.
    """
    require_plain(path, largest=largest, noun=noun, never=never, error=error, links=links)
    name = f"{noun} {path}".strip()
    flags = os.O_RDONLY | _FLAGS | (0 if links else getattr(os, "O_NOFOLLOW", 0))
    try:
        with os.fdopen(os.open(path, flags), "rb") as file:
            opened = os.fstat(file.fileno())
            if not stat.S_ISREG(opened.st_mode):  # another one than a moment ago
                raise error(_not_plain(name, links))
            content = _read(file, min(opened.st_size, largest) + 1, largest)
    except OSError as problem:
        raise error(f"{name} cannot be read: {_reason(problem)}") from None
    if len(content) > largest:
        raise error(_too_large(name, largest, never))
    return content


def require_plain(
    path: str | Path,
    *,
    largest: int | None = None,
    noun: str = "",
    never: str = "",
    error: type[DpsynthError] = InputError,
    links: bool = True,
) -> None:
    """Refuse what is missing, not a plain file (a folder, a pipe, a device), or too large.

    Args:
        path: the file; it is not opened.
        largest: bytes; no limit if None.
        noun: as of `read_whole`, like those that follow.
        never: what is never so large.
        error: the class that is raised.
        links: whether a symbolic link is followed.

    Raises:
        DpsynthError: of this class, with the path and the reason.
    """
    name = f"{noun} {path}".strip()
    try:
        status = os.stat(path, follow_symlinks=links)
    except FileNotFoundError:
        missing = "does not exist; correct the path" if links else "is missing"
        raise error(f"{name} {missing}") from None
    except (OSError, ValueError) as problem:  # ValueError: a null byte, or half a character
        raise error(f"{name} cannot be read: {_reason(problem)}") from None
    if not stat.S_ISREG(status.st_mode):
        raise error(_not_plain(name, links))
    if largest is not None and status.st_size > largest:
        raise error(_too_large(name, largest, never))


@contextmanager
def csv_cells_up_to(length: int) -> Iterator[None]:
    """Let the csv module read cells of so many characters; then of as many as before.

    Its limit belongs to the process: one that stayed would change what every other reader refuses.
    """
    before = csv.field_size_limit(length)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _read(file: BinaryIO, expected: int, largest: int) -> bytes:
    """Read a file, and at most one byte more than ``largest``.

    Python reserves as many bytes as are asked for, however few there are. So it is asked for those
    that the file has, and again for as many while it grows.
    """
    parts, count = [], 0
    while part := file.read(min(expected, largest + 1 - count)):
        parts.append(part)
        count += len(part)
    return b"".join(parts)


def _not_plain(name: str, links: bool) -> str:
    what = "name a file, not a folder, a pipe or a device"
    return f"{name} is not a plain file; {what if links else 'links and pipes are not followed'}"


def _too_large(name: str, largest: int, never: str) -> str:
    return f"{name} is larger than {_size(largest)}" + (f"; {never}" if never else "")


def _size(count: int) -> str:
    """Write a limit.

    >>> _size(2**22), _size(2**30), _size(2**14)
    ('4 MiB', '1 GiB', '16 KiB')
    """
    for unit, bytes_ in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= bytes_:
            return f"{count // bytes_} {unit}"
    return f"{count} bytes"


def _reason(problem: Exception) -> str:
    """Word an error by the system's text, which quotes nothing."""
    if not isinstance(problem, OSError):
        return "the system does not allow its name"
    number = problem.errno or 0
    return f"{os.strerror(number)} ({errno.errorcode.get(number, number)})"
