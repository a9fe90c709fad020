"""The pair of laws that dominates an event, for both directions of the adjacency.

An event says by which pair it is accounted, and how often this pair is composed (`Loss`); why the
pair dominates is derived where the event is. There are four kinds:

- `GAUSSIAN`: (N(0, s^2), N(1, s^2));
- `DISCRETE`: the same on whole numbers, (N_Z(0, s^2), N_Z(1, s^2)); it is its own mirror image;
- `SAMPLED`: a step of a Gaussian mechanism with Poisson sampling; add and remove are kept apart;
- `PURE`: randomised response with parameter e, which dominates any pair of laws whose ratio is
  within exp(+-e).

Everything is pessimistic: "connect the dots" discretisation (Doroshenko et al., arXiv 2207.04380)
only ever rounds the privacy loss curve up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dpsynth.privacy._validate import SMOOTHING

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


GAUSSIAN, DISCRETE, SAMPLED, PURE = "gaussian", "discrete", "sampled", "pure"

_BOUND = 4 * 4.01 * math.exp(-2 * (math.pi * SMOOTHING) ** 2)


@dataclass(frozen=True)
class Loss:
    """A dominating pair, composed several times.

    Attributes:
        kind: one of the four.
        parameter: s of a Gaussian pair, with a shift of 1; e of a pure one.
        times: how often the pair is composed.
        sampling_rate: of a sampled pair.
        moved: cells of whole numbers that a unit moves, where a Gaussian pair stands for discrete
            noise; 0 elsewhere.
    """

    kind: str
    parameter: float
    times: int = 1
    sampling_rate: float = 1.0
    moved: int = 0

    def distribution(self, grid: float) -> PrivacyLossDistribution:
        """Return the distribution of the loss, composed, rounded up to multiples of ``grid``."""
        from dp_accounting.pld import privacy_loss_distribution as pld

        settings: dict[str, Any] = {"value_discretization_interval": grid, "use_connect_dots": True}
        if self.kind == PURE:
            # moved by 1, discrete Laplace noise has the losses e and -e, and no other
            one = pld.from_discrete_laplace_mechanism(self.parameter, sensitivity=1, **settings)
        elif self.kind == DISCRETE:
            one = pld.from_discrete_gaussian_mechanism(self.parameter, sensitivity=1, **settings)
        else:
            one = pld.from_gaussian_mechanism(
                self.parameter, sampling_prob=self.sampling_rate, **settings
            )
        return one if self.times == 1 else one.self_compose(self.times)

    @property
    def slack(self) -> float:
        """What standing for discrete noise adds to delta: 4K of step 5 in accounting.py."""
        return _BOUND * self.moved

    @property
    def widest(self) -> float:
        """Largest privacy loss of one composition that the discretisation keeps, about."""
        noise = self.parameter
        if self.kind == PURE:
            return noise
        if self.kind == DISCRETE:
            return 11.6 / noise + 0.5 / noise**2
        plain = 10.3 / noise + 0.5 / noise**2  # mass beyond 10.3 sigma is below exp(-50)
        if self.sampling_rate == 1:
            return plain
        if plain > 30:
            return plain + math.log(self.sampling_rate)
        return math.log1p(self.sampling_rate * math.expm1(plain))
