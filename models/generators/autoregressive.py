"""`autoregressive`: a masked autoregressive network over binned columns, trained by DP-SGD.

Each column is drawn given the columns before it, in schema order. The default where DP-SGD pays.
"""

from __future__ import annotations

from typing import ClassVar

import torch

from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.generators.warm_started import WarmStarted


class Autoregressive(WarmStarted):
    """Masked autoregressive network, warmed up on a mixture (MADE, Germain et al. 2015)."""

    name: ClassVar[str] = "autoregressive"
    network_: Network

    def _network(self, seed: int) -> Network:
        if self.preset_.latent:
            raise ValueError("an autoregressive network has no latent vector")
        shape = Shape(self.binning_.sizes, self.preset_.masked)
        return Network(shape, generator=torch.Generator().manual_seed(seed))
