"""What pairs of columns are expected to look like, from their margins and one released product."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]

LEAST = 0.02  # of the product of both margins, that each cell keeps
RAKES = 12
TINY = 1e-12


def expected_tables(
    shares: Sequence[Floats],
    scores: Sequence[Floats],
    pairs: Sequence[Pair],
    products: Floats,
    sd: float,
) -> tuple[Floats, ...]:
    """Return shares of the cells of each pair: p_a q_b (1 + r f(a) g(b)), raked to its margins.

    r is the released covariance of both scores over both variances. It is shrunk by
    max(0, 1 - sd^2 / covariance^2), so that what is not clear of the noise counts for nothing.

    Args:
        shares: of each column's bins, above 0.
        scores: of each column's bins.
        pairs: the columns of each.
        products: mean product of both scores, for each pair.
        sd: standard deviation of its noise.
    """
    means = [float(part @ score) for part, score in zip(shares, scores, strict=True)]
    centred = [score - mean for score, mean in zip(scores, means, strict=True)]
    spreads = [float(part @ score**2) for part, score in zip(shares, centred, strict=True)]
    tables = []
    for (i, j), product in zip(pairs, products, strict=True):
        covariance = float(product) - means[i] * means[j]
        slope = 0.0
        if spreads[i] > TINY and spreads[j] > TINY and covariance**2 > sd**2:
            slope = covariance * (1 - sd**2 / covariance**2) / (spreads[i] * spreads[j])
        tilt = np.maximum(1 + slope * np.outer(centred[i], centred[j]), LEAST)
        tables.append(raked(np.outer(shares[i], shares[j]) * tilt, shares[i], shares[j]))
    return tuple(tables)


def raked(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Fit a table of positive cells to both margins by iterative proportional fitting."""
    for _ in range(RAKES):
        table = table * (rows / np.maximum(table.sum(axis=1), TINY))[:, None]
        table = table * (columns / np.maximum(table.sum(axis=0), TINY))
    return table
