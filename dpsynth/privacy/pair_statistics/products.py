"""Products of contrasts: how strongly each pair of columns is related, in one number a pair.

A contrast g_j gives each code of column j a whole score, fixed by public
facts and earlier releases. Released is G_ij = sum over rows of g_i(x_i) g_j(x_j) for all i < j. A
row adds the vector of its products; with S2 = sum_j g_j^2 and S4 = sum_j g_j^4 its squared norm is
sum_{i<j} g_i^2 g_j^2 = (S2^2 - S4) / 2. Let M be the event's ``unit_mass``. Each of a unit's r rows
gets the scores g_j / sqrt(r), rounded to whole numbers. If the squared norm of its products is then
above (M / r)^2, its scores are shrunk by a common factor and truncated towards 0; a row that is
still above the bound, which 53 bits rule out, counts as 0. So a row's vector of products has norm
at most M / r, and by the triangle inequality the r vectors of a unit add up to a whole-number
vector of norm at most M, for any r and whatever its codes. How a row is shrunk depends on this row
and on r alone. G is one answer, with noise of scale ``sigma_for(1)`` on each number. It moves in up
to P = columns (columns - 1) / 2 places, which ``most`` counts (accounting.py, step 4).

The comparison is made in whole numbers: (S2^2 - S4) r^2 <= 2 M^2. Scores are small enough that all
sums are exact in 64 bits, and in the floats of a matrix product (below 2^53).

A hidden column, the number of rows of a unit, is a column like any other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.privacy.counting.rows import CodedRows
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import ChosenHistograms
from dpsynth.privacy.mechanisms import checked_rows
from dpsynth.privacy.payments import gaussian_noise

Ints = NDArray[np.int64]

PRODUCTS = "products of contrasts"
"""Name of their event in a plan; certificates say by it what was released."""

MAX_SQUARES = 2**31  # of a row's scores; S2^2 and sums over 2^16 rows stay exact
ROWS_AT_ONCE = 2**16


def contrast_products(
    cohort: CodedRows, contrasts: Sequence[Ints], event: ChosenHistograms, entropy: Entropy
) -> Ints:
    """Release the sums of products of contrasts of all pairs of columns, with noise.

    Args:
        cohort: codes [units, rows, columns] and mask [units, rows].
        contrasts: of each column, a whole score for each code; fixed without looking at the cohort.
        event: what the plan paid for; its ``unit_mass`` bounds a unit's products in L2.
        entropy: where the noise comes from.

    Returns:
        G [pairs], for the pairs (0, 1), (0, 2), ..., (1, 2), ... of columns, in whole numbers.

    Raises:
        InputError: the cohort or the contrasts are not what the event accounts for; no noise has
            been drawn then.
    """
    sums = exact_contrast_products(cohort, contrasts, event)
    (noise,) = gaussian_noise(event, entropy, [(event.sigma_for(1.0), sums.size)])
    return sums + noise


def exact_contrast_products(
    cohort: CodedRows, contrasts: Sequence[Ints], event: ChosenHistograms
) -> Ints:
    """Add up products of contrasts, after all checks; private until noise is added."""
    columns = len(contrasts)
    rows, _ = checked_rows(cohort, [len(contrast) for contrast in contrasts], event)
    if event.unit_mass is None or event.most < columns * (columns - 1) // 2 or columns < 2:
        raise InputError(f"event '{event.name}' does not pay for products of {columns} contrasts")
    if any(contrast.dtype.kind not in "iu" for contrast in contrasts):
        raise InputError("the scores of a contrast are whole numbers")
    widest = [max(abs(int(contrast.min())), abs(int(contrast.max()))) for contrast in contrasts]
    if sum(score**2 for score in widest) >= MAX_SQUARES:
        raise InputError("the scores of the contrasts are too large for exact sums")
    counts = np.broadcast_to(cohort.mask.sum(axis=1)[:, None], cohort.mask.shape)[cohort.mask]
    total = np.zeros((columns, columns), dtype=np.int64)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = np.s_[start : start + ROWS_AT_ONCE]
        scores = _bounded_scores(rows[part], counts[part], contrasts, event.unit_mass)
        total += (scores.T @ scores).astype(np.int64)
    first, second = np.triu_indices(columns, 1)
    return total[first, second]


def products_of_units(
    cohort: CodedRows, contrasts: Sequence[Ints], event: ChosenHistograms
) -> NDArray[np.float64]:
    """Return what each unit adds to the products, [units, pairs]; private. For audits and tests."""
    first, second = np.triu_indices(len(contrasts), 1)
    added = np.zeros((len(cohort.mask), len(first)))
    if event.unit_mass is None:
        raise InputError(f"event '{event.name}' does not bound products")
    counts = cohort.mask.sum(axis=1)
    for place in range(cohort.mask.shape[1]):
        real = np.flatnonzero(cohort.mask[:, place])
        rows = cohort.codes[real, place]
        scores = _bounded_scores(rows, counts[real], contrasts, event.unit_mass)
        added[real] += scores[:, first] * scores[:, second]
    return added


def _bounded_scores(
    rows: NDArray[Any], counts: Ints, contrasts: Sequence[Ints], mass: int
) -> NDArray[np.float64]:
    """Return whole scores [rows, columns] whose products have an L2 norm of at most mass / r."""
    roots = np.sqrt(np.maximum(counts, 1))
    columns = [contrast[rows[:, j]] / roots for j, contrast in enumerate(contrasts)]
    scores = np.rint(np.stack(columns, axis=1))
    limits = 2 * mass**2 // np.maximum(counts, 1) ** 2
    squares = _twice_squares(scores)
    beyond = squares > limits
    factors = (limits[beyond] / squares[beyond]) ** 0.25 * (1 - 1e-9)
    scores[beyond] = np.trunc(scores[beyond] * factors[:, None])
    scores[_twice_squares(scores) > limits] = 0.0
    bounded: NDArray[np.float64] = scores
    return bounded


def _twice_squares(scores: NDArray[np.float64]) -> Ints:
    """Return twice the squared norm of each row's products, S2^2 - S4, in whole numbers."""
    squares = scores.astype(np.int64) ** 2
    return np.asarray(squares.sum(axis=1) ** 2 - (squares**2).sum(axis=1), dtype=np.int64)
