"""Where the tree of a wide column's counts is cut: heaps stand apart, what is smooth stays smooth.

A cell of many rows could be split into its codes. But if the codes share its rows as evenly as
their lattice points do, their counts tell nothing but noise: a cell of 200 rows in 8 codes, each
with noise of 20 rows, would become a comb that no patient made. So a cell is split where its codes
differ by more than noise does, and only as far.

**Rule.** Let n_c be the noisy counts of the k children of a cell, m_c the rows that they would have
if the rows of the cell were shared by lattice points, and s the standard deviation of the noise.

- At the finest level, a code is a heap if n_c - m_c > `SEEN` s. The largest is taken first, its
  rows are taken out of the cell, and the others are looked at again.
- The others are smooth if the sum of (n_c - m_c)^2 / s^2 is at most d + `ROUGH` sqrt(2 d) with d =
  k - 1: without any difference but noise it is chi-square with d degrees of freedom, whose mean is
  d and whose variance is 2 d. Then the codes between two heaps are one leaf.
- At a coarser level, a cell whose children are smooth is one leaf, unless one of its codes is a
  heap.
- What is smooth and holds more than a bin should is cut evenly, into leaves of that many rows at
  most, so that bins can end between them.
- Columns of histories are split into all codes of such a cell (``alike`` is false): their codes
  stand for things of different kinds, such as half a year, a part of follow-up, or a day of death.
- Otherwise the children are split in turn, with the counts that are closest to theirs among those
  that are not negative and sum to the cell's.

**Privacy.** The counts were released, and the scale of their noise is public: post-processing
(Dwork and Roth 2014, "The Algorithmic Foundations of Differential Privacy", proposition 2.1). Exact
counts must not be given: whether a code is a heap often depends on one patient.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpsynth.models.marginals.projection import SEEN, project

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROUGH = 2.0  # standard deviations of the sum of squares that noise alone has


def cut_tree(
    levels: Sequence[Floats],
    widths: Sequence[int],
    points: Floats,
    *,
    minimum: float,
    most: float,
    sigma: float,
    alike: bool = True,
) -> tuple[Ints, Floats, Floats]:
    """Split cells of more than ``minimum`` rows into their children, where these differ.

    Args:
        levels: counts of each level, the coarsest first, that add up; -inf for a cell of a tail.
        widths: codes that a cell of each level spans; each a multiple of the next, the last 1.
        points: lattice points of each code, ``[codes]``, or what grains make of them; 0 for a code
            that has no row.
        minimum: rows below which a cell stays whole.
        most: rows of a leaf of several codes that are alike.
        sigma: standard deviation of the noise of one count; public.
        alike: whether codes of one cell stand for the same kind of thing.

    Returns:
        The leaf of each code, rising from 0, the rows of each leaf, and the variance of the noise
        in them, in units of that of one count.

    Example:
        >>> fine = np.array([10.0, 12, 95, 9, 8, 11, 0, 3])
        >>> levels = [np.array([148.0]), np.array([126.0, 22.0]), fine]
        >>> leaf_of, rows, _ = cut_tree(
        ...     levels, (8, 4, 1), np.ones(8), minimum=20, most=50, sigma=2.0
        ... )
        >>> leaf_of.tolist(), rows.round().tolist()
        ([0, 0, 1, 2, 3, 4, 5, 6], [21.0, 95.0, 10.0, 8.0, 11.0, 0.0, 3.0])
    """
    leaf_of = np.empty(len(points), dtype=np.int64)
    counts: list[float] = []
    noise: list[float] = []
    finest = len(levels) - 1
    body = np.isfinite(levels[finest])  # a code of a tail gets no row of the body

    def leaf(first: int, last: int, count: float) -> None:
        leaf_of[first:last] = len(counts)
        counts.append(count)
        noise.append(1.0)

    def even(first: int, last: int, count: float) -> None:
        """Make leaves of at most so many rows of codes that are alike."""
        own = np.where(body[first:last], points[first:last], 0.0)
        parts = min(max(math.ceil(count / most), 1), last - first)
        whole = own.sum() if own.any() else 1.0
        middle = (np.cumsum(own) - own / 2) / whole
        part = np.unique((middle * parts).astype(int), return_inverse=True)[1]
        leaf_of[first:last] = len(counts) + part
        rows = np.bincount(part, weights=own) / whole
        counts.extend(rows * count)
        noise.extend(rows)

    def visit(level: int, cell: int, count: float) -> None:
        width = widths[level]
        first, last = cell * width, min((cell + 1) * width, len(points))
        if level == finest or count <= minimum:
            return leaf(first, last, count)
        step = widths[level + 1]
        begin, end = first // step, -(-last // step)
        finer = levels[level + 1][begin:end]
        if not np.isfinite(finer).any():  # a cell in a tail
            return leaf(first, last, count)
        if not alike:
            return children(level, begin, finer, count)
        own = np.add.reduceat(points[first:last], np.arange(0, last - first, step))
        finer = np.where(own > 0, finer, -np.inf)  # no share for codes that have no row
        if not np.isfinite(finer).any():
            return leaf(first, last, count)
        codes = levels[finest][first:last]
        heaps = heaps_among(codes, points[first:last], count, sigma)
        if level + 1 < finest:
            several = np.isfinite(finer).sum() > 1  # one child alone says nothing of its codes
            if several and not heaps.any() and _is_smooth(finer, own, count, sigma):
                return even(first, last, count)
        elif _is_smooth(np.where(heaps, -np.inf, finer), own, count - codes[heaps].sum(), sigma):
            return runs(first, codes, heaps, count)
        return children(level, begin, finer, count)

    def children(level: int, begin: int, finer: Floats, count: float) -> None:
        for child, share in enumerate(project(finer, count)):
            visit(level + 1, begin + child, float(share) * count)

    def runs(first: int, codes: Floats, heaps: npt.NDArray[np.bool_], count: float) -> None:
        """Make a leaf of each heap, and of the codes between two of them."""
        rows = np.maximum(np.where(heaps, codes, 0.0), 0.0)
        rows *= min(1.0, count / max(rows.sum(), 1e-12))
        shared = np.where(heaps | ~np.isfinite(codes), 0.0, points[first : first + len(codes)])
        rows += max(count - rows.sum(), 0.0) * shared / max(shared.sum(), 1e-12)
        kind = np.where(heaps, np.arange(len(codes)) + 2, np.isfinite(codes))
        ends = [0, *(np.flatnonzero(np.diff(kind)) + 1), len(codes)]
        for begin, end in zip(ends[:-1], ends[1:], strict=True):
            even(first + begin, first + end, float(rows[begin:end].sum()))

    for cell, count in enumerate(levels[0]):
        visit(0, cell, float(count))
    return leaf_of, np.array(counts), np.array(noise)


def heaps_among(codes: Floats, points: Floats, count: float, sigma: float) -> npt.NDArray[np.bool_]:
    """Say which codes of a cell hold clearly more rows than their lattice points explain.

    Args:
        codes: their noisy counts; -inf for one in a tail.
        points: lattice points of each.
        count: rows of the cell.
        sigma: standard deviation of the noise of one count.
    """
    found = np.zeros(len(codes), dtype=bool)
    known = np.isfinite(codes)
    while True:
        rest = known & ~found
        if rest.sum() < 2:
            return found
        apart = np.where(rest, codes - _even(points, rest, count - codes[found].sum()), -np.inf)
        largest = int(np.argmax(apart))
        if apart[largest] <= SEEN * sigma:
            return found
        found[largest] = True


def _is_smooth(counts: Floats, points: Floats, count: float, sigma: float) -> bool:
    """Whether counts differ from shares by lattice points by no more than noise does."""
    rest = np.isfinite(counts)
    freedom = int(rest.sum()) - 1
    if freedom < 1:
        return True
    apart = (counts - _even(points, rest, count))[rest]
    limit = freedom + ROUGH * math.sqrt(2 * freedom)
    return float(apart @ apart) <= limit * sigma**2


def _even(points: Floats, rest: npt.NDArray[np.bool_], count: float) -> Floats:
    """Share rows among some codes by their lattice points, ``[codes]``."""
    shared = np.where(rest, points, 0.0)
    return np.asarray(max(count, 0.0) * shared / max(shared.sum(), 1e-12))
