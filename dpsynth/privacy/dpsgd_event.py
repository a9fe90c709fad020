"""The event of DP-SGD: subsampled Gaussian steps."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpsynth.errors import InputError
from dpsynth.privacy._validate import (
    MIN_NOISE_MULTIPLIER,
    NoisyEvent,
    is_number,
    require_count,
    require_mu,
    require_name,
    require_noise,
    round_up,
)
from dpsynth.privacy.losses.loss import SAMPLED, Loss


@dataclass(frozen=True)
class PoissonSgd(NoisyEvent):
    """Steps of DP-SGD: Poisson sampling of units, clipping of each unit, Gaussian noise on the sum.

    Attributes:
        name: the event's name within its plan.
        sampling_rate: probability q with which each unit, with all its rows, enters a step.
        steps: number of steps T; each counts, an empty batch too.
        noise_multiplier: standard deviation of the noise over the clipping norm; ``UNDECIDED`` in
            a share.
    """

    kind = "poisson_sgd"
    noise_field = "noise_multiplier"
    sampling_rate: float
    steps: int
    noise_multiplier: float

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "steps", self.steps, maximum=10_000_000)
        require_noise(self.name, "noise_multiplier", self.noise_multiplier)
        if not is_number(self.sampling_rate) or not 0 < self.sampling_rate <= 1:
            raise InputError(
                f"event '{self.name}': sampling_rate must be above 0 and at most 1;"
                " it is the expected batch over the public population"
            )

    @property
    def loss(self) -> Loss:
        """How a plan accounts for it: a sampled Gaussian step, again and again."""
        return Loss(SAMPLED, self.noise_multiplier, self.steps, self.sampling_rate)

    @property
    def most_runs(self) -> int:
        """One for each step."""
        return self.steps

    @property
    def least_runs(self) -> int:
        """All steps."""
        return self.steps

    def mu(self) -> float:
        """GDP parameter: exact without sampling, else the central limit of many steps.

        Source: Bu, Dong, Long, Su, Deep Learning with Gaussian Differential Privacy,
        arXiv 1911.11607, section 3.2: q sqrt(T (exp(1/sigma^2) - 1)).
        """
        if self.sampling_rate == 1:
            return math.sqrt(self.steps) / self.noise_multiplier
        try:
            growth = math.expm1(self.noise_multiplier**-2)
        except OverflowError:
            return math.inf
        return self.sampling_rate * math.sqrt(self.steps * growth)

    def with_mu(self, mu: float) -> PoissonSgd:
        """Return the event with the noise that has this GDP parameter, rounded up."""
        require_mu(self.name, mu)
        if self.sampling_rate == 1:
            noise = math.sqrt(self.steps) / mu
        else:
            noise = math.log1p((mu / self.sampling_rate) ** 2 / self.steps) ** -0.5
        return replace(self, noise_multiplier=round_up(max(noise, MIN_NOISE_MULTIPLIER)))
