"""The plan of a request: all events of all statistics, calibrated together, before any data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import fsum

from dpsynth.errors import InputError
from dpsynth.privacy import Event, KeyCounts, PrivacyBudget, PrivacyPlan, Share
from dpsynth.privacy import epsilon as epsilon_of
from dpsynth.stats.request import Request

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


def shares_of_request(request: Request, delta: float) -> tuple[Share, ...]:
    """Divide a budget by the weights of a request, and each part among a statistic's events.

    Args:
        request: what is asked.
        delta: of the budget, of which thresholds take a part.
    """
    total = fsum(one.weight for one in request.statistics)
    thresholds = sum(bool(one.undeclared) for one in request.statistics)

    def decided(event: Event) -> Event:
        if not isinstance(event, KeyCounts):
            return event
        return replace(event, delta=DELTA_PART * delta / thresholds)

    return tuple(
        Share(decided(event), one.weight / total * part)
        for one in request.statistics
        for event, part in one.events()
    )


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
    return PrivacyPlan.from_dict(plan.to_dict())  # as verify will, before any charge


def replaced_epsilon(plan: PrivacyPlan) -> float:
    """Return epsilon at the plan's delta where one unit takes another's place: substitution.

    Example:
        >>> request = Request.from_dict({"schema": "demo", "statistics": [
        ...     {"name": "by sex", "count": "patients", "by": ["sex"]}]})
        >>> plan = plan_request(request, epsilon=0.5, delta=1e-7)
        >>> 1.4 < replaced_epsilon(plan) / plan.epsilon < 1.5
        True
    """
    return epsilon_of([event.substituted() for event in plan.events], plan.budget.delta)


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
