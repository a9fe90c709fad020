"""The network of a wide table's steps, fitted to the released pairs themselves: post-processing.

The logits of a drawn column are sums of weights, one for each bin of each column before it. Such a
network's likelihood depends on the steps by the joint shares of pairs of columns alone, which were
released with noise (learning from noisy sufficient statistics: Bernstein and others 2017,
arXiv 1706.04646, section 3). With T the released shares of a column before and a drawn one, and W
their weights, it is

    sum T W - E log sum exp(logits),

where the mean is over rows: of the mixture, whose drawn columns the network draws anew as it
learns. It is concave in W. A mixture that has the same pairs draws a row from the one component
that fits it best, which says little of a row that no component has; a sum of what each column says
generalises.

**Noise.** Weights have a normal prior. One weight of a pair with n cells moves a share by about
w / n; were it alone, a share with noise of standard deviation s would best be explained by a weight
that is smaller by the factor 1 / (1 + (n s / r)^2), r the weight that is expected. That is the
penalty w^2 n (s / r)^2 / 2 beside the likelihood: a pair that noise hides moves nothing. Expected
are larger weights between a value and the one before, and weights that change little from a bin of
an ordered column to the next. A pair that departs from independence by more than its noise, such as
the rows to come with what ends a history, is expected to have weights of that size (empirical
Bayes), or of a part of it, since columns before tell much of the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories.steps.pairs import Pair, StepPlaces
from dpsynth.models.histories.steps.table import StepTable
from dpsynth.models.marginals import MergedBins, Products, Target

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROWS = 40_000  # of the mixture
BATCH = 1_000
STEPS = 1_500
ROUNDS = 3  # of the fit: rows are drawn anew before each
RATE = 0.01
EXPECTED = 0.04  # size of a weight
SEEN = 0.3  # of the size that a pair's own departure from independence says, if that is more
SAME, CROSS = 7.0, 0.5  # of one from a value before to itself, and to another value, beside it
NEAR, OWN = 0.25, 0.2  # how far ordered bins are alike, of the column; a bin's own part
NEVER = 1e3  # penalty of a pair that was not measured


@dataclass(frozen=True)
class Expected:
    """What is expected of the weights of a step table: public facts.

    Attributes:
        given: how many of the first columns are conditions.
        cells: of each column, how many of its codes are ordered.
        sizes: of the weights of some pairs, in units of the others'.
    """

    given: int
    cells: Sequence[int]
    sizes: Mapping[Pair, float]

    @classmethod
    def of(cls, table: StepTable, places: StepPlaces) -> Self:
        """Read it off a step table: most follows from the row before, column by column."""
        sizes = {
            (before, later): SAME if place == other else CROSS
            for place, before in enumerate(places.before)
            for other, later in enumerate(places.values)
        }
        if places.gap is not None:
            sizes |= {(before, places.gap): SAME for before in places.times[1:]}
        return cls(table.drawn, [feature.cells for feature in table.features], sizes)


def fitted_network(
    products: Products,
    target: Target,
    bins: Sequence[MergedBins],
    expected: Expected,
    rng: np.random.Generator,
) -> Network:
    """Fit a log-linear network to released pairs.

    Args:
        products: a mixture, from which conditions are drawn.
        target: shares of columns and pairs, with the noise that they have.
        bins: of each column.
        expected: of the weights.
        rng: of the rows.
    """
    given = expected.given
    network = Network(Shape(products.sizes, 0, given), generator=torch.Generator().manual_seed(0))
    skip, first = network.skip, network.before
    alike = _alike(bins, expected.cells)
    later, mask = alike[first:, first:], skip.mask
    one = torch.tensor(target.one[first:], dtype=torch.float32)
    penalty = mask * _penalty(target, products.offsets, expected)
    inner = torch.zeros_like(mask, requires_grad=True)
    bias = torch.log(one + 1e-6).requires_grad_(True)
    optimizer = torch.optim.Adam([inner, bias], lr=RATE)
    sizes = list(products.sizes[given:])
    rows = products.draw(ROWS, rng)
    for step in range(STEPS):
        if step % -(-STEPS // ROUNDS) == 0:
            if step:
                _set(network, mask * (later @ inner @ alike.T), bias)
                rows[:, given:] = network.draw_after(rows[:, :given], rng)
            shares = mask * _shares(target, rows, products.offsets, given)
            codes = torch.from_numpy(rows + products.offsets[:-1])
        bend = 0.02 + 0.49 * (1 + np.cos(np.pi * step / STEPS))
        optimizer.param_groups[0]["lr"] = RATE * bend
        turn = torch.from_numpy(rng.integers(ROWS, size=BATCH))
        hot = torch.zeros(BATCH, network.codes).scatter_(1, codes[turn], 1.0)
        weights = mask * (later @ inner @ alike.T)
        logits = torch.split(hot @ weights.T + bias, sizes, 1)
        cost = torch.stack([block.logsumexp(dim=1).mean() for block in logits]).sum()
        cost = cost - (shares * weights).sum() - (one * bias).sum()
        cost = cost + 0.5 * (penalty * inner**2).sum()
        optimizer.zero_grad(set_to_none=True)
        cost.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
    _set(network, mask * (later @ inner @ alike.T), bias)
    return network


@torch.no_grad()
def _set(network: Network, weights: Tensor, bias: Tensor) -> None:
    network.skip.weight.copy_(weights)
    network.skip.bias.copy_(bias)


def _alike(bins: Sequence[MergedBins], cells: Sequence[int]) -> Tensor:
    """Return a root of the prior covariance of weights along all columns' bins, ``[D, D]``.

    Of an ordered column, weights of bins near each other are alike, by how far apart they are.
    """
    roots = []
    for column, ordered in zip(bins, cells, strict=True):
        covariance = np.eye(column.count)
        count = len(np.unique(column.bin_of[:ordered])) if ordered > 2 else 0
        apart = np.subtract.outer(np.arange(count), np.arange(count)) / max(count - 1, 1)
        near = np.exp(-((apart / NEAR) ** 2) / 2)
        covariance[:count, :count] = (1 - OWN) * near + OWN * np.eye(count)
        roots.append(torch.tensor(np.linalg.cholesky(covariance), dtype=torch.float32))
    joined: Tensor = torch.block_diag(*roots)  # type: ignore[no-untyped-call]
    return joined


def _penalty(target: Target, offsets: Ints, expected: Expected) -> Tensor:
    """Return what the square of each weight costs, ``[codes drawn, D]``."""
    given, columns = expected.given, len(target.sizes)
    found = np.full(target.pair_sd.shape, NEVER)
    for later in range(given, columns):
        for before in range(later):
            block = np.s_[
                offsets[before] : offsets[before + 1], offsets[later] : offsets[later + 1]
            ]
            noise = target.pair_sd[block]
            size = EXPECTED * expected.sizes.get((before, later), 1.0)
            apart = target.pairs[block] - np.outer(
                target.one[offsets[before] : offsets[before + 1]],
                target.one[offsets[later] : offsets[later + 1]],
            )
            seen = noise.size * np.sqrt(max(float((apart**2 - noise**2).mean()), 0.0))
            size = max(size, SEEN * seen)
            found[block] = np.minimum(noise.size * (noise / size) ** 2, NEVER)
    return torch.tensor(found[:, offsets[given] :].T.copy(), dtype=torch.float32)


def _shares(target: Target, rows: Ints, offsets: Ints, given: int) -> Tensor:
    """Return the released shares of pairs, ``[codes drawn, D]``; rows before are as in ``rows``.

    How often a bin before occurs is better known from all else that was released, so a pair says
    only what follows it.
    """
    size = int(offsets[-1])
    before = np.bincount((rows + offsets[:-1]).ravel(), minlength=size) / len(rows)
    found = np.outer(before, target.one)
    for later in range(given, len(target.sizes)):
        own = np.s_[offsets[later] : offsets[later + 1]]
        measured = np.isfinite(target.pair_sd[:, own].max(axis=1))
        table = np.where(measured[:, None], target.pairs[:, own], 0.0)
        lost = np.where(measured, before - table.sum(axis=1), before)
        found[:, own] = table + np.outer(lost, target.one[own])
    return torch.tensor(found[:, offsets[given] :].T.copy(), dtype=torch.float32)
