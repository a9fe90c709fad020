"""Latent vectors that a condition wants: a normal law fitted to those that meet it.

A decoder draws its columns from a latent vector z alone, so a condition on rows is a weight w(z) on
vectors: how likely a row of z meets it. Under a rare condition, hardly any vector of the prior
N(0, I) has weight, and rows would share the few that do. So vectors are proposed from a law q that
aims at them, and carry the weight w(z) p(z) / q(z) (importance sampling; Owen 2013, "Monte Carlo
theory, methods and examples", chapter 9). That is exact for any q > 0. Here q is a normal law with
the weighted mean and covariance of earlier proposals, `PRIOR` of it the prior, so that no vector is
left out (defensive mixture, section 9.11). It is found in `ROUNDS` rounds (population Monte Carlo:
Cappe, Guillin, Marin and Robert 2004, section 3); while few vectors count, weights are tempered.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

PRIOR = 0.1  # of the proposals
ROUNDS = 4
VECTORS = 8_000  # of a round
EACH = 20  # effective vectors for each dimension, of those that a law is fitted to
WIDER = 1.2  # than fitted: tails that are too short cost most


@dataclass(frozen=True, eq=False)
class Aim:
    """A normal law of latent vectors, mixed with the prior.

    Attributes:
        mean: ``[latent]``.
        root: lower triangular root of the covariance, ``[latent, latent]``.
    """

    mean: Floats
    root: Floats

    @classmethod
    def at(
        cls, latent: int, weigh: Callable[[Floats], Floats], rng: np.random.Generator
    ) -> Aim | None:
        """Aim at vectors of large weight.

        Args:
            latent: dimensions.
            weigh: gives the logarithm of the weight of vectors ``[n, latent]``.
            rng: of the proposals.

        Returns:
            None if no vector has a weight.
        """
        aim: Aim | None = None
        for _ in range(ROUNDS):
            vectors, logs = drawn(aim, VECTORS, latent, rng)
            logs = logs + weigh(vectors)
            if not np.isfinite(logs).any():
                return None
            weights = _tempered(logs, min(EACH * latent, VECTORS // 2))
            mean = weights @ vectors
            apart = vectors - mean
            spread = WIDER * (apart.T * weights) @ apart + 1e-3 * np.eye(latent)
            aim = cls(mean, np.asarray(np.linalg.cholesky(spread), dtype=np.float64))
        return aim


def drawn(
    aim: Aim | None, number: int, latent: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw vectors, and the logarithm of prior over proposal of each."""
    normal = rng.standard_normal((number, latent))
    if aim is None:
        return normal, np.zeros(number)
    aimed = rng.random(number) >= PRIOR
    vectors = np.where(aimed[:, None], aim.mean + normal @ aim.root.T, normal)
    from scipy.linalg import solve_triangular

    own = solve_triangular(aim.root, (vectors - aim.mean).T, lower=True)
    log_aim = -0.5 * (own**2).sum(axis=0) - np.log(np.diag(aim.root)).sum()
    log_prior = -0.5 * (vectors**2).sum(axis=1)
    both = np.logaddexp(np.log(PRIOR) + log_prior, np.log1p(-PRIOR) + log_aim)
    return vectors, log_prior - both


def effective(logs: Floats) -> float:
    """Return the effective number of weighted proposals: (sum w)^2 / sum w^2 (Kong 1992).

    Example:
        >>> round(effective(np.log([1.0, 1.0, 1e-9])), 3)
        2.0
    """
    weights = np.exp(logs - logs.max())
    return float(weights.sum() ** 2 / (weights**2).sum())


def _tempered(logs: Floats, wanted: float) -> Floats:
    """Return weights that sum to 1, flattened until enough vectors count."""
    power = 1.0
    while power > 1e-3 and effective(power * np.where(np.isfinite(logs), logs, -1e9)) < wanted:
        power *= 0.8
    weights = np.where(np.isfinite(logs), np.exp(power * (logs - logs[np.isfinite(logs)].max())), 0)
    return np.asarray(weights / weights.sum())
