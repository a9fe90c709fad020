"""Events that are used up as they run: an open plan gives each of them its noise once.

The events of a plan are public facts. They are written into certificates, compared and read as
often as needed. Running them is another matter: an answer that is asked twice and averaged has less
noise than was paid for. So a fit opens its plan once (`PrivacyPlan.opened`), before it reads a row,
and hands on the randomness of this plan, `PaidEntropy`. It draws noise for events of the plan
alone, and for each until it is used up:

- a `ChosenHistograms` by the scales of all histograms that were released under it,
- a `PoissonSgd` step by step,
- all others in one run, with exactly their own scale.

Mechanisms take their noise from here and from nowhere else. One that is asked again gets none, and
so releases nothing; it is told before any noise is drawn. The randomness of the operating system,
on which releases rely, gives a mechanism no noise without a plan. Seeded randomness does, for tests
and audits: nothing that it touched is released.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dpsynth.errors import BudgetError
from dpsynth.privacy.entropy import Entropy, Size
from dpsynth.privacy.noisy_event import NoisyEvent

Ints = NDArray[np.int64]


class Payment:
    """One event of an open plan, which is used up as it runs."""

    def __init__(self, event: NoisyEvent) -> None:
        """Start with all that the event pays for."""
        self.event = event
        self._runs = 0
        self._scales: list[float] = []
        self._lock = threading.Lock()

    @property
    def used_up(self) -> bool:
        """Whether it ran as often as the plan says; where histograms are chosen, whether it ran."""
        return self._runs >= self.event.least_runs

    def use(self, scales: Sequence[float]) -> None:
        """Run the event once, with noise of these scales.

        Raises:
            BudgetError: the event does not pay for them, or no more; it is as used as before.
        """
        with self._lock:
            together = [*self._scales, *scales]
            if self._runs >= self.event.most_runs or not self.event.pays_for(together):
                raise BudgetError(
                    f"event '{self.event.name}' does not pay for this noise: it was used up "
                    "before, or noise of this scale is not the plan's"
                )
            self._runs += 1
            if self.event.bounded_together:
                self._scales = together

    def take_over(self, runs: int) -> None:
        """Count what an earlier process of the same fit ran.

        Raises:
            BudgetError: it ran here already, or may not run so often.
        """
        with self._lock:
            if self._runs or not 0 <= runs <= self.event.most_runs:
                raise BudgetError(f"event '{self.event.name}' cannot go on after {runs} runs")
            self._runs = runs


class PaidEntropy:
    """The randomness of an open plan: noise for each of its events, until it is used up.

    Draws that are no noise (who is sampled, which rows of a unit are kept, shuffles) are those of
    the source below.
    """

    def __init__(self, events: Iterable[NoisyEvent], entropy: Entropy) -> None:
        """Open the events.

        Args:
            events: of one plan.
            entropy: the source below, which must not be that of another plan.

        Raises:
            BudgetError: it is.
        """
        if isinstance(entropy, PaidEntropy):
            raise BudgetError("this randomness belongs to a plan that is open already")
        self.releasable = entropy.releasable
        self._entropy = entropy
        self._payments = {event.name: Payment(event) for event in events}

    def __reduce__(self) -> NoReturn:
        """Refuse to be copied: a copy would pay again."""
        raise TypeError("the randomness of an open plan cannot be copied")

    @property
    def unused(self) -> tuple[str, ...]:
        """Names of the events that are not used up, in the order of the plan."""
        return tuple(name for name, payment in self._payments.items() if not payment.used_up)

    def noise_of(self, event: NoisyEvent, scales: Sequence[float]) -> Entropy:
        """Use an event for noise of these scales, and return the source to draw it from.

        Raises:
            BudgetError: the plan has no such event, or it does not pay for this noise.
        """
        payment = self._payments.get(event.name)
        if payment is None or payment.event != event:
            raise BudgetError(f"event '{event.name}' is not one of the open plan")
        payment.use(scales)
        return self._entropy

    def take_over(self, runs: Mapping[str, int]) -> None:
        """Count how often an earlier process of the same fit ran each of these events.

        Raises:
            BudgetError: an event ran in this process already, or may not run so often.
        """
        for name, times in runs.items():
            self._payments[name].take_over(times)

    def uniform(self, size: Size) -> NDArray[np.float64]:
        """Draw uniform floats in [0, 1)."""
        return self._entropy.uniform(size)

    def integers(self, low: int, high: int, size: Size) -> Ints:
        """Draw integers uniformly from low (included) to high (excluded)."""
        return self._entropy.integers(low, high, size)

    def permutation(self, count: int) -> Ints:
        """Draw a uniform order of 0 .. count - 1."""
        return self._entropy.permutation(count)

    def generator(self) -> np.random.Generator:
        """Return a fresh NumPy generator, for shuffles and draws that hide nothing."""
        return self._entropy.generator()

    def normal(self, size: Size, dtype: DTypeLike = np.float64) -> NDArray[Any]:
        """Refuse noise that no event pays for."""
        raise _unpaid()

    def discrete_gaussian(self, sigma: float, size: int) -> Ints:
        """Refuse noise that no event pays for."""
        raise _unpaid()

    def discrete_laplace(self, scale: float, size: int) -> Ints:
        """Refuse noise that no event pays for."""
        raise _unpaid()

    def top(self, scores: Ints, count: int, scale: float) -> list[int]:
        """Refuse a choice that no event pays for."""
        raise _unpaid()


def gaussian_noise(
    event: NoisyEvent, entropy: Entropy, draws: Sequence[tuple[float, int]], *, answers: int = 1
) -> Iterator[Ints]:
    """Use an event, and draw its discrete Gaussian noise.

    Args:
        event: of the open plan. It is used even if nothing is drawn.
        entropy: of the open plan.
        draws: the scale and the number of integers of each draw.
        answers: to how many answers a draw adds noise, each of which counts.

    Returns:
        One int64 array for each draw; each is drawn when it is asked for.

    Raises:
        BudgetError: the event does not pay for it; nothing is drawn then.
    """
    scales = [scale for scale, _ in draws for _ in range(answers)]
    source = _source(event, entropy, scales)
    return (source.discrete_gaussian(scale, size) for scale, size in draws)


def laplace_noise(event: NoisyEvent, entropy: Entropy, size: int) -> Ints:
    """Use an event, and draw its discrete Laplace noise; raises as `gaussian_noise`."""
    scale = event.noise_scale
    return _source(event, entropy, [scale]).discrete_laplace(scale, size)


def noisy_top(event: NoisyEvent, entropy: Entropy, scores: Ints, count: int) -> list[int]:
    """Use an event, and name the candidates it chooses; raises as `gaussian_noise`."""
    scale = event.noise_scale
    return _source(event, entropy, [scale]).top(scores, count, scale)


def step_noise(event: NoisyEvent, entropy: Entropy, size: int) -> NDArray[np.float32]:
    """Use one step of an event, and draw float32 standard normals; raises as `gaussian_noise`."""
    source = _source(event, entropy, [event.noise_scale])
    return np.asarray(source.normal(size, np.float32))


def _source(event: NoisyEvent, entropy: Entropy, scales: Sequence[float]) -> Entropy:
    """Return what draws the noise that an event pays for.

    Raises:
        BudgetError: it does not pay for noise of these scales, or no plan is open.
    """
    if isinstance(entropy, PaidEntropy):
        return entropy.noise_of(event, scales)
    if entropy.releasable:
        raise BudgetError(
            f"event '{event.name}': noise for a release is drawn under an open plan only; hand "
            "the mechanism the randomness of plan.opened(entropy)"
        )
    return entropy


def _unpaid() -> BudgetError:
    return BudgetError("noise is drawn for an event of the plan, by a mechanism of dpsynth.privacy")
