"""`autoregressive`: a masked autoregressive network over binned columns, trained by DP-SGD.

Each column is drawn given the columns before it, in schema order. The default where DP-SGD pays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.generators.warm_started import WarmStarted

if TYPE_CHECKING:
    from dpsynth.models import Preset, Progress
    from dpsynth.models.marginals import InitialModel

SETTLING = 100_000  # rows on which the biases settle


class Autoregressive(WarmStarted):
    """Masked autoregressive network, warmed up on a mixture (MADE, Germain et al. 2015)."""

    name: ClassVar[str] = "autoregressive"
    network_: Network

    @classmethod
    def network_of(cls, preset: Preset, bins: tuple[int, ...], seed: int) -> Network:
        """Build the network of a preset; see `WarmStarted.network_of`."""
        if preset.latent:
            raise ValueError("an autoregressive network has no latent vector")
        shape = Shape(bins, preset.masked)
        return Network(shape, generator=torch.Generator().manual_seed(seed))

    def _settle(self, start: InitialModel, rng: np.random.Generator, progress: Progress) -> None:
        """Give each column the share of rows that the mixture has: post-processing."""
        factors = self.binning_.row_factors()
        law = start.products if factors is None else start.products.tilted(0, factors)
        none = np.empty((SETTLING, 0), dtype=np.int64)
        self.network_.settle(none, law.shares, rng, leaders=self.leaders_, first=factors)
