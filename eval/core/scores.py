"""How well scores foretell what is true, and how ranks agree.

Figures take weights for rows, and say how far they may vary.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.eval.core.tables import Ints

Floats = npt.NDArray[np.float64]

DRAWS = 200  # bootstrap samples of units
POINTS = 101  # of a curve


def ranks(scores: Floats) -> Ints:
    """Return the place of each score among the different scores, from 0; equal ones share it."""
    return np.unique(scores, return_inverse=True)[1].astype(np.int64)


def auc(places: Ints, positive: Floats, weights: Floats | None = None) -> float:
    """Return the area under the ROC curve: the chance that a positive row has the higher score.

    A tie counts half (Hanley and McNeil, Radiology 143, 1982). NaN where all the weight lies on one
    class.

    Args:
        places: `ranks` of the scores, or other small whole numbers in their order.
        positive: 1 for rows of the class, 0 for others.
        weights: of each row; 1 where None.
    """
    weight = np.ones(len(places)) if weights is None else weights
    above = np.bincount(places, weights=weight * positive)
    below = np.bincount(places, weights=weight * (1 - positive))
    area = above.sum() * below.sum()
    if area == 0:
        return float("nan")
    return float((above * (np.cumsum(below) - below / 2)).sum() / area)


def r2(predicted: Floats, truth: Floats, weights: Floats | None = None) -> float:
    """Return the share of the variance that is foretold; below 0 is worse than the mean.

    NaN where the truth does not vary.
    """
    weight = np.ones(len(truth)) if weights is None else weights
    total = weight.sum()
    if total == 0:
        return float("nan")
    spread = (weight * (truth - (weight * truth).sum() / total) ** 2).sum()
    if spread <= 1e-12 * total:
        return float("nan")
    return float(1 - (weight * (truth - predicted) ** 2).sum() / spread)


def roc(scores: Floats, positive: Floats) -> dict[str, list[float]]:
    """Return the ROC curve at 101 false positive rates from 0 to 1, lines between its corners."""
    places = ranks(scores)
    above = np.bincount(places, weights=positive)[::-1]
    below = np.bincount(places, weights=1 - positive)[::-1]
    true = np.concatenate([[0.0], np.cumsum(above) / above.sum()])
    false = np.concatenate([[0.0], np.cumsum(below) / below.sum()])
    grid = np.linspace(0, 1, POINTS)
    at = np.interp(grid, false, true)  # on a vertical stretch: its upper end
    return {"fpr": grid.round(6).tolist(), "tpr": at.round(6).tolist()}


def bootstrap(
    figures: Callable[[Floats], list[float]], units: Ints, rng: np.random.Generator
) -> Floats:
    """Return figures of bootstrap samples of whole units ``[draws, figures]``.

    All figures of a draw see the same weights, so that differences between them are paired.

    Args:
        figures: takes the weight of each row.
        units: the unit of each row.
        rng: draws units.
    """
    _, unit = np.unique(units, return_inverse=True)
    count = int(unit.max()) + 1
    draws = []
    for _ in range(DRAWS):
        multiplicity = np.bincount(rng.integers(count, size=count), minlength=count)
        draws.append(figures(multiplicity[unit].astype(float)))
    return np.array(draws)


def spread(draws: Floats) -> float:
    """Return the standard deviation of the draws that gave a number; 0 where fewer than two did."""
    finite = draws[np.isfinite(draws)]
    return float(finite.std(ddof=1)) if len(finite) > 1 else 0.0


def spearman(orders: Ints) -> Floats:
    """Return Spearman's correlation of each pair of columns ``[columns, columns]``.

    Args:
        orders: the place of each value in its column's order ``[columns, rows]``, equal values
            having equal places; -1 is missing.

    Returns:
        A symmetric matrix; NaN on the diagonal and where a pair has no correlation.
    """
    matrix = np.full((len(orders), len(orders)), np.nan)
    for i, j in combinations(range(len(orders)), 2):
        both = (orders[i] >= 0) & (orders[j] >= 0)
        a, b = _mid_ranks(orders[i][both]), _mid_ranks(orders[j][both])
        scale = math.sqrt(float(a @ a) * float(b @ b))
        if scale > 0:
            matrix[i, j] = matrix[j, i] = float(a @ b) / scale
    return matrix


def rank_correlation(a: Floats, b: Floats) -> float:
    """Return Spearman's correlation of two figures; NaN where all values of one are equal."""
    return float(spearman(np.stack([order_of(a), order_of(b)]))[0, 1])


def order_of(values: Floats) -> Ints:
    """Return the place of each value among the distinct ones, -1 where it is missing."""
    return np.asarray(pd.factorize(values, sort=True)[0], dtype=np.int64)


def _mid_ranks(orders: Ints) -> Floats:
    """Return ranks around 0; equal values share the mean of theirs."""
    if not len(orders):
        return np.zeros(0)
    counts = np.bincount(orders)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(ranks[orders] - (len(orders) + 1) / 2)


def placements(scores: Floats, others: Floats) -> Floats:
    """Return for each score the share of others below it; equal ones count half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, side="left")
    return np.asarray((below + np.searchsorted(ordered, scores, side="right")) / (2 * len(others)))
