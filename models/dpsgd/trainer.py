"""The trainer of a plan: who draws units and takes the steps with them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dpsynth.encoding import Cohort
from dpsynth.models.dpsgd.layers import Layer
from dpsynth.models.dpsgd.opacus_engine import OpacusSgd
from dpsynth.models.dpsgd.optimizer import DpSgd, Loss, PlainSgd
from dpsynth.models.dpsgd.parameter_buffer import Optimizer, Schedule
from dpsynth.models.dpsgd.ranked_steps import FirstRank
from dpsynth.models.dpsgd.ranks import Ranks
from dpsynth.models.dpsgd.units import Batches
from dpsynth.models.presets import STEPS
from dpsynth.privacy import AnyPlan, NonPrivatePlan, ObservedPlan, PoissonSgd

if TYPE_CHECKING:
    from dpsynth.privacy import Entropy

Ints = npt.NDArray[np.int64]


class Trainer(Protocol):
    """Draws units, and takes steps with them: private ones, or those of a reference."""

    event: PoissonSgd

    def sample_batch(self, units: int) -> Ints:
        """Draw the units of the next step by Poisson sampling."""
        ...

    def step(self, loss: Loss, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        """Take one step with the units that were drawn."""
        ...


def next_batch(trainer: Trainer, units: Batches) -> tuple[Any, Tensor]:
    """Draw the units of the next step, and return their rows and weights.

    Every generator takes its private batches from here, so that those who were drawn are those who
    enter the step.
    """
    return units.batch(trainer.sample_batch(len(units)))


def trainer_of(
    network: nn.Module,
    plan: AnyPlan,
    *,
    clipping_norm: float,
    population: int,
    learning_rate: float,
    entropy: Entropy,
    anchor_weight: float = 0.0,
    schedule: Schedule = "cosine",
    optimizer: Optimizer = "adam",
    watch: Callable[[Cohort], tuple[Any, Tensor]] | None = None,
    anchored_always: bool = False,
    ranks: Ranks | None = None,
) -> Trainer:
    """Return the trainer that the plan pays for; without privacy, one that takes plain steps.

    Args:
        network: layers of `dpsynth.models.dpsgd.layers`, which the exact engine trains; one with
            other layers is trained by `OpacusSgd`, and has no reference and no observer.
        plan: has the event of the steps.
        clipping_norm: bound on the norm of one unit's gradient; public or post-processing.
        population: public number of units.
        learning_rate: of the first step.
        entropy: source of sampling and noise.
        anchor_weight: weight of the gradient on rows that cost nothing.
        schedule: a cosine over the event's steps, or constant; a reference keeps the first.
        optimizer: as of `DpSgd`; a reference keeps Adam.
        watch: turns a cohort, the hidden column included, into a batch and the weights of its rows;
            needed where the plan is watched, for the observer of the steps.
        anchored_always: the anchor is a part of the loss, such as the generated rows of a critic,
            and not only a hold against noise: without privacy, too, it is kept.
        ranks: other processes that take the same steps, if there are any.
    """
    event = plan.event(STEPS)
    assert isinstance(event, PoissonSgd)
    if isinstance(plan, NonPrivatePlan):
        weight = anchor_weight if anchored_always else 0.0
        return ReferenceSgd(network, event, population, learning_rate, entropy, weight)
    trainer: Callable[..., Trainer] = DpSgd if is_known(network) else OpacusSgd
    if ranks is not None:
        trainer = partial(FirstRank, ranks=ranks)
    if isinstance(plan, ObservedPlan):
        assert watch is not None and ranks is None
        trainer = plan.observer.trainer(watch)
    return trainer(
        network,
        event=event,
        clipping_norm=clipping_norm,
        population=population,
        learning_rate=learning_rate,
        entropy=entropy,
        schedule=schedule,
        optimizer=optimizer,
        anchor_weight=anchor_weight,
    )


def is_known(network: nn.Module) -> bool:
    """Whether the exact engine knows every layer of a network that has parameters."""
    return all(
        isinstance(module, Layer)
        for module in network.modules()
        if next(module.parameters(recurse=False), None) is not None
    )


class ReferenceSgd:
    """The steps of an event without clipping or noise. Never private.

    The anchor is for private steps and left out, unless it has a weight here.
    """

    def __init__(
        self,
        network: nn.Module,
        event: PoissonSgd,
        population: int,
        learning_rate: float,
        entropy: Entropy,
        anchor_weight: float = 0.0,
    ) -> None:
        """Take the network over."""
        self.event, self.entropy, self.anchor_weight = event, entropy, anchor_weight
        self.expected_units = event.sampling_rate * population
        self._plain = PlainSgd(
            network,
            learning_rate=learning_rate,
            steps=event.steps,
            schedule="cosine",
            optimizer="adam",
        )

    def sample_batch(self, units: int) -> Ints:
        """Draw the units of the next step by Poisson sampling."""
        return np.flatnonzero(self.entropy.uniform(units) < self.event.sampling_rate)

    def step(self, loss: Loss, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        """Take one plain step along (units + weight * anchor) / (1 + weight), as a private one."""
        weight, divisor = self.anchor_weight, self.expected_units
        if weight:
            first = anchor[0] if isinstance(anchor, tuple) else anchor
            share = weight * divisor / max(1, len(first))
            batch, mask = _beside(batch, anchor), _padded(mask, first.shape[:2], share)
        self._plain.step(loss, batch, mask, divisor=(1.0 + weight) * divisor)


def _beside(batch: Any, anchor: Any) -> Any:
    """Put the rows of an anchor ``[m, 1, ...]`` below those of a batch ``[units, k, ...]``."""
    if isinstance(batch, tuple):
        return tuple(_beside(*parts) for parts in zip(batch, anchor, strict=True))
    return torch.cat([batch, anchor.expand(-1, batch.shape[1], *anchor.shape[2:])])


def _padded(mask: Tensor, shape: Sequence[int], share: float) -> Tensor:
    """Add weights of anchor rows ``[m, 1]`` to a mask ``[units, k]``; the rest is padding."""
    below = torch.zeros(shape[0], mask.shape[1])
    below[:, 0] = share
    return torch.cat([mask, below])


def in_turn(rows: Tensor, step: int, size: int) -> Tensor:
    """Take the next rows in turn, ``[size, 1, columns]``; rows are in random order."""
    start = step * size
    return rows[torch.arange(start, start + size, device=rows.device) % len(rows), None]
