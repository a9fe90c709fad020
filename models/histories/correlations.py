"""One correlation matrix from noisy correlations of pairs: a factor model, and what stands out.

    R = L L' + D,   D_aa = 1 - |l_a|^2,

with loadings that minimise sum_ab w_ab (r_ab - l_a . l_b)^2 + sum_ak l_ak^2 / t_k, where w_ab =
1 / (se_ab^2 + `MISFIT`^2) and the prior variances t_k of the loadings of each factor come from the
loadings (empirical Bayes: Morris 1983). Row by row that is a ridge regression. Pairs that stand
`CLEAR` standard errors out of it are put back, shrunk; what is then not a correlation matrix is
taken to a near one (Higham 2002).

Everything here is a function of released numbers: post-processing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

FACTORS = 16
MISFIT = 0.02  # by which a pair may depart from a factor model
CLEAR = 2.8
SWEEPS = 40
MOST = 0.98  # of a variable's variance that factors explain
LEAST = 1e-3  # eigenvalue


def correlation_matrix(rho: Floats, errors: Floats) -> Floats:
    """Return a correlation matrix near noisy correlations.

    Args:
        rho: of each pair, ``[variables, variables]``, symmetric.
        errors: standard error of each; infinite where a pair is not known.
    """
    weights = 1 / (errors**2 + MISFIT**2)
    np.fill_diagonal(weights, 0.0)
    if not (weights > 0).any():
        return np.eye(len(rho))
    loadings = factor_model(rho, weights)
    model = loadings @ loadings.T
    apart = rho - model
    z2 = (apart / np.minimum(np.sqrt(errors**2 + MISFIT**2), 1e6)) ** 2
    back = np.where(np.isfinite(errors) & (z2 > CLEAR**2), apart * (1 - CLEAR**2 / z2), 0.0)
    matrix = model + back
    np.fill_diagonal(matrix, 1.0)
    return nearest(matrix)


def factor_model(rho: Floats, weights: Floats) -> Floats:
    """Return loadings, ``[variables, factors]``."""
    variables = len(rho)
    known = np.where(weights > 0, rho, 0.0)
    # pairs that are known well begin whole, others half or less
    shrunk = known * weights / (weights + np.median(weights[weights > 0]))
    roots, axes = np.linalg.eigh(shrunk)
    rank = min(FACTORS, variables)
    loadings = axes[:, -rank:] * np.sqrt(np.maximum(roots[-rank:], 1e-3))
    prior = np.maximum((loadings**2).mean(axis=0), 1e-4)
    for sweep in range(SWEEPS):
        spread = np.zeros(rank)
        for a in range(variables):
            own = weights[a]
            gram = (loadings * own[:, None]).T @ loadings + np.diag(1 / prior)
            inverse = np.linalg.inv(gram)
            loadings[a] = inverse @ (loadings.T @ (own * known[a]))
            spread += np.diag(inverse)
            size = float(loadings[a] @ loadings[a])
            if size > MOST:
                loadings[a] *= np.sqrt(MOST / size)
        if sweep >= 3:
            prior = np.maximum(((loadings**2).sum(axis=0) + spread) / variables, 1e-5)
    return loadings


def nearest(matrix: Floats) -> Floats:
    """Return a correlation matrix near a symmetric one of unit diagonal."""
    found = matrix
    for _ in range(12):
        roots, axes = np.linalg.eigh(found)
        if roots[0] >= LEAST / 2:
            break
        found = (axes * np.maximum(roots, LEAST)) @ axes.T
        scale = np.sqrt(np.diag(found))
        found = found / np.outer(scale, scale)
    return found
