"""The operating system's errors in words: what is wrong, and what to do."""

from __future__ import annotations

import errno
import os

_WRITING = {
    errno.EACCES: "permission denied; choose a folder that you may write to",
    errno.EPERM: "permission denied; choose a folder that you may write to",
    errno.EROFS: "the file system is read-only; choose another folder",
    errno.ENOSPC: "no space is left on the disk; free some, or choose another folder",
    errno.EDQUOT: "the disk quota is used up; free some space, or choose another folder",
    errno.EFBIG: "the file exceeds the size limit here (ulimit -f, or the file system's limit); "
    "raise the limit, or choose another folder",
    errno.ENOTDIR: "a part of the path is a file, not a folder; correct the path",
    errno.ENOENT: "its folder no longer exists; create it again, or choose another one",
    errno.ENAMETOOLONG: "the name is too long; choose a shorter one",
    errno.ELOOP: "its links lead in a circle; correct the path",
    errno.EISDIR: "it is a folder; name a file",
    errno.ENOTSUP: "its file system cannot keep such a file safely; choose another folder",
    errno.EEXIST: "it exists; choose another name, so that nothing is lost",
    errno.ENOTEMPTY: "it exists; choose another name, so that nothing is lost",
    errno.EMFILE: "too many files are open; raise the limit (ulimit -n)",
    errno.EIO: "the disk reports an error (EIO); check it, and choose another folder",
    errno.ESTALE: "the network drive was lost (ESTALE); mount it again, or choose another folder",
}


def reason(error: OSError) -> str:
    """Say why a file could not be written, and what to do; for every error that there is.

    The system's own text is used, which names no file and quotes nothing.
    """
    number = error.errno or 0
    known = _WRITING.get(number)
    if known is not None:
        return known
    return f"{described(error)}; check the disk or drive, and choose another folder"


def described(error: OSError) -> str:
    """Describe an error by the system's text and its name.

    >>> described(OSError(5, "whatever"))
    'Input/output error (EIO)'
    """
    number = error.errno or 0
    name = errno.errorcode.get(number)
    return type(error).__name__ if name is None else f"{os.strerror(number)} ({name})"


def cannot_read(error: Exception) -> str:
    """Say why a file cannot be read, without the error's own text, which may name or quote."""
    if not isinstance(error, OSError):
        return "the system does not allow its name"
    return described(error)
