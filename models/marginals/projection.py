"""Noisy counts made a histogram: nothing below zero, a given total, and levels that add up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

SEEN = 3.0  # standard deviations of the noise from which on a count is told from none


def project(histogram: npt.ArrayLike, total: float) -> Floats:
    """Return the closest (L2) non-negative counts with the given total, as shares that sum to 1.

    Clipping at zero alone would leave the positive half of the noise of every empty cell, and a
    wide column has many; the projection onto the simplex lowers all cells by one threshold first
    (Duchi et al. 2008, "Efficient projections onto the l1-ball", section 3).
    """
    counts = np.asarray(histogram, dtype=np.float64)
    falling = np.sort(counts)[::-1]
    surplus = (np.cumsum(falling) - total) / np.arange(1, len(counts) + 1)
    last = int(np.flatnonzero(falling > surplus)[-1])
    shares = np.maximum(counts - surplus[last], 0.0)
    shares = shares / shares.sum()
    return np.asarray(shares, dtype=np.float64)


def consistent(
    levels: Sequence[Floats], widths: Sequence[int], some: npt.NDArray[np.bool_] | None = None
) -> None:
    """Make noisy counts of a tree add up, in place.

    Upwards, a node becomes the average of its own count and the sum of its children, weighed by
    their precision; downwards, what a parent has more than its children is spread over them, in
    proportion to their variances. A leaf that is known to be empty has none.

    Args:
        levels: counts of each level, the coarsest first, all with noise of one variance, but for
            cells of empty leaves alone, which are 0.
        widths: leaves that a cell of each level spans; each a multiple of the next.
        some: which leaves may have rows; None for all.
    """
    parents = [
        np.arange(len(fine)) // (coarse // narrow)
        for fine, coarse, narrow in zip(levels[1:], widths[:-1], widths[1:], strict=True)
    ]
    variances = [np.ones(len(levels[-1])) if some is None else some.astype(np.float64)]
    for level in range(len(parents) - 1, -1, -1):
        below = np.bincount(parents[level], weights=levels[level + 1])
        spread = np.bincount(parents[level], weights=variances[0])
        levels[level][:] = (spread * levels[level] + below) / (spread + 1.0)
        variances.insert(0, spread / (spread + 1.0))
    for level, parent in enumerate(parents):
        spare = levels[level] - np.bincount(parent, weights=levels[level + 1])
        spread = np.bincount(parent, weights=variances[level + 1])
        each = np.divide(spare, spread, out=np.zeros_like(spare), where=spread > 0)
        levels[level + 1][:] += each[parent] * variances[level + 1]


def known_empty(
    levels: Sequence[Floats], widths: Sequence[int], some: npt.NDArray[np.bool_]
) -> list[Floats]:
    """Set the counts of cells whose codes have no row to what they are: 0 without noise."""
    return [
        np.where(np.logical_or.reduceat(some, np.arange(0, len(some), width)), level, 0.0)
        for level, width in zip(levels, widths, strict=True)
    ]
