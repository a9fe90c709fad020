"""The network of `tvae`: a variational autoencoder whose decoder sees the columns before its own.

A row of d binned columns enters one-hot, ``[rows, codes]``. The logits of a column are the sum of

- an autoregressive path: a masked linear map of the row's earlier columns, in schema order, and a
  masked hidden layer (MADE, Germain et al. 2015, section 3);
- a latent path: a decoder of a Gaussian latent vector, which an encoder of the whole row infers
  (Kingma and Welling 2014, section 2.3).

With the first, a relation between two columns does not have to pass through the latent vector;
each path can be left out by width 0. No layer mixes rows of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dpsynth.models.dpsgd import Linear, MaskedLinear, Tape
from dpsynth.models.marginals import even_points

LOG_VARIANCE = 6.0  # log-variances beyond +-6 carry no information and lose precision


@dataclass(frozen=True)
class Shape:
    """Public sizes of the network.

    Attributes:
        bins: of each column.
        masked: width of the autoregressive hidden layer; 0 leaves the linear map alone.
        hidden: width of the encoder's and decoder's hidden layers.
        latent: width of the latent vector; 0 leaves the latent path out.
    """

    bins: tuple[int, ...]
    masked: int
    hidden: int
    latent: int

    @property
    def codes(self) -> int:
        """Width of a one-hot row."""
        return sum(self.bins)


class Network(nn.Module):
    """Autoregressive and latent paths to the logits of one-hot rows."""

    def __init__(self, shape: Shape, *, generator: torch.Generator) -> None:
        """Draw initial weights from ``generator``; output layers start at zero.

        The noise of the latent path has a source of its own, ``noise``: torch seeds a generator
        with 32 bits only, and released weights resemble those that were drawn from it.
        """
        super().__init__()
        self.shape = shape
        self.noise = np.random.default_rng()
        columns = np.repeat(np.arange(len(shape.bins)), shape.bins)
        self.skip = MaskedLinear(columns, columns, generator=generator)
        outputs: list[Linear] = [self.skip]
        if shape.masked:
            # A hidden unit of group g sees columns before g; column j sees units of groups up to j.
            units = 1 + np.arange(shape.masked) % max(1, len(shape.bins) - 1)
            self.units = np.sort(units)
            self.masked_in = MaskedLinear(columns, self.units, generator=generator)
            self.masked_out = MaskedLinear(self.units, columns + 1, generator=generator)
            outputs.append(self.masked_out)
        if shape.latent:
            self.encode_in = Linear(shape.codes, shape.hidden, generator=generator)
            self.encode_out = Linear(shape.hidden, 2 * shape.latent, generator=generator)
            self.decode_in = Linear(shape.latent, shape.hidden, generator=generator)
            self.decode_out = Linear(shape.hidden, shape.codes, generator=generator)
            outputs.append(self.decode_out)
        with torch.no_grad():
            for layer in outputs:
                layer.weight.zero_()
                layer.bias.zero_()
        self.fed = torch.from_numpy(columns > 0).float()
        offsets = np.concatenate([[0], np.cumsum(shape.bins)])
        self.offsets = [int(offset) for offset in offsets]

    def start_at(self, shares: Sequence[npt.NDArray[np.float64]]) -> None:
        """Set the biases to the columns' own distributions."""
        logs = np.log(np.concatenate(list(shares)) + 1e-6).astype(np.float32)
        with torch.no_grad():
            self.skip.bias.copy_(torch.from_numpy(logs))

    def one_hot(self, rows: Tensor) -> Tensor:
        """Turn binned rows ``[n, columns]`` into ``[n, codes]`` float32."""
        hot = torch.zeros(len(rows), self.shape.codes)
        places = rows + torch.tensor(self.offsets[:-1])
        hot.scatter_(1, places, 1.0)
        return hot

    def loss(self, rows: Tensor, tape: Tape | None) -> Tensor:
        """Return the negative evidence lower bound of each row, ``[units, k]``, in nats.

        Args:
            rows: binned rows ``[units, k, columns]``, int64.
            tape: records the layers for per-unit gradients; None for plain evaluation.
        """
        units, k, columns = rows.shape
        hot = self.one_hot(rows.reshape(units * k, columns))
        logits = self.skip(hot, tape)
        if self.shape.masked:
            logits = logits + self.masked_out(torch.tanh(self.masked_in(hot, tape)), tape)
        cost: Tensor = torch.zeros(units * k)
        if self.shape.latent:
            hidden = torch.tanh(self.encode_in(hot, tape))
            mean, log_variance = self.encode_out(hidden, tape).chunk(2, dim=1)
            log_variance = log_variance.clamp(-LOG_VARIANCE, LOG_VARIANCE)
            noise = self.noise.standard_normal(tuple(mean.shape), dtype=np.float32)
            latent = mean + torch.exp(0.5 * log_variance) * torch.from_numpy(noise)
            logits = logits + self.latent_logits(latent, tape)
            cost = 0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
        cost = cost - (logits * hot).sum(dim=1)
        for block in torch.split(logits, list(self.shape.bins), 1):
            cost = cost + block.logsumexp(dim=1)
        return cost.reshape(units, k)

    def latent_logits(self, latent: Tensor, tape: Tape | None = None) -> Tensor:
        """Return what the latent vector adds to all logits, ``[n, codes]``.

        Nothing to those of the first column, so that rows can be weighed by it exactly.
        """
        logits: Tensor = self.decode_out(torch.tanh(self.decode_in(latent, tape)), tape)
        return logits * self.fed

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
        """Draw binned rows ``[rows, columns]``: a latent vector, then column after column.

        Args:
            rows: how many.
            rng: of the draw.
            leaders: for each column, the earlier ones along which draws are spread evenly.
            first: factors that weigh the bins of the first column; None for no weights.
            even: spread the draws more evenly than chance; see `products.Products.draw`.
        """
        paths = _Paths(self, rows, rng)
        drawn = np.empty((rows, len(self.shape.bins)), dtype=np.int64)
        for j in range(len(self.shape.bins)):
            logits = paths.logits(j)
            if j == 0 and first is not None:
                logits = logits + torch.from_numpy(np.log(first)).float()
            ends = _ends(logits)
            if even:
                keys = [-(ends.sum(dim=0) / ends[-1]).numpy()]
                keys += [drawn[:, i] for i in reversed(leaders[j])]
                points = even_points(keys, rng)
            else:
                points = rng.random(rows)
            found = ends < torch.from_numpy(points.astype(np.float32)) * ends[-1]
            drawn[:, j] = found.sum(dim=0).clamp_(max=self.shape.bins[j] - 1).numpy()
            paths.take(j, torch.from_numpy(drawn[:, j]))
        return rng.permutation(drawn) if even else drawn


def _ends(logits: Tensor) -> Tensor:
    """Cumulative weights of each row's bins, ``[bins, rows]``: quick along contiguous rows."""
    weights = logits.T.contiguous()
    weights -= weights.amax(dim=0)
    return weights.exp_().cumsum(dim=0)


class _Paths:
    """The logits of rows under construction: of each column, from those drawn before it."""

    def __init__(self, network: Network, rows: int, rng: np.random.Generator) -> None:
        self.network, self.shape = network, network.shape
        self.places = torch.empty((rows, len(self.shape.bins)), dtype=torch.int64)
        self.skip = network.skip.effective_weight().T
        self.latent: Tensor | None = None
        if self.shape.latent:
            latent = rng.standard_normal((rows, self.shape.latent), dtype=np.float32)
            self.latent = network.latent_logits(torch.from_numpy(latent))
        if self.shape.masked:
            self.units = torch.empty((rows, self.shape.masked))
            self.into = network.masked_in.effective_weight().T
            self.out = network.masked_out.effective_weight()

    def logits(self, j: int) -> Tensor:
        """Return the logits of column j; all columns before it have been taken."""
        start, end = self.network.offsets[j : j + 2]
        found = self._sum(j, self.skip[:start, start:end]) + self.network.skip.bias[start:end]
        if self.shape.masked:
            groups = self.network.units
            first, ready = (int(np.searchsorted(groups, g)) for g in (j, j + 1))
            if first < ready:
                inputs = self._sum(j, self.into[:start, first:ready])
                inputs += self.network.masked_in.bias[first:ready]
                self.units[:, first:ready] = inputs.tanh_()
            found += self.network.masked_out.bias[start:end]
            found += self.units[:, :ready] @ self.out[start:end, :ready].T
        if self.latent is not None:
            found += self.latent[:, start:end]
        return found

    def take(self, j: int, code: Tensor) -> None:
        """Note what was drawn for column j."""
        self.places[:, j] = code + self.network.offsets[j]

    def _sum(self, j: int, weights: Tensor) -> Tensor:
        """Add up the weights of each row's codes before column j, ``[rows, outputs]``."""
        if j == 0:
            return torch.zeros(len(self.places), weights.shape[1])
        bags = self.places[:, :j].contiguous()
        return nn.functional.embedding_bag(bags, weights.contiguous(), mode="sum")
