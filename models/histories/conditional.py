"""Draws of some columns of a mixture, given others: the components by how well they fit.

Of a mixture sum_k w_k prod_j P_k(x_j), the law of some columns given others is the mixture of the
same components with weights proportional to w_k prod_j P_k(x_j) over the columns that are given.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpsynth.models.marginals import Products

Ints = npt.NDArray[np.int64]

BLOCK = 4096  # rows at a time
MIN_SHARE = 1e-7  # of a bin in a component: what no component has does not decide


def draw_given(
    products: Products,
    given: Ints,
    drawn: Sequence[int],
    rng: np.random.Generator,
    allowed: npt.NDArray[np.bool_] | None = None,
) -> Ints:
    """Draw columns given the first ones.

    Args:
        products: the mixture.
        given: bins of its first columns, ``[rows, columns]``.
        drawn: places of the columns to draw.
        rng: of the draws.
        allowed: bins that the first of the drawn columns may take, ``[rows, bins]``; every row has
            one. Components are weighed by the share of these bins.

    Returns:
        Bins, ``[rows, drawn]``.
    """
    out = np.empty((len(given), len(drawn)), dtype=np.int64)
    logs = [np.log(products.column(j) + MIN_SHARE) for j in range(given.shape[1])]
    start = np.log(products.weights).astype(np.float32)
    first = products.column(drawn[0])
    for begin in range(0, len(given), BLOCK):
        part = np.s_[begin : begin + BLOCK]
        fit = np.tile(start, (len(given[part]), 1))
        for log, bins in zip(logs, given[part].T, strict=True):
            fit += log.T[bins]
        weights = np.exp(fit - fit.max(axis=1, keepdims=True))
        if allowed is not None:
            weights = weights * (allowed[part] @ first.T + MIN_SHARE)
        components = _chosen(weights, rng)
        for place, column in enumerate(drawn):
            shares = products.column(column)[components]
            if place == 0 and allowed is not None:
                shares = np.where(allowed[part], shares + MIN_SHARE, 0.0)
            out[part, place] = _chosen(shares, rng)
    return out


def _chosen(shares: npt.NDArray[np.floating], rng: np.random.Generator) -> Ints:
    """Draw a place in each row, in proportion to its shares."""
    ends = np.cumsum(shares, axis=1, dtype=np.float64)
    points = rng.random((len(shares), 1)) * ends[:, -1:]
    return np.asarray(np.minimum((ends <= points).sum(axis=1), shares.shape[1] - 1))
