"""What a policy would say of a fit: every verdict, the one that binds, and a way out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from dpsynth.errors import InputError
from dpsynth.pipeline import prepare
from dpsynth.plan import PrivacyPlan
from dpsynth.policy import Policy
from dpsynth.policy_advice import binding, largest_epsilon
from dpsynth.policy_rules import FLOOR, Past, Request, Verdict, judge
from dpsynth.privacy_filter import Spend
from dpsynth.schema import Schema

UNNAMED = "unnamed"  # a dataset without a past


@dataclass(frozen=True)
class Wish:
    """A fit that somebody thinks of: public facts alone."""

    schema: Schema
    dataset: str
    tier: str | None
    model: str

    def request(self, plan: PrivacyPlan) -> Request:
        """Return what a policy would be asked."""
        spend = Spend(plan.budget.epsilon, plan.budget.delta, plan.events)
        schema = self.schema
        return Request(
            self.dataset, self.tier, self.model, schema.population.value, schema.may_refuse, spend
        )


@dataclass(frozen=True)
class Preview:
    """A policy's answer.

    Attributes:
        policy: that was asked.
        verdicts: of every constraint, in a fixed order.
        largest: an epsilon that every constraint but the floors would admit, near the largest;
            None if the fit is allowed, or if no smaller epsilon would help.
    """

    policy: Policy
    verdicts: tuple[Verdict, ...]
    largest: float | None

    @property
    def allowed(self) -> bool:
        """Whether the fit would be admitted."""
        return all(verdict.allowed for verdict in self.verdicts)

    @property
    def binding(self) -> tuple[Verdict, ...]:
        """The constraints that refuse, or else the cap that leaves the least."""
        return binding(self.verdicts)

    def lines(self) -> list[str]:
        """Say it in words."""
        lines = [f"policy      {self.policy.name}: {'allows this' if self.allowed else 'refuses'}"]
        lines += [f"  {'ok ' if verdict.allowed else 'NO '} {verdict}" for verdict in self.verdicts]
        if self.allowed and self.binding:
            lines.append(f"  the tightest is: {self.binding[0].constraint}")
        if not self.allowed:
            names = ", ".join(verdict.constraint for verdict in self.binding)
            lines.append(f"  what binds: {names}")
        if self.largest is not None:
            lines.append(f"  epsilon {self.largest:g} would satisfy every cap")
        return lines

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


def preview(
    policy: Policy, past: Sequence[Past], wish: Wish, plan: PrivacyPlan, now: datetime
) -> Preview:
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
    if refused and all(verdict.constraint.find("epsilon") >= 0 for verdict in refused):
        delta = plan.budget.delta

        def admits(epsilon: float) -> bool:
            try:
                trial = prepare(wish.schema, epsilon=epsilon, delta=delta, model=wish.model).plan
            except InputError:
                return False
            found = judge(policy, past, wish.request(trial), now)
            return all(v.allowed or v.constraint.endswith(FLOOR) for v in found)

        largest = largest_epsilon(admits, plan.budget.epsilon)
    return Preview(policy, verdicts, largest)
