"""Total variation distance of two tables: half the L1 distance of their histograms.

A number computed from real rows is internal: it never enters a run or a bundle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.integer]
Floats = npt.NDArray[np.float64]


def tvd(a: Codes, b: Codes, columns: Sequence[int]) -> float:
    """Return the total variation distance of two tables' joint distribution of some columns.

    Half the L1 distance of the two histograms; 0 is equal, 1 is disjoint.
    """
    key_a = np.zeros(len(a), dtype=np.int64)
    key_b = np.zeros(len(b), dtype=np.int64)
    for j in columns:
        width = int(max(a[:, j].max(), b[:, j].max())) + 1
        key_a = key_a * width + a[:, j]
        key_b = key_b * width + b[:, j]
    keys, inverse = np.unique(np.concatenate([key_a, key_b]), return_inverse=True)
    share_a = np.bincount(inverse[: len(a)], minlength=len(keys)) / len(a)
    share_b = np.bincount(inverse[len(a) :], minlength=len(keys)) / len(b)
    return float(half_l1(share_a, share_b))


def mean_tvd(a: Codes, b: Codes, ways: int) -> float:
    """Return the mean total variation distance over all sets of ``ways`` columns."""
    return float(np.mean([tvd(a, b, set_) for set_ in combinations(range(a.shape[1]), ways)]))


def half_l1(a: Floats, b: Floats) -> Floats:
    """Return half the L1 distance over the last axis, of shares that sum to 1 along it."""
    return np.asarray(0.5 * np.abs(a - b).sum(axis=-1))
