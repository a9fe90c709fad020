"""Whether other machines see the same files and folders, and have the same programs."""

from __future__ import annotations

import os
import platform
import secrets
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from dpsynth._version import __version__
from dpsynth.errors import InputError

Versions = dict[str, str]
CODING = ("numpy", "pandas", "pyarrow")  # what codes may depend on


@dataclass(frozen=True)
class FileMark:
    """What one machine sees of a file, without reading it.

    Attributes:
        path: absolute.
        size: in bytes.
        changed: when it was last written, in nanoseconds.
    """

    path: Path
    size: int
    changed: int

    @classmethod
    def of(cls, path: str | Path) -> FileMark:
        """Look at a file.

        Raises:
            InputError: it cannot be seen.
        """
        place = Path(path).absolute()
        try:
            seen = place.stat()
        except OSError as error:
            raise InputError(f"{path} cannot be seen: {type(error).__name__}") from None
        return cls(place, seen.st_size, seen.st_mtime_ns)

    def problem(self) -> str | None:
        """Say how this machine sees the file differently; None if it sees it so."""
        try:
            same = FileMark.of(self.path) == self
        except InputError:
            same = False
        if same:
            return None
        return (
            f"the worker on {platform.node()} does not see the same {self.path}; put it into a "
            "folder that all machines share, under the same path"
        )


@dataclass(frozen=True)
class FolderMark:
    """A folder into which workers write.

    Attributes:
        path: absolute; its name is random, so whoever sees it sees this one.
    """

    path: Path

    def problem(self) -> str | None:
        """Try to write and to remove a file for its owner alone; say why this machine cannot."""
        probe = self.path / f"probe-{secrets.token_hex(8)}"
        try:
            os.close(os.open(probe, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
            probe.unlink()
        except OSError as error:
            return (
                f"the worker on {platform.node()} cannot write into {self.path.parent} "
                f"({type(error).__name__}); choose a folder that all machines share, under the "
                "same path, and start workers as the user who runs this"
            )
        return None


@cache
def versions() -> Versions:
    """Return the versions of dpsynth, Python, and what codes cells.

    >>> sorted(versions())
    ['dpsynth', 'numpy', 'pandas', 'pyarrow', 'python']
    """
    found = {"dpsynth": __version__, "python": platform.python_version()}
    for name in CODING:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "missing"
    return found
