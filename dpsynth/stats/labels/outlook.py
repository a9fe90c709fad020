"""What to expect of labels before anything is spent: from public facts alone."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dpsynth.privacy import PrivacyPlan, TeacherVotes
from dpsynth.stats.labels.queries import Queries
from dpsynth.stats.labels.task import Task
from dpsynth.stats.labels.teachers import Features
from dpsynth.stats.planning import WHAT_IF

LEADS = (0.2, 0.4, 0.6)
SURE = 0.95
_Z = 1.6448536269514722  # of which a normal number is below with this probability


@dataclass(frozen=True)
class Outlook:
    """How far noise will hide the votes.

    Attributes:
        epsilon: composed.
        sigma: of the noise on each number of votes.
        teachers: how many vote.
        units_each: units that a teacher has, about.
        student: sd of what noise adds to a share of votes that the student states, over the rows
            that are asked; an upper bound.
        right: for each lead of the first class over the second, as a share of the teachers, the
            chance that the noisy votes of one row alone name the first.
        answerable: how many rows could be asked if a lead of 40 % were to win in 95 of 100.
    """

    epsilon: float
    sigma: float
    teachers: int
    units_each: float
    student: float
    right: dict[float, float]
    answerable: int

    def lines(self) -> list[str]:
        """Say it in words."""
        chances = ", ".join(
            f"{100 * p:.0f} % if it leads by {100 * x:.0f} %" for x, p in self.right.items()
        )
        return [
            f"teachers: {self.teachers:,}, each trained on about {self.units_each:,.0f} units",
            f"noise on each number of votes: {self.sigma:,.0f} votes (standard deviation)",
            f"student: noise changes its estimate of a share of votes by about {self.student:.3f} "
            "(standard deviation)",
            f"one row alone: noisy votes name the leading class with a probability of {chances}",
            f"without a student: for 95 % correct labels at a lead of 40 %, ask about at most "
            f"{self.answerable:,} rows",
        ]


def outlook(task: Task, queries: Queries, plan: PrivacyPlan) -> Outlook:
    """Say what to expect of a task under a plan."""
    (event,) = plan.events
    assert isinstance(event, TeacherVotes)
    features = Features.cut(task.codec, queries.codes(task), task.axis.place).count
    apart = math.sqrt(2) * event.sigma  # sd of the difference of two numbers
    each = event.sigma / math.sqrt(task.asked)  # at which a row alone would be asked
    largest = 0.4 * task.teachers / (_Z * math.sqrt(2) * each)
    return Outlook(
        epsilon=plan.epsilon,
        sigma=event.sigma,
        teachers=task.teachers,
        units_each=task.schema.population.value / task.teachers,
        student=event.sigma / task.teachers * math.sqrt(min(1.0, (1 + features) / task.asked)),
        right={lead: _normal(lead * task.teachers / apart) for lead in LEADS},
        answerable=math.floor(largest**2),
    )


def what_if(
    task: Task, queries: Queries, *, delta: float, epsilons: Sequence[float] = WHAT_IF
) -> dict[float, Outlook]:
    """Say what to expect at several budgets; nothing private is read, and nothing charged.

    Raises:
        InputError: a budget cannot be met.
    """
    return {epsilon: outlook(task, queries, task.plan(epsilon, delta)) for epsilon in epsilons}


def _normal(value: float) -> float:
    return (1 + math.erf(value / math.sqrt(2))) / 2
