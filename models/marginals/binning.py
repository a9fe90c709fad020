"""The binned columns of a fit: from a cohort's codes to bins, and from drawn bins back to codes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort
from dpsynth.models import Codes, Domain
from dpsynth.models.base import VISITS
from dpsynth.models.marginals.histograms import MergedBins

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Binning:
    """The bins of all columns of a domain.

    Attributes:
        domain: the columns, the hidden one included.
        columns: their bins, in the same order.
    """

    domain: Domain
    columns: tuple[MergedBins, ...]

    @property
    def hidden(self) -> int:
        """Number of hidden columns, 0 or 1."""
        return int(self.domain.features[0].name == VISITS)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Bins of each column."""
        return tuple(column.count for column in self.columns)

    def row_factors(self) -> Floats | None:
        """By how much a row weighs more than a unit, by bin of the hidden column; None without."""
        return row_factors(self.columns[0]) if self.hidden else None

    def coarsen(self, cohort: Cohort) -> npt.NDArray[np.uint16]:
        """Map a cohort's codes to bins, ``[units, rows, columns]``."""
        columns = [column.coarsen(cohort.codes[..., j]) for j, column in enumerate(self.columns)]
        return np.stack(columns, axis=-1)

    def refine(
        self, bins: npt.NDArray[np.integer], rng: np.random.Generator, *, even: bool
    ) -> Codes:
        """Turn binned rows into codes ``[rows, columns]``, leaving the hidden column out."""
        places = range(self.hidden, len(self.columns))
        return np.column_stack([self.columns[j].refine(bins[:, j], rng, even=even) for j in places])

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Lay the bins of all columns end to end, as arrays of a run."""
        return {
            "bin_of": np.concatenate([column.bin_of for column in self.columns]),
            "shares": np.concatenate([column.shares for column in self.columns]),
        }

    @classmethod
    def restore(cls, domain: Domain, arrays: Mapping[str, npt.NDArray[Any]]) -> Binning:
        """Cut what `arrays` laid end to end back into columns."""
        ends = np.cumsum(domain.sizes)[:-1]
        parts = zip(np.split(arrays["bin_of"], ends), np.split(arrays["shares"], ends), strict=True)
        return cls(domain, tuple(MergedBins(bin_of, shares) for bin_of, shares in parts))


def row_factors(bins: MergedBins) -> Floats:
    """Return by how much each bin of the hidden column weighs more in rows than in units."""
    rows = np.arange(1, len(bins.bin_of) + 1)
    weighed = np.bincount(bins.bin_of, weights=bins.shares * rows, minlength=bins.count)
    return np.asarray(np.maximum(weighed / np.maximum(bins.bin_shares, 1e-12), 1.0))
