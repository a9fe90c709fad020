"""What events share: their noise, the pair of laws that dominates each, and checks of their fields.

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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from typing import TYPE_CHECKING, Any, ClassVar, Self

from dpsynth.errors import InputError

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


UNDECIDED = math.inf
"""The noise of an event that a plan has not calibrated yet."""


SMOOTHING = 1.5
"""Scale of the randomised rounding in the bound for units of several rows, see accounting.py."""


MIN_NOISE_MULTIPLIER = 0.3
_SIGNIFICANT_DIGITS = 6


def round_up(value: float) -> float:
    """Round to six significant digits, never downwards.

    >>> round_up(3.14159265), round_up(0.5), round_up(1234567.0)
    (3.1416, 0.5, 1234570.0)
    """
    return float(Context(_SIGNIFICANT_DIGITS, ROUND_CEILING).create_decimal_from_float(value))


def is_number(value: object) -> bool:
    """Whether a value is a number and no truth value."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def require_name(name: object) -> None:
    """Refuse a name that is no text."""
    if not isinstance(name, str) or not name:
        raise InputError("an event must have a name, a text that is not empty")


def require_count(event: str, field: str, value: object, *, maximum: int) -> None:
    """Refuse a field that is no whole number from 1 to ``most``."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= maximum:
        raise InputError(f"event '{event}': {field} must be a whole number from 1 to {maximum}")


def require_mass(event: str, mass: object, rows: int) -> None:
    """Refuse a unit mass that would leave a row without weight."""
    if mass is None:
        return
    require_count(event, "unit_mass", mass, maximum=1_000_000)
    assert isinstance(mass, int)
    if mass < rows:
        raise InputError(
            f"event '{event}': unit_mass must be at least rows_per_unit, or a row counts nothing"
        )


def require_noise(event: str, field: str, value: object) -> None:
    """Refuse a field that is no number above 0."""
    if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
        raise InputError(f"event '{event}': {field} must be a number above 0")


def require_mu(event: str, mu: float) -> None:
    """Refuse a GDP parameter that is not finite and positive."""
    if not (mu > 0 and math.isfinite(mu)):
        raise InputError(f"event '{event}': mu must be a finite number above 0")


def require_decided(event: str, noise: float) -> None:
    """Refuse an event whose noise is not set."""
    if not math.isfinite(noise):
        raise InputError(f"event '{event}': its noise is not decided; calibrate a plan first")


@dataclass(frozen=True)
class NoisyEvent:
    """An event whose noise is one of its fields; all fields are JSON types."""

    kind: ClassVar[str]
    noise_field: ClassVar[str]
    name: str

    @property
    def decided(self) -> bool:
        """Whether the noise is set."""
        return math.isfinite(getattr(self, self.noise_field))

    @property
    def set_aside(self) -> float:
        """What the event takes of a plan's delta, once, whatever the others are."""
        return 0.0

    @property
    def relative_noise(self) -> float:
        """The noise in what is counted: rows, units, or the most that one unit moves."""
        return float(getattr(self, self.noise_field))

    @property
    def noise_scale(self) -> float:
        """The scale of what its mechanism draws, where the event fixes one."""
        return float(getattr(self, self.noise_field))

    @property
    def most_runs(self) -> int:
        """How often its mechanism runs, at most."""
        return 1

    @property
    def least_runs(self) -> int:
        """How often its mechanism has run when a fit has carried the event out."""
        return 1

    @property
    def bounded_together(self) -> bool:
        """Whether the scales of all its runs are bounded in sum; if not, each stands for itself."""
        return False

    def pays_for(self, scales: Sequence[float]) -> bool:
        """Whether draws of these scales are what the event accounts for.

        Args:
            scales: of one run; of all runs so far where they are bounded together.
        """
        return all(scale == self.noise_scale for scale in scales)

    def substituted(self) -> Self:
        """Return an event whose cost is that of this one where a unit takes another's place.

        Raises:
            InputError: for an event of this kind, it has not been derived.
        """
        raise InputError(f"event '{self.name}': its cost under substitution is not derived")

    def undecided(self) -> Self:
        """Return the event without its noise, as in a share of a plan."""
        undecided: dict[str, Any] = {self.noise_field: UNDECIDED}
        return replace(self, **undecided)

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON types; its noise must be decided."""
        require_decided(self.name, getattr(self, self.noise_field))
        return {"kind": self.kind, **vars(self)}


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
