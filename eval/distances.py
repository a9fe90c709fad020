"""How far rows lie apart, which are nearest, and how dense a table is around a record.

**Metric.** The distance is the heterogeneous Euclidean-overlap metric HEOM of Wilson and Martinez
(Improved Heterogeneous Distance Functions, JAIR 6, 1997, section 2.3): its square is a sum over the
modelled columns,

    (difference / declared range)^2 of two numbers (dates and times too),
    0 of equal categories, 1 of different ones,
    0 where both are missing, 1 where one is.

Ranges are declared, so the scale is public and the same for every table. Numbers are compared as
points of their lattice: differences that are equal on paper are equal here.

**Nearest rows** are exact: candidates by a matrix product in float32, distances in float64. The
product's entries are off by a known error at most (`Product`). So a row can be among the k nearest
only if its entry is within that error of what is needed; all such rows are computed again in
float64, and no other. Most rows are passed over in chunks, by the least entry of each.

The product gives squared distances of all rows of two tables at once, with a bound of its error.
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
Accuracy and Stability of Numerical Algorithms, 2nd ed., 2002, section 3.1). Adding a zero is exact,
so n counts the products that need not vanish. Rounding the entries adds at most 2 v for each
product; n + 4 covers it. Without numeric columns all entries are multiples of 1/2 or 1/4, and
sums are exact.

**Density.** Gaussian kernels on the schema's scale: log of the mean of exp(-d^2 / (2 h^2)) over the
table's rows, d the distance of `Metric`. An attack compares two of them, of the synthetic table and
of people whom the attacker knows (van Breugel et al., Membership Inference Attacks against
Synthetic Data through Overfitting Detection, arXiv 2302.12580, equation 2): where the first is high
without the second, a generator may have overfitted. Each has a width that suits its own table:
known people are often fewer than synthetic rows, and with too narrow a kernel their density would
be noise.

In a table of many columns all rows lie about equally far apart, and a kernel as wide as half of the
nearest distance takes in a large part of the table: the density is then the same for everybody. So
the table's kernel is narrowed until it takes in few rows, by the effective number of rows of its
weights, (sum w)^2 / sum w^2 (Kish, Survey Sampling, 1965, section 11.7), as t-SNE sets its kernels
by a perplexity (van der Maaten and Hinton, JMLR 9, 2008).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.eval.core import TableView, numbers
from dpsynth.schema import in_units

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint16]

CELLS = 2**22  # that `Metric.squared` holds at a time


@dataclass(frozen=True, eq=False)
class Points:
    """Rows as a metric sees them.

    Attributes:
        numbers: steps above the minimum, whole numbers; NaN where missing ``[rows, numeric]``.
        codes: of categories, missing included ``[rows, categorical]``.
    """

    numbers: Floats
    codes: Codes

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.codes)

    def take(self, rows: Ints) -> Points:
        """Return some rows, in the given order."""
        return Points(self.numbers[rows], self.codes[rows])

    def kinds(self) -> Ints:
        """Number the distinct rows from 0 in order of appearance; return each row's number."""
        steps = np.where(np.isnan(self.numbers), -1.0, self.numbers)
        return row_kinds(np.hstack([steps, self.codes]))


@dataclass(frozen=True, eq=False)
class Metric:
    """The distance of one schema.

    Attributes:
        codec: the schema's codes.
        numeric: places of the numeric columns among the modelled ones.
        categorical: places of the others.
        step: of each numeric column, as a share of its declared range.
        top: the largest value of each numeric column, as a share of the range; at most 1.
    """

    codec: Codec
    numeric: tuple[int, ...]
    categorical: tuple[int, ...]
    step: Floats
    top: Floats

    @classmethod
    def of(cls, codec: Codec, skip: Collection[str] = ()) -> Metric:
        """Take the scale of each modelled column from the schema; ``skip`` leaves columns out."""
        numeric, categorical, steps, tops = [], [], [], []
        for place, column in enumerate(codec.schema.modelled):
            lattice = codec.lattice(column.name)
            if column.name in skip:
                continue
            if lattice is None or column.minimum is None or column.maximum is None:
                categorical.append(place)
                continue
            numeric.append(place)
            ends = column.minimum, column.maximum
            low, high = (in_units(end, column.kind) for end in ends)
            ticks = (high - low) * 10**lattice.decimals
            steps.append(float(lattice.stride / ticks) if ticks else 0.0)
            tops.append(float((lattice.points - 1) * lattice.stride / ticks) if ticks else 0.0)
        return cls(codec, tuple(numeric), tuple(categorical), np.array(steps), np.array(tops))

    def points(self, view: TableView) -> Points:
        """Read the rows of a table."""
        steps = np.empty((view.rows, len(self.numeric)))
        for at, place in enumerate(self.numeric):
            column = self.codec.schema.modelled[place]
            lattice = self.codec.lattice(column.name)
            values = numbers(view, column)
            here = ~np.isnan(values)
            steps[:, at] = np.nan
            if lattice is not None:
                steps[here, at] = lattice.positions(values[here])
        return Points(steps, np.ascontiguousarray(view.codes[:, list(self.categorical)]))

    def squared(self, a: Points, rows: Ints, b: Points, others: Ints) -> Floats:
        """Return the squared distances of pairs: of each of ``rows`` to one of ``others``.

        In float64, each as a function of the two rows alone: the same pair gives the same number
        to the last bit, whichever pairs stand beside it.
        """
        distances = np.empty(len(rows))
        batch = max(1, CELLS // max(1, len(self.numeric) + len(self.categorical)))
        for start in range(0, len(rows), batch):
            here = slice(start, start + batch)
            distances[here] = self._squared(a.take(rows[here]), b.take(others[here]))
        return distances

    def _squared(self, a: Points, b: Points) -> Floats:
        apart = ((a.numbers - b.numbers) * self.step) ** 2
        unlike = np.isnan(apart)
        apart[unlike] = (np.isnan(a.numbers) != np.isnan(b.numbers))[unlike]
        total: Floats = apart.sum(axis=1) + (a.codes != b.codes).sum(axis=1)
        return total


def row_kinds(matrix: npt.NDArray[np.generic]) -> Ints:
    """Number the distinct rows of a matrix from 0 in order of appearance; return each row's."""
    matrix = np.ascontiguousarray(matrix)
    if not matrix.shape[1]:
        return np.zeros(len(matrix), dtype=np.int64)
    whole, width = matrix.tobytes(), matrix.shape[1] * matrix.itemsize
    rows = np.empty(len(matrix), dtype=object)
    rows[:] = [whole[start : start + width] for start in range(0, len(whole), width)]
    return np.asarray(pd.factorize(rows)[0], dtype=np.int64)


CHUNK = 128  # rows of the reference that are passed over together, about
NO_ROW = -1


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
        return Neighbours(np.full(empty, np.inf), np.full(empty, NO_ROW))
    kept_rows = _thinned(reference, whose, k)
    search = _Search(metric, queries.take(firsts), reference.take(kept_rows), whose[kept_rows], k)
    squared, rows = search.run()
    rows = np.where(rows >= 0, kept_rows[rows], NO_ROW)
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
        self.rows = np.full((queries.rows, k), NO_ROW)

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
        order = order[row[order] != NO_ROW]
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


WIDTH = 0.5  # of the kernel, in median distances of known people to the table
SEEN = 10.0  # rows of the table that the kernel takes in around a known person, at most
PROBES = 100  # known people by whom the kernel is narrowed
HALVINGS = 12  # steps of the search, of which each halves what is open
MIN_WIDTH = 1e-2  # width where most of them are copied; below, single precision would show


def width_of(metric: Metric, known: Points, table: Points) -> float:
    """Return the kernel's width h, from people who are not attacked."""
    distances = np.sqrt(nearest(metric, known, table).squared[:, 0])
    width = max(MIN_WIDTH, WIDTH * float(np.median(distances)))
    return _narrowed(metric, known, table, width)


def _narrowed(metric: Metric, known: Points, table: Points, width: float) -> float:
    """Return the widest kernel up to ``width`` that takes in few enough rows at the median.

    Where more rows than that are equal, no kernel does, and the width stays.
    """
    probes = known.take(np.unique(np.linspace(0, known.rows - 1, PROBES).astype(np.int64)))
    apart = np.empty((probes.rows, table.rows), dtype=np.float32)
    for rows, columns, block in Product.of(metric, probes, table).blocks():
        apart[rows, columns] = block
    apart -= apart.min(axis=1, keepdims=True)

    def seen(tried: float) -> float:
        weights = np.exp(apart * np.float32(-0.5 / tried**2))
        effective = weights.sum(axis=1, dtype=float) ** 2 / (weights**2).sum(axis=1, dtype=float)
        return float(np.median(effective))

    if seen(width) <= SEEN or seen(MIN_WIDTH) > SEEN:
        return width
    low, high = MIN_WIDTH, width
    for _ in range(HALVINGS):
        middle = (low * high) ** 0.5
        low, high = (middle, high) if seen(middle) <= SEEN else (low, middle)
    return low


def width_among(metric: Metric, known: Points, units: Ints) -> float:
    """Return the width for known people themselves: each one's distance is to another unit."""
    distances = np.sqrt(nearest(metric, known, known, 2, units).squared[:, 1])
    return max(MIN_WIDTH, WIDTH * float(np.median(distances)))


def log_density(metric: Metric, queries: Points, table: Points, width: float) -> Floats:
    """Return the log of a table's kernel density of this width around queries, up to a constant."""
    product = Product.of(metric, queries, table)
    scale = np.float32(0.5 / width**2)
    maximum = np.full(queries.rows, -np.inf)
    total = np.zeros(queries.rows)
    for rows, _, block in product.blocks():
        np.multiply(np.maximum(block, 0.0, out=block), -scale, out=block)
        here = np.maximum(maximum[rows], block.max(axis=1).astype(float))
        block -= here[:, None].astype(np.float32)
        np.exp(block, out=block)
        total[rows] = total[rows] * np.exp(maximum[rows] - here) + block.sum(axis=1, dtype=float)
        maximum[rows] = here
    return np.asarray(maximum + np.log(total) - np.log(table.rows))
