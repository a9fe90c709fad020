"""Arrays in files for their owner alone, that other processes map into their memory."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
from numpy.lib.format import open_memmap

from dpsynth.errors import DpsynthError, InputError
from dpsynth.files import create_private, reason


def save(path: Path, array: npt.NDArray[Any]) -> None:
    """Write a new file, of mode 0600 from the start.

    Raises:
        InputError: it cannot be written.
    """
    try:
        with os.fdopen(create_private(path), "wb") as file:
            np.save(file, array, allow_pickle=False)
    except OSError as error:
        raise InputError(
            f"cannot write shards into {path.parent.parent}: {reason(error)}"
        ) from None


class Digest:
    """A digest of arrays, one after another: who reads them again finds out whether they changed.

    >>> Digest().add(np.arange(3)).value() == Digest().add(np.arange(3)).value()
    True
    >>> Digest().add(np.arange(3)).value() == Digest().add(np.arange(1, 4)).value()
    False
    """

    def __init__(self) -> None:
        """Nothing was added yet."""
        self._hash = hashlib.blake2b(digest_size=16)

    def add(self, array: npt.NDArray[Any]) -> Self:
        """Add the bytes of an array."""
        self._hash.update(np.ascontiguousarray(array).data)
        return self

    def value(self) -> bytes:
        """Return 16 bytes."""
        return self._hash.digest()


def changed() -> DpsynthError:
    """Say that a file does not hold what was written."""
    return DpsynthError("a shard of the coded rows was changed; fit again")


def mapped(path: Path, rows: int) -> npt.NDArray[Any]:
    """Map a file into memory, to be read only.

    Args:
        path: of the file.
        rows: that it has; at least 1.

    Raises:
        DpsynthError: it is gone, or was changed.
    """
    try:
        array: npt.NDArray[Any] = open_memmap(path, mode="r")  # it refuses objects
    except (OSError, ValueError, EOFError):
        raise DpsynthError("a shard of the coded rows is gone or damaged; fit again") from None
    if len(array) != rows:
        raise changed()
    return array
