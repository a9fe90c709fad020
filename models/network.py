"""The network of `tvae`: a variational autoencoder whose decoder sees the columns before its own.

A row of d binned columns enters one-hot, ``[rows, codes]``. The encoder gives a Gaussian over a
latent vector; the decoder adds two paths to the logits of each column: one from the latent vector,
one, masked, from the row's earlier columns in schema order (an autoregressive skip, as in MADE,
Germain et al. 2015, section 3). With the skip, a relation between two columns does not have to
pass through the latent vector; without the latent path, what is left is a linear autoregressive
model. No layer mixes rows of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dpsynth.models.layers import Linear, MaskedLinear, Tape

ELBO_FLOOR = -6.0  # log-variances outside [floor, -floor] carry no information and lose precision


@dataclass(frozen=True)
class Shape:
    """Public sizes of the network: bins per column, width of hidden layers and latent vector."""

    bins: tuple[int, ...]
    hidden: int
    latent: int

    @property
    def codes(self) -> int:
        """Width of a one-hot row."""
        return sum(self.bins)


class Network(nn.Module):
    """Encoder, latent decoder and autoregressive skip over one-hot rows."""

    def __init__(self, shape: Shape, *, generator: torch.Generator) -> None:
        """Draw initial weights from ``generator``; output layers start at zero."""
        super().__init__()
        self.shape = shape
        self.generator = generator
        width = shape.codes
        self.encode_in = Linear(width, shape.hidden, generator=generator)
        self.encode_out = Linear(shape.hidden, 2 * shape.latent, generator=generator)
        self.decode_in = Linear(shape.latent, shape.hidden, generator=generator)
        self.decode_out = Linear(shape.hidden, width, generator=generator)
        groups = np.repeat(np.arange(len(shape.bins)), shape.bins)
        self.skip = MaskedLinear(groups, groups, generator=generator)
        offsets = np.concatenate([[0], np.cumsum(shape.bins)[:-1]])
        self.offsets = torch.from_numpy(offsets.astype(np.int64))

    def start_at(self, log_shares: Sequence[npt.NDArray[np.float64]]) -> None:
        """Set the biases to the columns' own distributions and every output weight to zero."""
        with torch.no_grad():
            self.decode_out.weight.zero_()
            self.skip.weight.zero_()
            self.decode_out.bias.zero_()
            bias = np.concatenate(list(log_shares)).astype(np.float32)
            self.skip.bias.copy_(torch.from_numpy(bias))

    def one_hot(self, rows: Tensor) -> Tensor:
        """Turn binned rows ``[n, columns]`` into ``[n, codes]`` float32."""
        hot = torch.zeros(len(rows), self.shape.codes)
        return hot.scatter_(1, rows + self.offsets, 1.0)

    def loss(self, rows: Tensor, tape: Tape | None) -> Tensor:
        """Return the negative evidence lower bound of each row, ``[units, k]``, in nats.

        Args:
            rows: binned rows ``[units, k, columns]``, int64.
            tape: records the layers for per-unit gradients; None for plain evaluation.
        """
        units, k, columns = rows.shape
        flat = rows.reshape(units * k, columns)
        hot = self.one_hot(flat)
        hidden = torch.relu(self.encode_in(hot, tape))
        mean, log_variance = self.encode_out(hidden, tape).chunk(2, dim=1)
        log_variance = log_variance.clamp(ELBO_FLOOR, -ELBO_FLOOR)
        noise = torch.randn(mean.shape, generator=self.generator)
        latent = mean + torch.exp(0.5 * log_variance) * noise
        logits = self.latent_logits(latent, tape) + self.skip(hot, tape)
        divergence = 0.5 * (mean**2 + log_variance.exp() - 1.0 - log_variance).sum(dim=1)
        fit = (logits * hot).sum(dim=1)
        for block in logits.split(self.shape.bins, dim=1):
            fit = fit - block.logsumexp(dim=1)
        return (divergence - fit).reshape(units, k)

    def latent_logits(self, latent: Tensor, tape: Tape | None = None) -> Tensor:
        """Return what the latent vector adds to all logits, ``[n, codes]``."""
        return self.decode_out(torch.relu(self.decode_in(latent, tape)), tape)

    @torch.no_grad()
    def draw(self, rows: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """Draw binned rows ``[rows, columns]``: a latent vector, then column after column."""
        latent = rng.standard_normal((rows, self.shape.latent), dtype=np.float32)
        logits = self.latent_logits(torch.from_numpy(latent)) + self.skip.bias
        weight = self.skip.effective_weight().T.contiguous()
        drawn = np.empty((rows, len(self.shape.bins)), dtype=np.int64)
        start = 0
        for column, bins in enumerate(self.shape.bins):
            block = logits[:, start : start + bins]
            ends = torch.softmax(block, dim=1).cumsum(dim=1)
            uniform = torch.from_numpy(rng.random((rows, 1), dtype=np.float32))
            code = (ends < uniform * ends[:, -1:]).sum(dim=1).clamp_(max=bins - 1)
            drawn[:, column] = code.numpy()
            if start + bins < self.shape.codes:
                after = slice(start + bins, None)
                logits[:, after] += weight[start + code][:, after]
            start += bins
        return drawn
