"""How far apart two tables are, on the codes of a schema.

A number computed from real rows is internal: it never enters a run or a bundle.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

Codes = npt.NDArray[np.integer]
BINS = 10


def coarse(codes: Codes, edges: Sequence[npt.NDArray[np.integer] | None]) -> npt.NDArray[np.int64]:
    """Cut ordered columns at the given codes; leave columns without edges as they are."""
    columns = [
        codes[:, j] if cuts is None else np.searchsorted(cuts, codes[:, j], side="left")
        for j, cuts in enumerate(edges)
    ]
    return np.stack(columns, axis=1).astype(np.int64)


def decile_edges(
    codes: Codes, cells: Sequence[int], bins: int = BINS
) -> list[npt.NDArray[np.integer] | None]:
    """Cut ordered columns of more than ``bins`` cells at the deciles of a reference table.

    Codes at or past ``cells`` (missing) keep a bin of their own, the last one.
    """
    edges: list[npt.NDArray[np.integer] | None] = []
    for j, count in enumerate(cells):
        present = codes[codes[:, j] < count, j]
        if count <= bins or len(present) == 0:
            edges.append(None)
            continue
        cuts = np.unique(np.quantile(present, np.linspace(0, 1, bins + 1)[1:-1]).astype(int))
        edges.append(np.append(cuts[cuts < count - 1], count - 1))
    return edges


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
    return float(0.5 * np.abs(share_a - share_b).sum())


def mean_tvd(a: Codes, b: Codes, ways: int) -> float:
    """Return the mean total variation distance over all sets of ``ways`` columns."""
    return float(np.mean([tvd(a, b, set_) for set_ in combinations(range(a.shape[1]), ways)]))
