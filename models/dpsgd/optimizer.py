"""DP-SGD with exact clipping by unit: the only way in which private rows change a network.

One step: draw the units by Poisson sampling, clip the gradient of each to norm C, sum, add Gaussian
noise of standard deviation (noise multiplier) * C, divide by the public expected batch size, and
let a plain optimizer do the rest (Abadi et al. 2016, algorithm 1). Neighbouring data sets differ by
one unit with all its rows. Everything but the sum is a function of public facts.

**Rounding of the sum.** One unit more changes the order in which all others are added. So the
computed sum moves by C, and by twice the error of the sum. Terms are added in float64, in which a
product of two float32 is exact. A block of m rows (at most `BLOCK`,
and one unit more) is added in any order, the blocks by Kahan's compensated summation. With
u = 2^-53, n blocks and |terms| the absolute terms, the error of each entry is at most

    (m u + 2 u + O(m^2 u^2 + n u^2)) * sum |terms|

(Higham, Accuracy and Stability of Numerical Algorithms, 2nd ed., sections 4.2 and 4.3). The norm of
sum |terms| is at most A C: A is the number of units, where each has one row. A unit of several rows
whose gradients cancel counts up to 500, since its factor is at most C / sqrt(`ROUNDING`) over the
sum of its rows' norms. So the sum moves by at most C (1 + 2 A (m + 3) u), which is within
C (1 + `MARGIN`) for A up to 2^31: for 2 billion units of one row *in one step*, or 4 million units
whose rows cancel as far as they can. Neither the declared population nor the real one enters. It
leaves out that the last bits of one unit's gradient may differ with the size of the batch that it
is computed in: that belongs to the assumption of real arithmetic.

Where the noise of a step is drawn: in a thread of its own, or at once.

A second thread draws noise while the gradients of a large network are computed. Below `MIN_BESIDE`
values that gains nothing: the draw takes at most 30 microseconds, the change of threads 10 at the
least, and meanwhile both threads wait for the interpreter's lock.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dpsynth.errors import BudgetError, DpsynthError, InputError
from dpsynth.models.dpsgd.clipping_norm import (
    BLOCK,
    MAX_NORM,
    MIN_NORM,
    clipping_norm_from,
    rows_at_once,
)
from dpsynth.models.dpsgd.device import looks_back, moved
from dpsynth.models.dpsgd.layers import Layer
from dpsynth.models.dpsgd.parameter_buffer import FlatOptimizer, FlatParameters, Optimizer, Schedule
from dpsynth.models.dpsgd.unit_gradients import Loss, UnitGradients, packs
from dpsynth.privacy import step_noise

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from dpsynth.privacy import Entropy, PoissonSgd


__all__ = ["DpSgd", "Loss", "PlainSgd", "clipping_norm_from"]

MARGIN = 2.0**-10  # of the noise, for the rounding of sums; derived above


class DpSgd:
    """Trains a network on private rows, as the event of the plan says and no further."""

    def __init__(
        self,
        network: nn.Module,
        *,
        event: PoissonSgd,
        clipping_norm: float,
        population: int,
        learning_rate: float,
        entropy: Entropy,
        schedule: Schedule,
        optimizer: Optimizer,
        anchor_weight: float = 0.0,
    ) -> None:
        """Take the network over: its parameters become views of one private buffer.

        Args:
            network: layers of `dpsynth.models.dpsgd.layers` and stateless modules.
            event: sampling rate, number of steps and noise multiplier, as accounted for.
            clipping_norm: bound C on the norm of one unit's gradient; public or post-processing.
            population: public number of units; with the sampling rate it is the divisor.
            learning_rate: of the first step.
            entropy: source of sampling and noise; losses must not draw from it.
            schedule: ``constant``, or ``cosine`` down to zero over the event's steps.
            optimizer: ``adam`` or ``sgd``.
            anchor_weight: weight of the gradient on public rows beside the private one.

        Raises:
            InputError: the network holds what cannot be clipped by unit, or a setting is out of
                range, or the event's noise is not decided.
        """
        if not 0.0 < event.sampling_rate <= 1.0 or event.steps < 1 or population < 1:
            raise InputError(
                "sampling rate must lie in (0, 1], steps and population must be at least 1"
            )
        if not (math.isfinite(event.noise_multiplier) and event.noise_multiplier > 0):
            raise InputError("the event's noise is not decided; calibrate the plan first")
        if not MIN_NORM <= clipping_norm <= MAX_NORM:  # nor is it NaN
            raise InputError(
                f"clipping norm must be from {MIN_NORM:.0e} to {MAX_NORM:.0e}, so that single "
                f"precision can hold sums and noise, not {clipping_norm}"
            )
        if not (math.isfinite(anchor_weight) and anchor_weight >= 0):
            raise InputError(f"anchor weight must be at least 0, not {anchor_weight}")
        self.event, self.entropy = event, entropy
        self.clipping_norm, self.anchor_weight = clipping_norm, anchor_weight
        self.expected_units = event.sampling_rate * population
        self.flat = self._flattened(network)
        self.optimizer = FlatOptimizer(
            self.flat.values,
            kind=optimizer,
            learning_rate=learning_rate,
            schedule=schedule,
            steps=event.steps,
        )
        self.steps_taken = 0
        self._drawn: int | None = None
        self._beside = drawing(self.flat.values.numel())

    def _flattened(self, network: nn.Module) -> FlatParameters:
        return FlatParameters(network)

    def _mean_gradient(self, loss: Loss, batch: Any) -> Tensor:
        return _mean_gradient(self.flat, loss, batch)

    def sample_batch(self, units: int) -> npt.NDArray[np.int64]:
        """Draw, of so many units, those of the next step: each with the sampling rate, on its own.

        Returns:
            Their indices, ascending; possibly none.

        Raises:
            InputError: the units of the next step are drawn already. Choosing among draws would
                not be Poisson sampling.
        """
        if self._drawn is not None:
            raise InputError("the units of this step are drawn already: take the step with them")
        chosen = np.flatnonzero(self.entropy.uniform(units) < self.event.sampling_rate)
        self._drawn = len(chosen)
        return chosen

    def step(self, loss: Loss, batch: Any, mask: Tensor, *, anchor: Any = None) -> None:
        """Take one private step. An empty batch takes it too: noise and count do not depend on it.

        Args:
            loss: maps rows, ``[units, k, ...]`` or ``[rows, 1, ...]`` without padding, and
                activations to one loss per row. A row's loss reads that row only.
            batch: the units drawn by `sample_batch`, ``[units, k, ...]``, or a tuple of tensors.
            mask: ``[units, k]``; False or 0 is padding, another number weighs the row's loss.
            anchor: a public batch ``[units, k, ...]`` without padding, for an anchor weight.

        Raises:
            BudgetError: the event's steps are used up.
            InputError: the batch is not the one that was drawn for this step.
        """
        if self.steps_taken >= self.event.steps:
            raise BudgetError(
                f"all {self.event.steps} steps of the event are taken; more need a new plan"
            )
        if self._drawn is None or self._drawn != len(mask):
            raise InputError(
                "a step takes the units that sample_batch drew for it: draw once per step, and "
                "pass all that were drawn"
            )
        if (anchor is None) != (self.anchor_weight == 0):
            raise InputError("an anchor batch goes with a positive anchor weight, and only with it")
        self._drawn = None
        self.steps_taken += 1
        self.flat.check()
        gradient = self.noisy_sum(loss, batch, mask)
        gradient /= self.expected_units
        if anchor is not None:
            mean = self._mean_gradient(loss, anchor)
            gradient.add_(mean, alpha=self.anchor_weight).div_(1.0 + self.anchor_weight)
        self.optimizer.step(gradient)
        _check_finite(self.flat.values, self.steps_taken, self.event.steps)

    def noisy_sum(self, loss: Loss, batch: Any, mask: Tensor) -> Tensor:
        """Return the clipped sum with the step's noise: all that a step lets out."""
        noise = self._beside.submit(self._noise)
        gradient = self.clipped_sum(loss, batch, mask)
        if self.flat.free is None:
            gradient += noise.result()
        else:
            gradient.index_add_(0, self.flat.free, noise.result().double())
        return gradient.to(self.flat.values)

    def _noise(self) -> Tensor:
        """Draw the event's noise for every entry but those that are zero whatever the data are.

        It is larger than the event's by `MARGIN`, which is what rounding can add to a unit's share.
        """
        free = self.flat.free
        size = self.flat.values.numel() if free is None else len(free)
        drawn = torch.from_numpy(step_noise(self.event, self.entropy, size))
        noise = moved(drawn, self.flat.values.device)
        margin = 1 + MARGIN
        return noise.mul_(self.event.noise_multiplier * self.clipping_norm * margin)

    def clipped_sum(self, loss: Loss, batch: Any, mask: Tensor) -> Tensor:
        """Return the float64 sum of the units' gradients, each clipped to norm C: not private yet.

        Adding or removing one unit moves it by at most C (1 + `MARGIN`), whatever the unit holds,
        and however many there are: a unit whose gradient is not finite counts as zero.
        """
        total = torch.zeros_like(self.flat.values, dtype=torch.float64)
        lost = torch.zeros_like(total)
        for part in self._clipped_blocks(loss, batch, mask):
            part -= lost  # Kahan: what the sum of the blocks before lost by rounding
            before = total.clone()
            total += part
            lost = (total - before).sub_(part)
        return total

    def _clipped_blocks(self, loss: Loss, batch: Any, mask: Tensor) -> Iterator[Tensor]:
        """Yield the float64 sum of each block of units, whose gradients are clipped to norm C."""
        for gradients in _gradients(self.flat, loss, batch, mask):
            factors = gradients.factors(self.clipping_norm)
            for block in gradients.pack.blocks(BLOCK):
                part = torch.zeros_like(self.flat.values, dtype=torch.float64)
                gradients.add_to(self.flat.views(part), factors, block)
                yield part


class PlainSgd:
    """Trains a network without clipping and noise: on synthetic rows, or as a reference.

    Never private. Optimizer state is its own: a later `DpSgd` starts afresh.
    """

    def __init__(
        self,
        network: nn.Module,
        *,
        learning_rate: float,
        steps: int,
        schedule: Schedule,
        optimizer: Optimizer,
    ) -> None:
        """Take the network over; settings as in `DpSgd`."""
        self.flat = FlatParameters(network)
        settings: dict[str, Any] = {"kind": optimizer, "schedule": schedule}
        settings["learning_rate"] = learning_rate
        self.optimizer = FlatOptimizer(self.flat.values, steps=steps, **settings)

    def step(self, loss: Loss, batch: Any, mask: Tensor, *, divisor: float | None = None) -> None:
        """Take one step along the summed gradient over ``divisor``, by default the units."""
        self.flat.check()
        gradient = _sum_gradient(self.flat, loss, batch, mask)
        gradient /= max(1, len(mask)) if divisor is None else divisor
        self.optimizer.step(gradient)
        _check_finite(self.flat.values, self.optimizer.taken, self.optimizer.steps)


def _sum_gradient(flat: FlatParameters, loss: Loss, batch: Any, mask: Tensor) -> Tensor:
    """Return the flat sum of unit gradients without clipping."""
    total = torch.zeros_like(flat.values)
    views = flat.views(total)
    for gradients in _gradients(flat, loss, batch, mask):
        gradients.add_to(views)
    return total


def _gradients(
    flat: FlatParameters, loss: Loss, batch: Any, mask: Tensor
) -> Iterator[UnitGradients]:
    """Yield the gradients of a batch's units, block by block."""
    for pack in packs(batch, mask, rows_at_once(flat.layers.values())):
        gradients = UnitGradients.of(loss, pack)
        _check_all(flat, gradients.layers)
        yield gradients


def _mean_gradient(flat: FlatParameters, loss: Loss, batch: Any) -> Tensor:
    """Return the flat mean gradient over the units of a public batch without padding."""
    first = batch[0] if isinstance(batch, tuple) else batch
    ones = torch.ones(first.shape[:2])
    return _sum_gradient(flat, loss, batch, ones) / max(1, len(ones))


def _check_all(flat: FlatParameters, used: Iterable[Layer]) -> None:
    """Refuse a loss that leaves a layer out, or uses one that is not under this optimizer."""
    used = set(used)
    for layer in used - set(flat.layers.values()):
        raise InputError(f"{layer} is not part of the network that this trainer trains")
    for name, layer in flat.layers.items():
        if layer not in used:
            raise InputError(
                f"layer {name} did not record its use: pass it the recorded activations"
            )


def _check_finite(values: Tensor, step: int, steps: int) -> None:
    """Stop when parameters, which are private already, are no numbers any more."""
    if looks_back(values, step, steps) and not bool(torch.isfinite(values).all()):
        raise DpsynthError(f"training diverged at step {step}: lower the learning rate")


P = ParamSpec("P")
T = TypeVar("T")

MIN_BESIDE = 1 << 13  # values a step


class AtOnce(Executor):
    """Does what it is given before it returns, in the thread of the caller.

    >>> AtOnce().submit(sum, [1, 2]).result()
    3
    """

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call a function; an error reaches the caller here."""
        future: Future[T] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def drawing(size: int) -> Executor:
    """Return what draws this many values a step.

    >>> type(drawing(100)).__name__, type(drawing(1_000_000)).__name__
    ('AtOnce', 'ThreadPoolExecutor')
    """
    return ThreadPoolExecutor(max_workers=1) if size >= MIN_BESIDE else AtOnce()
