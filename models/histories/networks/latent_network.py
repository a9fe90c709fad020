"""The networks of `tvae` of linked tables: one latent vector of a patient, in all her steps.

Given a patient's row r of the person table, her steps s_1 .. s_k of all trained tables are drawn
from

    p(z | r) prod_i p(s_i | what is known before s_i, z),

with a Gaussian latent vector z: a conditional variational autoencoder (Sohn, Lee and Yan 2015,
"Learning Structured Output Representation using Deep Conditional Generative Models", section 4).
The prior p(z | r) is a linear map of the one-hot row. The decoder of a table is the autoregressive
network of its steps, to whose logits a linear map of z is added: what z holds of a patient moves
all of her steps alike. An encoder q(z | r, s) sees the row and the mean of her one-hot steps. The
loss of a patient is minus the evidence lower bound, with one draw of z,

    KL(q(z | r, s) || p(z | r)) - sum_i w_i log p(s_i | known, z),

with the weights of `patient_units`. It is a sum over her places, each of which carries a copy of
what is hers (row, mean, draw of z), so that the exact engine sees one unit of several rows. The
divergence counts at her first place alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dpsynth.models.dpsgd import Activations, Linear
from dpsynth.models.generators.autoregressive_network import Network

LATENT, HIDDEN = 8, 64
LOG_VARIANCE = 6.0  # log-variances beyond +-6 carry no information and lose precision
START = 0.1  # of the usual spread: weights that are to begin near zero

LatentBatch = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


class Decoders(nn.Module):
    """What draws histories: the prior of a patient's latent vector, and a map of it for each table.

    Attributes:
        row: numbers of a one-hot row of the person table.
    """

    def __init__(self, row: int, drawn: Sequence[int], *, generator: torch.Generator) -> None:
        """Start with a standard normal prior and small effects.

        Args:
            row: width of a one-hot row of the person table.
            drawn: of each table, how many logits its network has.
            generator: of the first weights.
        """
        super().__init__()
        self.row = row
        self.prior = Linear(row, 2 * LATENT, generator=generator)
        out = [Linear(LATENT, width, generator=generator) for width in drawn]
        self.out = nn.ModuleList(out)
        with torch.no_grad():
            for parameter in self.prior.parameters():
                parameter.zero_()
            for layer in out:
                layer.weight.mul_(START)
                layer.bias.zero_()

    def law(self, row: Tensor, activations: Activations | None = None) -> tuple[Tensor, Tensor]:
        """Return mean and log-variance of latent vectors, ``[n, latent]``, given one-hot rows."""
        return halves(self.prior(row, activations))


class LatentNetworks(nn.Module):
    """Encoder, prior, and the networks of all trained tables."""

    def __init__(
        self, networks: Sequence[Network], row: int, *, generator: torch.Generator
    ) -> None:
        """Take the tables' networks over.

        Args:
            networks: of the tables' steps; their parameters stay theirs.
            row: width of a one-hot row of the person table.
            generator: of the first weights.
        """
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.widths = [len(network.bins) for network in networks]
        drawn = [network.codes - network.before for network in networks]
        self.decoders = Decoders(row, drawn, generator=generator)
        summary = row + sum(network.codes for network in networks)
        self.encode_in = Linear(summary, HIDDEN, generator=generator)
        self.encode_out = Linear(HIDDEN, 2 * LATENT, generator=generator)
        with torch.no_grad():
            self.encode_out.weight.mul_(START)
            self.encode_out.bias.zero_()

    def loss(self, batch: LatentBatch, activations: Activations | None) -> Tensor:
        """Return each place's part of minus the evidence lower bound, ``[units, places]``.

        Args:
            batch: bins of steps ``[units, places, columns]``, weights ``[units, places, tables]``,
                1 at a patient's first place ``[units, places]``, her summary and her draw of the
                latent noise, the same at all her places.
            activations: records the layers.
        """
        rows, weights, first, summary, noise = batch
        shape = rows.shape[:2]
        summary = summary.flatten(0, 1)
        hidden = torch.tanh(self.encode_in(summary, activations))
        mean, spread = halves(self.encode_out(hidden, activations))
        centre, width = self.decoders.law(summary[:, : self.decoders.row], activations)
        latent = mean + torch.exp(0.5 * spread) * noise.flatten(0, 1)
        apart = (spread.exp() + (mean - centre) ** 2) / width.exp()
        divergence = 0.5 * (width - spread + apart - 1.0).sum(dim=1)
        total = first * divergence.reshape(shape)
        parts = torch.split(rows, self.widths, dim=2)
        for place, (network, part) in enumerate(zip(self.networks, parts, strict=True)):
            assert isinstance(network, Network)
            pull = self.decoders.out[place](latent, activations)
            cost = network.loss(part.long(), activations, pull)
            total = total + weights[:, :, place] * cost
        return total


def halves(both: Tensor) -> tuple[Tensor, Tensor]:
    """Return mean and log-variance from what a layer puts out."""
    mean, log_variance = both.chunk(2, dim=1)
    return mean, log_variance.clamp(-LOG_VARIANCE, LOG_VARIANCE)
