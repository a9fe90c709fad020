"""`distilled`: an autoregressive network that learns from a mixture of noisy counts.

The counts are those of `mixture`, and nothing else is spent. A mixture draws a row from one of its
components; where patients are few for their columns, what a component says of a rare row is mostly
noise. A network that learns from drawn rows keeps the mixture's pairs, and adds up what each column
of a row says of the next one (distillation: Hinton, Vinyals and Dean 2015, arXiv 1503.02531). What
it says of a declared target is then learned from the target's counts themselves (`target_weights`),
where the network is linear and the counts are those of pairs alone. All of that is post-processing:
no row is read, and no private step is taken.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dpsynth.models.generators.autoregressive import Autoregressive
from dpsynth.models.generators.target_weights import learn_targets
from dpsynth.models.generators.training import warm_up

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

    from dpsynth.models import Progress
    from dpsynth.models.marginals import Fitness, InitialModel

BATCH, RATE = 2_000, 0.02  # of rows of the mixture, and of the first step, with a hidden layer


class Distilled(Autoregressive):
    """Masked autoregressive network, trained on rows of a mixture alone."""

    name: ClassVar[str] = "distilled"

    def _warm_up(self, rows: Tensor, progress: Progress) -> None:
        """Learn from rows of the mixture: post-processing.

        A linear map takes smaller steps, on more rows.
        """
        batch, rate = (BATCH, RATE) if self.preset_.masked else (None, None)
        warm_up(self.network_, rows, self.preset_.warm_steps, progress, batch=batch, rate=rate)

    def _settle(self, start: InitialModel, rng: np.random.Generator, progress: Progress) -> Fitness:
        """Learn targets from their own counts; then let pairs meet what was counted of them."""
        target, binning = start.target, self.binning_
        if not self.preset_.masked and target is not None and target.products is None:
            domain = self.domain.features
            learn_targets(self.network_, target, binning.columns, domain, self.leaders_, rng)
        return super()._settle(start, rng, progress)
