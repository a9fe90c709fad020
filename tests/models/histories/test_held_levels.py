"""Where noise outweighs what steps show, a patient's values stay at her level."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models import Feature
from dpsynth.models.histories import CohortGenerator
from dpsynth.models.histories.steps.lines import Line
from dpsynth.models.histories.steps.table import _applied
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

from ...support.made_histories import domain_of, histories_of

VALUE = Feature("value", 101, 100, (1,) * 100)


def few(epsilon: float) -> CohortGenerator:
    generator, budget = CohortGenerator(domain_of(300)), PrivacyBudget(epsilon, 1e-6)
    plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
    return generator.fit(histories_of(300), plan, SeededEntropy(4))


def holds(generator: CohortGenerator) -> list[bool]:
    return [
        any(line is not None and line.holds for line in model.table.lines)
        for models in generator.models
        for model in models
        if any(model.table.lines)
    ]


def test_a_held_value_is_the_level_and_missing_without_one() -> None:
    levels = np.array([12.4, 80.0, np.nan])
    drawn = np.array([0, 198, 50])
    held = _applied(drawn, levels, VALUE, Line(3.0, 0.5, 40.0).held())
    assert held.tolist() == [12, 80, 100]
    moved = _applied(drawn, levels, VALUE, Line(0.0, 1.0, 40.0))
    assert moved.tolist() != held.tolist()  # drawn changes would have moved it


@pytest.mark.long
@pytest.mark.parametrize(("epsilon", "held"), [(0.5, True), (200.0, False)])
def test_noise_decides(epsilon: float, held: bool) -> None:
    fitted = few(epsilon)
    assert all(holds(fitted)) == any(holds(fitted)) == held
    again = CohortGenerator.restore(fitted.domain, fitted.config(), fitted.arrays())
    assert holds(again) == holds(fitted)
    drawn = fitted.sample(400, np.random.default_rng(1))
    rows = drawn.rows[0][0]
    same = rows.patients[1:] == rows.patients[:-1]
    steps = np.abs(np.diff(rows.values[:, 0].astype(int)))[same]
    if held:
        assert (steps <= 1).mean() > 0.9  # the level is the mean of the last value and of all
