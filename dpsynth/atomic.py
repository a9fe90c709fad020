"""Files and folders that appear complete or not at all.

Everything is written under a hidden temporary name beside its destination, flushed to the disk, and
renamed. Whatever interrupts the writing, an exception or Ctrl-C, removes the temporary name; only a
killed process leaves one behind (``.tmp-*``), which may be deleted.
"""

from __future__ import annotations

import errno
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from dpsynth.errors import InputError

_PREFIX = ".tmp-"

_REASONS = {
    errno.EACCES: "permission denied; choose a folder that you may write to",
    errno.EPERM: "permission denied; choose a folder that you may write to",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.ENOSPC: "no space is left on the disk; free some, or choose another folder",
    errno.EDQUOT: "the disk quota is used up; free some space, or choose another folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder; correct the path",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.EISDIR: "it is a folder; name a file",
    errno.ENOTSUP: "its file system cannot keep such a file safely; choose another folder",
    errno.EEXIST: "it exists; choose another name, so that nothing is lost",
    errno.ENOTEMPTY: "it exists; choose another name, so that nothing is lost",
}


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """Give a temporary path to write to; it takes the place of ``path`` when the block ends well.

    The temporary file lies in the same folder and ends like ``path`` does, so that writers which
    look at the suffix see the right one. Parent folders are made. An existing file is replaced.

    Raises:
        InputError: the folder cannot be written to, the disk is full, or ``path`` is a folder.
    """
    target = Path(path)
    with _clear_errors(target):
        temporary = _temporary_sibling(target)
        if target.is_dir():
            raise InputError(f"cannot write {target}: {_REASONS[errno.EISDIR]}")
        with _removed_unless_done(temporary, _unlink):
            yield temporary
            _flush(temporary)
            os.replace(temporary, target)
        _flush(target.parent)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Give an empty temporary folder to fill; it becomes ``path`` when the block ends well.

    Raises:
        InputError: something exists at ``path``, its parent cannot be written to, or the disk is
            full.
    """
    target = Path(path)
    check_vacant(target)
    with _clear_errors(target):
        temporary = _temporary_sibling(target)
        with _removed_unless_done(temporary, _remove_tree):
            temporary.mkdir()
            yield temporary
            for folder, _, files in os.walk(temporary):
                for name in files:
                    _flush(Path(folder, name))
                _flush(Path(folder))
            # A rename would silently take the place of an empty folder made meanwhile.
            check_vacant(target)
            os.replace(temporary, target)
        _flush(target.parent)


def remove_leftovers(folder: Path, name: str = "") -> None:
    """Remove what killed processes left of writing ``name`` in a folder; without a name, all.

    Only where no other process can be writing.
    """
    for path in list(folder.glob(f"{_PREFIX}*")):
        if name and path.name != f"{path.name[: len(_PREFIX) + 8]}-{name}":
            continue
        remove = _remove_tree if path.is_dir() and not path.is_symlink() else _unlink
        remove(path)


def is_leftover(path: Path) -> bool:
    """Whether a path has the name of what is being written, or was when a process was killed."""
    return path.name.startswith(_PREFIX)


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write a small file whole; see `atomic_file`."""
    with atomic_file(path) as temporary:
        temporary.write_bytes(content)


def write_new(path: str | Path, content: bytes, *, mode: int = 0o666) -> None:
    """Write a small file whole where there is none; never take the place of one.

    Args:
        path: where; two writers at once cannot both succeed.
        content: all of it.
        mode: permissions, less those that the umask withholds; the file never has others.

    Raises:
        InputError: something exists at ``path``, or the folder cannot be written to.
    """
    target = Path(path)
    check_vacant(target)
    with _clear_errors(target):
        temporary = _temporary_sibling(target)
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            _flush(temporary)
            os.link(temporary, target)  # it fails where a name exists; a rename would not
        finally:
            _unlink(temporary)
        _flush(target.parent)


def check_vacant(path: str | Path) -> None:
    """Refuse a destination that exists or lies where nothing can be written.

    Worth calling before long or paid work, whose result would otherwise have no place to go.

    Raises:
        InputError: with the reason and the remedy.
    """
    target = Path(path)
    with _clear_errors(target):
        if os.path.lexists(target):
            raise InputError(f"{target} exists; choose another name, so that nothing is lost")
        parent = Path(os.path.abspath(target)).parent
        while not os.path.lexists(parent):
            parent = parent.parent
        if not parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(parent))
        effective = os.access in os.supports_effective_ids
        if not os.access(parent, os.W_OK | os.X_OK, effective_ids=effective):
            raise PermissionError(errno.EACCES, "not writable", str(parent))


def check_apart(path: str | Path) -> None:
    """Refuse a place for internal files inside something that others are given.

    Raises:
        InputError: a folder above it holds a run, or a bundle.
    """
    for folder in Path(os.path.abspath(path)).parents:
        for name in ("run.json", "datapackage.json", "privacy.json"):
            if (folder / name).is_file():
                raise InputError(
                    f"{path} lies in {folder}, which holds {name}: what is computed from real rows "
                    "does not go into a run or a bundle; choose another place"
                )


def _temporary_sibling(target: Path) -> Path:
    """Name a hidden path beside ``target``, in a folder that exists."""
    if not target.parent.is_dir():
        check_vacant(target)
        target.parent.mkdir(parents=True, exist_ok=True)
    return target.with_name(f"{_PREFIX}{secrets.token_hex(4)}-{target.name}")


@contextmanager
def _removed_unless_done(temporary: Path, remove: Callable[[Path], None]) -> Iterator[None]:
    """Remove the temporary path when the block is left by any exception, Ctrl-C included."""
    try:
        yield
    except BaseException:
        remove(temporary)
        raise


def _unlink(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def _remove_tree(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)


def _flush(path: Path) -> None:
    """Wait until a file's or a folder's content is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _clear_errors(target: Path) -> Iterator[None]:
    """Word the operating system's refusals as an `InputError` that names the destination.

    An error about another file, one that the block reads, passes through.
    """
    try:
        yield
    except OSError as error:
        if error.errno not in _REASONS or _is_elsewhere(error.filename, target):
            raise
        raise InputError(f"cannot write {target}: {_REASONS[error.errno]}") from error


def _is_elsewhere(filename: object, target: Path) -> bool:
    """Tell whether an error names a file that is not the destination, nor on the way to it."""
    if not isinstance(filename, str | os.PathLike):
        return False
    named, wanted = Path(os.path.abspath(filename)), Path(os.path.abspath(target))
    if named == wanted or named in wanted.parents:
        return False
    beside = wanted.parent
    return not (beside in named.parents and named.relative_to(beside).parts[0].startswith(_PREFIX))
