"""What shrinking long rows took from products of contrasts, estimated from the products alone.

Rows whose scores are long are shrunk before they are added up, so that no unit counts too much.
These are the rows in which related columns are extreme together, so products come out too small: by
a fifth where diagnoses are related and a third of the rows are shrunk. Rows drawn from a Gaussian
copula with the released products and margins show how much. Correcting for it makes it worthwhile
to shrink many rows, which lowers the noise. All this reads released numbers only.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpsynth.models.marginals.contrasts.scores import Contrasts

Floats = npt.NDArray[np.float64]

ROWS = 10_000
ROUNDS = 5
STEP = 2.0  # a change of latent normals shows by half where columns are binary


def restored(
    products: Floats,
    contrasts: Contrasts,
    shares: Sequence[Floats],
    mass: int,
    sd: float,
    rng: np.random.Generator,
) -> Floats:
    """Return the mean products as they would be if no row were shrunk, about.

    Args:
        products: released, mean over the units, for the pairs (0, 1), (0, 2), ...
        contrasts: scores that were multiplied.
        shares: of the bins of each column.
        mass: norm of a row's products, in whole parts, above which it was shrunk.
        sd: standard deviation of the products' noise; what is not clear of it is left as it is.
        rng: of the copula's rows.
    """
    columns = len(shares)
    first, second = np.triu_indices(columns, 1)
    normals = rng.standard_normal((ROWS, columns))
    spreads = np.sqrt(
        [part @ score**2 for part, score in zip(shares, contrasts.values, strict=True)]
    )
    sizes = np.maximum(spreads[first] * spreads[second], 1e-9)
    clear = products * np.maximum(0.0, 1 - sd**2 / np.maximum(products**2, 1e-18))
    latent = clear / sizes
    lost = np.zeros(len(products))
    for _ in range(ROUNDS):
        matrix = np.eye(columns)
        matrix[first, second] = matrix[second, first] = np.clip(latent, -0.99, 0.99)
        rows = _copula(normals, matrix, contrasts.values, shares)
        whole = _products(rows)
        squares = rows**2
        norms = (squares.sum(axis=1) ** 2 - (squares**2).sum(axis=1)) / 2
        limit = (mass / contrasts.scale**2) ** 2
        factors = np.minimum(1.0, limit / np.maximum(norms, 1e-12)) ** 0.25
        seen = _products(rows * factors[:, None])
        lost = whole - seen
        latent = latent + STEP * (clear - seen) / sizes
    return np.asarray(products + lost)


def _products(rows: Floats) -> Floats:
    first, second = np.triu_indices(rows.shape[1], 1)
    return np.asarray((rows.T @ rows / len(rows))[first, second])


def _copula(
    normals: Floats, matrix: Floats, scores: Sequence[Floats], shares: Sequence[Floats]
) -> Floats:
    """Return scores of rows whose latent normals have this correlation, made positive definite."""
    values, vectors = np.linalg.eigh(matrix)
    root = vectors * np.sqrt(np.maximum(values, 1e-3))
    root = root / np.sqrt((root**2).sum(axis=1, keepdims=True))
    latent = normals @ root.T
    rows: Floats = np.empty_like(latent)
    for j, (score, share) in enumerate(zip(scores, shares, strict=True)):
        order = np.argsort(score, kind="stable")
        ranks = np.empty(len(latent), dtype=np.int64)
        ranks[np.argsort(latent[:, j])] = np.arange(len(latent))
        ends = np.cumsum(share[order]) * len(latent)
        place = np.minimum(np.searchsorted(ends, ranks, side="right"), len(order) - 1)
        rows[:, j] = score[order][place]
    return rows
