"""A factor model of a table, fitted to released products of contrasts: post-processing.

Products of two columns' scores are noisy, one by one. Taken together they say more, as relations of
many columns follow from a few common causes. The model is

    P(x_j = b | f) = softmax_b(beta_jb + sum_u g_u(b) l_u . f),    f ~ N(0, I_r),

with the scores g_u of column j, their loadings l_u in r factors, and biases beta that keep the
released shares of the columns: an item response model (Bock 1972, "Estimating item parameters and
latent ability when responses are scored in two or more nominal categories"; Skrondal and Rabe-
Hesketh 2004, "Generalized Latent Variable Modeling", chapter 3). Loadings minimise

    sum_{uv} ((mean_f E[g_u | f] E[g_v | f] - C_uv) / sd)^2 / 2 + K sum_k log(q_k + `FLAT`) / 2

over the products of scores of different columns, with q_k = sum_u l_uk^2 / (1 + |l_u|^2). The
second part drops factors that noise alone explains, and unlike a ridge does not weaken those that
stay (log-penalty: Candes, Wakin and Boyd 2008, "Enhancing sparsity by reweighted l1 minimization").
Means over f are over a fixed lattice of points (Sobol 1967).

**Rows that were shrunk.** The event shrinks rows whose scores are long, and these are the rows in
which related columns are extreme together, so C is too small, by a fifth where a third of the rows
are shrunk. Rows drawn from the model and shrunk alike show by how much; it is added to C.

**Privacy.** Released products, released shares, and the scale of public noise (Dwork and Roth 2014,
"The Algorithmic Foundations of Differential Privacy", proposition 2.1).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
from scipy.stats import qmc

from dpsynth.models.marginals.contrasts.scores import Contrasts
from dpsynth.models.marginals.product_fit import ColumnShares, bend

if TYPE_CHECKING:
    from torch import Tensor

Floats = npt.NDArray[np.float64]

POINTS = 1024  # of factors; a power of 2
STEPS, RATE = 250, 0.1  # of Adam
FLAT = 0.05  # of a factor's size, below which the penalty is flat
CLEAR = 2.0  # standard deviations of noise, beyond which a product is part of where factors begin
ROWS = 20_000  # of the model, which show what shrinking takes
LOOKS = 3  # at such rows, between equal parts of the steps


@dataclass(frozen=True)
class Factored:
    """A factor model of released products.

    Attributes:
        products: means of the products of scores, were no row shrunk, ``[K, K]``; 0 for scores of
            one column.
        laws: shares of the columns' bins at each point of the factors, ``[points, D]``.
    """

    products: Floats
    laws: Floats

    def pair(self, one: slice, other: slice) -> Floats:
        """Return the shares of the cells of two columns, given their places among all bins."""
        return np.asarray(self.laws[:, one].T @ self.laws[:, other] / len(self.laws))


def factored(
    products: Floats,
    contrasts: Contrasts,
    shares: Sequence[Floats],
    sd: float,
    rng: np.random.Generator,
) -> Factored:
    """Fit a factor model to released products.

    Args:
        products: released, mean over the units, ``[K, K]``, 0 for scores of one column.
        contrasts: scores that were multiplied.
        shares: of the bins of each column, above 0.
        sd: standard deviation of the products' noise.
        rng: of the model's rows.
    """
    import torch

    sizes = tuple(len(own) for own in shares)
    scores = torch.from_numpy(contrasts.matrix).float()
    apart = contrasts.columns[:, None] != contrasts.columns
    weight = torch.from_numpy(apart / sd**2).float()
    loadings = torch.from_numpy(_begun(products, sd)).float()
    points = torch.from_numpy(_points(loadings.shape[1])).float()
    aim = torch.from_numpy(np.concatenate(shares)).float()
    biases, target = aim.log(), torch.from_numpy(products).float()
    columns = ColumnShares(sizes, POINTS)
    optimizer = torch.optim.Adam([loadings], lr=RATE)
    lost = np.zeros_like(products)
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = RATE * bend(step / STEPS)
        laws = columns.normalised(torch.addmm(biases, points, (scores @ loadings).T))
        expected = laws @ scores
        off = (expected.T @ expected / POINTS).sub_(target).mul_(weight)
        slope = columns.through(laws, (expected @ off) @ scores.T / POINTS)
        loadings.grad = scores.T @ (slope.T @ points) + _penalty_slope(loadings)
        optimizer.step()
        biases = biases + torch.log(aim / laws.mean(dim=0)).clamp(-1, 1)
        if step + 1 in range(STEPS // (LOOKS + 1), STEPS, STEPS // (LOOKS + 1)):
            lost = apart * _lost(laws.double().numpy(), contrasts, sizes, rng)
            target = torch.from_numpy(products + lost).float()
    laws = columns.normalised(torch.addmm(biases, points, (scores @ loadings).T))
    return Factored(products + lost, laws.double().numpy())


def _begun(products: Floats, sd: float) -> Floats:
    """Return loadings to begin from: leading eigenvectors of what is clear of the noise.

    There are as many factors as eigenvalues above those of noise alone, which are at most
    2 sd sqrt(K), about (Wigner's semicircle).
    """
    edge = 2 * sd * math.sqrt(len(products))
    rank = max(1, int((np.linalg.eigvalsh(products) > edge).sum()))
    noise = (CLEAR * sd) ** 2
    roots, axes = np.linalg.eigh(products * (1 - noise / np.maximum(products**2, noise)))
    begun = axes[:, -rank:] * np.sqrt(np.maximum(roots[-rank:], sd))
    return np.asarray(begun)


def _points(factors: int) -> Floats:
    """Return normal points of mean 0 and covariance I, ``[POINTS, factors]``, always the same."""
    lattice = qmc.MultivariateNormalQMC(np.zeros(factors), rng=np.random.default_rng(0))
    normals = lattice.random(POINTS)
    normals -= normals.mean(axis=0)
    root = np.linalg.cholesky(normals.T @ normals / POINTS)
    return np.asarray(np.linalg.solve(root, normals.T).T)


def _penalty_slope(loadings: Tensor) -> Tensor:
    """Return the slope of the penalty on the sizes of the factors, ``[K, r]``."""
    squares = loadings**2
    whole = 1 + squares.sum(dim=1, keepdim=True)
    factor = len(loadings) / ((squares / whole).sum(dim=0) + FLAT)
    shared = (squares * factor).sum(dim=1, keepdim=True) / whole
    return loadings / whole * (factor - shared)


def _lost(
    laws: Floats, contrasts: Contrasts, sizes: Sequence[int], rng: np.random.Generator
) -> Floats:
    """Return what shrinking takes from the mean products of the model's rows, ``[K, K]``."""
    at = rng.integers(len(laws), size=ROWS)
    ends = np.cumsum([0, *sizes])
    parts = []
    for first, last, scores in zip(ends[:-1], ends[1:], contrasts.values, strict=True):
        below = np.cumsum(laws[:, first:last], axis=1)[at]
        bins = (rng.random((ROWS, 1)) * below[:, -1:] > below).sum(axis=1)
        parts.append(scores[np.minimum(bins, last - first - 1)])
    rows = np.concatenate(parts, axis=1)
    kept = contrasts.shrunk(rows)
    return np.asarray((rows.T @ rows - kept.T @ kept) / ROWS)
