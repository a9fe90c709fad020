"""Statistics of all pairs of columns: products of contrasts, and departures.

Products of contrasts: how each pair of columns is related, in a few numbers a pair.

A contrast g_j gives each code of column j a vector of k_j whole scores, fixed by public facts and
earlier releases. Released is G_uv = sum over rows of g_iu(x_i) g_jv(x_j) for all i < j, all u of
column i and all v of column j. A row adds the vector of its products. With |g_j|^2 the squared
length of the scores that column j has in this row, S2 = sum_j |g_j|^2 and S4 = sum_j |g_j|^4, its
squared norm is

    sum_{i<j} sum_{u,v} g_iu^2 g_jv^2 = sum_{i<j} |g_i|^2 |g_j|^2 = (S2^2 - S4) / 2.

Where only some pairs (u, v) of scores are asked for, in a symmetric matrix W of 0 and 1 that
earlier releases fixed, it is sum_{uv} g_u^2 W_uv g_v^2 / 2, and S2^2 - S4 below is twice that.

Let M be the event's ``unit_mass``. Each of a unit's r rows gets the scores g_j / sqrt(r), rounded
to whole numbers. If the squared norm of its products is then above (M / r)^2, its scores are shrunk
by a common factor and truncated towards 0; a row that is still above the bound, which 53 bits rule
out, counts as 0. So a row's vector of products has norm at most M / r, and by the triangle
inequality the r vectors of a unit add up to a whole-number vector of norm at most M, for any r and
whatever its codes. How a row is shrunk depends on this row and on r alone. G is one answer, with
noise of scale ``sigma_for(1)`` on each number. It moves in up to sum_{i<j} k_i k_j places, which
``most`` counts (accounting.py, step 4); it may count more, which adds a little to delta.

The comparison is made in whole numbers: (S2^2 - S4) r^2 <= 2 M^2. Scores are small enough that all
sums are exact in 64 bits, and in the floats of a matrix product (below 2^53).

A hidden column, the number of rows of a unit, is a column like any other.

Departures: how far each pair of columns is from what is expected of it, in one number a pair.

For each of P pairs S_p = sum over cells of |n_c - e_c|, where the expected counts
e_c are fixed by earlier releases. Counts and expected counts are kept in parts of 1 / M of a unit:
each of a unit's r rows adds floor(M / r) to one n_c of each pair, and the e_c are rounded to whole
parts. A unit moves the n_c of one pair by at most M in L1, so it moves S_p by at most M (the
triangle inequality, in each cell), and all P answers by at most M sqrt(P) in L2. P answers with
part 1 / sqrt(P) each have noise of scale ``sigma_for(1 / sqrt(P))``. Charging them as one answer,
with part 1 each, would claim sqrt(P) times less than the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import ChosenHistograms
from dpsynth.privacy.mechanisms import CodedRows, checked_rows
from dpsynth.privacy.payments import gaussian_noise

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

PRODUCTS = "products of contrasts"
PATIENT_PRODUCTS, PATIENT_PRODUCTS_AGAIN = "patients: products", "patients: products again"
OF_PRODUCTS = (PRODUCTS, PATIENT_PRODUCTS, PATIENT_PRODUCTS_AGAIN)
"""Names of events of products in a plan; certificates say by them what was released."""

MAX_SQUARES = 2**31  # of a row's scores; S2^2 and sums over ROWS_AT_ONCE stay exact
ROWS_AT_ONCE = 2**13


def contrast_products(
    cohort: CodedRows,
    contrasts: Sequence[Ints],
    event: ChosenHistograms,
    entropy: Entropy,
    asked: Bools | None = None,
) -> Ints:
    """Release the sums of products of contrasts of all pairs of columns, with noise.

    Args:
        cohort: codes [units, rows, columns] and mask [units, rows].
        contrasts: of each column, whole scores of each code, [codes, k]; fixed without looking at
            the cohort.
        event: what the plan paid for; its ``unit_mass`` bounds a unit's products in L2.
        entropy: where the noise comes from.
        asked: which products are asked for, of all scores end to end, ``[scores, scores]``, chosen
            without looking at the cohort; None for all. Neither half says anything of two scores
            of one column.

    Returns:
        G, in whole numbers, for all pairs of scores of different columns that are asked for, in the
        order of `places_of_products`.

    Raises:
        InputError: the cohort or the contrasts are not what the event accounts for; no noise has
            been drawn then.
    """
    sums = exact_contrast_products(cohort, contrasts, event, asked)
    (noise,) = gaussian_noise(event, entropy, [(event.sigma_for(1.0), sums.size)])
    return sums + noise


def exact_contrast_products(
    cohort: CodedRows,
    contrasts: Sequence[Ints],
    event: ChosenHistograms,
    asked: Bools | None = None,
) -> Ints:
    """Add up products of contrasts, after all checks; private until noise is added."""
    if any(contrast.dtype.kind not in "iu" or contrast.ndim != 2 for contrast in contrasts):
        raise InputError("a contrast gives each code a vector of whole numbers")
    rows, _ = checked_rows(cohort, [len(contrast) for contrast in contrasts], event)
    wanted = pairs_asked([contrast.shape[1] for contrast in contrasts], asked)
    first, second = np.nonzero(np.triu(wanted))
    if event.unit_mass is None or not 0 < len(first) <= event.most:
        columns = len(contrasts)
        raise InputError(f"event '{event.name}' does not pay for products of {columns} contrasts")
    widest = [np.abs(contrast.astype(np.float64)).max(axis=0) for contrast in contrasts]
    if sum(float((scores**2).sum()) for scores in widest) >= MAX_SQUARES:
        raise InputError("the scores of the contrasts are too large for exact sums")
    counts = np.broadcast_to(cohort.mask.sum(axis=1)[:, None], cohort.mask.shape)[cohort.mask]
    width = sum(contrast.shape[1] for contrast in contrasts)
    total = np.zeros((width, width), dtype=np.int64)
    for start in range(0, len(rows), ROWS_AT_ONCE):
        part = np.s_[start : start + ROWS_AT_ONCE]
        scores = _bounded_scores(rows[part], counts[part], contrasts, event.unit_mass, wanted)
        total += (scores.T @ scores).astype(np.int64)
    return total[first, second]


def pairs_asked(widths: Sequence[int] | Ints, asked: Bools | None = None) -> Bools:
    """Return of which two scores products are taken, ``[scores, scores]``, symmetric.

    Example:
        >>> pairs_asked([1, 2]).astype(int).tolist()
        [[0, 1, 1], [1, 0, 0], [1, 0, 0]]
    """
    column = np.repeat(np.arange(len(widths)), widths)
    apart = column[:, None] != column
    return np.asarray(apart if asked is None else apart & (asked | asked.T))


def places_of_products(widths: Sequence[int]) -> tuple[Ints, Ints]:
    """Return which two of all columns' scores, end to end, each product is of.

    Example:
        >>> [place.tolist() for place in places_of_products([1, 2])]
        [[0, 0], [1, 2]]
    """
    column = np.repeat(np.arange(len(widths)), widths)
    first, second = np.nonzero(column[:, None] < column)
    return first, second


def products_of_units(
    cohort: CodedRows,
    contrasts: Sequence[Ints],
    event: ChosenHistograms,
    asked: Bools | None = None,
) -> NDArray[np.float64]:
    """Return what each unit adds to the products, [units, products]; for audits and tests."""
    wanted = pairs_asked([contrast.shape[1] for contrast in contrasts], asked)
    first, second = np.nonzero(np.triu(wanted))
    added = np.zeros((len(cohort.mask), len(first)))
    if event.unit_mass is None:
        raise InputError(f"event '{event.name}' does not bound products")
    counts = cohort.mask.sum(axis=1)
    for place in range(cohort.mask.shape[1]):
        real = np.flatnonzero(cohort.mask[:, place])
        rows = cohort.codes[real, place]
        scores = _bounded_scores(rows, counts[real], contrasts, event.unit_mass, wanted)
        added[real] += scores[:, first] * scores[:, second]
    return added


def _bounded_scores(
    rows: NDArray[Any], counts: Ints, contrasts: Sequence[Ints], mass: int, wanted: Bools
) -> NDArray[np.float64]:
    """Return whole scores [rows, scores] whose products have an L2 norm of at most mass / r."""
    roots = np.sqrt(np.maximum(counts, 1))[:, None]
    columns = [contrast[rows[:, j]] / roots for j, contrast in enumerate(contrasts)]
    scores = np.rint(np.concatenate(columns, axis=1))
    limits = 2 * mass**2 // np.maximum(counts, 1) ** 2
    squares = _twice_squares(scores, wanted)
    beyond = squares > limits
    factors = (limits[beyond] / squares[beyond]) ** 0.25 * (1 - 1e-9)
    scores[beyond] = np.trunc(scores[beyond] * factors[:, None])
    scores[_twice_squares(scores, wanted) > limits] = 0.0
    bounded: NDArray[np.float64] = scores
    return bounded


def _twice_squares(scores: NDArray[np.float64], wanted: Bools) -> Ints:
    """Return twice the squared norm of each row's products that are wanted, in whole numbers.

    Sums of squares of one row are below `MAX_SQUARES`, so they are exact in the floats of a matrix
    product, and the sum of their products is below 2^62.
    """
    squares = scores**2
    others = (squares @ wanted.astype(np.float64)).astype(np.int64)
    return np.asarray((squares.astype(np.int64) * others).sum(axis=1), dtype=np.int64)


DEPARTURES = "departures from expected pairs"
"""Name of their event in a plan; certificates say by it what was released."""


def departures(
    cohort: CodedRows,
    sizes: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    expected: Sequence[NDArray[np.float64]],
    event: ChosenHistograms,
    entropy: Entropy,
) -> Ints:
    """Release how far the joint counts of pairs are from what is expected, in L1, with noise.

    Args:
        cohort: codes [units, rows, columns] and mask [units, rows].
        sizes: number of codes of each column.
        pairs: the columns of each pair; chosen without looking at the cohort.
        expected: of each pair, the units that are expected in each cell, [codes, codes]; fixed by
            earlier releases.
        event: what the plan paid for; its ``unit_mass`` is the number of parts of a unit.
        entropy: where the noise comes from.

    Returns:
        One whole number for each pair, in parts of a unit.

    Raises:
        InputError: the cohort, the pairs or the tables are not what the event accounts for; no
            noise has been drawn then.
    """
    sums = exact_departures(cohort, sizes, pairs, expected, event)
    sigma = event.sigma_for(1 / math.sqrt(max(1, len(pairs))))
    if not event.covers([sigma] * len(pairs)):
        raise InputError(f"event '{event.name}' does not pay for {len(pairs)} departures")
    (noise,) = gaussian_noise(event, entropy, [(sigma, len(sums))], answers=len(pairs))
    return sums + noise


def exact_departures(
    cohort: CodedRows,
    sizes: Sequence[int],
    pairs: Sequence[tuple[int, int]],
    expected: Sequence[NDArray[np.float64]],
    event: ChosenHistograms,
) -> Ints:
    """Add up departures, after all checks; private until noise is added."""
    rows, weights = checked_rows(cohort, sizes, event)
    columns = range(len(sizes))
    if event.unit_mass is None or weights is None or len(pairs) != len(expected):
        raise InputError(f"event '{event.name}' does not pay for these departures")
    if not all(i in columns and j in columns and i != j for i, j in pairs):
        raise InputError(f"event '{event.name}': a pair must name two columns of the cohort")
    sums = np.zeros(len(pairs), dtype=np.int64)
    for place, ((i, j), table) in enumerate(zip(pairs, expected, strict=True)):
        if table.shape != (sizes[i], sizes[j]) or not np.isfinite(table).all():
            raise InputError(f"event '{event.name}': an expected table does not fit its pair")
        cells = rows[:, i].astype(np.int64) * sizes[j] + rows[:, j]
        counts = np.bincount(cells, weights, minlength=table.size).astype(np.int64)
        parts = np.rint(table.ravel() * event.unit_mass).astype(np.int64)
        sums[place] = np.abs(counts - parts).sum()
    return sums
