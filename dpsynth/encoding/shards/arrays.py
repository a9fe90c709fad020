"""Arrays in files for their owner alone, that other processes map into their memory."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

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
        raise DpsynthError("a shard of the coded rows was changed; fit again")
    return array
