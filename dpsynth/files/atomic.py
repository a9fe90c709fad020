"""Files and folders that appear complete or not at all.

Everything is written under a hidden temporary name beside its destination, flushed to the disk,
and renamed. An exception or a signal that interrupts the writing removes the temporary name. What a
killed process left behind (``.tmp-*``) is removed by the next one that writes into the folder; see
`dpsynth.files.atomic`.

Temporary names beside a destination: held by the process that writes, removed once it is dead.

A name is ``.tmp-TOKEN-NAME``. The process that writes holds a lock (``flock``) on the file or
folder, which the system gives back however the process ends. Whoever gets the lock knows that no
process writes there any more: each new temporary first removes what dead processes left in its
folder. The token says on which machine it was made, because a lock may not reach across machines;
what another machine left is removed there, or by hand.
"""

from __future__ import annotations

import errno
import hashlib
import os
import platform
import re
import secrets
import shutil
import stat
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from dpsynth._util.arguments import path_of
from dpsynth.errors import InputError
from dpsynth.files.os_errors import reason

PRIVATE = 0o600  # the mode of a file for its owner alone


@contextmanager
def atomic_file(
    path: str | Path, *, private: bool = False, new: bool = False, mode: int = 0o666
) -> Iterator[Path]:
    """Give a temporary file to write to; it takes the place of ``path`` when the block ends well.

    The temporary file lies in the same folder and ends like ``path`` does, so that writers which
    look at the suffix see the right one. Parent folders are made.

    Args:
        path: the destination; an existing file is replaced.
        private: for its owner alone, from the start, whatever the umask is.
        new: never take the place of a file; of two writers at once, one fails.
        mode: permissions of a file that is not private, less those that the umask withholds.

    Raises:
        InputError: the file cannot be written, or ``path`` is a folder, a pipe or a device.
    """
    target = path_of(path)
    with clear_errors(target):
        _make_parent(target)
        _require_replaceable(target)
        with temporary_file(target, PRIVATE if private else mode) as temporary:
            yield temporary
            _flush(temporary)
            (_take_free_name if new else os.replace)(temporary, target)
        _flush(target.parent)


@contextmanager
def atomic_folder(
    path: str | Path, *, private: bool = False, replaced: Collection[str] = ()
) -> Iterator[Path]:
    """Give an empty temporary folder to fill; it becomes ``path`` when the block ends well.

    Args:
        path: the destination.
        private: for its owner alone, from the start; so is every file in it, see `create_private`.
        replaced: names of files; a folder that is there and holds no others is replaced.

    Raises:
        InputError: something else exists at ``path``, or the folder cannot be written.
    """
    target = path_of(path)
    check_vacant(target, replaced)
    with clear_errors(target):
        _make_parent(target)
        with temporary_folder(target, private=private) as temporary:
            try:
                yield temporary
            except InputError as error:  # of a file within: it has not the name that it would get
                words = str(error).replace(str(temporary), str(target))
                raise (InputError(words) if words != str(error) else error) from error.__cause__
            for folder, _, files in os.walk(temporary):
                for name in files:
                    _flush(Path(folder, name))
                _flush(Path(folder))
            # A rename would silently take the place of an empty folder made meanwhile.
            check_vacant(target, replaced)
            if replaced and os.path.lexists(target):
                _exchange(temporary, target)
            else:
                os.replace(temporary, target)
        _flush(target.parent)


def create_private(path: str | Path) -> int:
    """Make an empty file for its owner alone, whatever the umask is; return its descriptor."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    os.fchmod(descriptor, PRIVATE)
    return descriptor


def write_private(path: str | Path, content: bytes) -> None:
    """Write a new file for its owner alone, within a folder that appears whole."""
    with os.fdopen(create_private(path), "wb") as file:
        file.write(content)


def write_atomically(path: str | Path, content: bytes, *, private: bool = False) -> None:
    """Write a small file whole; see `atomic_file`."""
    with atomic_file(path, private=private) as temporary:
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
    check_vacant(path)
    with atomic_file(path, new=True, private=mode == PRIVATE, mode=mode) as temporary:
        temporary.write_bytes(content)


def check_vacant(path: str | Path, replaced: Collection[str] = ()) -> None:
    """Refuse a destination that exists or lies where nothing can be written.

    Worth calling before long work; before paid work, `dpsynth.files.output_claim` does more.

    Args:
        path: the destination.
        replaced: names of files; a folder that holds no others may be there.

    Raises:
        InputError: with the reason and the remedy.
    """
    target = path_of(path)
    with clear_errors(target):
        if os.path.lexists(target) and not replaced:
            raise InputError(f"{target} exists; choose another name, so that nothing is lost")
        if os.path.lexists(target) and not _holds_only(target, replaced):
            raise InputError(
                f"{target} exists and is no folder of such files alone, so it is not replaced; "
                "choose another name"
            )
        parent = Path(os.path.abspath(target)).parent
        while not os.path.lexists(parent):
            parent = parent.parent
        if not parent.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "not a folder", str(parent))
        effective = os.access in os.supports_effective_ids
        if not os.access(parent, os.W_OK | os.X_OK, effective_ids=effective):
            raise PermissionError(errno.EACCES, "not writable", str(parent))


@contextmanager
def clear_errors(target: Path) -> Iterator[None]:
    """Word the operating system's refusals as an `InputError` that names the destination.

    An error about another file, one that the block reads, passes through.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or _is_elsewhere(error.filename, target):
            raise
        raise InputError(f"cannot write {target}: {reason(error)}") from error
    except RecursionError:
        raise InputError(
            f"cannot write {target}: the path has too many folders; choose a shorter path"
        ) from None


def _make_parent(target: Path) -> None:
    if not target.parent.is_dir():
        check_vacant(target)
        target.parent.mkdir(parents=True, exist_ok=True)


def _require_replaceable(target: Path) -> None:
    """Refuse to put a file in the place of a folder, a pipe or a device."""
    with suppress(FileNotFoundError):
        kind = os.lstat(target).st_mode
        if stat.S_ISDIR(kind) or target.is_dir():
            raise IsADirectoryError(errno.EISDIR, "a folder", str(target))
        if not stat.S_ISREG(kind) and not stat.S_ISLNK(kind):
            raise InputError(
                f"cannot write {target}: it is a pipe or a device, which would be replaced; name a "
                "file"
            )


def _holds_only(target: Path, names: Collection[str]) -> bool:
    """Whether a path is a folder, and no link, of plain files with some of these names alone."""
    if target.is_symlink() or not target.is_dir():
        return False
    with os.scandir(target) as entries:
        return all(
            entry.name in names and entry.is_file(follow_symlinks=False) for entry in entries
        )


def _exchange(temporary: Path, target: Path) -> None:
    """Put a folder in the place of another, which is removed.

    No system call of Python exchanges two folders: if the process is killed between both renames,
    neither is at ``target``, and what is left of them is a temporary.
    """
    with temporary_folder(target, private=True) as away:
        os.replace(target, away)
        try:
            os.replace(temporary, target)
        except BaseException:
            os.replace(away, target)
            raise
        remove_for_good(away)


def _take_free_name(temporary: Path, target: Path) -> None:
    """Rename, and fail where the name is taken; a plain rename would take the place of a file."""
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK):
            raise
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL))  # no links here
        os.replace(temporary, target)
    else:
        os.unlink(temporary)


def _flush(path: Path) -> None:
    """Wait until a file's or a folder's content is on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _is_elsewhere(filename: object, target: Path) -> bool:
    """Tell whether an error names a file that is not the destination, nor on the way to it."""
    if not isinstance(filename, str | os.PathLike):
        return False
    named, output = Path(os.path.abspath(filename)), Path(os.path.abspath(target))
    if named == output or named in output.parents:
        return False
    beside = output.parent
    return not (beside in named.parents and named.relative_to(beside).parts[0].startswith(PREFIX))


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
