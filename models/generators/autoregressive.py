"""`autoregressive`: a masked autoregressive network over binned columns, trained by DP-SGD.

Each column is drawn given the columns before it: in schema order, but targets last. The default
where DP-SGD pays.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

import torch

from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.generators.missing_together import MissingLinks, missing_bins
from dpsynth.models.generators.pair_settling import settle_pairs
from dpsynth.models.generators.warm_started import WarmStarted
from dpsynth.models.marginals.bin_scores import ordered_bins

if TYPE_CHECKING:
    import numpy as np

    from dpsynth.models import Preset, Progress
    from dpsynth.models.marginals import Fitness, InitialModel


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

    def _settle(self, start: InitialModel, rng: np.random.Generator, progress: Progress) -> Fitness:
        """Let columns and pairs of columns meet what was counted of them: post-processing.

        Columns that are missing together are joined before.
        """
        assert start.released is not None
        ordered = [
            ordered_bins(column, feature.cells)
            for column, feature in zip(self.binning_.columns, self.domain.features, strict=True)
        ]
        nullable = [feature.nullable for feature in self.domain.features]
        bins = missing_bins(self.binning_.columns, nullable)
        links = MissingLinks.of(start.released, bins)
        links.join(self.network_)
        aims, counted = links.agreed(start.released), start.released
        return settle_pairs(self.network_, aims, ordered, self.leaders_, rng, counted)
