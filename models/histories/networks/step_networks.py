"""The networks of several step tables as one, trained together.

A place of a batch holds a step of every table, or none, by its weight. All networks run at each
place, so that a layer is used once, and a step of weight zero has no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dpsynth.models.dpsgd import Activations
from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.marginals import Products

Ints = npt.NDArray[np.int64]

ROWS = 100_000  # of each table, for the anchor


class StepNetworks(nn.Module):
    """Networks of the steps of several tables."""

    def __init__(self, networks: Sequence[Network]) -> None:
        """Take the networks over; their parameters stay theirs."""
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.widths = [len(network.bins) for network in networks]

    def loss(self, batch: tuple[Tensor, Tensor], activations: Activations | None) -> Tensor:
        """Return the loss of each place, ``[units, places]``: of what is drawn at its steps.

        Args:
            batch: bins ``[units, places, columns]`` and weights ``[units, places, tables]``.
            activations: records the layers.
        """
        rows, weights = batch
        total = torch.zeros(rows.shape[:2])
        parts = torch.split(rows, self.widths, dim=2)
        for place, (network, part) in enumerate(zip(self.networks, parts, strict=True)):
            assert isinstance(network, Network)
            total = total + weights[:, :, place] * network.loss(part, activations)
        return total


def public_rows(
    mixtures: Sequence[Products],
    networks: Sequence[Network],
    parts: Sequence[float],
    rng: np.random.Generator,
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Draw steps, side by side, conditions from mixtures and what follows from networks.

    All of it was learned from what was released: post-processing.

    Args:
        mixtures: of the steps of each table.
        networks: of the steps of each table.
        parts: of the patients that have a step in each.
        rng: of the draws.

    Returns:
        Rows ``[rows, 1, columns]`` and weights ``[rows, 1, tables]``, whose gradient is as large as
        that of as many patients; and weights of 0 and 1, where a table has a step or none.
    """
    drawn = [
        torch.from_numpy(_drawn(mixture, network, rng))
        for mixture, network in zip(mixtures, networks, strict=True)
    ]
    share = torch.tensor(parts, dtype=torch.float32)
    has = torch.from_numpy(rng.random((ROWS, len(parts)), dtype=np.float32)) < share
    has[:, int(share.argmax())] = True
    rows = torch.cat(drawn, dim=1)[:, None]
    return (rows, share.expand(ROWS, 1, -1)), has.float()[:, None]


def _drawn(mixture: Products, network: Network, rng: np.random.Generator) -> Ints:
    rows, given = mixture.draw(ROWS, rng), network.shape.given
    rows[:, given:] = network.draw_after(rows[:, :given], rng)
    return rows
