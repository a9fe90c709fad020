"""The event of stays over a window of periods: how many units are there in each.

**The mechanism.** A series has a number for each period of each group: how many units have a stay
there that covers the period, each counted once. A filter makes another series of each
(filters.py), and each of its numbers gets discrete Gaussian noise of scale sigma. Both are in parts
of a unit, whole numbers.

**How far a unit moves it** (add or remove a unit with at most k stays of at most L periods each).
By at most S = sqrt(k m) in L2, with m from filters.py: in a group, its stays come down to stays
without a common period, at most as many; those of different groups move different numbers, so
their squares add up too. At most k T numbers move, T being the periods of the window.

**What that costs.** The shift is a vector of whole numbers of norm at most S, so the Gaussian bound
of accounting.py (steps 1 to 5, with k T moving cells) holds; entries need not be positive there.

**Replacing a unit** moves it by the difference of two such vectors: by at most 2 S (`replacement`),
which is S of four times the stays (`substituted`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from dpsynth.errors import InputError
from dpsynth.privacy._validate import (
    SMOOTHING,
    NoisyEvent,
    require_count,
    require_mu,
    require_name,
    require_noise,
    round_up,
)
from dpsynth.privacy.losses.loss import GAUSSIAN, Loss

MAX_PERIODS = 10_000
_MAX_SIGMA = 2.0**54  # as of sums over rows: what is cut off shows what it is added to
_MIN_SIGMA = 2 * SMOOTHING


@dataclass(frozen=True)
class StaySums(NoisyEvent):
    """Units that are there in each period, filtered, with discrete Gaussian noise.

    Attributes:
        name: the event's name within its plan.
        periods: T, of the window.
        longest: L, the most periods that a stay covers.
        stays_per_unit: k, at most this many stays of a privacy unit count.
        sigma: parameter of the noise, P(z) proportional to exp(-z^2 / (2 sigma^2)) on integers, in
            parts of a unit; ``UNDECIDED`` in a share.

    Example:
        >>> event = StaySums("beds", 365, longest=31, stays_per_unit=1, sigma=2.0**24)
        >>> round(event.sensitivity / 2**20, 3), round(event.mu(), 3)
        (1.931, 0.121)
    """

    kind = "stay_sums"
    noise_field = "sigma"
    periods: int
    longest: int
    stays_per_unit: int
    sigma: float

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "periods", self.periods, maximum=MAX_PERIODS)
        require_count(self.name, "longest", self.longest, maximum=self.periods)
        require_count(self.name, "stays_per_unit", self.stays_per_unit, maximum=1_000_000)
        require_noise(self.name, "sigma", self.sigma)
        if self.decided and not _MIN_SIGMA <= self.sigma <= _MAX_SIGMA:
            raise InputError(
                f"event '{self.name}': sigma must be at least {_MIN_SIGMA:g}, and no more than 64 "
                "bits hold"
            )

    @property
    def moved(self) -> int:
        """Largest number of cells that a unit moves."""
        return self.stays_per_unit * self.periods

    @property
    def sensitivity(self) -> float:
        """L2 norm of the largest shift by one unit, in parts of it."""
        from dpsynth.privacy.answers.filters import (
            most_moved,  # with numpy, which --help does without
        )

        one = most_moved(self.periods, self.longest)
        return math.sqrt(self.stays_per_unit * one) * (1 + 1e-12)

    @property
    def replacement(self) -> float:
        """How much further a unit moves the series that takes another's place, at most."""
        return 2.0

    def substituted(self) -> StaySums:
        """Return the series that cost what these do where one unit takes another's place."""
        return replace(self, stays_per_unit=4 * self.stays_per_unit)

    @property
    def relative_noise(self) -> float:
        """The noise over the most that one unit moves."""
        return self.sigma / self.sensitivity

    @property
    def loss(self) -> Loss:
        """How a plan accounts for it: by the Gaussian bound of accounting.py."""
        smooth = math.sqrt(self.sigma**2 - SMOOTHING**2)
        return Loss(GAUSSIAN, smooth / self.sensitivity, moved=self.moved)

    def mu(self) -> float:
        """GDP parameter: sensitivity over the scale of the dominating Gaussian."""
        return self.sensitivity / math.sqrt(self.sigma**2 - SMOOTHING**2)

    def with_mu(self, mu: float) -> StaySums:
        """Return the event with the noise that has this GDP parameter, rounded up."""
        require_mu(self.name, mu)
        sigma = math.hypot(self.sensitivity / mu, SMOOTHING)
        return replace(self, sigma=round_up(max(sigma, _MIN_SIGMA)))
