"""Columns whose cells are missing together: joined, where released pairs say that they are.

A laboratory panel is ordered as a whole, so its values are missing together. A network that meets
each pair of them within its noise still draws rows with a pattern of missing cells that no patient
has: of a panel of twelve values, there are 66 pairs, each a little off.

**What is told.** Let p and q be the released shares of missing cells of columns a and b, r that of
both, and s its standard error. Rows in which a is missing and b is not have the share p - r. That
is not told from none if it is at most `SEEN` s, and it is told from the share p (1 - q) of columns
that are missing independently if it is more than `SEEN` s below. If both hold, then b is missing
wherever a is. Two shares alone refute it, measured pair or not, if p is above q by more than `SEEN`
of their errors. Such links are followed through columns whose pair was not measured, the clearest
ones first. One is left out if it would add, in this way, a link that is refuted.

**What is done.** Weights between the bins of two linked columns make it impossible that one is
missing without the other. The shares of linked columns are made to agree.

**Privacy.** A function of released counts: post-processing (Dwork and Roth 2014, "The Algorithmic
Foundations of Differential Privacy", proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt
import torch

from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.marginals import MergedBins, Released
from dpsynth.models.marginals.projection import SEEN

Floats = npt.NDArray[np.float64]
Truth = npt.NDArray[np.bool_]

IMPOSSIBLE = float(np.log(np.finfo(np.float32).tiny))  # of a logit


@dataclass(frozen=True)
class MissingLinks:
    """Which columns are missing wherever others are.

    Attributes:
        bins: that stands for missing cells, of each column that has one, by its place.
        implied: whether the second column is missing wherever the first is, ``[columns, columns]``.
    """

    bins: dict[int, int]
    implied: Truth

    @classmethod
    def of(cls, released: Released, bins: dict[int, int]) -> MissingLinks:
        """Read the links off released pairs; see the module.

        Args:
            released: what was counted.
            bins: as the attribute.

        Example:
            >>> from dpsynth.models.marginals import Pairs
            >>> pair = np.array([[0.2, 0.0], [0.0, 0.8]])
            >>> pairs = Pairs(((0, 1),), (pair,), (0.01,))
            >>> released = Released((2, 2), np.array([0.2, 0.8, 0.2, 0.8]), pairs)
            >>> MissingLinks.of(released, {0: 0, 1: 0}).implied.tolist()
            [[True, True], [True, True]]
        """
        columns = len(released.sizes)
        implied = np.eye(columns, dtype=bool)
        p, sd = np.zeros((2, columns))
        for place, bin_ in bins.items():
            p[place], sd[place] = released.shares(place)[bin_], released.errors(place)[bin_]
        refuted = p[:, None] - p > SEEN * np.hypot(sd[:, None], sd)
        told = []
        for pair, table, sigma in released.pairs.each():
            if not {*pair} <= bins.keys():
                continue
            both = table[bins[pair[0]], bins[pair[1]]]
            for a, b in (pair, pair[::-1]):
                alone, expected = (p[a] - both) / sigma, p[a] * (1 - p[b]) / sigma
                refuted[a, b] |= alone > SEEN
                if not refuted[a, b] and expected - max(alone, 0.0) > SEEN:
                    told.append((expected - alone, a, b))
        for _, a, b in sorted(told, reverse=True):
            added = np.outer(implied[:, a], implied[b])
            if not (added & refuted).any():
                implied |= added
        return cls(bins, implied)

    def pairs(self) -> Iterator[tuple[int, int]]:
        """Yield the linked columns: the second is missing wherever the first is."""
        for a, b in np.argwhere(self.implied).tolist():
            if a != b:
                yield a, b

    def join(self, network: Network) -> None:
        """Keep a network that draws all its columns to the links.

        Args:
            network: changed in place.
        """
        begin = network.offsets
        for a, b in self.pairs():
            earlier, later = sorted((a, b))
            block = network.skip.weight[
                begin[later] : begin[later + 1], begin[earlier] : begin[earlier + 1]
            ]
            own, before = self.bins[later], self.bins[earlier]
            alone = torch.zeros(block.shape)
            if a == earlier:
                alone[:, before] = IMPOSSIBLE
                alone[own, before] = 0.0
            else:
                alone[own] = IMPOSSIBLE
                alone[own, before] = 0.0
            with torch.no_grad():
                block += alone

    def agreed(self, released: Released) -> Released:
        """Return what was counted with cells that agree with the links.

        Columns that are missing in the same rows get the mean of their shares of missing cells, and
        no column has fewer than another that it is missing with.
        """
        one, offsets = released.one.copy(), released.offsets
        shares = np.zeros(len(released.sizes))
        for place, bin_ in self.bins.items():
            shares[place] = released.shares(place)[bin_]
        same = self.implied & self.implied.T
        means = (same @ shares) / same.sum(axis=1)
        found = (self.implied * means[:, None]).max(axis=0)
        for place, bin_ in self.bins.items():
            own = one[offsets[place] : offsets[place + 1]]
            if found[place] != shares[place] < 1:
                own *= (1 - found[place]) / (1 - shares[place])
                own[bin_] = found[place]
        tables = []
        for (i, j), table in zip(released.pairs.places, released.pairs.tables, strict=True):
            for a, b, cells in ((i, j, table), (j, i, table.T)):
                if self.implied[a, b]:
                    cells = cells.copy()
                    cells[self.bins[a]] = 0.0
                    cells[self.bins[a], self.bins[b]] = found[a]
                    table = cells if a == i else cells.T
            tables.append(table)
        pairs = replace(released.pairs, tables=tuple(tables))
        return replace(released, one=one, pairs=pairs)


def missing_bins(columns: Sequence[MergedBins], nullable: Sequence[bool]) -> dict[int, int]:
    """Return the bin of missing cells of each column that has one of its own, by its place.

    Args:
        columns: their bins.
        nullable: whether the last code of each column stands for a missing cell.

    Example:
        >>> column = MergedBins(np.array([0, 0, 1], dtype=np.uint16), np.array([0.5, 0.4, 0.1]))
        >>> missing_bins([column, column], [False, True])
        {1: 1}
    """
    last = {place: int(columns[place].bin_of[-1]) for place in np.flatnonzero(nullable).tolist()}
    return {
        place: bin_ for place, bin_ in last.items() if (columns[place].bin_of == bin_).sum() == 1
    }
