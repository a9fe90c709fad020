"""One correlation matrix from noisy correlations of pairs: a factor model, and what stands out.

    R = L L' + D,   D_aa = 1 - |l_a|^2,

with loadings that minimise sum_ab w_ab (r_ab - l_a . l_b)^2 + sum_ak l_ak^2 / t_k, where w_ab =
1 / (se_ab^2 + `MISFIT`^2) and the prior variances t_k of the loadings of each factor come from the
loadings (empirical Bayes: Morris 1983, "Parametric empirical Bayes inference"). Row by row that is
a ridge regression.

What is left of a pair, r_ab - l_a . l_b, is `MISFIT` and noise, or, in a part of the pairs,
something of its own: a mixture of two normal distributions whose part and width are estimated by EM
(Dempster, Laird and Rubin 1977). Its posterior mean is added. The result need not be a correlation
matrix: a factor model of many factors is fitted to it, pairs that are known well first.

Everything here is a function of released numbers: post-processing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf, dpotri, dpotrs

Floats = npt.NDArray[np.float64]

FACTORS, MANY = 16, 64  # of the model of noisy correlations, and of what comes out
MISFIT = 0.02  # by which a pair may depart from a factor model
SWEEPS, AGAIN = 30, 6  # of a fit, and of one that begins near its end
MOST = 0.99  # of a variable's variance that factors explain


Loadings = tuple[Floats, Floats]


def correlation_matrix(
    rho: Floats, errors: Floats, begun: Loadings | None = None
) -> tuple[Floats, Loadings | None]:
    """Return a correlation matrix near noisy correlations, and loadings to begin with next time.

    Args:
        rho: of each pair, ``[variables, variables]``, symmetric.
        errors: standard error of each; infinite where a pair is not known.
        begun: loadings of a fit to correlations that were much the same.
    """
    noise = errors**2 + MISFIT**2
    np.fill_diagonal(noise, np.inf)
    known = np.isfinite(noise)
    if not known.any():
        return np.eye(len(rho)), None
    one, other = (None, None) if begun is None else begun
    loadings = factor_model(rho, 1 / noise, min(FACTORS, len(rho)), one)
    model = loadings @ loadings.T
    own, left = pairs_alone(np.where(known, rho - model, 0.0), np.where(known, noise, 1e6))
    whole = np.clip(model + np.where(known, own, 0.0), -MOST, MOST)
    weights = 1 / (np.where(known, left, 1.0) + MISFIT**2)
    many = factor_model(whole, weights, min(MANY, len(rho)), other)
    matrix = many @ many.T
    np.fill_diagonal(matrix, 1.0)
    return matrix, (loadings, many)


def pairs_alone(apart: Floats, noise: Floats) -> tuple[Floats, Floats]:
    """Return what pairs have of their own, and the variance of what is not known of it.

    Args:
        apart: of each pair from the model.
        noise: variance of it, where a pair has nothing of its own.
    """
    upper = np.triu_indices(len(apart), 1)
    x2, n = apart[upper] ** 2, noise[upper]
    part, width = 0.05, 0.25
    for _ in range(50):
        likely = _likely(x2, n, part, width)
        gain = width / (width + n)
        squares = gain**2 * x2 + gain * n
        part = float(np.clip(likely.mean(), 1e-4, 0.5))
        width = float(np.clip((likely @ squares) / max(likely.sum(), 1e-9), MISFIT**2, 1.0))
    likely = _likely(apart**2, noise, part, width)
    gain = width / (width + noise)
    mean = likely * gain * apart
    left = likely * gain * noise + likely * (1 - likely) * (gain * apart) ** 2
    return mean, left


def _likely(x2: Floats, noise: Floats, part: float, width: float) -> Floats:
    """Return how likely each pair has something of its own."""
    both = width + noise
    odds = (
        np.log(part / (1 - part)) - 0.5 * np.log(both / noise) + 0.5 * x2 * (1 / noise - 1 / both)
    )
    return np.asarray(1 / (1 + np.exp(-np.clip(odds, -50, 50))))


def factor_model(rho: Floats, weights: Floats, rank: int, start: Floats | None = None) -> Floats:
    """Return loadings, ``[variables, factors]``.

    Args:
        rho: correlations.
        weights: of each pair; 0 for those that are not known.
        rank: how many factors.
        start: loadings to begin with.
    """
    variables = len(rho)
    known = np.where(weights > 0, rho, 0.0)
    if start is None:
        some = weights[weights > 0]
        roots, axes = np.linalg.eigh(known * weights / (weights + np.median(some)))
        loadings = axes[:, -rank:] * np.sqrt(np.maximum(roots[-rank:], 1e-3))
    else:
        loadings = start.copy()
    prior = np.maximum((loadings**2).mean(axis=0), 1e-4)
    for sweep in range(SWEEPS if start is None else AGAIN):
        spread = np.zeros(rank)
        for a in range(variables):
            own = weights[a]
            gram = (loadings * own[:, None]).T @ loadings
            gram[np.diag_indices(rank)] += 1 / prior
            root, _ = dpotrf(gram)
            loadings[a], _ = dpotrs(root, loadings.T @ (own * known[a]))
            spread += np.diag(dpotri(root)[0])
            size = float(loadings[a] @ loadings[a])
            if size > MOST:
                loadings[a] *= np.sqrt(MOST / size)
        if sweep >= 3:
            prior = np.maximum(((loadings**2).sum(axis=0) + spread) / variables, 1e-5)
    return np.asarray(loadings)
