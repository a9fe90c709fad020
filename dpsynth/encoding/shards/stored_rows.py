"""Rows of units one after another in one file, from which batches of units are taken.

Training by DP-SGD draws its batches from all units at once, so they lie in one file, mapped into
memory: a batch reads its own rows and no others. Nothing is padded on the disk.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.cohort import Cohort
from dpsynth.errors import DpsynthError, InputError
from dpsynth.files import create_private, reason

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StoredRows:
    """Codes of all units, on a disk; how many units and rows there are is private.

    Attributes:
        codes: ``[rows, columns]`` uint16, mapped from a file for its owner alone.
        ends: of each unit, the number of rows up to its last, after a 0; ``[units + 1]``.
        rows_per_unit: how many rows a unit has at most.
    """

    codes: npt.NDArray[np.uint16]
    ends: Ints
    rows_per_unit: int

    def __repr__(self) -> str:
        """Show no number: the rows may be real."""
        return short_repr(self, "coded rows of units")

    def __len__(self) -> int:
        """Count the units: private."""
        return len(self.ends) - 1

    @classmethod
    def write(
        cls, folder: Path, parts: Iterable[Cohort], columns: int, rows_per_unit: int
    ) -> StoredRows:
        """Write units, some at a time, into a new file.

        Args:
            folder: for its owner alone, until the rows are not needed any more.
            parts: the units; each of them is in one part.
            columns: how many each part has.
            rows_per_unit: how many rows a unit has at most; public.

        Raises:
            InputError: the file cannot be written, or no room is left.
            DpsynthError: a part has other columns, or a unit has more rows.
        """
        path = folder / f"units-{secrets.token_hex(4)}.codes"
        counts = [np.zeros(1, dtype=np.int64)]
        try:
            with os.fdopen(create_private(path), "wb") as file:
                for part in parts:
                    of_units = part.mask.sum(axis=1, dtype=np.int64)
                    if part.columns != columns or (of_units > rows_per_unit).any():
                        raise DpsynthError("a shard of the coded rows was changed; fit again")
                    file.write(part.codes[part.mask].astype(np.uint16, copy=False).tobytes())
                    counts.append(of_units)
        except OSError as error:
            raise InputError(f"cannot write shards into {folder.parent}: {reason(error)}") from None
        ends = np.cumsum(np.concatenate(counts))
        shape = (int(ends[-1]), columns)
        codes: npt.NDArray[np.uint16] = np.zeros(shape, dtype=np.uint16)
        if codes.size:
            codes = np.memmap(path, dtype=np.uint16, mode="r", shape=shape)
        return cls(codes, ends, rows_per_unit)

    def cohort(self, chosen: Ints) -> Cohort:
        """Take units by their numbers from 0, with all of their rows; private.

        Returns:
            ``[chosen, rows_per_unit, columns]`` codes and their mask, as `read_cohort` lays them
            out.
        """
        starts, counts = self.ends[chosen], self.ends[chosen + 1] - self.ends[chosen]
        places = np.arange(self.rows_per_unit)
        mask = places < counts[:, None]
        codes = np.zeros((*mask.shape, self.codes.shape[1]), dtype=np.uint16)
        codes[mask] = self.codes[(starts[:, None] + places)[mask]]
        return Cohort(codes, mask)
