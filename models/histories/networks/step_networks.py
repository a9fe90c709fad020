"""The networks of the person table and of several step tables as one, trained together.

A place of a batch holds a row of every table, or none, by its weight: a step, or the patient's row
of the person table, which is at her first place alone. All networks run at each place, so that a
layer is used once, and a row of weight zero has no gradient.
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
    """Networks of the rows of several tables."""

    def __init__(self, networks: Sequence[Network]) -> None:
        """Take the networks over; their parameters stay theirs."""
        super().__init__()
        self.networks = nn.ModuleList(networks)
        self.widths = [len(network.bins) for network in networks]

    def loss(self, batch: tuple[Tensor, Tensor], activations: Activations | None) -> Tensor:
        """Return the loss of each place, ``[units, places]``: of what is drawn in its rows.

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
    drawn: Sequence[Ints], parts: Sequence[float], rng: np.random.Generator
) -> tuple[tuple[Tensor, Tensor], Tensor]:
    """Lay rows of tables side by side, as patients whose gradients are as large on average.

    Args:
        drawn: binned rows of each table, ``[rows, columns]``, which follow from what was released.
        parts: of the patients that have a row in each; the first is 1.
        rng: of who has one.

    Returns:
        Rows ``[rows, 1, columns]`` and weights ``[rows, 1, tables]``, whose gradient is as large as
        that of as many patients; and weights of 0 and 1, where a table has a row or none.
    """
    share = torch.tensor(parts, dtype=torch.float32)
    has = torch.from_numpy(rng.random((ROWS, len(parts)), dtype=np.float32)) < share
    rows = torch.cat([torch.from_numpy(one) for one in drawn], dim=1)[:, None]
    return (rows, share.expand(ROWS, 1, -1)), has.float()[:, None]


def step_rows(mixture: Products, network: Network, rng: np.random.Generator) -> Ints:
    """Draw steps, conditions from their mixture and what follows from their network.

    Both were learned from what was released: post-processing.
    """
    rows, given = mixture.draw(ROWS, rng), network.shape.given
    rows[:, given:] = network.draw_after(rows[:, :given], rng)
    return rows
