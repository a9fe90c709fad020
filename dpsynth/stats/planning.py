"""The plan of a request: all events of all statistics, calibrated together, before any data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum

from dpsynth.errors import InputError
from dpsynth.privacy import Event, KeyCounts, LaplaceCounts, PrivacyBudget, PrivacyPlan, Share
from dpsynth.privacy import epsilon as epsilon_of
from dpsynth.stats.counts import Counts
from dpsynth.stats.request import Request
from dpsynth.stats.statistic import Statistic

MAX_NUMBERS = 5_000_000
"""Noisy numbers of all statistics of a request: about a minute of noise, and a gigabyte."""


@dataclass(frozen=True)
class Expected:
    """What to expect of a statistic.

    Attributes:
        name: of the statistic.
        share: of the budget.
        precision: in words, how far its figures will be off.
    """

    name: str
    share: float
    precision: str


DELTA_PART = 0.1
"""Of the budget's delta: for all thresholds of undeclared keys together, as in a fit."""


MOST_MOVED = 12
"""Cells that a unit moves in all counts of a request: with more, Gaussian noise is narrower."""


def shares_of_request(
    request: Request, delta: float, *, laplace: bool = False
) -> tuple[Share, ...]:
    """Divide a budget by the weights of a request, and each part among a statistic's events.

    Args:
        request: what is asked.
        delta: of the budget, of which thresholds take a part.
        laplace: whether counts get Laplace noise; see `may_be_laplace`.
    """
    total = fsum(one.weight for one in request.statistics)
    thresholds = sum(bool(one.undeclared) for one in request.statistics)

    def decided(event: Event) -> Event:
        if not isinstance(event, KeyCounts):
            return event
        return replace(event, delta=DELTA_PART * delta / thresholds)

    return tuple(
        Share(in_laplace(one) if laplace else decided(event), one.weight / total * part)
        for one in request.statistics
        for event, part in one.events()
    )


def in_laplace(one: Statistic) -> LaplaceCounts:
    """Return the event of a count with Laplace noise."""
    event = one.in_laplace() if isinstance(one, Counts) else None
    assert event is not None
    return event


def may_be_laplace(request: Request) -> bool:
    """Whether all that is asked are counts, and few: a public fact."""
    counts = [one for one in request.statistics if isinstance(one, Counts)]
    plain = len(counts) == len(request.statistics) and all(one.in_laplace() for one in counts)
    return plain and sum(one.rows_per_unit for one in counts) <= MOST_MOVED


def plan_request(request: Request, *, epsilon: float, delta: float) -> PrivacyPlan:
    """Calibrate the noise of all statistics of a request together.

    Raises:
        InputError: the budget cannot be met, or the answers would not fit in memory.

    Example:
        >>> request = Request.from_dict({"schema": "demo", "statistics": [
        ...     {"name": "by sex", "count": "patients", "by": ["sex"]}]})
        >>> plan = plan_request(request, epsilon=0.5, delta=1e-7)
        >>> [event.name for event in plan.events], plan.epsilon <= 0.5
        (['by sex'], True)
    """
    if sum(one.numbers for one in request.statistics) > MAX_NUMBERS:
        raise InputError(
            f"the statistics need more than {MAX_NUMBERS:,} noisy numbers together; ask for fewer"
        )
    budget = PrivacyBudget(epsilon, delta)
    plan = PrivacyPlan.calibrate(budget, shares_of_request(request, delta))
    if may_be_laplace(request):
        other = PrivacyPlan.calibrate(budget, shares_of_request(request, delta, laplace=True))
        plan = min((other, plan), key=lambda tried: _widest(request, tried, plan))
    return PrivacyPlan.from_dict(plan.to_dict())  # as verify will, before any charge


def replaced_epsilon(plan: PrivacyPlan) -> float:
    """Return epsilon at the plan's delta where one unit takes another's place: substitution.

    Example:
        >>> request = Request.from_dict({"schema": "demo", "statistics": [
        ...     {"name": "by sex", "count": "patients", "by": ["sex"]}]})
        >>> plan = plan_request(request, epsilon=0.5, delta=1e-7)
        >>> round(replaced_epsilon(plan) / plan.epsilon, 1)  # of Laplace noise; of Gaussian 1.4
        2.0
    """
    return epsilon_of([event.substituted() for event in plan.events], plan.budget.delta)


def _widest(request: Request, tried: PrivacyPlan, plan: PrivacyPlan) -> float:
    """Return the largest interval of a plan of counts over that of another with Gaussian noise."""
    from dpsynth.stats.results import normal_quantile

    z, widths = normal_quantile(request.confidence), []
    for one in request.statistics:
        assert isinstance(one, Counts)
        reached = [
            one.half_width({event.name: event for event in each.events}, z)
            for each in (tried, plan)
        ]
        widths.append(reached[0] / reached[1])
    return max(widths)


WHAT_IF = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0)
"""Budgets that `what_if` tries where none are given."""


def what_if(
    request: Request, *, delta: float, epsilons: Sequence[float] = WHAT_IF
) -> dict[float, list[Expected]]:
    """Say how precise each statistic would be at several budgets; nothing is read or charged.

    Raises:
        InputError: a budget cannot be met.

    Example:
        >>> request = Request.from_dict({"schema": "demo", "statistics": [
        ...     {"name": "by sex", "count": "patients", "by": ["sex"]}]})
        >>> list(what_if(request, delta=1e-7, epsilons=(0.5, 1.0)))
        [0.5, 1.0]
    """
    return {
        epsilon: expectations(request, plan_request(request, epsilon=epsilon, delta=delta))
        for epsilon in epsilons
    }


def expectations(request: Request, plan: PrivacyPlan) -> list[Expected]:
    """Say for each statistic how far its figures will be off, from public facts alone."""
    from dpsynth.stats.results import normal_quantile

    events: dict[str, Event] = {event.name: event for event in plan.events}
    total = fsum(one.weight for one in request.statistics)
    z = normal_quantile(request.confidence)
    return [
        Expected(one.name, one.weight / total, one.expected(events, z))
        for one in request.statistics
    ]
