"""`distilled`: a network that learns from the mixture of noisy counts, and from nothing else."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature, Preset, choose, shares_of, spec_of
from dpsynth.models.generators.distilled import Distilled
from dpsynth.models.marginals import InitialModel
from dpsynth.models.presets import MIN_UNITS
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

UNITS = 3_000
BUDGET = PrivacyBudget(epsilon=20.0, delta=1e-6)


def domain(columns: int = 5, units: int = UNITS, max_rows: int = 1) -> Domain:
    return Domain(tuple(Feature(f"c{j}", 4, 4) for j in range(columns)), units, max_rows)


def rows(units: int = UNITS) -> np.ndarray:
    """Each column is mostly that before it."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, (units, 5))
    for j in range(1, 5):
        codes[:, j] = np.where(rng.random(units) < 0.7, codes[:, j - 1], codes[:, j])
    return codes


def cohort(units: int = UNITS) -> Cohort:
    return Cohort(rows(units)[:, None].astype(np.uint16), np.ones((units, 1), dtype=bool))


def plan(facts: Domain) -> PrivacyPlan:
    return PrivacyPlan.calibrate(BUDGET, shares_of("distilled", facts, BUDGET))


@pytest.fixture(autouse=True, scope="module")
def _enough() -> Any:
    """Steps enough to learn these few columns."""
    shipped = Preset.of

    def of(model: str, facts: Domain, budget: PrivacyBudget) -> Preset:
        return replace(shipped(model, facts, budget), masked=16, warm_steps=80)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Preset, "of", of)
        patch.setattr("dpsynth.models.generators.distilled.RATE", 0.1)
        yield


@pytest.fixture(scope="module")
def fitted() -> Distilled:
    return Distilled(domain()).fit(cohort(), plan(domain()), SeededEntropy(1))


@pytest.mark.parametrize("columns", [5, 30])
@pytest.mark.parametrize("max_rows", [1, 4])
def test_it_spends_what_the_mixture_spends(columns: int, max_rows: int) -> None:
    facts = domain(columns, max_rows=max_rows)
    assert shares_of("distilled", facts, BUDGET) == shares_of("mixture", facts, BUDGET)
    assert not spec_of("distilled").neural


def test_pairs_of_the_table_are_kept(fitted: Distilled) -> None:
    drawn, real = fitted.sample(UNITS, np.random.default_rng(2)), rows()
    for i in range(5):
        for j in range(i):
            tables = []
            for codes in (drawn, real):
                table = np.zeros((4, 4))
                np.add.at(table, (codes[:, i], codes[:, j]), 1 / UNITS)
                tables.append(table)
            assert 0.5 * np.abs(tables[0] - tables[1]).sum() < 0.08


def test_nothing_but_counts_reads_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the mixture was fitted, the cohort could as well be gone."""
    facts = domain()
    start = InitialModel.fit(
        cohort(), facts, plan(facts), SeededEntropy(1), Preset.of("distilled", facts, BUDGET)
    )

    class Gone:
        mask = np.ones((UNITS, 1), dtype=bool)

        def __getattr__(self, name: str) -> Any:
            raise AssertionError(f"{name} of the cohort was asked for")

    monkeypatch.setattr(InitialModel, "fit", lambda *_, **__: start)
    module = "dpsynth.models.generators.warm_started.cohort_with_visits"
    monkeypatch.setattr(module, lambda rows, _: rows)
    fitted = Distilled(facts).fit(Gone(), plan(facts), SeededEntropy(2))  # type: ignore[arg-type]
    assert fitted.sample(10, np.random.default_rng(3)).shape == (10, 5)


def test_it_is_rebuilt_from_its_arrays(fitted: Distilled) -> None:
    config = json.loads(json.dumps(fitted.config()))
    rebuilt = Distilled.restore(domain(), config, fitted.arrays())
    one, other = (g.sample(200, np.random.default_rng(4)) for g in (fitted, rebuilt))
    assert np.array_equal(one, other)
    scores = fitted.log_prob(cohort(50))
    assert scores.shape == (50,) and np.array_equal(scores, rebuilt.log_prob(cohort(50)))


def test_rows_on_request_meet_the_condition(fitted: Distilled) -> None:
    law, share = fitted.given({4: np.array([False, False, True, False])})
    assert law is not None and 0.1 < share < 0.4
    drawn = law.sample(500, np.random.default_rng(5))
    assert (drawn[:, 4] == 2).mean() == 1.0 and (drawn[:, 3] == 2).mean() > 0.6


def test_auto_takes_it_up_to_a_large_signal_but_for_narrow_tables_of_few_patients() -> None:
    for units, columns, epsilon, name in (
        (3_000, 30, 1.0, "distilled"),
        (10_000, 30, 1.0, "distilled"),
        (3_000, 30, 50.0, "mixture"),
        (3_000, 5, 1.0, "mixture"),
        (10**5, 30, 1.0, "distilled"),
        (10**6, 30, 1.0, "autoregressive"),
    ):
        budget = PrivacyBudget(epsilon, 1e-6)
        chosen, reason = choose(domain(columns, units), budget)
        assert chosen == name
        assert ("DP-SGD" in reason) and (str(MIN_UNITS) in reason) == (units < MIN_UNITS)
