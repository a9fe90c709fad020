"""What `autoregressive` does with noisy gradients: which events, and what is learned of whom."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpsynth.models.histories import domain
from dpsynth.models.histories.networks import AutoregressiveHistories, autoregressive
from dpsynth.models.histories.networks.patient_units import KEPT, PERSON
from dpsynth.models.histories.networks.scored_steps import ScoredSteps
from dpsynth.models.histories.networks.training import (
    AT_ONCE,
    MOST_STEPS,
    scoring,
)
from dpsynth.models.presets import STEPS
from dpsynth.privacy import PoissonSgd, PrivacyBudget, PrivacyPlan, SeededEntropy

from ...support.made_histories import domain_of, histories_of
from ...support.short_training import shorten_histories, shorten_networks

BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)
PATIENTS = 200


@pytest.mark.parametrize(
    ("patients", "rate", "steps"),
    [(AT_ONCE, 1.0, 1), (2 * AT_ONCE, 0.5, 4), (100 * AT_ONCE, 0.01, MOST_STEPS)],
)
def test_a_patient_is_read_about_once(patients: int, rate: float, steps: int) -> None:
    event = scoring(domain_of(patients)).event
    assert isinstance(event, PoissonSgd)
    assert (event.name, event.steps) == (STEPS, steps)
    assert event.sampling_rate == pytest.approx(rate, rel=1e-4)


def fit(monkeypatch: pytest.MonkeyPatch) -> tuple[AutoregressiveHistories, list[Any]]:
    shorten_histories(monkeypatch)
    shorten_networks(monkeypatch)
    monkeypatch.setattr(domain, "WIDE", 3)
    heard: list[Any] = []
    learn = autoregressive.learn

    def hearing(network: Any, score: Any, noisy: Any, drawn: Any, *rest: Any) -> None:
        heard.append((score, noisy, drawn()))
        learn(network, score, noisy, drawn, *rest)

    monkeypatch.setattr(autoregressive, "learn", hearing)
    generator = AutoregressiveHistories(domain_of(PATIENTS))
    plan = PrivacyPlan.calibrate(BUDGET, generator.shares(BUDGET))
    return generator.fit(histories_of(PATIENTS), plan, SeededEntropy(1)), heard


@pytest.fixture(scope="module")
def fitted() -> tuple[AutoregressiveHistories, list[Any]]:
    """One fit, and what was heard of it."""
    with pytest.MonkeyPatch.context() as patch:
        return fit(patch)


def test_noise_is_measured_by_what_a_patient_weighs(
    fitted: tuple[AutoregressiveHistories, list[Any]],
) -> None:
    """Of her row `PERSON`, of her steps what steps of drawn patients weigh together."""
    generator, [(row, persons, _), (steps, visits, _)] = fitted
    assert len(row.bins) == len(generator.person.features)
    codes, starts = generator._beginnings(2_000, np.random.default_rng(1))
    (model,), (start,) = generator.models[1], starts[1]
    mass = ScoredSteps(model, start, codes, np.random.default_rng(2)).mass
    number = np.maximum(start.counts - 1, 0)
    assert mass == pytest.approx(np.sqrt(np.minimum(number, KEPT)).mean(), rel=1e-3)
    assert persons.noise / visits.noise == pytest.approx(mass / PERSON, rel=0.15)
    assert len(steps.bins) == len(model.table.features)


def test_rows_weigh_as_they_do_in_a_private_step(
    fitted: tuple[AutoregressiveHistories, list[Any]],
) -> None:
    generator, _ = fitted
    codes, starts = generator._beginnings(2_000, np.random.default_rng(1))
    (model,), (start,) = generator.models[1], starts[1]
    rows = ScoredSteps(model, start, codes, np.random.default_rng(2)).rows()
    column = model.bins[len(model.table.conditions)]  # the number of rows
    number = start.counts[start.counts > 1]
    bins = column.coarsen(model.table.series.counts.code(number))
    weights = np.sqrt(np.minimum(number - 1, KEPT))
    expected = np.bincount(bins, weights, minlength=column.count) / weights.sum()
    drawn = np.bincount(rows[:, len(model.table.conditions)], minlength=column.count) / len(rows)
    assert drawn == pytest.approx(expected, abs=0.03)


def test_where_no_drawn_patient_has_a_step_the_steps_stay_as_they_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    beginnings = AutoregressiveHistories._beginnings

    def alone(self: Any, *given: Any) -> Any:
        codes, starts = beginnings(self, *given)
        for of_table in starts:
            for start in of_table:
                start.counts.clip(0, 1, out=start.counts)
        return codes, starts

    monkeypatch.setattr(AutoregressiveHistories, "_beginnings", alone)
    _, heard = fit(monkeypatch)
    assert len(heard) == 1, "the table of patients alone"
