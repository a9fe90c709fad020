"""Generators that leak on purpose: the controls that an audit must catch.

In no registry: nothing that was fitted so can be released.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, Self

from torch import Tensor

from dpsynth.encoding import AnyRows, in_memory
from dpsynth.models import NO_CHECKPOINTS, Checkpoints, Preset, Progress, silent
from dpsynth.models.auditing.transcript import ObservedSgd, Transcript
from dpsynth.models.dpsgd import Loss, PlainSgd, Units, optimizer
from dpsynth.models.generators import Autoregressive
from dpsynth.models.marginals import LEADERS, InitialModel, cohort_with_visits
from dpsynth.privacy import AnyPlan, Entropy, NonPrivatePlan

WIDTH = 512  # of the network that learns by heart
STEPS = 300
RATE = 0.02
SHORT = 20.0  # times by which a clipping norm is shorter than is usual


class Overfitted(Autoregressive):
    """A wide `autoregressive`, trained without noise until it knows every row by heart."""

    def fit(
        self,
        cohort: AnyRows,
        plan: AnyPlan,
        entropy: Entropy,
        progress: Progress = silent,
        checkpoints: Checkpoints = NO_CHECKPOINTS,
    ) -> Self:
        """Take exact counts, then steps on all rows at once.

        Raises:
            TypeError: the terms are not those of a fit without privacy.
        """
        if not isinstance(plan, NonPrivatePlan):
            raise TypeError("an overfitted generator keeps no budget; its terms are NotPrivate")
        self.preset_ = replace(
            Preset.of(Autoregressive.name, self.domain, plan.budget), masked=WIDTH
        )
        cohort = cohort_with_visits(in_memory(cohort), self.domain.order)
        start = InitialModel.fit(cohort, self.domain, plan, entropy, self.preset_, progress)
        self.binning_, self.clipping_norm_ = start.binning, float("inf")
        self.leaders_ = start.products.leaders(LEADERS)
        rng = entropy.generator()
        bins = self.binning_.sizes
        self.network_ = self.network_of(self.preset_, bins, int(rng.integers(2**62)))
        self.network_.start_at([column.bin_shares for column in self.binning_.columns])
        rows, weights = Units.of(cohort, self.binning_).whole()
        trainer = PlainSgd(
            self.network_, learning_rate=RATE, steps=STEPS, schedule="cosine", optimizer="adam"
        )
        for step in range(STEPS):
            trainer.step(self.network_.loss, rows, weights)
            progress("memorising", (step + 1) / STEPS)
        return self


class Tight(Autoregressive):
    """`autoregressive`, clipped far below most gradients: private, and next to nothing learned.

    Where it is not kept, units pull many times as far as the noise hides. It starts untrained:
    whether limits are kept does not depend on that.
    """

    def _warm_up(self, rows: Tensor, progress: Progress) -> None:
        """Leave the network as it is."""

    def _clipping_norm(self, rows: Tensor) -> float:
        return super()._clipping_norm(rows) / SHORT


class UnclippedSgd(ObservedSgd):
    """A trainer that forgot to clip."""

    def clipped_sum(self, loss: Loss, batch: Any, mask: Tensor) -> Tensor:
        """Return the float64 sum of the units' gradients as they are."""
        return optimizer._sum_gradient(self.flat, loss, batch, mask).double()


class UnclippedTranscript(Transcript):
    """An observer of steps without clipping."""

    trains: ClassVar[type[ObservedSgd]] = UnclippedSgd
