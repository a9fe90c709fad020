"""P10: epsilon checked only at an epoch's end is overshot. Steps and noise are fixed beforehand.

The check: the accountant, given the steps and the noise that a fit really runs, is within budget.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.privacy import (
    Event,
    JointHistograms,
    PoissonSgd,
    PrivacyBudget,
    PrivacyPlan,
    Share,
    epsilon,
)
from dpsynth.privacy.events import UNDECIDED


def overspends(run: list[Event], budget: PrivacyBudget) -> bool:
    """Whether what was run costs more than the budget."""
    return epsilon(run, budget.delta) > budget.epsilon


fits = given(
    population=st.integers(500, 200_000),
    batch=st.integers(16, 512),
    steps=st.integers(1, 2000),
    columns=st.integers(1, 48),
    rows=st.integers(1, 6),
    fraction=st.floats(0.05, 0.95),
    eps=st.floats(0.05, 20.0),
    log_delta=st.floats(-9.0, -4.0),
)


def within_budget(
    population: int,
    batch: int,
    steps: int,
    columns: int,
    rows: int,
    fraction: float,
    eps: float,
    log_delta: float,
) -> None:
    budget = PrivacyBudget(eps, 10**log_delta)
    shares = [
        Share(JointHistograms("counts", columns, rows, UNDECIDED), fraction),
        Share(PoissonSgd("steps", min(batch / population, 1.0), steps, UNDECIDED), 1 - fraction),
    ]
    plan = PrivacyPlan.calibrate(budget, shares)
    steps_event = plan.event("steps")
    assert isinstance(steps_event, PoissonSgd) and steps_event.steps == steps
    assert not overspends(list(plan.events), budget)
    assert plan.epsilon <= eps


@pytest.mark.parametrize("examples", [6, pytest.param(60, marks=pytest.mark.long)])
def test_plan_is_within_budget_for_the_steps_that_are_run(examples: int) -> None:
    settings(max_examples=examples, deadline=None)(fits(within_budget))()


def epochs_until_spent(budget: PrivacyBudget, rate: float, noise: float) -> PoissonSgd:
    """Broken twin: trains whole epochs, and looks at epsilon only at the end of each."""
    epoch = math.ceil(1 / rate)
    steps = epoch
    while epsilon([PoissonSgd("steps", rate, steps, noise)], budget.delta) <= budget.epsilon:
        steps += epoch
    return PoissonSgd("steps", rate, steps, noise)


def each_event_on_its_own(budget: PrivacyBudget) -> list[Event]:
    """Broken twin: every event is given the whole budget."""
    run: list[Event] = []
    for event in (
        JointHistograms("counts", 12, 1, UNDECIDED),
        PoissonSgd("steps", 0.05, 200, UNDECIDED),
    ):
        run += PrivacyPlan.calibrate(budget, [Share(event, 1.0)]).events
    return run


def test_broken_twins_are_caught() -> None:
    budget = PrivacyBudget(1.0, 1e-5)
    assert overspends([epochs_until_spent(budget, 0.02, 1.1)], budget)
    assert overspends(each_event_on_its_own(budget), budget)
    plan = PrivacyPlan.calibrate(budget, [Share(PoissonSgd("steps", 0.05, 200, UNDECIDED), 1.0)])
    event = plan.event("steps")
    assert isinstance(event, PoissonSgd)
    rounded_down = PoissonSgd("steps", 0.05, 200, math.floor(event.noise_multiplier * 10) / 10)
    assert overspends([rounded_down], budget)
    assert overspends([PoissonSgd("steps", 0.05, 202, event.noise_multiplier)], budget)
