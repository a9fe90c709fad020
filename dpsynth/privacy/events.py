"""Events: the mechanisms of a fit that read private rows, as facts that an accountant interprets.

An event says what was added to what, and nothing about how the data look: every field is public.
The adjacency is "add or remove one privacy unit with all its rows". Noise that is not decided yet
is ``UNDECIDED`` (infinite: such an event would release nothing); ``with_mu`` decides it.

``mu`` is the parameter of the Gaussian mechanism that an event resembles (Dong, Roth, Su, Gaussian
Differential Privacy, arXiv 1905.02383). It only serves to design a plan; no claim is made from it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, get_args

from dpsynth.errors import InputError
from dpsynth.privacy.answer_events import (
    LaplaceCounts,
    LinkCounts,
    RowSums,
    StaySums,
    TeacherVotes,
    TopChoice,
)
from dpsynth.privacy.discovery_events import CodeDiscovery, KeyCounts
from dpsynth.privacy.noisy_event import (
    DISCRETE,
    GAUSSIAN,
    MIN_NOISE_MULTIPLIER,
    SAMPLED,
    SMOOTHING,
    UNDECIDED,
    Loss,
    NoisyEvent,
    is_number,
    require_count,
    require_mass,
    require_mu,
    require_name,
    require_noise,
    round_up,
)


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


__all__ = [
    "SMOOTHING",
    "UNDECIDED",
    "ChosenHistograms",
    "CodeDiscovery",
    "Event",
    "JointHistograms",
    "KeyCounts",
    "LaplaceCounts",
    "LinkCounts",
    "PoissonSgd",
    "RowSums",
    "StaySums",
    "TeacherVotes",
    "TopChoice",
    "event_from_dict",
    "round_up",
]

_MAX_TABLE_SIGMA = 1000.0  # above it, the Gaussian bound costs 1.1e-6 of epsilon, and less time
_MIN_SIGMA = 0.3  # below this a count is all but exact, and its privacy loss all but unbounded
_MIN_SIGMA_MANY_ROWS = 2 * SMOOTHING  # the bound needs sigma well above the smoothing


@dataclass(frozen=True)
class JointHistograms(NoisyEvent):
    """Row counts of several histograms at once, each cell with discrete Gaussian noise.

    Every row enters each histogram exactly once, in one cell. A unit with ``rows_per_unit`` rows
    shifts the joint vector of counts by integers of L2 norm at most
    ``rows_per_unit * sqrt(histograms)``, reached by identical rows.

    Attributes:
        name: the event's name within its plan.
        histograms: how many histograms are released.
        rows_per_unit: at most this many rows of a privacy unit are counted.
        sigma: parameter of the noise, P(z) proportional to exp(-z^2 / (2 sigma^2)) on integers, in
            counts; ``UNDECIDED`` in a share. With a mass above 1 at least 3.
        unit_mass: None if each row counts 1. Otherwise each of a unit's r rows counts
            floor(unit_mass / r), so that a unit adds at most ``unit_mass`` to each histogram,
            however many rows it has.
    """

    kind = "joint_histograms"
    noise_field = "sigma"
    histograms: int
    rows_per_unit: int
    sigma: float
    unit_mass: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "histograms", self.histograms, maximum=1_000_000)
        require_count(self.name, "rows_per_unit", self.rows_per_unit, maximum=1_000_000)
        require_noise(self.name, "sigma", self.sigma)
        require_mass(self.name, self.unit_mass, self.rows_per_unit)
        if self.mass > 1 and self.sigma < _MIN_SIGMA_MANY_ROWS:
            raise InputError(
                f"event '{self.name}': sigma must be at least {_MIN_SIGMA_MANY_ROWS:g} when a"
                f" unit has up to {self.rows_per_unit} rows; its privacy bound needs it"
            )

    @property
    def mass(self) -> int:
        """Largest sum of what a unit adds to one histogram; its L1 and its L2 bound."""
        return self.rows_per_unit if self.unit_mass is None else self.unit_mass

    @property
    def sensitivity(self) -> float:
        """L2 norm of the largest shift of the counts by one unit."""
        return self.mass * math.sqrt(self.histograms)

    @property
    def relative_noise(self) -> float:
        """The noise of a count in rows, or in units where the rows of one share its mass."""
        return self.sigma / (self.unit_mass or 1)

    @property
    def loss(self) -> Loss:
        """How a plan accounts for it: cell by cell, or by the bound of accounting.py."""
        if self.mass > 1 or self.sigma > _MAX_TABLE_SIGMA:
            smooth = math.sqrt(self.sigma**2 - SMOOTHING**2)
            moved = self.rows_per_unit * self.histograms
            return Loss(GAUSSIAN, smooth / self.sensitivity, moved=moved)
        return Loss(DISCRETE, self.sigma, self.histograms)

    def mu(self) -> float:
        """GDP parameter: sensitivity over the scale of the (dominating) Gaussian."""
        smoothing = SMOOTHING if self.mass > 1 else 0.0
        return self.sensitivity / math.sqrt(self.sigma**2 - smoothing**2)

    def with_mu(self, mu: float) -> JointHistograms:
        """Return the event with the noise that has this GDP parameter, rounded up."""
        require_mu(self.name, mu)
        if self.mass > 1:
            sigma = math.hypot(self.sensitivity / mu, SMOOTHING)
            return replace(self, sigma=round_up(max(sigma, _MIN_SIGMA_MANY_ROWS)))
        return replace(self, sigma=round_up(max(self.sensitivity / mu, _MIN_SIGMA)))


@dataclass(frozen=True)
class ChosenHistograms(NoisyEvent):
    """Counts of histograms that are chosen after earlier releases, under one bound for them all.

    Which histograms, and the scale of each one's discrete Gaussian noise, may depend on anything
    that earlier events released. With scales sigma_i and s = SMOOTHING, the bound is
    sum_i mass^2 / (sigma_i^2 - s^2) <= 1 / noise_multiplier^2: by the argument of accounting.py
    every histogram is dominated by a continuous Gaussian of scale sqrt(sigma_i^2 - s^2), and all of
    them together by one whose sensitivity over scale is at most 1 / noise_multiplier. Nothing else
    is used of a histogram than that a unit shifts it by whole numbers of L2 norm at most ``mass``,
    so any answer with this property may stand in its place (questions.py).

    Attributes:
        name: the event's name within its plan.
        most: at most this many histograms are released.
        rows_per_unit: at most this many rows of a privacy unit are counted.
        noise_multiplier: scale of the joint noise over the sensitivity; ``UNDECIDED`` in a share.
        unit_mass: as in `JointHistograms`.
    """

    kind = "chosen_histograms"
    noise_field = "noise_multiplier"
    most: int
    rows_per_unit: int
    noise_multiplier: float
    unit_mass: int | None = None

    def __post_init__(self) -> None:
        """Refuse what is not a mechanism."""
        require_name(self.name)
        require_count(self.name, "most", self.most, maximum=1_000_000)
        require_count(self.name, "rows_per_unit", self.rows_per_unit, maximum=1_000_000)
        require_noise(self.name, "noise_multiplier", self.noise_multiplier)
        require_mass(self.name, self.unit_mass, self.rows_per_unit)

    @property
    def mass(self) -> int:
        """Largest sum of what a unit adds to one histogram."""
        return self.rows_per_unit if self.unit_mass is None else self.unit_mass

    @property
    def loss(self) -> Loss:
        """How a plan accounts for it: by the bound of accounting.py, for all together."""
        return Loss(GAUSSIAN, self.noise_multiplier, moved=self.rows_per_unit * self.most)

    def mu(self) -> float:
        """GDP parameter of all histograms together."""
        return 1 / self.noise_multiplier

    def with_mu(self, mu: float) -> ChosenHistograms:
        """Return the event with the noise that has this GDP parameter, rounded up."""
        require_mu(self.name, mu)
        noise = max(1 / mu, MIN_NOISE_MULTIPLIER)
        return replace(self, noise_multiplier=round_up(noise))

    def sigma_for(self, part: float) -> float:
        """Return the scale of one histogram's noise; the squares of all parts add up to 1 at most.

        Rounded up, with room for the floats of `covers`, so that the parts keep the event's bound.
        """
        if not 0 < part <= 1:
            raise InputError(f"event '{self.name}': a part must be above 0 and at most 1")
        sigma = math.hypot(self.mass * self.noise_multiplier / part, SMOOTHING) * (1 + 1e-9)
        return round_up(max(sigma, _MIN_SIGMA_MANY_ROWS))

    @property
    def most_runs(self) -> int:
        """One for each histogram; their scales bound them together."""
        return self.most

    @property
    def bounded_together(self) -> bool:
        """Always: all histograms share one precision."""
        return True

    def pays_for(self, scales: Sequence[float]) -> bool:
        """Whether all histograms so far, with these scales of noise, are within the event."""
        return not scales or self.covers(scales)

    def covers(self, sigmas: Sequence[float]) -> bool:
        """Whether histograms with these scales of noise are within the event."""
        if not 0 < len(sigmas) <= self.most or min(sigmas) < _MIN_SIGMA_MANY_ROWS:
            return False
        if not all(map(math.isfinite, sigmas)):
            return False
        precision = math.fsum(self.mass**2 / (sigma**2 - SMOOTHING**2) for sigma in sigmas)
        return precision <= self.noise_multiplier**-2


Event = (
    JointHistograms
    | ChosenHistograms
    | PoissonSgd
    | CodeDiscovery
    | KeyCounts
    | RowSums
    | LaplaceCounts
    | StaySums
    | TopChoice
    | TeacherVotes
    | LinkCounts
)

_KINDS: dict[str, type[Event]] = {event.kind: event for event in get_args(Event)}


def event_from_dict(document: Mapping[str, Any]) -> Event:
    """Read an event back from ``to_dict``; anything missing, extra or of a wrong type is refused.

    Raises:
        InputError: if the document is not exactly one event with decided noise.
    """
    if not isinstance(document, Mapping):
        raise InputError("an event must be an object with a 'kind'")
    kind = document.get("kind")
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputError(f"event kind must be one of {', '.join(_KINDS)}")
    event_class = _KINDS[kind]
    keys = {field.name for field in fields(event_class)}
    if set(document) != keys | {"kind"}:
        raise InputError(f"an event of kind {kind} has exactly the keys kind, {', '.join(keys)}")
    event = event_class(**{key: document[key] for key in keys})
    if not event.decided:
        raise InputError(f"event '{event.name}' has no noise: infinite noise is not a mechanism")
    return event
