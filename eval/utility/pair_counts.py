"""All pairs of columns at once: one product of indicators holds every two-way table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Bins = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]

CHUNK = 4096  # rows whose indicators are held at a time


def pair_counts(bins: Bins, sizes: Sequence[int]) -> Floats:
    """Count rows by every pair of bins ``[cells, cells]``, where cells are all columns' bins.

    Args:
        bins: ``[columns, rows]``.
        sizes: how many bins each column has.
    """
    cells = int(sum(sizes))
    starts = np.cumsum([0, *sizes[:-1]])
    counts = np.zeros((cells, cells))
    for first in range(0, bins.shape[1], CHUNK):
        places = bins[:, first : first + CHUNK].T + starts
        hot = np.zeros((len(places), cells), dtype=np.float32)
        np.put_along_axis(hot, places, 1, axis=1)
        counts += hot.T @ hot  # whole numbers below 2^24: exact
    return counts


def mean_tvds(a: Floats, b: Floats, sizes: Sequence[int]) -> tuple[float, float | None]:
    """Return the mean total variation distance of columns, and of pairs of columns.

    Args:
        a: `pair_counts` of one table with rows.
        b: of the other.
        sizes: how many bins each column has; pairs of fewer than two columns are None.
    """
    starts = np.cumsum([0, *sizes[:-1]])
    rows_a, rows_b = a[: sizes[0], : sizes[0]].sum(), b[: sizes[0], : sizes[0]].sum()
    apart = np.abs(a / rows_a - b / rows_b)
    blocks = np.add.reduceat(np.add.reduceat(apart, starts, axis=0), starts, axis=1) / 2
    pairs = blocks[np.triu_indices(len(sizes), 1)]
    return float(np.diag(blocks).mean()), float(pairs.mean()) if len(pairs) else None
