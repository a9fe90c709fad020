"""`tvae`: a tabular variational autoencoder, trained by DP-SGD.

An encoder infers a Gaussian latent vector from a row, and a decoder gives the distributions of all
columns from it. Both learn by the evidence lower bound (Kingma and Welling 2014, arXiv 1312.6114,
section 2.2), as Xu et al. (2019, arXiv 1907.00503, section 4.4) do for tables. Unlike theirs,
numeric columns are binned by noisy counts, and training starts from a mixture fitted to noisy
pairs. It ends by settling: the decoder is moved until prior draws have that mixture's pairs.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch

from dpsynth.models.generators.tvae_network import Network, Shape
from dpsynth.models.generators.tvae_settling import settle
from dpsynth.models.generators.warm_started import WarmStarted

if TYPE_CHECKING:
    from dpsynth.models import Preset, Progress
    from dpsynth.models.marginals import Fitness, InitialModel

DRAWS = 64  # of a latent vector, for the likelihood of each row


class Tvae(WarmStarted):
    """Encoder, latent vector and decoder over binned columns."""

    name: ClassVar[str] = "tvae"
    network_: Network

    @classmethod
    def network_of(cls, preset: Preset, bins: tuple[int, ...], seed: int) -> Network:
        """Build the network of a preset; see `WarmStarted.network_of`."""
        if not (preset.latent and preset.hidden):
            raise ValueError("a variational autoencoder has a latent vector and hidden layers")
        shape = Shape(bins, preset.hidden, preset.latent)
        return Network(shape, generator=torch.Generator().manual_seed(seed))

    def _settle(self, start: InitialModel, rng: np.random.Generator, progress: Progress) -> Fitness:
        """Move the decoder until draws from the prior have the mixture's columns and pairs."""
        settle(self.network_, start.products, self.preset_.settling_steps, rng, progress)
        assert start.released is not None
        return start.released.judged(partial(self.network_.draw, leaders=self.leaders_))

    def _log_prob_of_bins(self, rows: torch.Tensor) -> torch.Tensor:
        """Return a bound from below by importance weighting (Burda et al. 2016, section 3).

        The latent vectors are the same each time, so that an audit can be repeated.
        """
        return self.network_.log_likelihood(rows, np.random.default_rng(0), DRAWS)
