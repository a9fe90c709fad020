"""Private steps that several processes take together: each draws and clips its own units.

The units are dealt to the ranks once. In each step, every rank draws from its own units, each with
the sampling rate of the event, by the operating system's entropy, and clips what it drew. Draws of
one unit and another are independent, so all draws together are the Poisson draw of the event. A
rank that drew nothing takes part in the sum all the same. Rank 0 gets the sum of the clipped sums,
adds the step's noise to it, once, and moves the network; the others get its parameters.

**Rounding.** The derivation of `models.dpsgd.optimizer` holds for the sum of each rank. R ranks add
R - 1 further additions in float64, so a unit moves the whole sum by at most C (1 + 2 A (m + 3 + R)
u), with m of thousands and R below `MOST`: within the same margin.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from dpsynth.errors import BudgetError, InputError
from dpsynth.models.dpsgd.optimizer import DpSgd, Loss, _mean_gradient
from dpsynth.models.dpsgd.ranks import Ranks
from dpsynth.models.dpsgd.unit_gradients import take

MOST = 64  # ranks


class RankedSgd(DpSgd):
    """A trainer that shares its steps with other ranks."""

    def __init__(self, *settings: Any, ranks: Ranks, **more: Any) -> None:
        """Take the network over, and the processes beside this one; settings as in `DpSgd`.

        Raises:
            InputError: there are more ranks than the rounding of sums allows for.
        """
        if ranks.place.size > MOST:
            raise InputError(f"a network trains in at most {MOST} processes; start fewer")
        super().__init__(*settings, **more)
        self.ranks = ranks

    def clipped_sum(self, loss: Loss, batch: Any, mask: Tensor) -> Tensor:
        """Return the sum of all ranks on rank 0; see `DpSgd.clipped_sum`."""
        return self.ranks.add(super().clipped_sum(loss, batch, mask))

    def _mean_gradient(self, loss: Loss, batch: Any) -> Tensor:
        """Return the mean gradient over a public batch, of which each rank does its part."""
        first = batch[0] if isinstance(batch, tuple) else batch
        rank, size = self.ranks.place.rank, self.ranks.place.size
        own = take(batch, slice(rank, None, size))
        share = len(range(rank, len(first), size)) / max(1, len(first))
        return self.ranks.add(_mean_gradient(self.flat, loss, own) * share)


class FirstRank(RankedSgd):
    """The trainer of rank 0, which alone has noise, and an optimizer that moves."""

    def step(self, loss: Loss, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        """Take one private step with the sums of all ranks, and give them what came of it."""
        super().step(loss, batch, mask, anchor=anchor)
        self.ranks.copy(self.flat.values)


class OtherRank(RankedSgd):
    """The trainer of every other rank: it clips and adds, and takes the parameters of rank 0."""

    def step(self, loss: Loss, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        """Take part in one private step. An empty batch takes part too.

        Raises:
            BudgetError: the event's steps are used up.
            InputError: the batch is not the one that was drawn for this step.
        """
        if self.steps_taken >= self.event.steps:
            raise BudgetError("all steps of the event are taken; more need a new plan")
        if self._drawn is None or self._drawn != len(mask):
            raise InputError("a step takes the units that sample_batch drew for it")
        self._drawn = None
        self.steps_taken += 1
        self.flat.check()
        self.clipped_sum(loss, batch, mask)
        if anchor is not None:
            self._mean_gradient(loss, anchor)
        self.ranks.copy(self.flat.values)
