"""What a policy would say of a fit: every verdict, the one that binds, and a way out."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dpsynth.errors import InputError
from dpsynth.ledger import State, check_cost, check_request, require_one_unit
from dpsynth.policy import ConstraintCheck, Past, Policy, Request, binding, judge, largest_epsilon
from dpsynth.policy.rules import CAPS, FLOOR, SINGLE
from dpsynth.privacy import PrivacyPlan, Spend, Unit, exactly, rounded_down
from dpsynth.schema import AnySchema
from dpsynth.synthesis.preparation import Prepared, PreparedCohort, prepare

UNNAMED = "unnamed"  # a dataset without a past


@dataclass(frozen=True)
class Wish:
    """A fit that somebody thinks of: public facts alone."""

    schema: AnySchema
    dataset: str
    tier: str | None
    model: str
    publish_quality: float | None = None

    def request(self, plan: PrivacyPlan) -> Request:
        """Return what a policy would be asked."""
        schema, unit = self.schema, Unit.of(self.schema)
        budget, several = plan.budget, unit.max_units > 1
        cost = unit.cost(budget.epsilon, budget.delta)
        return Request(
            dataset=self.dataset,
            tier=self.tier,
            model=self.model,
            population=schema.population.value,
            may_refuse=schema.may_refuse,
            spend=Spend(*cost, () if several else plan.events),
            unit=unit,
        )


@dataclass(frozen=True)
class PolicyPreview:
    """A policy's answer.

    Attributes:
        policy: that was asked.
        verdicts: of every constraint, in a fixed order.
        largest: an epsilon that every constraint would admit, near the largest; None if the fit is
            allowed, or if no smaller epsilon would help.
    """

    policy: Policy
    verdicts: tuple[ConstraintCheck, ...]
    largest: float | None

    @property
    def allowed(self) -> bool:
        """Whether the fit would be admitted."""
        return all(verdict.allowed for verdict in self.verdicts)

    @property
    def binding(self) -> tuple[ConstraintCheck, ...]:
        """The constraints that refuse, or else the cap that leaves the least."""
        return binding(self.verdicts)

    def to_dict(self) -> dict[str, Any]:
        """Give the answer in plain JSON values."""
        return {
            "policy": self.policy.name,
            "digest": self.policy.digest,
            "allowed": self.allowed,
            "binding": [verdict.constraint for verdict in self.binding],
            "largest_epsilon": self.largest,
            "verdicts": [vars(verdict) for verdict in self.verdicts],
        }


def asked(
    prepared: Prepared | PreparedCohort,
    wish: Wish,
    policy: Policy | None,
    state: State | None,
    now: datetime,
) -> PolicyPreview | None:
    """Ask a policy about a fit, given what the ledger says; None where there is no policy.

    Args:
        prepared: the fit, with its plan.
        wish: what is to be fitted.
        policy: that is named, else that of the ledger.
        state: of the ledger; None where there is none, or no dataset is named.
        now: the time, with its zone.

    Raises:
        InputError: a name or the cost is not one that a ledger takes.
        BudgetError: other fits of the dataset count other units.
    """
    check_request(wish.dataset, "", wish.tier, 1.0, 0.5)
    budget, unit = prepared.plan.budget, Unit.of(wish.schema)
    check_cost(unit, budget.epsilon, budget.delta)
    past = () if state is None else state.past()
    if policy is not None:
        return preview(policy, past, wish, prepared.plan, now)
    scope = () if state is None else state.scope(wish.dataset)
    others = (entry.unit for entry in past if entry.dataset.lower() in scope)
    require_one_unit(wish.dataset, unit, others)
    return None


def preview(
    policy: Policy, past: Sequence[Past], wish: Wish, plan: PrivacyPlan, now: datetime
) -> PolicyPreview:
    """Ask a policy about a plan; look for an epsilon that would be admitted if it is not.

    Args:
        policy: the policy.
        past: the fits that count.
        wish: what is to be fitted.
        plan: its calibrated plan.
        now: the time, with its zone.
    """
    verdicts = judge(policy, past, wish.request(plan), now)
    refused = [verdict for verdict in verdicts if not verdict.allowed]
    largest = None
    caps = [verdict for verdict in refused if verdict.constraint.endswith(CAPS)]
    if caps and all(verdict.constraint.endswith((*CAPS, FLOOR)) for verdict in refused):
        delta = plan.budget.delta

        def admits(epsilon: float) -> bool:
            try:
                trial = prepare(
                    wish.schema,
                    epsilon=epsilon,
                    delta=delta,
                    model=wish.model,
                    publish_quality=wish.publish_quality,
                ).plan
                request = wish.request(trial)
            except InputError:
                return False
            judged = judge(policy, past, request, now)
            return all(v.allowed or v.constraint.endswith(FLOOR) for v in judged)

        units = wish.schema.unit.max_units  # that whoever is counted has at most
        largest = _largest(admits, caps, plan.budget.epsilon, units)
        if largest is not None and largest * units < _floor(verdicts):
            largest = None
    return PolicyPreview(policy, verdicts, largest)


def _floor(verdicts: Sequence[ConstraintCheck]) -> float:
    """The least epsilon that the tier allows."""
    floors = [float(v.limit or 0.0) for v in verdicts if v.constraint.endswith(FLOOR)]
    return max(floors, default=0.0)


def _largest(
    admits: Callable[[float], bool], refused: Sequence[ConstraintCheck], maximum: float, units: int
) -> float | None:
    """Find an epsilon that is admitted: what plain sums leave, or more where the filter does."""
    rooms = [
        rounded_down((exactly(float(verdict.limit)) - exactly(verdict.used or 0.0)) / units, 3)
        for verdict in refused
        if isinstance(verdict.limit, float) and math.isfinite(verdict.used or 0.0)
    ]
    plain = min((room for room in rooms if room < maximum), default=0.0)
    if plain <= 0 or not admits(plain):
        return largest_epsilon(admits, maximum)
    single = [v.limit for v in refused if v.constraint.endswith(SINGLE)]
    if plain in single:
        return plain
    return max(plain, largest_epsilon(admits, maximum) or 0.0)
