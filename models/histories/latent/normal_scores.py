"""Normal scores of ordered codes, and the correlation that a mean product of two of them says.

A column is a step function of a standard normal variable Z: code a where c_a <= Z < c_(a+1), with
cuts c = Phi^-1(cumsum p) of its released shares p. A patient with code a gets the score

    u_a = E[Z | c_a <= Z < c_(a+1)] = (phi(c_a) - phi(c_(a+1))) / p_a.

If two such variables have correlation rho, the mean product of any functions u, v of their codes is
sum_k h_k(u) h_k(v) rho^k, with the Hermite coefficients h_k(u) = E[u(Z) He_k(Z)] / sqrt(k!) (Mehler
1866; Lancaster 1957, "Some properties of the bivariate normal distribution considered in the form
of a contingency table"). It is solved for rho on a grid: nothing is lost to the width of the codes.

Everything here is a function of released numbers: post-processing.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

TERMS = 40  # of a Hermite expansion
GRID = np.tanh(np.linspace(-2.6, 2.6, 105))  # of correlations
FLAT = 1e-9
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(48)
NODE_WEIGHTS = NODE_WEIGHTS / NODE_WEIGHTS.sum()


def cuts_of(shares: Floats) -> Floats:
    """Return where each code begins, and the end of the last one: ``[codes + 1]``."""
    ends = np.concatenate([[0.0], np.cumsum(shares)])
    return np.asarray(ndtri(np.clip(ends / max(ends[-1], FLAT), 0.0, 1.0)))


def density(z: Floats) -> Floats:
    """Return the standard normal density; 0 at an infinite place."""
    return np.asarray(np.exp(-0.5 * np.minimum(z**2, 1e3)) / np.sqrt(2 * np.pi))


def scores_of(shares: Floats) -> Floats:
    """Return the normal score of each code: the mean of a standard normal in its part.

    >>> scores_of(np.array([0.5, 0.5])).round(3).tolist()
    [-0.798, 0.798]
    """
    own = shares / max(float(shares.sum()), FLAT)
    edge = density(cuts_of(own))
    middle = np.clip(np.cumsum(own) - own / 2, 1e-6, 1 - 1e-6)
    found = (edge[:-1] - edge[1:]) / np.maximum(own, FLAT)
    return np.where(own > 1e-7, found, ndtri(middle))


def hermite(shares: Floats, values: Floats) -> Floats:
    """Return h_k, k from 1 to `TERMS`, of a function of the codes.

    Args:
        shares: of the codes.
        values: of the function at each code.

    >>> hermite(np.array([0.5, 0.5]), np.array([-1.0, 1.0]))[:3].round(3).tolist()
    [0.798, 0.0, -0.326]
    """
    cuts = np.clip(cuts_of(shares), -12, 12)
    edge = density(cuts)
    edge[[0, -1]] = 0.0
    # the integral of He_k phi from a to b is He_(k-1)(a) phi(a) - He_(k-1)(b) phi(b)
    before, now = np.zeros_like(cuts), edge  # He_k phi / sqrt(k!), from k = 0
    found = np.empty(TERMS)
    for k in range(1, TERMS + 1):
        found[k - 1] = float(values @ (now[:-1] - now[1:])) / np.sqrt(k)
        before, now = now, (cuts * now - np.sqrt(k - 1) * before) / np.sqrt(k)
    return found


POWERS = GRID[:, None] ** np.arange(1, TERMS + 1)


def correlations(products: Floats, one: Floats, others: Floats) -> tuple[Floats, Floats]:
    """Return the correlation that each mean product says, and the slope of the product there.

    Args:
        products: mean products of a variable with others, ``[others]``.
        one: Hermite coefficients of the variable, ``[TERMS]``.
        others: those of the others, ``[others, TERMS]``.
    """
    curves = POWERS @ (one * others).T  # [grid, others]
    curves = np.maximum.accumulate(curves + 1e-12 * np.arange(len(GRID))[:, None], axis=0)
    after = np.clip((curves < products).sum(axis=0), 1, len(GRID) - 1)
    low, high = (np.take_along_axis(curves, at[None], axis=0)[0] for at in (after - 1, after))
    part = np.clip((products - low) / np.maximum(high - low, FLAT**2), 0.0, 1.0)
    rho = GRID[after - 1] + part * (GRID[after] - GRID[after - 1])
    slopes = np.vander(rho, TERMS, increasing=True) * np.arange(1, TERMS + 1) * (one * others)
    return rho, np.asarray(slopes.sum(axis=1))


def both_above(one: float, others: Floats, rho: Floats) -> Floats:
    """Return how likely two correlated normal variables are above cuts."""
    rho = np.clip(rho, -0.995, 0.995)
    points = np.where(NODES > one, 1.0, 0.0)
    # the step at the cut is smeared over the nodes: the first variable's own integral corrects it
    given = ndtr((rho[:, None] * NODES - others[:, None]) / np.sqrt(1 - rho[:, None] ** 2))
    total = float(NODE_WEIGHTS @ points)
    share = float(ndtr(-one))
    return np.asarray((given * points) @ NODE_WEIGHTS * (share / max(total, FLAT)))
