"""A network of steps moved until what it draws has the released pairs of columns.

A network that was taught on rows of a mixture meets other conditions when histories are drawn: a
patient's first row, and rows that it drew itself. There its pairs of columns drift from the
released ones. So histories are drawn, and the weights that lead from one column's bin to
another's are moved until the pairs agree.

For column j let z_j = b_j + sum over earlier columns i of W[x_i, :] + h_j(x) be the logits, where h
is the hidden layer. Given rows x, the mean log-likelihood of a table that has the pairs T is

    sum over i < j, a, b of T(x_i = a, x_j = b) W[(i, a), (j, b)] - mean of log Z_j(x),

up to what does not depend on W: of the table, only pairs enter (a log-linear model's sufficient
statistics; Lauritzen 1996, "Graphical Models", section 4.3). It is concave in W, and its gradient
is the pairs wanted less the pairs expected. The conditions of the rows x are as they are, so the
pairs wanted are raked to the shares that the conditions' bins have there (Deming and Stephan 1940,
Annals of Mathematical Statistics 11.4), or no weights would fit all of them. The rows are drawn
again, with the weights as they are, in each of a few rounds.

The pairs are those of the mixture that was fitted to the releases, which has less noise than they
have. All is a function of releases and of chance: post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.marginals import Products

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

ROUNDS = 4
STEPS = 12  # in a round
PACE = 5.0  # times as fast as iterative scaling, which is sure to converge, and slow
NOISE = 2e-4  # share of a pair's cell that says little of it
RAKINGS = 5
LEAST = 1e-9  # share of a bin, by which is divided


@dataclass(frozen=True)
class Drawn:
    """Steps as they were drawn.

    Attributes:
        bins: of all columns, ``[steps, columns]``.
        weights: of each step, as the histograms weigh them, ``[steps]``.
    """

    bins: Ints
    weights: Floats

    @classmethod
    def of(cls, parts: Sequence[tuple[Ints, Floats]]) -> Drawn:
        """Put the steps of several rounds of a walk together."""
        if not parts:
            return cls(np.empty((0, 0), dtype=np.int64), np.empty(0))
        bins, weights = zip(*parts, strict=True)
        return cls(np.concatenate(bins), np.concatenate(weights))


def calibrate(
    network: Network,
    products: Products,
    first: int,
    draw: Callable[[], Drawn],
) -> None:
    """Move a network's weights until its draws have the pairs of a mixture.

    Args:
        network: changed in place.
        products: the mixture.
        first: place of the first column that is drawn; those before are conditions.
        draw: draws histories with the network as it is, and returns their steps.
    """
    joint = (products.tables * products.weights[:, None].astype(np.float32)).T @ products.tables
    wanted = _Wanted(joint, products.weights @ products.tables, products.offsets, first)
    for _ in range(ROUNDS):
        steps = draw()
        if not len(steps.bins):
            return
        _round(network, wanted, steps)


@dataclass(frozen=True, eq=False)
class _Wanted:
    """The pairs that draws shall have: shares of the columns drawn, given each other column."""

    joint: npt.NDArray[np.float32]
    one_way: Floats
    offsets: Ints
    first: int

    @property
    def start(self) -> int:
        """Return the place of the first bin that is drawn."""
        return int(self.offsets[self.first])

    def raked(self, shares: Floats) -> Tensor:
        """Return the pairs wanted, raked to shares of the conditions, ``[bins, drawn bins]``.

        Args:
            shares: of the bins of all columns; of those drawn, the released ones are kept.
        """
        right = self.one_way[self.start :]
        left = np.concatenate([shares[: self.start], right])
        pairs = self.joint[:, self.start :].astype(np.float64)
        columns = self.offsets[:-1]
        widths = np.diff(self.offsets)
        for _ in range(RAKINGS):
            sums = np.add.reduceat(pairs, columns[self.first :] - self.start, axis=1)
            factors = left[:, None] / np.maximum(sums, LEAST)
            pairs = pairs * np.repeat(factors, widths[self.first :], axis=1)
            sums = np.add.reduceat(pairs, columns, axis=0)
            pairs = pairs * np.repeat(right / np.maximum(sums, LEAST), widths, axis=0)
        return torch.from_numpy(pairs.astype(np.float32))


def _round(network: Network, wanted: _Wanted, steps: Drawn) -> None:
    start = wanted.start
    places = steps.bins + wanted.offsets[:-1]
    each = np.broadcast_to(steps.weights[:, None], places.shape)
    shares = np.bincount(places.ravel(), weights=each.ravel(), minlength=int(wanted.offsets[-1]))
    pairs = wanted.raked(shares / steps.weights.sum())
    one_way = torch.from_numpy(wanted.one_way[start:]).float()
    mask = network.skip.mask[start:].T
    weight = network.skip.effective_weight().detach()[start:].T.clone()
    bias = network.skip.bias.detach()[start:].clone()
    widths = list(network.shape.bins[wanted.first :])
    rate = PACE / len(network.shape.bins)
    hot = network.one_hot(torch.from_numpy(steps.bins))
    share = torch.from_numpy(steps.weights / steps.weights.sum()).float()
    weighted = (hot * share[:, None]).T
    hidden = _hidden(network, hot)[:, start:]
    for _ in range(STEPS):
        logits = hot @ weight + bias + hidden
        expected = torch.cat([torch.softmax(b, 1) for b in torch.split(logits, widths, 1)], 1)
        found = weighted @ expected
        shift = torch.log((one_way + NOISE) / (share @ expected + NOISE))
        apart = torch.log((pairs + NOISE) / (found + NOISE))
        weight += rate * mask * (apart - shift)
        bias += shift
    with torch.no_grad():
        network.skip.weight[start:] = weight.T
        network.skip.bias[start:] = bias


def _hidden(network: Network, hot: Tensor) -> Tensor:
    """Return what the hidden layer adds to the logits."""
    if not network.shape.masked:
        return torch.zeros(1, network.codes)
    found: Tensor = network.masked_out(torch.tanh(network.masked_in(hot, None)), None)
    return found
