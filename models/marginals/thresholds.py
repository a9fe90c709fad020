"""A bin that a threshold of another column cuts: its codes follow the values of that column.

Hypotension may mean a systolic pressure below 100. A bin from 96 to 103 then holds two kinds of
rows: those with it have 96 to 99, the others 100 to 103. Scores within bins (`within_bins`) are
smooth, and would mix them. But the bins on both sides tell: nearly all rows of the bin below have
hypotension, and nearly none of the bin above.

**Rule.** Let D(b) be the distribution of another column among the rows of bin b. If D(b - 1) and
D(b + 1) overlap by at most `OVERLAP`, that column has a threshold within b. A value of it that is
likelier below than above belongs to the lower part of b, which has as many rows as such values have
in b. Of several columns with a threshold in b, the one whose distributions overlap least is taken.
The first and the last ordered bin have no neighbour on one side, and are not cut.

**Privacy.** A function of the mixture, which was fitted to released counts: post-processing (Dwork
and Roth 2014, "The Algorithmic Foundations of Differential Privacy", proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.models import Domain
from dpsynth.models.marginals.bin_scores import NOTHING, ordered_bins
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.models.marginals.product_mixture import Products

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

OVERLAP = 0.05  # of the distributions on both sides of a threshold
MOST = 32  # bins of a column that may cut others: shapes of a run follow from public facts
NONE = np.iinfo(np.uint16).max  # in the place of a column


@dataclass(frozen=True)
class Thresholds:
    """Which bins are cut, by which column, and where.

    Attributes:
        partners: of each bin of all columns, end to end, what column cuts it, or `NONE`, ``[D]``.
        below: the share of the rows of each bin in its lower part, ``[D]``.
        lower: which bins of the partner belong to the lower part, ``[D, MOST]``.
    """

    partners: npt.NDArray[np.uint16]
    below: npt.NDArray[np.float32]
    lower: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, products: Products, domain: Domain, columns: Sequence[MergedBins]) -> Thresholds:
        """Find the bins that thresholds of other columns cut.

        Args:
            products: the mixture, fitted to released counts.
            domain: the columns, the hidden one included.
            columns: their bins.
        """
        sizes = [column.count for column in columns]
        found = cls.none(sizes)
        least = np.full(sum(sizes), OVERLAP)
        for place, (feature, column) in enumerate(zip(domain.features, columns, strict=True)):
            last = int(ordered_bins(column, feature.cells).sum())
            if last <= 2:
                continue
            # two bins of share s or more with overlap o make a pair at least 2 s (1 - o) dependent;
            # half of that leaves room for rounding
            needed = (1 - OVERLAP) * float(products.shares[place][:last].min())
            for other in np.flatnonzero(products.dependence[place] >= needed).tolist():
                if other != place and sizes[other] <= MOST:
                    table = products.pair(place, other)[:last]
                    found._cut(products.offsets[place], other, table, least)
        return found

    @classmethod
    def none(cls, sizes: Sequence[int]) -> Thresholds:
        """Cut no bin of columns of so many bins."""
        bins = sum(sizes)
        partners = np.full(bins, NONE, dtype=np.uint16)
        below, lower = np.zeros(bins, dtype=np.float32), np.zeros((bins, MOST), dtype=np.uint8)
        return cls(partners, below, lower)

    def _cut(self, begin: int, other: int, table: Floats, least: Floats) -> None:
        """Cut the bins of a column by another one, in place, where it cuts them more clearly.

        Args:
            begin: first bin of the column, among all.
            other: place of the other column.
            table: shares of its bins and of those of the other one, ``[ordered bins, bins]``.
            least: overlap of the clearest threshold of each bin so far, ``[D]``.
        """
        whole = table.sum(axis=1, keepdims=True)
        rows = table / np.maximum(whole, NOTHING)
        overlaps = np.minimum(rows[:-2], rows[2:]).sum(axis=1)
        held = (whole[:-2, 0] > NOTHING) & (whole[2:, 0] > NOTHING)
        for place in np.flatnonzero(held & (overlaps < least[begin + 1 :][: len(overlaps)])):
            own = begin + 1 + int(place)
            least[own] = overlaps[place]
            lower = rows[place] > rows[place + 2]
            self.partners[own], self.below[own] = other, rows[place + 1][lower].sum()
            self.lower[own] = 0
            self.lower[own, : len(lower)] = lower

    def sides(self, rows: Ints, begin: int, own: Ints) -> tuple[Ints, Floats, Floats]:
        """Say in which part of its bin the code of each row lies.

        Args:
            rows: bins of all columns, ``[rows, columns]``.
            begin: first bin of the column, among all.
            own: bin of each row in the column.

        Returns:
            0 for a row whose bin is not cut, 1 for the lower and 2 for the upper part, and where
            this part begins and ends, as shares of the bin.
        """
        places = begin + own
        partners = self.partners[places]
        is_cut = partners != NONE
        values = rows[np.arange(len(rows)), np.where(is_cut, partners, 0)]
        is_lower = self.lower[places, np.where(is_cut, values, 0)] > 0
        below = self.below[places].astype(np.float64)
        side = np.where(is_cut, np.where(is_lower, 1, 2), 0)
        return side, np.where(side == 2, below, 0.0), np.where(side == 1, below, 1.0)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Give them as arrays of a run, whose shapes follow from the numbers of bins alone."""
        return {f"thresholds.{name}": array for name, array in vars(self).items()}

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]], sizes: Sequence[int]) -> Thresholds:
        """Rebuild them; none for a run that has none."""
        if "thresholds.partners" not in arrays:
            return cls.none(sizes)
        names = ("partners", "below", "lower")
        return cls(*(arrays[f"thresholds.{name}"] for name in names))
