"""The plan of a request: all events of all statistics, calibrated together, before any data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum

from dpsynth.errors import InputError
from dpsynth.privacy import Event, PrivacyBudget, PrivacyPlan, Share
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


def shares_of_request(request: Request) -> tuple[Share, ...]:
    """Divide a budget by the weights of a request, and each part among a statistic's events."""
    total = fsum(one.weight for one in request.statistics)
    return tuple(
        Share(event, one.weight / total * part)
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
    plan = PrivacyPlan.calibrate(PrivacyBudget(epsilon, delta), shares_of_request(request))
    return PrivacyPlan.from_dict(plan.to_dict())  # as verify will, before any charge


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
