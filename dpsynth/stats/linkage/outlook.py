"""What to expect of linkage before anything is spent: from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpsynth._util.formatting import figure
from dpsynth.privacy import LinkCounts, PrivacyPlan
from dpsynth.stats.linkage.request import MATCHES, OTHERS, LinkageRequest
from dpsynth.stats.planning import WHAT_IF
from dpsynth.stats.results import normal_quantile

ACCEPTED = 1000  # pairs, for which the precision of figures is stated


@dataclass(frozen=True)
class Expectation:
    """How far figures of linkage will be off.

    Attributes:
        epsilon: composed.
        confidence: with which figures are within these distances.
        numbers: of each class, how far the number of pairs from a threshold on is off, in pairs.
        precision: how far the precision of 1,000 accepted pairs is off, at most.
        recall: how far recall is off where there are 1,000 matches, at most.
    """

    epsilon: float
    confidence: float
    numbers: dict[str, float]
    precision: float
    recall: float

    def lines(self) -> list[str]:
        """Say it in words."""
        sure = f"(confidence {100 * self.confidence:g} %)"
        return [
            *(
                f"{name}: to within {figure(off)} pairs {sure}"
                for name, off in self.numbers.items()
            ),
            f"precision of {ACCEPTED:,} reviewed pairs: to within {figure(self.precision)} {sure}",
            f"recall of {ACCEPTED:,} matches: to within {figure(self.recall)} {sure}",
        ]


def expectation(request: LinkageRequest, plan: PrivacyPlan) -> Expectation:
    """Say what to expect of a request under a plan.

    The error of precision p is that of (1 - p) M - p N over the number of pairs, and that of recall
    r the one of M - r M_0: each is largest at an end.
    """
    z = normal_quantile(request.confidence)
    sigma = {event.name: event.sigma for event in plan.events if isinstance(event, LinkCounts)}
    return Expectation(
        epsilon=plan.epsilon,
        confidence=request.confidence,
        numbers={name: float(math.ceil(z * sigma[name])) for name in request.classes},
        precision=min(1.0, z * max(sigma[MATCHES], sigma[OTHERS]) / ACCEPTED),
        recall=min(1.0, z * math.sqrt(2) * sigma[MATCHES] / ACCEPTED),
    )


def what_if(
    request: LinkageRequest, *, delta: float, epsilons: Sequence[float] = WHAT_IF
) -> dict[float, Expectation]:
    """Say what to expect at several budgets; nothing is read or charged.

    Raises:
        InputError: a budget cannot be met.
    """
    return {epsilon: expectation(request, request.plan(epsilon, delta)) for epsilon in epsilons}
