"""The network of `tvae`: a variational autoencoder of one-hot rows.

A row x of d binned columns enters one-hot, ``[rows, codes]``. The encoder gives the mean and the
log-variance of a Gaussian latent vector z, ``q(z | x)``; the decoder gives the logits of all
columns, which are independent given z. The loss is minus the evidence lower bound, with one draw
of z,

    KL(q(z | x) || N(0, 1)) - log p(x | z)

(Kingma and Welling 2014, arXiv 1312.6114, section 2.3 and appendix B). No layer mixes rows of a
batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

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
