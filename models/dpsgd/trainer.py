"""The trainer of a plan: who draws units and takes the steps with them.

What a trainer has to keep between two private steps, as plain arrays, and back.

Weights and moments of Adam are functions of noisy sums. Neither the units of a step nor the state
of a random generator is among them.

Private steps that several processes take together: each draws and clips its own units.

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

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dpsynth.encoding import Cohort
from dpsynth.errors import BudgetError, InputError
from dpsynth.models.checkpoint import Checkpoints, TrainingState
from dpsynth.models.dpsgd.layers import Layer
from dpsynth.models.dpsgd.opacus_engine import OpacusSgd
from dpsynth.models.dpsgd.optimizer import DpSgd, Loss, PlainSgd, _mean_gradient
from dpsynth.models.dpsgd.parameter_buffer import Optimizer, Schedule
from dpsynth.models.dpsgd.ranks import Ranks
from dpsynth.models.dpsgd.unit_gradients import take
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


_WEIGHTS, _MOMENT = "trainer.weights", "trainer.moment"

Arrays = Mapping[str, npt.NDArray[Any]]


def trainer_arrays(trainer: DpSgd) -> dict[str, npt.NDArray[Any]]:
    """Return copies of the weights, and of the optimizer's moments."""
    moments = trainer.optimizer.moments
    tensors = {_WEIGHTS: trainer.flat.values}
    tensors |= {f"{_MOMENT}{place}": moment for place, moment in enumerate(moments)}
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in tensors.items()}


def training_state(checkpoints: Checkpoints) -> TrainingState | None:
    """Return the kept state if it has a trainer's part: the network was warmed up, at least."""
    state = checkpoints.state
    return state if state is not None and _WEIGHTS in state.arrays else None


def steps_before(trainer: object, checkpoints: Checkpoints, keep: Callable[[int], None]) -> int:
    """Begin the private steps: where an earlier process left them, or after the warming up.

    Args:
        trainer: takes the steps; of a fit with checkpoints, a `DpSgd`.
        checkpoints: where the fit keeps its state.
        keep: keeps the state after so many steps; called where nothing has been kept yet.

    Returns:
        How many steps were taken before.

    Raises:
        InputError: as `go_on`.
    """
    state = training_state(checkpoints)
    if state is None:
        if checkpoints.every:
            keep(0)  # warmed up
        return 0
    assert isinstance(trainer, DpSgd)
    go_on(trainer, state.step, state.arrays)
    return state.step


def go_on(trainer: DpSgd, step: int, arrays: Arrays) -> None:
    """Put a new trainer to where another one stood after so many private steps.

    Raises:
        InputError: the trainer has taken steps itself, the plan has not so many, or the arrays are
            those of another network.
    """
    if trainer.steps_taken or not 0 <= step <= trainer.event.steps:
        raise InputError(
            f"a trainer of {trainer.event.steps} steps that has taken {trainer.steps_taken} cannot "
            f"go on from step {step}"
        )
    _put(trainer.flat.values, arrays, _WEIGHTS)
    for place, moment in enumerate(trainer.optimizer.moments):
        _put(moment, arrays, f"{_MOMENT}{place}")
    trainer.steps_taken = trainer.optimizer.taken = step


def _put(tensor: Tensor, arrays: Arrays, name: str) -> None:
    array = arrays.get(name)
    if array is None or array.shape != tuple(tensor.shape):
        raise InputError("the checkpoint is not that of this network")
    tensor.copy_(torch.from_numpy(array.copy()))


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
