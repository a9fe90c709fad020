"""What pairs of columns are expected to look like, from a factor model and released products."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpsynth.models.marginals.contrasts.factors import Factored
from dpsynth.models.marginals.contrasts.scores import Contrasts

Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]

LEAST = 0.02  # of what the model expects, that each cell keeps
RAKES = 12
TINY = 1e-12


def expected_tables(
    shares: Sequence[Floats],
    contrasts: Contrasts,
    pairs: Sequence[Pair],
    factors: Factored,
    sd: float,
) -> tuple[Floats, ...]:
    """Return shares of the cells of each pair, raked to its margins.

    Let T be the table of a factor model, raked, and R = C - g_i' T g_j what the released products C
    of the pair's c products are beyond it. Its least-squares table is
    p_a q_b (g_i S_i^+ R S_j^+ g_j')_ab with S_i = g_i' diag(p) g_i, so T + (1 - c sd^2 / |R|^2)_+
    times that is the estimate: shrunk as far as R may be noise (James and Stein 1961, "Estimation
    with quadratic loss"). Each cell keeps `LEAST` of T.

    Args:
        shares: of each column's bins, above 0.
        contrasts: scores of each column's bins.
        pairs: the columns of each.
        factors: fitted to the products.
        sd: standard deviation of a product's noise.
    """
    rounding = contrasts.scale**-2.0  # what whole scores alone may add to a squared length
    inverses = [
        np.linalg.pinv(scores.T @ (scores * own[:, None]), rcond=rounding, hermitian=True)
        for scores, own in zip(contrasts.values, shares, strict=True)
    ]
    duals = [
        own[:, None] * (scores @ inverse)
        for own, scores, inverse in zip(shares, contrasts.values, inverses, strict=True)
    ]
    ends, tables = np.cumsum([0, *map(len, shares)]), []
    for i, j in pairs:
        table = factors.pair(slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1]))
        table = raked(np.maximum(table, TINY), shares[i], shares[j])
        of_table = contrasts.values[i].T @ table @ contrasts.values[j]
        beyond = factors.products[contrasts.between(i, j)] - of_table
        square = float((beyond**2).sum())
        kept = max(0.0, 1 - beyond.size * sd**2 / max(square, TINY))
        if kept:
            moved = table + kept * (duals[i] @ beyond @ duals[j].T)
            table = raked(np.maximum(moved, LEAST * table), shares[i], shares[j])
        tables.append(table)
    return tuple(tables)


def raked(table: Floats, rows: Floats, columns: Floats) -> Floats:
    """Fit a table of positive cells to both margins by iterative proportional fitting."""
    for _ in range(RAKES):
        table = table * (rows / np.maximum(table.sum(axis=1), TINY))[:, None]
        table = table * (columns / np.maximum(table.sum(axis=0), TINY))
    return table
