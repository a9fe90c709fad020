"""Noisy counts made a histogram: nothing below zero, and a given total."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]


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
