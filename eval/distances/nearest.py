"""Nearest rows, exactly: candidates by a matrix product in float32, distances in float64.

The product's entries are off by a known error at most (`products`). So a row can be among the k
nearest only if its entry is within that error of what is needed; all such rows are computed again
in float64, and no other. Most rows are passed over in chunks, by the least entry of each.

Squared distances of all rows of two tables as one matrix product, with a bound of its error.

Write a number as u in [-1/2, 1/2], 0 where missing, m for the indicator of missing, q = u^2 + m.
Then a numeric column's part of the squared distance of x and y is

    q_x + q_y - 2 u_x u_y - m_x q_y - q_x m_y,

exactly: (u_x - u_y)^2 if both are there, 1 if one is, 0 if none is. No points of a Euclidean space
have these distances, since one point would lie at distance 1 from all of a segment; but a bilinear
form does, so the two tables are written in different ways, and one product of matrices gives the
sum over the columns. A category's part is 1 - [x = y], from indicators of the codes that occur in
both tables; where only two codes occur at all, it is a number without missing values. Of a column
with many codes, cells are compared one by one instead and added to the product, which is cheaper
than so many indicators.

**Error.** In float32 a sum of n products in any order, fused or not, is off by at most
gamma_n = n v / (1 - n v) times the sum of the products' absolute values, v = 2^-24 (Higham,
Accuracy and Stability of Numerical Algorithms, 2nd ed., 2002, section 3.1); adding a zero is exact,
so n counts the products that need not vanish. Rounding the entries adds at most 2 v for each
product; n + 4 covers it. Without numeric columns all entries are multiples of 1/2 or 1/4, and sums
are exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.eval.distances.metric import Codes, Metric, Points

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


Singles = npt.NDArray[np.float32]

ROUNDING = 2.0**-24  # of a float32, relative
WHOLE = 2.0**21  # sums of quarters stay exact in a float32 up to here
LEFT, RIGHT = 2_048, 8_192  # rows of a block, at most
ENTRIES = 2**26  # of an encoded block, at most
MANY = 32  # codes that both tables have; of a column with more, cells are compared


@dataclass(frozen=True, eq=False)
class Half:
    """One of two tables, ready to be written as a factor.

    Attributes:
        numbers: u; of missing numbers 0 ``[rows, numbers]``.
        squares: q, of the same columns.
        missing: m, of the same columns.
        codes: number of each cell among the codes that both tables have; -1 for a code that the
            other lacks ``[rows, categorical]``.
        cells: codes of the columns with many ``[rows, wide]``.
    """

    numbers: Singles
    squares: Singles
    missing: npt.NDArray[np.bool_]
    codes: Ints
    cells: Codes

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.numbers)


@dataclass(frozen=True, eq=False)
class Product:
    """The two factors, and what is known of their product.

    Attributes:
        left: one table.
        right: the other.
        left_missing: columns of numbers of which the left table misses some.
        right_missing: those of which the right table does.
        shared: how many codes both tables have, over all categorical columns.
        error: no entry of the product is off by more.
    """

    left: Half
    right: Half
    left_missing: Ints
    right_missing: Ints
    shared: int
    error: float

    @classmethod
    def of(cls, metric: Metric, left: Points, right: Points) -> Product:
        """Write two tables with rows."""
        numbers = [_numbers(metric, points) for points in (left, right)]
        codes: tuple[list[Ints], list[Ints]] = ([], [])
        wide: list[int] = []
        shared = 0
        for place in range(left.codes.shape[1]):
            cells = [points.codes[:, place] for points in (left, right)]
            here = [np.unique(part) for part in cells]
            values = np.union1d(here[0], here[1])
            if len(values) <= 2:  # a code, or two: a number
                for at, part in enumerate(cells):
                    bit = (part == values[0]) - 0.5 if len(values) == 2 else np.zeros(len(part))
                    numbers[at] = np.column_stack([numbers[at], bit])
                continue
            both = np.intersect1d(here[0], here[1])
            if len(both) > MANY:
                wide.append(place)
                continue
            number = np.full(int(values[-1]) + 1, -1)
            number[both] = shared + np.arange(len(both))
            shared += len(both)
            for at, part in enumerate(cells):
                codes[at].append(number[part])
        halves = [
            _half(part, matched, points.codes[:, wide])
            for part, matched, points in zip(numbers, codes, (left, right), strict=True)
        ]
        gaps = [np.flatnonzero(half.missing.any(axis=0)) for half in halves]
        whole = not metric.numeric
        error = _error(halves, gaps, whole)
        return cls(halves[0], halves[1], gaps[0], gaps[1], shared, error)

    @property
    def width(self) -> int:
        """Columns of each factor."""
        gaps = len(self.left_missing) + len(self.right_missing)
        return int(self.left.numbers.shape[1]) + gaps + self.shared + 2

    def left_factor(self, rows: slice) -> Singles:
        """Write some rows of the left table."""
        half, apart = self.left, self.left.codes.shape[1]
        return self._factor(
            half,
            rows,
            half.numbers[rows],
            half.missing[rows][:, self.left_missing],
            -half.squares[rows][:, self.right_missing],
            np.ones(1),
            (apart + half.squares[rows].sum(axis=1, dtype=float))[:, None],
        )

    def right_factor(self, rows: slice) -> Singles:
        """Write some rows of the right table."""
        half = self.right
        return self._factor(
            half,
            rows,
            -2 * half.numbers[rows],
            -half.squares[rows][:, self.left_missing],
            half.missing[rows][:, self.right_missing],
            half.squares[rows].sum(axis=1, dtype=float)[:, None],
            np.ones(1),
            sign=-1.0,
        )

    def _factor(
        self, half: Half, rows: slice, *parts: npt.NDArray[np.generic], sign: float = 1.0
    ) -> Singles:
        """Put the dense columns side by side, then the indicators of codes."""
        codes = half.codes[rows]
        factor = np.zeros((len(codes), self.width), dtype=np.float32)
        start = 0
        for part in parts:
            factor[:, start : start + part.shape[-1]] = part
            start += part.shape[-1]
        row, place = np.nonzero(codes >= 0)
        factor[row, start + codes[row, place]] = sign
        return factor

    def blocks(self) -> Iterator[tuple[slice, slice, Singles]]:
        """Give the product in blocks: rows of the left table, of the right one, and its entries.

        All blocks of the first left rows come first. Entries may be off by `error`, and so fall
        below 0. A block is overwritten by the next one.
        """
        maximum = max(1, ENTRIES // self.width)
        tall, wide = min(LEFT, maximum, self.left.rows), min(RIGHT, maximum, self.right.rows)
        space = np.empty(tall * wide, dtype=np.float32)
        for top in range(0, self.left.rows, tall):
            rows = slice(top, min(top + tall, self.left.rows))
            left = self.left_factor(rows)
            for start in range(0, self.right.rows, wide):
                others = slice(start, min(start + wide, self.right.rows))
                right = self.right_factor(others)
                block = space[: len(left) * len(right)].reshape(len(left), len(right))
                np.matmul(left, right.T, out=block)
                for ours, theirs in zip(self.left.cells.T, self.right.cells.T, strict=True):
                    block += ours[rows, None] != theirs[others]
                yield rows, others, block


def _numbers(metric: Metric, points: Points) -> Floats:
    """Return u of the numeric columns, NaN where missing."""
    return points.numbers * metric.step - metric.top / 2


def _half(numbers: Floats, codes: list[Ints], cells: Codes) -> Half:
    if (np.abs(numbers) > 0.5 + 1e-9).any():
        raise ValueError("a number lies outside the declared bounds of its column")
    missing = np.isnan(numbers)
    filled = np.where(missing, 0.0, numbers)
    squares = (filled**2 + missing).astype(np.float32)
    matched = np.stack(codes, axis=1) if codes else np.zeros((len(numbers), 0), dtype=np.int64)
    return Half(filled.astype(np.float32), squares, missing, matched, cells)


def _error(halves: list[Half], gaps: list[Ints], whole: bool) -> float:
    """Bound how far an entry of the product is off."""
    left, right = halves
    columns, apart = int(left.numbers.shape[1]), int(left.codes.shape[1])
    wide = int(left.cells.shape[1])
    terms = columns + len(gaps[0]) + len(gaps[1]) + apart + wide + 2
    largest = [np.abs(half.numbers).max(axis=0, initial=0.0) for half in halves]
    biases = sum(float(half.squares.sum(axis=1, dtype=float).max()) for half in halves)
    size = 2 * float(largest[0] @ largest[1]) + len(gaps[0]) + len(gaps[1]) + 2 * apart + biases
    size += wide
    if whole and size < WHOLE:
        return 0.0
    relative = (terms + 4) * ROUNDING
    return 1.01 * relative / (1 - relative) * size
