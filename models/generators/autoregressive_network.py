"""The network of `autoregressive`: each column's distribution, given the columns before it.

A row of d binned columns enters one-hot, ``[rows, codes]``. The logits of a column are the sum of a
masked linear map of the row's earlier columns, and of a masked hidden layer (MADE,
Germain et al. 2015, arXiv 1502.03509, section 3), which width 0 leaves out. So the probability of a
row is the product of its columns' probabilities, exactly. No layer mixes rows of a batch.

Training leaves each column's share of rows a little off, and draws of later columns take that over:
`Network.settle` moves the biases until columns are drawn as often as they should be.

The first columns may be given: then the network has logits of the columns after them alone, and its
loss is that of those columns. Nothing is spent on the law of what is known anyway.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dpsynth.models.dpsgd import Activations, MaskedLinear
from dpsynth.models.generators.binned_network import (
    BinnedNetwork,
    draw_column,
    draw_weighed,
    logs_of,
)
from dpsynth.models.generators.latent_aim import Aim

ROUNDS, NEAR = 20, 1e-3  # of settling a column, at most; and how far a bias then still has to move
RARE, FURTHEST = 1e-6, 1.0  # added to shares; of a bias, in a round


@dataclass(frozen=True)
class Shape:
    """Public sizes of the network.

    Attributes:
        bins: of each column.
        masked: width of the hidden layer; 0 leaves the linear map alone.
        given: first columns that are inputs alone.
    """

    bins: tuple[int, ...]
    masked: int
    given: int = 0


class Network(BinnedNetwork):
    """Masked maps from one-hot rows to the logits of their columns."""

    def __init__(self, shape: Shape, *, generator: torch.Generator) -> None:
        """Draw initial weights from ``generator``; output layers start at zero."""
        super().__init__(shape.bins)
        self.shape = shape
        columns = np.repeat(np.arange(len(shape.bins)), shape.bins)
        drawn = columns[columns >= shape.given]
        self.skip = MaskedLinear(columns, drawn, generator=generator)
        outputs: list[MaskedLinear] = [self.skip]
        if shape.masked:
            # A hidden unit of group g sees columns before g; column j sees units of groups up to j.
            least = max(1, shape.given)
            units = least + np.arange(shape.masked) % max(1, len(shape.bins) - least)
            self.units = np.sort(units)
            self.masked_in = MaskedLinear(columns, self.units, generator=generator)
            self.masked_out = MaskedLinear(self.units, drawn + 1, generator=generator)
            outputs.append(self.masked_out)
        with torch.no_grad():
            for layer in outputs:
                layer.weight.zero_()
                layer.bias.zero_()

    def start_at(self, shares: Sequence[npt.NDArray[np.float64]]) -> None:
        """Set the biases to the columns' own distributions."""
        with torch.no_grad():
            self.skip.bias.copy_(logs_of(shares[self.shape.given :]))

    @property
    def before(self) -> int:
        """Width of the given columns in a one-hot row."""
        return self.offsets[self.shape.given]

    def loss(self, rows: Tensor, activations: Activations | None) -> Tensor:
        """Return the negative log-likelihood of each row, ``[units, k]``, in nats."""
        units, k, columns = rows.shape
        hot = self.one_hot(rows.reshape(units * k, columns))
        logits = self.logits(hot, activations)
        return self.nats(logits, hot[:, self.before :], self.shape.given).reshape(units, k)

    def logits(self, hot: Tensor, activations: Activations | None = None) -> Tensor:
        """Return the logits of one-hot rows, ``[rows, codes drawn]``; see `loss`."""
        logits: Tensor = self.skip(hot, activations)
        if self.shape.masked:
            hidden = torch.tanh(self.masked_in(hot, activations))
            logits = logits + self.masked_out(hidden, activations)
        return logits

    @torch.no_grad()
    def draw(
        self,
        rows: int,
        rng: np.random.Generator,
        *,
        leaders: Sequence[Sequence[int]],
        first: npt.NDArray[np.float64] | None = None,
        even: bool = True,
    ) -> npt.NDArray[np.int64]:
        """Draw binned rows ``[rows, columns]``, column after column."""
        paths = Paths(self, rows)
        bins = np.empty((rows, len(self.shape.bins)), dtype=np.int64)
        for j in range(len(self.shape.bins)):
            factors = first if j == 0 else None
            bins[:, j] = draw_column(
                paths.logits(j), factors, bins[:, list(leaders[j])], rng, even=even
            )
            paths.take(j, torch.from_numpy(bins[:, j]))
        return rng.permutation(bins) if even else bins

    @torch.no_grad()
    def settle(
        self,
        given: npt.NDArray[np.int64],
        shares: Sequence[npt.NDArray[np.float64]],
        rng: np.random.Generator,
        *,
        leaders: Sequence[Sequence[int]],
    ) -> None:
        """Move the biases until each column is drawn as often as it should be: free of charge.

        Columns settle in turn, each on rows whose columns before have settled. How columns go
        together stays as it was learned: the logits of a column move by the same for all rows.

        Args:
            given: bins of the columns that are inputs alone, ``[rows, columns]``.
            shares: of the bins of each column after these, from what was released.
            rng: of the draws.
            leaders: as of `draw`.
        """
        paths = Paths(self, len(given))
        bins = np.empty((len(given), len(self.shape.bins)), dtype=np.int64)
        bins[:, : self.shape.given] = given
        for j in range(len(self.shape.bins)):
            if j >= self.shape.given:
                logits = paths.logits(j)
                shift = bias_shift(logits, shares[j - self.shape.given])
                start = self.offsets[j] - self.before
                self.skip.bias[start : start + len(shift)] += shift
                along = bins[:, list(leaders[j])]
                bins[:, j] = draw_column(logits + shift, None, along, rng, even=True)
            paths.take(j, torch.from_numpy(np.ascontiguousarray(bins[:, j])))

    @torch.no_grad()
    def propose(
        self,
        rows: int,
        rng: np.random.Generator,
        factors: Mapping[int, npt.NDArray[np.float64]],
        aim: Aim | None = None,
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]:
        """Draw rows that meet a condition, column after column, and their log-weights."""
        paths = Paths(self, rows)
        bins = np.empty((rows, len(self.shape.bins)), dtype=np.int64)
        weights = np.zeros(rows)
        for j in range(len(self.shape.bins)):
            bins[:, j], left = draw_weighed(paths.logits(j), factors.get(j), rng)
            weights += left
            paths.take(j, torch.from_numpy(bins[:, j]))
        return bins, weights

    @torch.no_grad()
    def draw_after(
        self,
        given: npt.NDArray[np.int64],
        rng: np.random.Generator,
        likelier: npt.NDArray[np.float64] | None = None,
        pull: Tensor | None = None,
        leaders: Sequence[Sequence[int]] | None = None,
    ) -> npt.NDArray[np.int64]:
        """Draw the last columns of rows whose first ones are given, ``[rows, columns drawn]``.

        Args:
            given: bins of the first columns, ``[rows, columns]``.
            rng: of the draws.
            likelier: factor of each bin of the first column to be drawn, ``[rows, bins]``; 0 for
                one that it may not take.
            pull: is added to the logits, ``[rows, codes drawn]``, where something else moves them.
            leaders: for each column of a row, the earlier ones along which draws are spread more
                evenly than chance; None for independent draws.
        """
        paths = Paths(self, len(given), pull)
        bins = np.empty((len(given), len(self.shape.bins)), dtype=np.int64)
        bins[:, : given.shape[1]] = given
        for j in range(len(self.shape.bins)):
            if j < given.shape[1]:
                if self.shape.masked and j >= self.shape.given:
                    paths.logits(j)  # fills in the hidden units
            else:
                logits = paths.logits(j)
                if j == given.shape[1] and likelier is not None:
                    logits = logits + torch.from_numpy(likelier).log().to(logits.dtype)
                along = bins[:, [] if leaders is None else list(leaders[j])]
                bins[:, j] = draw_column(logits, None, along, rng, even=leaders is not None)
            paths.take(j, torch.from_numpy(np.ascontiguousarray(bins[:, j])))
        return bins[:, given.shape[1] :]


def bias_shift(logits: Tensor, shares: npt.NDArray[np.float64], *, rounds: int = ROUNDS) -> Tensor:
    """Return what to add to the logits of all rows for a column to have these shares, ``[bins]``.

    Were all rows alike, one step by the logarithm of the ratio would do; the less they are, the
    more steps it takes, at most ``rounds``.
    """
    aim = torch.from_numpy(shares / shares.sum()).double()
    found, weighed = torch.zeros(len(aim), dtype=torch.float64), logits.double()
    for _ in range(rounds):
        mean = torch.softmax(weighed + found, 1).mean(dim=0)
        left = torch.log((aim + RARE) / (mean + RARE)).clamp(-FURTHEST, FURTHEST)
        found += left
        if float(left.abs().max()) < NEAR:
            break
    return found.float()


class Paths:
    """The logits of rows under construction: of each column, from those drawn before it."""

    def __init__(self, network: Network, rows: int, pull: Tensor | None = None) -> None:
        """Begin rows without a column; ``pull`` is as of `Network.draw_after`."""
        self.network, self.shape, self.pull = network, network.shape, pull
        self.places = torch.empty((rows, len(self.shape.bins)), dtype=torch.int64)
        self.skip = network.skip.effective_weight().T
        if self.shape.masked:
            self.units = torch.empty((rows, self.shape.masked))
            self.into = network.masked_in.effective_weight().T
            self.out = network.masked_out.effective_weight()

    def logits(self, j: int) -> Tensor:
        """Return the logits of column j; all columns before it have been taken."""
        start = self.network.offsets[j]
        own = slice(*(place - self.network.before for place in self.network.offsets[j : j + 2]))
        logits = self._sum(j, self.skip[:start, own]) + self.network.skip.bias[own]
        if self.shape.masked:
            groups = self.network.units
            first, ready = (int(np.searchsorted(groups, g)) for g in (j, j + 1))
            if first < ready:
                inputs = self._sum(j, self.into[:start, first:ready])
                inputs += self.network.masked_in.bias[first:ready]
                self.units[:, first:ready] = inputs.tanh_()
            logits += self.network.masked_out.bias[own]
            logits += self.units[:, :ready] @ self.out[own, :ready].T
        return logits if self.pull is None else logits + self.pull[:, own]

    def take(self, j: int, code: Tensor) -> None:
        """Note what was drawn for column j."""
        self.places[:, j] = code + self.network.offsets[j]

    def _sum(self, j: int, weights: Tensor) -> Tensor:
        """Add up the weights of each row's codes before column j, ``[rows, outputs]``."""
        if j == 0:
            return torch.zeros(len(self.places), weights.shape[1])
        bags = self.places[:, :j].contiguous()
        return nn.functional.embedding_bag(bags, weights.contiguous(), mode="sum")
