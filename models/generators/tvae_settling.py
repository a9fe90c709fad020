"""Settling of `tvae`: its decoder is moved until prior draws have the mixture's columns and pairs.

The evidence lower bound makes a decoder good at latent vectors that the encoder infers. Those do
not quite have the prior's law, so rows that are drawn from the prior miss the columns and pairs of
the source. Settling moves the decoder until they have those of the mixture. Mixture, network and
prior are free, so this is post-processing, and the last thing that a fit does: what the private
steps added beyond pairs stays, since a short settling asks for pairs only.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import Tensor

from dpsynth.models import Progress, silent
from dpsynth.models.generators.tvae_network import Network
from dpsynth.models.marginals import Products

DRAWS = 2_000  # latent vectors of a step
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
        latent = rng.standard_normal((DRAWS, network.shape.latent), dtype=np.float32)
        loss = distance.of(network.laws(torch.from_numpy(latent)))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        schedule.step()
        progress("settling", (step + 1) / steps)
    for parameter in decoder:
        parameter.requires_grad_(False)
        parameter.grad = None
