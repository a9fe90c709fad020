"""The networks of the person table and of several step tables as one, trained together.

A place of a batch holds a row of every table, or none, by its weight: a step, or the patient's row
of the person table, which is at her first place alone. All networks run at each place, so that a
layer is used once, and a row of weight zero has no gradient.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from dpsynth.models.dpsgd import Activations
from dpsynth.models.generators.autoregressive_network import Network
from dpsynth.models.histories.networks.score import Score


class StepNetworks(nn.Module):
    """Networks of the rows of several tables."""

    def __init__(self, networks: Sequence[Network | Score]) -> None:
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
            assert isinstance(network, Network | Score)
            total = total + weights[:, :, place] * network.loss(part.long(), activations)
        return total
