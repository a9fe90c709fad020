"""What events share: noise that is not decided, and checks that name the event and the field."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context
from typing import Any, ClassVar, Self

from dpsynth.errors import InputError

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
