"""The privacy plan: all events of a fit, with their noise, before the data is opened.

A plan is a function of public things only: the budget and the shares. The noise of all events is
calibrated once, together, so that the composition of their privacy loss distributions meets the
budget; nothing is spent event by event.

On which terms a generator reads rows: under a plan, watched or not, or without privacy.

A fit without privacy is the reference that shows what the noise costs. `NonPrivatePlan` takes the
place of a plan. It keeps the settings of one (which histograms, how many steps) and stands for
running them with exact counts and plain gradients. A run that was learned so has no certificate, is
stamped, and cannot be released.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from dpsynth._util.short_repr import short_repr
from dpsynth.errors import InputError
from dpsynth.privacy.accounting import MIN_DELTA, epsilon, gaussian_mu, rough_epsilon
from dpsynth.privacy.entropy import Entropy
from dpsynth.privacy.events import Event, event_from_dict, round_up
from dpsynth.privacy.noisy_event import PURE
from dpsynth.privacy.payments import PaidEntropy

MAX_EPSILON = 1000.0
"""Of a fit. No table gets better beyond it, and floating point would overflow far above."""

_AIM = 0.9992  # of epsilon: the search aims a little below the target, so that it lands below
_MARGIN = 1.0001  # stated over computed: rounding on another machine must not contradict a claim
_CLOSE = 6e-4  # relative distance to the aim at which the search ends
_MAX_TRIALS = 60
_MAX_NOISE = 1e8  # rows, or clipping norms: nothing is learned beyond
_MAX_MU = 1e6


@dataclass(frozen=True)
class PrivacyBudget:
    """What a fit may cost: (epsilon, delta) for adding or removing one privacy unit.

    Attributes:
        epsilon: above 0 and at most 1000.
        delta: at least 1e-10 and below 1; choose it well below one over the number of units.

    >>> PrivacyBudget(epsilon=3, delta=1e-6)
    PrivacyBudget(epsilon=3, delta=1e-06)
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        """Refuse what is not a budget."""
        if not _is_number(self.epsilon) or not (0 < self.epsilon < math.inf):
            raise InputError("epsilon must be a finite number above 0")
        if self.epsilon > MAX_EPSILON:
            raise InputError(
                f"epsilon must be at most {MAX_EPSILON:g}: so large an epsilon is no"
                " protection; take a smaller one"
            )
        if not _is_number(self.delta) or not 0 < self.delta < 1:
            raise InputError("delta must be above 0 and below 1")
        if self.delta < MIN_DELTA:
            raise InputError(
                f"delta must be at least {MIN_DELTA:g}: below that, floating point"
                " does not carry the proof"
            )


@dataclass(frozen=True)
class Share:
    """An event whose noise is to be found, and its part of the plan's mu squared.

    Attributes:
        event: noise ``events.UNDECIDED``; other noise is replaced.
        fraction: above 0; the fractions of a plan add up to 1.
    """

    event: Event
    fraction: float

    def __post_init__(self) -> None:
        """Refuse fractions outside (0, 1]."""
        if not _is_number(self.fraction) or not 0 < self.fraction <= 1:
            raise InputError(
                f"event '{self.event.name}': its fraction must be above 0 and at most 1"
            )


@dataclass(frozen=True)
class PrivacyPlan:
    """Every event of a fit, and what they cost together.

    Attributes:
        budget: what was allowed.
        events: with their noise; names are distinct.
        epsilon: composed epsilon of all events at ``budget.delta``, a little rounded up; never
            above ``budget.epsilon``.

    >>> from dpsynth.privacy import JointHistograms, Share
    >>> from dpsynth.privacy.events import UNDECIDED
    >>> counts = JointHistograms("counts", histograms=4, rows_per_unit=2, sigma=UNDECIDED)
    >>> plan = PrivacyPlan.calibrate(PrivacyBudget(epsilon=3, delta=1e-6), (Share(counts, 1.0),))
    >>> [event.name for event in plan.events], 2.9 < plan.epsilon <= 3
    (['counts'], True)
    """

    budget: PrivacyBudget
    events: tuple[Event, ...]
    epsilon: float

    def __post_init__(self) -> None:
        """Refuse a plan that does not hold together; its epsilon is not computed again here."""
        if not self.events:
            raise InputError("a plan needs at least one event")
        names = [event.name for event in self.events]
        if len(set(names)) < len(names):
            raise InputError("the events of a plan must have distinct names")
        for event in self.events:
            if not event.decided:
                raise InputError(f"event '{event.name}': its noise is not decided")
        if not _is_number(self.epsilon) or not 0 <= self.epsilon <= self.budget.epsilon:
            raise InputError("the composed epsilon of a plan must not be above its budget")

    def __repr__(self) -> str:
        """Say what it costs, and for what."""
        return short_repr(
            self,
            f"epsilon {self.epsilon:.4g} of {self.budget.epsilon:g}",
            f"delta {self.budget.delta:g}",
            "events " + " ".join(event.name for event in self.events),
        )

    @classmethod
    def calibrate(cls, budget: PrivacyBudget, shares: Sequence[Share]) -> PrivacyPlan:
        """Find the noise of all events together.

        Event i gets the Gaussian parameter mu * sqrt(fraction_i); mu is searched for until the
        composed epsilon of the events, with noise as it will be used (rounded up), is at most
        ``budget.epsilon`` and above 0.998 of it. Where every event has reached the least noise that
        its kind allows, the plan stays below the budget.

        Raises:
            InputError: if the shares do not add up to 1, or the budget is so small that the noise
                would drown any table.
        """
        if not shares:
            raise InputError("a plan needs at least one share")
        total = math.fsum(share.fraction for share in shares)
        if abs(total - 1) > 1e-6:
            raise InputError(f"the fractions of a plan must add up to 1, not to {total:g}")

        def events(mu: float) -> tuple[Event, ...]:
            return tuple(share.event.with_mu(mu * math.sqrt(share.fraction)) for share in shares)

        calibrated, cost = _search(events, budget)
        for event in calibrated:
            if event.relative_noise > _MAX_NOISE:
                raise _too_small(budget)
        return cls(budget=budget, events=calibrated, epsilon=cost)

    def event(self, name: str) -> Event:
        """Return the event of this name.

        Raises:
            InputError: if the plan has none.
        """
        for event in self.events:
            if event.name == name:
                return event
        names = ", ".join(event.name for event in self.events)
        raise InputError(f"the plan has no event '{name}'; it has {names}")

    def opened(self, entropy: Entropy) -> PaidEntropy:
        """Open the plan for one fit: its randomness, which pays for each event once.

        Args:
            entropy: the source of noise and of all other draws.
        """
        return PaidEntropy(self.events, entropy)

    def has(self, name: str) -> bool:
        """Say whether the plan has an event of this name."""
        return any(event.name == name for event in self.events)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as JSON types."""
        return {
            "epsilon": self.budget.epsilon,
            "delta": self.budget.delta,
            "composed_epsilon": self.epsilon,
            "events": [event.to_dict() for event in self.events],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> PrivacyPlan:
        """Read a plan back from ``to_dict``, and account for its events again.

        Raises:
            InputError: if the document is not exactly a plan, or states less than its events cost.
        """
        keys = {"epsilon", "delta", "composed_epsilon", "events"}
        if not isinstance(document, Mapping) or set(document) != keys:
            raise InputError(f"a plan has exactly the keys {', '.join(sorted(keys))}")
        listed = document["events"]
        if not isinstance(listed, list | tuple):
            raise InputError("the events of a plan must be a list")
        plan = cls(
            budget=PrivacyBudget(document["epsilon"], document["delta"]),
            events=tuple(event_from_dict(event) for event in listed),
            epsilon=document["composed_epsilon"],
        )
        if epsilon(plan.events, plan.budget.delta) > plan.epsilon:
            raise InputError("the plan states less than its events cost")
        return plan


def _search(
    events: Callable[[float], tuple[Event, ...]], budget: PrivacyBudget
) -> tuple[tuple[Event, ...], float]:
    """Events of the largest mu that stays within the budget, and their epsilon.

    First on a coarse grid, then in full: what is returned was itself composed, with its noise as it
    will be used, and found within the budget.
    """
    start = gaussian_mu(budget.epsilon, budget.delta)
    near = _root(
        lambda mu: rough_epsilon(_tried(events, mu, budget), budget.delta, near=budget.epsilon),
        budget,
        start,
    )
    best: tuple[tuple[Event, ...], float] | None = None

    def cost(mu: float) -> float:
        nonlocal best
        tried = _tried(events, mu, budget)
        # losses of choices and of Laplace noise are points, which another grid rounds otherwise
        near = None if any(event.loss.kind == PURE for event in tried) else budget.epsilon
        value = round_up(_MARGIN * epsilon(tried, budget.delta, near=near))
        if value <= budget.epsilon and (best is None or value > best[1]):
            best = tried, value
        return value

    _root(cost, budget, near)
    if best is None:
        raise _too_small(budget)
    return best


def _tried(
    events: Callable[[float], tuple[Event, ...]], mu: float, budget: PrivacyBudget
) -> tuple[Event, ...]:
    tried = events(mu)
    if min(event.relative_noise for event in tried) > 100 * _MAX_NOISE:
        raise _too_small(budget)
    return tried


def _root(cost: Callable[[float], float], budget: PrivacyBudget, start: float) -> float:
    """Where ``cost`` comes close below the budget: a bracketing secant search.

    It works on log cost against log mu, which is nearly a line, and ends where the cost is flat.
    """
    aim = _AIM * budget.epsilon
    low: tuple[float, float] | None = None  # (log mu, log(cost / aim)), below the aim
    high: tuple[float, float] | None = None  # the same, above it
    place = math.log(start)
    for _ in range(_MAX_TRIALS):
        value = cost(math.exp(place))
        error = math.log(value / aim) if value > 0 else -math.inf
        if abs(error) < _CLOSE and value <= budget.epsilon:
            break
        if error > 0:
            high = place, error
        else:
            low = place, error
        flat = low is not None and high is not None and high[0] - low[0] < 1e-7
        if flat or place > math.log(_MAX_MU):
            break  # the noise moves in steps of its last digit, or is the least of its kind
        place = _next(low, high)
    return math.exp(place)


def _next(low: tuple[float, float] | None, high: tuple[float, float] | None) -> float:
    """Log mu to try next; epsilon grows a little faster than mu, so steps pass the aim."""
    if low is None:
        assert high is not None
        return high[0] - min(high[1], math.log(4))
    if high is None:
        return low[0] + min(-low[1], math.log(4))
    width = high[0] - low[0]
    if math.isinf(low[1]):
        return low[0] + width / 2
    secant = low[0] - low[1] * width / (high[1] - low[1])
    return min(max(secant, low[0] + width / 50), high[0] - width / 50)


class BudgetTooSmall(InputError):
    """The noise of a plan with this budget would drown any table."""


def _too_small(budget: PrivacyBudget) -> BudgetTooSmall:
    return BudgetTooSmall(
        f"epsilon {budget.epsilon:g} at delta {budget.delta:g} is too small: the noise would be"
        f" more than {_MAX_NOISE:g} rows; take a larger epsilon, or fewer events"
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


STAMP = "not-private"
NOMINAL_BUDGET = PrivacyBudget(epsilon=10.0, delta=1e-6)
"""Whose presets a fit without privacy uses; nothing is spent."""


@dataclass(frozen=True)
class NonPrivatePlan:
    """The settings of a plan, to be run without its noise.

    Attributes:
        settings: names the events; their noise only weighs counts against each other.
    """

    settings: PrivacyPlan

    @property
    def budget(self) -> PrivacyBudget:
        """The nominal budget, which chooses the preset."""
        return self.settings.budget

    def event(self, name: str) -> Event:
        """Return the event of this name; see `PrivacyPlan.event`."""
        return self.settings.event(name)

    def has(self, name: str) -> bool:
        """Say whether there is an event of this name."""
        return self.settings.has(name)


class Observer(Protocol):
    """Who is told each noisy release of a fit, in an audit; `models.auditing.transcript` has one.

    Tables, coded rows and trainers are those of the rooms above, which this one does not know.
    """

    @property
    def histories(self) -> tuple[Any, ...]:
        """Return canaries and everybody else as a generator of histories reads them, or nothing."""

    def counted(
        self,
        noisy: Sequence[Any],
        sigmas: Sequence[float],
        event: Any,
        encode: Callable[[Any], Any],
    ) -> None:
        """Hear noisy histograms; ``encode`` gives each row's cell in each of them as a column."""

    def paired(
        self,
        noisy: Sequence[Any],
        places: Sequence[tuple[int, int]],
        sigmas: Sequence[float],
        event: Any,
        binning: Any,
    ) -> None:
        """Hear noisy counts of pairs of binned columns."""

    @property
    def sides(self) -> tuple[Any, Any]:
        """Return canaries and everybody else as coded rows."""

    def multiplied(
        self,
        noisy: Any,
        contrasts: Sequence[Any],
        event: Any,
        sides: tuple[Any, Any],
        asked: Any = None,
    ) -> None:
        """Hear noisy sums of products of contrasts, knowing the rows of both sides."""

    def weighed(
        self, noisy: Sequence[Any], sigmas: Sequence[float], canaries: Any, others: Any
    ) -> None:
        """Hear noisy histograms of weighted rows; both sides' rows in them are `WeightedRows`."""

    def trainer(self, watch: Any) -> Any:
        """Return a class of trainer whose steps are heard."""


@dataclass(frozen=True)
class ObservedPlan:
    """A plan that runs as usual and shows each noisy release to an observer.

    For audits on synthetic rows only. What the observer sees is no more than what the plan
    accounts for.

    Attributes:
        plan: calibrated.
        observer: sees each release.
    """

    plan: PrivacyPlan
    observer: Observer

    @property
    def budget(self) -> PrivacyBudget:
        """The plan's budget."""
        return self.plan.budget

    def event(self, name: str) -> Event:
        """Return the event of this name; see `PrivacyPlan.event`."""
        return self.plan.event(name)

    def has(self, name: str) -> bool:
        """Say whether there is an event of this name."""
        return self.plan.has(name)


AnyPlan = PrivacyPlan | NonPrivatePlan | ObservedPlan
