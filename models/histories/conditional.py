"""Draws of some columns of a mixture, given others: the components by how well they fit.

Of a mixture sum_k w_k prod_j P_k(x_j), the law of some columns given others is the mixture of the
same components with weights proportional to w_k prod_j P_k(x_j) over the columns that are given.
So columns are drawn one after the other, each by its own mean over the components.

Within a bin, a value is drawn near the one before: as if both were parts of a normal pair, whose
correlation is that of the bins (`correlation`). A value without order, or with none before, is
drawn by the shares of the codes alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from dpsynth.models.marginals import LEADERS, MergedBins, Products, draw_evenly, places_at

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

BLOCK = 16_384  # rows at a time
MOST = 0.95  # of a correlation
MIN_SHARE = 1e-7  # of a bin in a component: what no component has does not decide


def draw_given(
    products: Products,
    given: Ints,
    drawn: Sequence[int],
    rng: np.random.Generator,
    likelier: Floats | None = None,
    *,
    even: bool = True,
) -> Ints:
    """Draw columns given the first ones.

    Args:
        products: the mixture.
        given: bins of its first columns, ``[rows, columns]``.
        drawn: places of the columns to draw, in order, right after those that are given.
        rng: of the draws.
        likelier: factor of each bin of the first of the drawn columns, ``[rows, bins]``; 0 for one
            that it may not take. Components are weighed by the share of these bins.
        even: spread the draws more evenly than chance; see `Products.draw`.

    Returns:
        Bins, ``[rows, drawn]``.
    """
    out = np.empty((len(given), len(drawn)), dtype=np.int64)
    leaders = products.leaders(LEADERS) if even else None
    for begin in range(0, len(given), BLOCK):
        part = np.s_[begin : begin + BLOCK]
        factors = None if likelier is None else likelier[part]
        out[part] = _block(products, given[part], drawn, rng, factors, leaders)
    return out


def _block(
    products: Products,
    given: Ints,
    drawn: Sequence[int],
    rng: np.random.Generator,
    likelier: Floats | None,
    leaders: Sequence[Sequence[int]] | None,
) -> Ints:
    """Draw one column after the other, each by its law over all components."""
    fit = np.tile(np.log(products.weights).astype(np.float32), (len(given), 1))
    for place, bins in enumerate(given.T):
        fit += np.log(products.column(place) + MIN_SHARE).T[bins]
    fit = np.exp(fit - fit.max(axis=1, keepdims=True))
    rows = np.column_stack([given, np.empty((len(given), len(drawn)), dtype=np.int64)])
    for place, column in enumerate(drawn):
        tables = products.column(column) + MIN_SHARE
        law: npt.NDArray[np.floating] = fit @ tables
        if place == 0 and likelier is not None:
            law = law * likelier
        if leaders is None:
            bins = places_at(law, rng.random(len(law)))
        else:
            bins = draw_evenly(law, rows[:, list(leaders[column])], rng)
        rows[:, given.shape[1] + place] = bins
        fit *= tables.T[bins]
        fit /= fit.max(axis=1, keepdims=True)
    return rows[:, given.shape[1] :]


def correlation(products: Products, places: tuple[int, int], bins: Sequence[MergedBins]) -> float:
    """Return the correlation of the normal pair that two ordered columns' bins are cut from.

    A bin's score is its mean under the normal law. If that is v of the variance in one column and w
    in the other, the scores' covariance is about v w times the correlation, which bins blur.

    Args:
        products: the mixture.
        places: of the columns.
        bins: of both.

    Returns:
        From 0 to `MOST`; 0 where bins tell nothing.
    """
    one, other = (products.column(place).astype(np.float64) for place in places)
    shares = (one * products.weights[:, None]).T @ other
    scores = [_scores(column) for column in bins]
    apart = [
        score - margin @ score
        for score, margin in zip(scores, (shares.sum(axis=1), shares.sum(axis=0)), strict=True)
    ]
    spread = [column.bin_shares @ score**2 for column, score in zip(bins, scores, strict=True)]
    if min(spread) <= MIN_SHARE:
        return 0.0
    return float(np.clip(apart[0] @ shares @ apart[1] / (spread[0] * spread[1]), 0, MOST))


def _scores(column: MergedBins) -> Floats:
    """Return the mean of a standard normal number within each bin, by the bins' shares."""
    shares = np.maximum(column.bin_shares, MIN_SHARE)
    ends = ndtri(np.cumsum(shares / shares.sum())[:-1])
    heights = np.exp(-(ends**2) / 2) / np.sqrt(2 * np.pi)
    return np.asarray(-np.diff(heights, prepend=0.0, append=0.0) / shares)


def refined_after(
    bins: MergedBins,
    drawn: Ints,
    before: Ints,
    cells: int,
    alike: float,
    rng: np.random.Generator,
) -> Ints:
    """Draw a code within each bin, near the code before.

    Args:
        bins: of the column; its first ``cells`` codes are ordered.
        drawn: bins, ``[rows]``.
        before: code of the same column before, ``[rows]``.
        cells: number of ordered codes.
        alike: correlation of a value with the one before.
        rng: of the draws.
    """
    codes = bins.refine(drawn, rng).astype(np.int64)
    ends = np.cumsum(bins.shares[:cells])
    who = np.flatnonzero((codes < cells) & (before < cells))
    if not alike or not len(who) or ends[-1] <= 0:
        return codes
    ends = np.concatenate([[0.0], ends / ends[-1]])
    bin_of = bins.bin_of[:cells]
    first = np.searchsorted(bin_of, drawn[who], side="left")
    last = np.searchsorted(bin_of, drawn[who], side="right")
    past = before[who]
    point = ends[past] + rng.random(len(who)) * (ends[past + 1] - ends[past])
    centre = alike * ndtri(np.clip(point, MIN_SHARE, 1 - MIN_SHARE))
    width = np.sqrt(1 - alike**2)
    low, high = (
        ndtr((ndtri(np.clip(end, 1e-12, 1 - 1e-12)) - centre) / width)
        for end in (ends[first], ends[last])
    )
    score = centre + width * ndtri(
        np.clip(low + rng.random(len(who)) * (high - low), 1e-12, 1 - 1e-12)
    )
    found = np.searchsorted(ends, ndtr(score), side="right") - 1
    codes[who] = np.clip(found, first, last - 1)
    return codes
