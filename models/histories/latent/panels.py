"""How deviations of numbers at one time go together.

Let d_t be a patient's vector of deviations from her levels at time t, each over its own spread; 0
where a number is not taken, and cut at `MOST`. Her matrix is the mean of d_t d_t' over her times.
She adds floor(w |A_ab|) to a cell for a positive or for a negative A_ab, for each pair a <= b, with
w = M / max(|A|, C), C public: an L2 norm of at most M, by construction. The sums of two cells of a
pair less those of the other are a covariance, of which correlations are taken.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import SeriesRows
from dpsynth.models.histories.latent.correlations import correlation_matrix
from dpsynth.models.histories.latent.presence import matrix_weights
from dpsynth.privacy import WeightedRows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MOST = 3.0  # of a deviation over its spread


def deviations(
    rows: Sequence[tuple[SeriesRows, int]], scores: Sequence[Floats], asked: SeriesRows
) -> Floats:
    """Return d of each number at each time, ``[times, numbers]``; a function of own rows."""
    found = np.zeros((len(asked.patients), len(rows)))
    if not len(asked.patients):
        return found
    base = int(asked.days.min())
    width = int(asked.days.max()) - base + 1
    keys = asked.patients * width + asked.days - base
    for place, ((one, value), own) in enumerate(zip(rows, scores, strict=True)):
        has = np.flatnonzero(one.values[:, value] < len(own))
        owner, counts = np.unique(one.patients[has], return_counts=True)
        if not len(owner):
            continue
        at = np.repeat(np.arange(len(owner)), counts)
        z = own[one.values[has, value]]
        z = z - (np.bincount(at, z) / counts)[at]
        spread = np.sqrt(np.bincount(at, z**2) / np.maximum(counts - 1, 1))
        d = np.clip(z / np.maximum(spread, 1e-6)[at], -MOST, MOST)
        d = np.where(counts[at] > 1, d, 0.0)
        found[np.searchsorted(keys, one.patients[has] * width + one.days[has] - base), place] = d
    return found


def panel_rows(d: Floats, asked: SeriesRows, patients: int, mass: int) -> WeightedRows:
    """Lay out each patient's matrix: every cell is a part of its own."""
    unit, pair, added = matrix_weights(d, asked, patients, mass)
    cell = 2 * pair + (added < 0)
    return WeightedRows((cell,), unit, np.abs(added), cell)


def panel_root(counts: Floats, numbers: int, sigma: float) -> Floats:
    """Return a root of the correlation matrix of deviations.

    Args:
        counts: noisy, of both cells of each pair.
        numbers: how many there are.
        sigma: noise of a count.
    """
    signed = counts.reshape(-1, 2) @ np.array([1.0, -1.0])
    covariance = np.zeros((numbers, numbers))
    covariance[np.triu_indices(numbers)] = signed
    covariance = covariance + np.triu(covariance, 1).T
    own = np.maximum(np.diag(covariance), 2 * sigma)
    scale = np.sqrt(np.outer(own, own))
    rho = np.clip(covariance / scale, -0.98, 0.98)
    errors = np.sqrt(2) * sigma / scale
    known = np.diag(covariance) > 4 * sigma
    errors[~(known[:, None] & known)] = np.inf
    np.fill_diagonal(errors, np.inf)
    rho[~np.isfinite(errors)] = 0.0
    matrix, _ = correlation_matrix(rho, errors)
    return np.asarray(np.linalg.cholesky(matrix))
