"""Private units as the batches of a network's steps."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.encoding import Cohort
from dpsynth.models.marginals import Binning

Ints = npt.NDArray[np.int64]


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
        counts = np.maximum(cohort.mask.sum(axis=1, keepdims=True), 1)
        return cls(binning.coarsen(cohort), cohort.mask / counts)

    def __len__(self) -> int:
        """Count the units: private."""
        return len(self.bins)

    def batch(self, chosen: Ints) -> tuple[Tensor, Tensor]:
        """Return the rows ``[units, rows, columns]`` int64 and weights of chosen units."""
        rows = torch.from_numpy(self.bins[chosen].astype(np.int64))
        return rows, torch.from_numpy(self.weights[chosen].astype(np.float32))

    def whole(self) -> tuple[Tensor, Tensor]:
        """Return the rows and weights of all units."""
        return self.batch(np.arange(len(self)))
