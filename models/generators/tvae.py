"""`tvae`: a tabular variational autoencoder, trained by DP-SGD.

An encoder infers a Gaussian latent vector from a row, and a decoder gives the distributions of all
columns from it. Both learn by the evidence lower bound (Kingma and Welling 2014, arXiv 1312.6114,
section 2.2), as Xu et al. (2019, arXiv 1907.00503, section 4.4) do for tables. Unlike theirs,
numeric columns are binned by noisy counts, and training starts from a mixture fitted to noisy
pairs. It ends by settling: the decoder is moved until prior draws have that mixture's pairs.

The network of `tvae`: a variational autoencoder of one-hot rows.

A row x of d binned columns enters one-hot, ``[rows, codes]``. The encoder gives the mean and the
log-variance of a Gaussian latent vector z, ``q(z | x)``; the decoder gives the logits of all
columns, which are independent given z. The loss is minus the evidence lower bound, with one draw
of z,

    KL(q(z | x) || N(0, 1)) - log p(x | z)

(Kingma and Welling 2014, arXiv 1312.6114, section 2.3 and appendix B). No layer mixes rows of a
batch.

Settling of `tvae`: its decoder is moved until prior draws have the mixture's columns and pairs.

The evidence lower bound makes a decoder good at latent vectors that the encoder infers. Those do
not quite have the prior's law, so rows that are drawn from the prior miss the columns and pairs of
the source. Settling moves the decoder until they have those of the mixture. Mixture, network and
prior are free, so this is post-processing, and the last thing that a fit does: what the private
steps added beyond pairs stays, since a short settling asks for pairs only.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor

from dpsynth.models import Progress, silent
from dpsynth.models.dpsgd import Activations, Linear, moved
from dpsynth.models.generators.binned_network import (
    BinnedNetwork,
    Floats,
    Ints,
    draw_column,
    draw_weighed,
    log_left,
    logs_of,
)
from dpsynth.models.generators.latent_aim import Aim, drawn
from dpsynth.models.generators.warm_started import WarmStarted
from dpsynth.models.marginals import Products

if TYPE_CHECKING:
    from dpsynth.models import Preset
    from dpsynth.models.marginals import Fitness, InitialModel


DRAWS = 64  # of a latent vector, for the likelihood of each row


class Tvae(WarmStarted):
    """Encoder, latent vector and decoder over binned columns."""

    name: ClassVar[str] = "tvae"
    network_: Network

    @classmethod
    def network_of(cls, preset: Preset, bins: tuple[int, ...], seed: int) -> Network:
        """Build the network of a preset; see `WarmStarted.network_of`."""
        if not (preset.latent and preset.hidden):
            raise ValueError("a variational autoencoder has a latent vector and hidden layers")
        shape = Shape(bins, preset.hidden, preset.latent)
        return Network(shape, generator=torch.Generator().manual_seed(seed))

    def _settle(self, start: InitialModel, rng: np.random.Generator, progress: Progress) -> Fitness:
        """Move the decoder until draws from the prior have the mixture's columns and pairs."""
        settle(self.network_, start.products, self.preset_.settling_steps, rng, progress)
        assert start.released is not None
        return start.released.judged(partial(self.network_.draw, leaders=self.leaders_))

    def _log_prob_of_bins(self, rows: torch.Tensor) -> torch.Tensor:
        """Return a bound from below by importance weighting (Burda et al. 2016, section 3).

        The latent vectors are the same each time, so that an audit can be repeated.
        """
        return self.network_.log_likelihood(rows, np.random.default_rng(0), DRAWS)


LOG_VARIANCE = 6.0  # log-variances beyond +-6 carry no information and lose precision
CANDIDATES = 65_536  # latent vectors that are weighed at once
START = 0.1  # of the usual spread: weights of the decoder's last layer at the start


@dataclass(frozen=True)
class Shape:
    """Public sizes of the network.

    Attributes:
        bins: of each column.
        hidden: width of the encoder's and decoder's hidden layers.
        latent: width of the latent vector.
    """

    bins: tuple[int, ...]
    hidden: int
    latent: int


class Network(BinnedNetwork):
    """Encoder and decoder, with one hidden layer each."""

    def __init__(self, shape: Shape, *, generator: torch.Generator) -> None:
        """Draw initial weights from ``generator``; the decoder's last layer starts near zero.

        The latent noise has a source of its own, ``noise``: torch seeds a generator with 32 bits
        only, and released weights resemble those that were drawn from it.
        """
        super().__init__(shape.bins)
        self.shape = shape
        self.noise = np.random.default_rng()
        self.encode_in = Linear(self.codes, shape.hidden, generator=generator)
        self.encode_out = Linear(shape.hidden, 2 * shape.latent, generator=generator)
        self.decode_in = Linear(shape.latent, shape.hidden, generator=generator)
        self.decode_out = Linear(shape.hidden, self.codes, generator=generator)
        with torch.no_grad():
            self.decode_out.weight.mul_(START)
            self.decode_out.bias.zero_()

    def start_at(self, shares: Sequence[Floats]) -> None:
        """Set the biases to the columns' own distributions, one array of shares a column."""
        with torch.no_grad():
            self.decode_out.bias.copy_(logs_of(shares))

    def draw_from(self, source: Callable[[], np.random.Generator]) -> None:
        """Draw the latent noise of training from the source of all noise."""
        self.noise = source()

    def encode(self, hot: Tensor, activations: Activations | None = None) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance of one-hot rows' latent vectors, ``[n, latent]`` each."""
        hidden = torch.tanh(self.encode_in(hot, activations))
        mean, log_variance = self.encode_out(hidden, activations).chunk(2, dim=1)
        return mean, log_variance.clamp(-LOG_VARIANCE, LOG_VARIANCE)

    def decode(self, latent: Tensor, activations: Activations | None = None) -> Tensor:
        """Return the logits of all columns, ``[n, codes]``, from latent vectors."""
        logits: Tensor = self.decode_out(
            torch.tanh(self.decode_in(latent, activations)), activations
        )
        return logits

    def laws(self, latent: Tensor) -> Tensor:
        """Return the distributions of all columns, ``[n, codes]``, from latent vectors."""
        blocks = torch.split(self.decode(latent), self.bins, 1)
        return torch.cat([torch.softmax(block, dim=1) for block in blocks], 1)

    def loss(self, rows: Tensor, activations: Activations | None) -> Tensor:
        """Return minus the evidence lower bound of each row, ``[units, k]``, in nats."""
        units, k, columns = rows.shape
        hot = self.one_hot(rows.reshape(units * k, columns))
        mean, log_variance = self.encode(hot, activations)
        noise = self.noise.standard_normal(tuple(mean.shape), dtype=np.float32)
        there = moved(torch.from_numpy(noise), mean.device)
        latent = mean + torch.exp(0.5 * log_variance) * there
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
        return (self.nats(self.decode(latent, activations), hot) + divergence).reshape(units, k)

    @torch.no_grad()
    def log_likelihood(self, rows: Tensor, rng: np.random.Generator, draws: int) -> Tensor:
        """Bound the log-probability of binned rows ``[n, columns]`` from below, ``[n]``, in nats.

        The importance-weighted bound of Burda et al. 2016 (arXiv 1509.00519, section 3): the log of
        the mean of ``p(x, z) / q(z | x)`` over draws of z from q. It rises to log p(x) with their
        number.
        """
        hot = self.one_hot(rows)
        mean, log_variance = self.encode(hot)
        weights = []
        for _ in range(draws):
            noise = torch.from_numpy(rng.standard_normal(tuple(mean.shape), dtype=np.float32))
            latent = mean + torch.exp(0.5 * log_variance) * noise
            ratio = 0.5 * (noise**2 + log_variance - latent**2).sum(dim=1)
            weights.append(ratio - self.nats(self.decode(latent), hot))
        return torch.logsumexp(torch.stack(weights), dim=0) - math.log(draws)

    @torch.no_grad()
    def draw(
        self,
        rows: int,
        rng: np.random.Generator,
        *,
        leaders: Sequence[Sequence[int]],
        first: Floats | None = None,
        even: bool = True,
    ) -> Ints:
        """Draw binned rows ``[rows, columns]``: latent vectors, then all columns given these."""
        latent = torch.from_numpy(self._latent(rows, rng, first))
        logits = self.decode(latent)
        bins = np.empty((rows, len(self.bins)), dtype=np.int64)
        for j, block in enumerate(torch.split(logits, self.bins, 1)):
            factors = first if j == 0 else None
            bins[:, j] = draw_column(block, factors, bins[:, list(leaders[j])], rng, even=even)
        return rng.permutation(bins) if even else bins

    @torch.no_grad()
    def aimed(self, factors: Mapping[int, Floats], rng: np.random.Generator) -> Aim | None:
        """Look for latent vectors whose rows meet a condition."""

        def weigh(vectors: Floats) -> Floats:
            logits = self.decode(torch.from_numpy(vectors.astype(np.float32)))
            blocks = torch.split(logits, self.bins, 1)
            parts = [log_left(blocks[j], own) for j, own in factors.items()]
            return np.asarray(np.sum(parts, axis=0), dtype=np.float64)

        return Aim.at(self.shape.latent, weigh, rng) if factors else None

    @torch.no_grad()
    def propose(
        self,
        rows: int,
        rng: np.random.Generator,
        factors: Mapping[int, Floats],
        aim: Aim | None = None,
    ) -> tuple[Ints, Floats]:
        """Draw latent vectors, and rows that meet a condition given these, with log-weights."""
        vectors, weights = drawn(aim, rows, self.shape.latent, rng)
        logits = self.decode(torch.from_numpy(vectors.astype(np.float32)))
        bins = np.empty((rows, len(self.bins)), dtype=np.int64)
        for j, block in enumerate(torch.split(logits, self.bins, 1)):
            bins[:, j], left = draw_weighed(block, factors.get(j), rng)
            weights += left
        return bins, weights

    def _latent(
        self, rows: int, rng: np.random.Generator, first: Floats | None
    ) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
        """Draw latent vectors ``[rows, latent]``, weighed as the first column's factors ask.

        Weighing that column weighs z by the mean factor given z. A candidate from N(0, 1) is kept
        with that mean over the largest factor: rejection sampling, which is exact.
        """
        if first is None:
            return rng.standard_normal((rows, self.shape.latent), dtype=np.float32)
        vectors = [np.empty((0, self.shape.latent), dtype=np.float32)]
        factors = torch.from_numpy(first / first.max()).float()
        weight, bias = self.decode_out.weight[: self.bins[0]], self.decode_out.bias[: self.bins[0]]
        missing = rows
        while missing > 0:
            count = min(CANDIDATES, 4 * missing + 100)
            some = rng.standard_normal((count, self.shape.latent), dtype=np.float32)
            hidden = torch.tanh(self.decode_in(torch.from_numpy(some)))
            laws = torch.softmax(hidden @ weight.T + bias, dim=1)
            chance = (laws @ factors).numpy()
            vectors.append(some[rng.random(count) < chance][:missing])
            missing -= len(vectors[-1])
        return np.concatenate(vectors)


LATENT_DRAWS = 2_000  # latent vectors of a step
LEARNING_RATE = 0.003  # of the first step, down to zero by a cosine
RARE = 1e-4  # added to shares: cells below weigh no more than this one


class PairDistance:
    """Squared distance of a decoder's columns and pairs to a mixture's, over the mixture's shares.

    Columns are independent given the latent vector, so pairs are mean products of laws. Two halves
    of the draws give two estimates of each error, and their product has no bias: a square would
    have the variance of few draws added to it.
    """

    def __init__(self, products: Products) -> None:
        """Take the mixture: a function of released counts."""
        tables = torch.from_numpy(products.tables)
        weighted = tables * torch.from_numpy(products.weights).float()[:, None]
        self.pairs, self.columns = weighted.T @ tables, weighted.sum(0)
        self.of_pairs = 1.0 / (self.pairs + RARE)
        for first, last in pairwise(products.offsets):
            self.of_pairs[first:, first:last] = 0.0  # each pair once, and no column with itself
        self.of_columns = 1.0 / (self.columns + RARE)

    def of(self, laws: Tensor) -> Tensor:
        """Estimate the distance without bias from laws of all columns, ``[n, codes]``, n even."""
        pairs, columns = [], []
        for half in laws.chunk(2):
            pairs.append(half.T @ half / len(half) - self.pairs)
            columns.append(half.mean(0) - self.columns)
        apart = (self.of_pairs * pairs[0] * pairs[1]).sum()
        return apart + (self.of_columns * columns[0] * columns[1]).sum()


def settle(
    network: Network,
    products: Products,
    steps: int,
    rng: np.random.Generator,
    progress: Progress = silent,
) -> None:
    """Move the decoder towards the mixture's columns and pairs, for so many steps of Adam.

    Args:
        network: its decoder is changed in place; its encoder is not.
        products: the mixture; post-processing of released counts.
        steps: public.
        rng: of the latent vectors; not that of training, whose place depends on private batches.
        progress: called with the share of steps done.
    """
    distance = PairDistance(products)
    decoder = [*network.decode_in.parameters(), *network.decode_out.parameters()]
    for parameter in decoder:
        parameter.requires_grad_(True)
    optimizer = torch.optim.Adam(decoder, lr=LEARNING_RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, max(1, steps))
    for step in range(steps):
        latent = rng.standard_normal((LATENT_DRAWS, network.shape.latent), dtype=np.float32)
        loss = distance.of(network.laws(torch.from_numpy(latent)))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        progress("settling", (step + 1) / steps)
    for parameter in decoder:
        parameter.requires_grad_(False)
        parameter.grad = None
