"""Private units as the batches of a network's steps: in memory, or on a disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.encoding import AnyRows, Cohort, ShardedRows, StoredRows, in_memory
from dpsynth.models.marginals import Binning

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]


class Batches(Protocol):
    """Private units, of which some are taken for a step."""

    def __len__(self) -> int:
        """Count the units: private."""
        ...

    def batch(self, chosen: Ints) -> tuple[Any, Tensor]:
        """Return the rows of chosen units, as their network takes them, and their weights."""
        ...


@dataclass(frozen=True)
class Units:
    """Binned rows of private units, weighed as the histograms weigh them: a unit counts 1.

    Attributes:
        bins: ``[units, rows, columns]``.
        weights: of each row in the loss, ``[units, rows]``: one over the unit's rows; 0 is padding.
    """

    bins: npt.NDArray[np.uint16]
    weights: npt.NDArray[np.float64]

    @classmethod
    def of(cls, cohort: Cohort, binning: Binning) -> Units:
        """Bin a cohort."""
        return cls(binning.coarsen(cohort), _weights(cohort.mask))

    def __len__(self) -> int:
        """Count the units: private."""
        return len(self.bins)

    def batch(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """Return the rows ``[units, rows, columns]`` int64 and weights of chosen units."""
        return _tensors(self.bins[chosen], self.weights[chosen])

    def whole(self) -> tuple[Tensor, Tensor]:
        """Return the rows and weights of all units."""
        return self.batch(np.arange(len(self)))


@dataclass(frozen=True)
class StoredUnits:
    """The same of units whose rows are on a disk: a batch reads its own rows, and no others.

    Attributes:
        rows: binned; a unit has one number, whatever its rows.
    """

    rows: StoredRows

    @classmethod
    def of(cls, rows: ShardedRows, binning: Binning) -> StoredUnits:
        """Bin the rows of shards into one file beside them."""

        def binned() -> Iterator[Cohort]:
            for part in rows.cohorts():
                yield Cohort(binning.coarsen(part), part.mask)

        return cls(
            StoredRows.write(rows.folder, binned(), len(binning.columns), rows.rows_per_unit)
        )

    def __len__(self) -> int:
        """Count the units: private."""
        return len(self.rows)

    def batch(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """Return the rows ``[units, rows, columns]`` int64 and weights of chosen units."""
        some = self.rows.cohort(chosen)
        return _tensors(some.codes, _weights(some.mask))


def units_of(rows: AnyRows, binning: Binning) -> Units | StoredUnits:
    """Bin private rows, where they are: in memory, or in shards.

    Raises:
        InputError: they can only be counted where they lie, or no room is left for them.
    """
    if isinstance(rows, ShardedRows):
        return StoredUnits.of(rows, binning)
    return Units.of(in_memory(rows), binning)


def _weights(mask: Bools) -> npt.NDArray[np.float64]:
    """Share the weight 1 of each unit among its rows."""
    shares: npt.NDArray[np.float64] = mask / np.maximum(mask.sum(axis=1, keepdims=True), 1)
    return shares


def _tensors(
    bins: npt.NDArray[np.uint16], weights: npt.NDArray[np.float64]
) -> tuple[Tensor, Tensor]:
    return torch.from_numpy(bins.astype(np.int64)), torch.from_numpy(weights.astype(np.float32))
