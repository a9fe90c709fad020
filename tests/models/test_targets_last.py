"""A target is drawn after all other columns, wherever it stands in the schema."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature
from dpsynth.models.generators import Autoregressive, Tvae
from dpsynth.models.generators.distilled import Distilled
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

from ..support.short_training import shorten_training

UNITS = 4_000
BUDGET = PrivacyBudget(epsilon=30.0, delta=1e-6)
ILL, DEAD = (Feature(name, 2, 0, target=True) for name in ("ill", "dead"))
AGE = Feature("age", 4, 4)
WARD = Feature("ward", 3, 0)
FIRST = (ILL, AGE, DEAD, WARD)  # as the schema has them


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_training(monkeypatch)


def domain(max_rows: int = 1) -> Domain:
    return Domain(FIRST, UNITS, max_rows)


def cohort(max_rows: int = 1, units: int = UNITS) -> Cohort:
    """The older, the more often ill; who is ill dies more often, on the last ward most."""
    rng = np.random.default_rng(5)
    shape = (units, max_rows)
    age, ward = rng.integers(4, size=shape), rng.integers(3, size=shape)
    ill = rng.random(shape) < 0.1 + 0.2 * age
    dead = rng.random(shape) < 0.1 + 0.4 * ill + 0.2 * (ward == 2)
    codes = np.stack([ill, age, dead, ward], axis=-1).astype(np.uint16)
    rows = rng.integers(1, max_rows + 1, size=units)
    mask = np.arange(max_rows) < rows[:, None]
    return Cohort(np.where(mask[..., None], codes, 0).astype(np.uint16), mask)


@cache
def fitted(kind: type[Any], max_rows: int = 1) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        shorten_training(patch)
        unfitted = kind(domain(max_rows))
        plan = PrivacyPlan.calibrate(BUDGET, unfitted.shares(BUDGET))
        return unfitted.fit(cohort(max_rows), plan, SeededEntropy(2))


def risk(codes: np.ndarray, of: int, column: int, code: int) -> float:
    return float(codes[codes[:, column] == code, of].mean())


@pytest.mark.parametrize("max_rows", [1, 3])
def test_the_network_draws_targets_last_and_the_hidden_column_first(max_rows: int) -> None:
    names = [feature.name for feature in Distilled(domain(max_rows)).domain.features]
    assert names[-4:] == ["age", "ward", "ill", "dead"]
    assert len(names) == 4 + (max_rows > 1)


def test_targets_that_are_last_leave_all_as_it_is() -> None:
    last = replace(domain(), features=(AGE, WARD, ILL, DEAD))
    assert last.with_targets_last() is last and last.drawn == (0, 1, 2, 3)


@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("kind", [Distilled, Autoregressive, Tvae])
def test_rows_have_the_columns_of_the_schema_in_its_order(kind: type[Any], max_rows: int) -> None:
    codes = fitted(kind, max_rows).sample(20_000, np.random.default_rng(3))
    real = cohort(max_rows)
    source = real.codes[real.mask]
    for place, feature in enumerate(FIRST):
        shares = [np.bincount(one[:, place], minlength=feature.size) for one in (codes, source)]
        apart = shares[0] / len(codes) - shares[1] / len(source)
        assert np.abs(apart).max() < 0.05, feature.name


def test_effects_on_targets_before_other_columns_are_kept() -> None:
    """Of the first column, and of a target on another one."""
    codes = fitted(Distilled).sample(20_000, np.random.default_rng(3))
    for of, column, low, high in ((0, 1, 0, 3), (2, 0, 0, 1), (2, 3, 0, 2)):
        real = cohort().codes[:, 0]
        true, found = (
            risk(one, of, column, high) - risk(one, of, column, low) for one in (real, codes)
        )
        assert found == pytest.approx(true, abs=0.06), (of, column)


@pytest.mark.parametrize("max_rows", [1, 3])
@pytest.mark.parametrize("kind", [Distilled, Autoregressive])
def test_conditions_are_on_columns_of_the_schema(kind: type[Any], max_rows: int) -> None:
    """A condition on a target reaches the columns that are drawn before it."""
    generator = fitted(kind, max_rows)
    law, share = generator.given({0: np.array([False, True]), 3: np.array([True, False, False])})
    rows = generator.sample(40_000, np.random.default_rng(4))
    met = (rows[:, 0] == 1) & (rows[:, 3] == 0)
    assert share == pytest.approx(met.mean(), abs=0.02)
    drawn = law.sample(4_000, np.random.default_rng(4))
    assert (drawn[:, 0] == 1).all() and (drawn[:, 3] == 0).all()
    assert drawn[:, 1].mean() == pytest.approx(rows[met, 1].mean(), abs=0.1)


@pytest.mark.parametrize("max_rows", [1, 3])
def test_a_likelihood_is_of_rows_in_the_order_of_the_schema(max_rows: int) -> None:
    generator = fitted(Distilled, max_rows)
    real = cohort(max_rows)
    moved = Cohort(np.where(real.mask[..., None], real.codes[..., [2, 1, 0, 3]], 0), real.mask)
    own, other = (generator.log_prob(one).mean() for one in (real, moved))
    assert own > other + 0.01


@pytest.mark.parametrize("max_rows", [1, 3])
def test_a_run_is_restored_in_the_order_in_which_it_was_fitted(max_rows: int) -> None:
    generator = fitted(Distilled, max_rows)
    again = Distilled.restore(domain(max_rows), generator.config(), generator.arrays())
    rows, same = (one.sample(500, np.random.default_rng(6)) for one in (generator, again))
    assert (rows == same).all()


def test_a_run_of_before_targets_came_last_keeps_the_order_of_its_schema() -> None:
    untargeted = Domain(tuple(replace(feature, target=False) for feature in FIRST), UNITS, 1)
    unfitted = Distilled(untargeted)
    plan = PrivacyPlan.calibrate(BUDGET, unfitted.shares(BUDGET))
    before = unfitted.fit(cohort(), plan, SeededEntropy(2))
    config = before.config()
    del config["order"]  # as it was written then
    again = Distilled.restore(domain(), config, before.arrays())
    rows, same = (one.sample(500, np.random.default_rng(6)) for one in (before, again))
    assert (rows == same).all()
