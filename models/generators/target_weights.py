"""What decides a target, learned from its released pairs themselves: post-processing.

A network that learns from rows of a mixture learns what the mixture says. Of a target that is too
little: its relations to other columns are weak, and all columns share the mixture's components. So
the logits of a target are fitted anew, as a sum of one weight for each bin of the columns before it
(`marginals.released_weights`). The columns before are those of rows that the network draws.

**As strong as released.** The prior pulls the most likely weights towards 0, so a target that they
draw would be more random than that of the patients. A draw from the posterior distribution of the
weights is not too weak. It is the most likely weights of shares that are moved by noise once more,
under a prior whose middle is drawn (perturb-and-MAP: Papandreou and Yuille 2010, "Gaussian sampling
by local perturbations"). It differs from the most likely weights by something of mean 0, so the
squared spreads of the logits of both parts add up to that of the target. The most likely weights
are made larger until they have all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import torch
from scipy.linalg import block_diag
from scipy.optimize import minimize
from scipy.special import logsumexp

from dpsynth.models.marginals import (
    WeightPrior,
    indicators,
    penalties,
    shares_after,
    without_margins,
)

if TYPE_CHECKING:
    from dpsynth.models import Feature
    from dpsynth.models.generators.autoregressive_network import Network
    from dpsynth.models.marginals import MergedBins, Target

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

PRIOR = WeightPrior(size=0.03, seen=1.0, near=0.25, own=0.05, chance=1e-3, most=1.0)
ROWS = 50_000
TURNS = 100  # of the search, at most
DRAWS = 2  # of the weights
MOST = 1.5  # times the most likely weights; beyond it, they say little of the others


def learn_targets(
    network: Network,
    target: Target,
    bins: Sequence[MergedBins],
    features: Sequence[Feature],
    leaders: Sequence[Sequence[int]],
    rng: np.random.Generator,
) -> None:
    """Fit the logits of each column that is a target to its released pairs with those before it.

    Args:
        network: without a hidden layer; changed in place.
        target: what was released.
        bins: of each column.
        features: public facts of each column.
        leaders: as of `Network.draw`.
        rng: of the rows and of the draws of weights.
    """
    offsets = np.array(network.offsets)
    for place, feature in enumerate(features):
        if feature.target and place:
            rows = network.draw(ROWS, rng, leaders=leaders)
            weights, bias = _Column(target, bins, features, rows, offsets, place).learned(rng)
            own = slice(offsets[place], offsets[place + 1])
            with torch.no_grad():
                network.skip.weight[own, : offsets[place]] = torch.from_numpy(weights).float()
                network.skip.bias[own] = torch.from_numpy(bias).float()


class _Column:
    """The posterior distribution of the weights of one column, ``[bins, D before]``."""

    def __init__(
        self,
        target: Target,
        bins: Sequence[MergedBins],
        features: Sequence[Feature],
        rows: Ints,
        offsets: Ints,
        place: int,
    ) -> None:
        """Take what was released, and rows whose columns before count."""
        own = slice(offsets[place], offsets[place + 1])
        self.one, self.offsets = target.one[own], offsets[: place + 1]
        bins_before = rows[:, :place] + offsets[:place]
        self.rows = indicators(bins_before, int(offsets[place]), np.float64)
        self.shares = shares_after(target, self.rows.mean(axis=0), offsets, place).T
        roots = [
            PRIOR.root(column, feature.cells)
            for column, feature in zip(bins[: place + 1], features[: place + 1], strict=True)
        ]
        self.before, self.own = block_diag(*roots[:-1]), roots[-1]
        blocks = [slice(offsets[one], offsets[one + 1]) for one in range(place)]
        noise = [target.pair_sd[block, own].T for block in blocks]
        sizes = [PRIOR.size_of(target, offsets, one, place) for one in range(place)]
        parts = zip(noise, sizes, strict=True)
        self.penalty = np.hstack([penalties(one, size) for one, size in parts])
        measured = np.hstack([np.isfinite(one) for one in noise])
        self.noise = np.where(measured, np.hstack(noise), 0.0)
        each = np.repeat(sizes, [one.shape[1] for one in noise])
        self.sizes = np.where(measured, each, 0.0)

    def learned(self, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Return weights as strong as was released, and the bias of each bin."""
        weights, bias = self._most_likely(self.shares, np.zeros_like(self.sizes))
        found = self._spread(weights)
        if not found:
            return weights, bias
        lacking = np.mean([self._spread(drawn - weights) for drawn in self._drawn(rng)])
        return weights * min(MOST, float(1 + lacking / found) ** 0.5), bias

    def _drawn(self, rng: np.random.Generator) -> Iterator[Floats]:
        """Draw weights from their posterior distribution."""
        for _ in range(DRAWS):
            noise = (self.noise * rng.standard_normal(self.noise.shape)).T
            moved = without_margins(noise, self.offsets).T
            middle = self.sizes * rng.standard_normal(self.sizes.shape)
            yield self._most_likely(self.shares + moved, middle)[0]

    def _most_likely(self, shares: Floats, middle: Floats) -> tuple[Floats, Floats]:
        """Return the most likely weights and biases.

        Args:
            shares: of pairs, ``[bins, D before]``.
            middle: of the prior, before bins are made alike, of the same shape.
        """
        count = len(self.one)

        def cost(point: Floats) -> tuple[float, Floats]:
            inner, bias = point[count:].reshape(middle.shape), point[:count]
            weights = self.own @ inner @ self.before.T
            logits = self.rows @ weights.T + bias
            apart = inner - middle
            sums = logsumexp(logits, axis=1, keepdims=True)
            value = sums.mean() - (shares * weights).sum() - self.one @ bias
            value += (self.penalty * apart**2).sum() / 2
            slope = np.exp(logits - sums) / len(logits)
            by_weight = (self.rows.T @ slope).T - shares
            by_inner = self.own.T @ by_weight @ self.before + self.penalty * apart
            by_bias = slope.sum(axis=0) - self.one
            return float(value), np.concatenate([by_bias, by_inner.ravel()])

        start = np.concatenate([np.log(np.maximum(self.one, 1e-6)), np.zeros(middle.size)])
        found = minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": TURNS}).x
        inner, bias = found[count:].reshape(middle.shape), found[:count]
        return self.own @ inner @ self.before.T, bias

    def _spread(self, weights: Floats) -> float:
        """Return the variance of the logits that weights give the rows, mean over the bins."""
        logits = self.rows @ weights.T
        logits -= (logits @ self.one)[:, None]
        return float(logits.var(axis=0) @ self.one)
