"""Nearest rows, exactly: candidates by a matrix product in float32, distances in float64.

The product's entries are off by a known error at most (`products`). So a row can be among the k
nearest only if its entry is within that error of what is needed; all such rows are computed again
in float64, and no other. Most rows are passed over in chunks, by the least entry of each.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.eval.distances.matrix_product import Product, Singles
from dpsynth.eval.distances.metric import Metric, Points

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CHUNK = 128  # rows of the reference that are passed over together, about
NONE = -1


@dataclass(frozen=True, eq=False)
class Neighbours:
    """The k nearest rows of each query, or of k different owners, nearest first.

    Attributes:
        squared: their squared distances ``[queries, k]``; infinite where there are fewer than k.
        rows: their numbers in the reference; -1 where there are fewer.
    """

    squared: Floats
    rows: Ints


def nearest(
    metric: Metric,
    queries: Points,
    reference: Points,
    k: int = 1,
    owners: Ints | None = None,
) -> Neighbours:
    """Find the k nearest rows of a reference; exact up to float64's rounding of a distance.

    Of rows at the same distance it takes some, always the same ones.

    Args:
        metric: the distance.
        queries: rows whose neighbours are sought.
        reference: rows among which they are sought.
        k: how many of each.
        owners: the unit of each row of the reference; where given, the neighbours are those of k
            different units, each with its own nearest row.
    """
    if k < 1:
        raise ValueError("at least one neighbour")
    whose = (
        np.arange(reference.rows) if owners is None else np.unique(owners, return_inverse=True)[1]
    )
    _, firsts, kinds = np.unique(queries.kinds(), return_index=True, return_inverse=True)
    if not (len(firsts) and reference.rows):
        empty = (queries.rows, k)
        return Neighbours(np.full(empty, np.inf), np.full(empty, NONE))
    kept_rows = _thinned(reference, whose, k)
    search = _Search(metric, queries.take(firsts), reference.take(kept_rows), whose[kept_rows], k)
    squared, rows = search.run()
    rows = np.where(rows >= 0, kept_rows[rows], NONE)
    return Neighbours(squared[kinds], rows[kinds])


def _thinned(reference: Points, whose: Ints, k: int) -> Ints:
    """Return the rows that are needed, owner by owner: of equal rows, one for each of k owners."""
    order = np.lexsort((np.arange(reference.rows), whose))
    kinds = reference.kinds()[order]
    pairs = kinds * (int(whose.max()) + 1) + whose[order]
    order = order[np.sort(np.unique(pairs, return_index=True)[1])]
    kinds = reference.take(order).kinds()
    by_kind = np.argsort(kinds, kind="stable")
    return np.asarray(order[np.sort(by_kind[_ranks(kinds[by_kind]) < k])])


def _ranks(groups: Ints) -> Ints:
    """Number the members of each group from 0; groups stand together."""
    _, starts, counts = np.unique(groups, return_index=True, return_counts=True)
    return np.arange(len(groups)) - np.repeat(starts, counts)


class _Search:
    """The k best so far, of each query: one block of the product after the other."""

    def __init__(
        self, metric: Metric, queries: Points, reference: Points, owners: Ints, k: int
    ) -> None:
        self.metric, self.queries, self.reference = metric, queries, reference
        self.owners, self.k = owners, k
        self.squared = np.full((queries.rows, k), np.inf)
        self.rows = np.full((queries.rows, k), NONE)

    def run(self) -> tuple[Floats, Ints]:
        """Search; return squared distances and rows."""
        product = Product.of(self.metric, self.queries, self.reference)
        for queries, others, block in product.blocks():
            query, row = self._candidates(queries.start, others, block, product.error)
            if len(query):
                apart = self.metric.squared(self.queries, query, self.reference, row)
                self._merge(query, row, apart)
        return self.squared, self.rows

    def _candidates(
        self, first: int, others: slice, block: Singles, error: float
    ) -> tuple[Ints, Ints]:
        """Return all pairs of a block that may be among the k best.

        The least entries of k chunks belong to k owners, since no two chunks share one; so the
        k-th of them, plus the error, bounds the k-th best distance from above.
        """
        starts = _chunks(self.owners[others])
        minimum = np.minimum.reduceat(block, starts, axis=1)
        best = self.squared[first : first + len(block), -1]
        limit = np.nextafter(best + error, -np.inf)  # what is only as near changes nothing
        if self.k <= len(starts):
            kth = np.partition(minimum, self.k - 1, axis=1)[:, self.k - 1]
            limit = np.minimum(limit, kth + 2 * error)
        query, chunk = np.nonzero(minimum <= limit[:, None])
        sizes = np.diff(starts, append=block.shape[1])[chunk]
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        query, row = np.repeat(query, sizes), np.repeat(starts[chunk], sizes) + within
        near = block[query, row] <= limit[query]
        return first + query[near], others.start + row[near]

    def _merge(self, query: Ints, row: Ints, apart: Floats) -> None:
        """Enter candidates: of each owner the nearest, of those the k nearest."""
        again = np.unique(query)
        query = np.concatenate([query, np.repeat(again, self.k)])
        row = np.concatenate([row, self.rows[again].ravel()])
        apart = np.concatenate([apart, self.squared[again].ravel()])
        order = np.lexsort((row, apart, query))
        order = order[row[order] != NONE]
        pairs = query[order] * (int(self.owners.max()) + 1) + self.owners[row[order]]
        order = order[np.sort(np.unique(pairs, return_index=True)[1])]
        rank = _ranks(query[order])
        order, rank = order[rank < self.k], rank[rank < self.k]
        self.squared[query[order], rank] = apart[order]
        self.rows[query[order], rank] = row[order]


def _chunks(owners: Ints) -> Ints:
    """Return where chunks start, of about `CHUNK` rows, such that no two share an owner."""
    borders = np.concatenate([[0], 1 + np.flatnonzero(np.diff(owners))])
    return np.asarray(borders[np.unique(borders // CHUNK, return_index=True)[1]])
