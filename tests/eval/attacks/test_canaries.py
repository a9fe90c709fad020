"""Canaries held against a claim: refuted when it is wrong, left alone when it is right."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dpsynth.eval.attack_stats import GaussianCurve, chance_of, curve_before, gaussian_mu, possible
from dpsynth.eval.attack_stats.result import ALARM, SURE
from dpsynth.eval.attack_stats.tradeoff import SHARES
from dpsynth.eval.attacks import Scored, TrainingClaim, training
from dpsynth.eval.attacks.canaries import separation_needed

DELTA = 1e-6


def claim_of(epsilon: float) -> TrainingClaim:
    epsilons = np.concatenate([[0.0], np.geomspace(0.01, 4 * epsilon + 4, 200)])
    curve = GaussianCurve(gaussian_mu(epsilon, DELTA))
    return TrainingClaim(epsilon, DELTA, epsilons, curve.deltas(1.0, epsilons))


def scored(apart: float, count: int = 400, seed: int = 1) -> Scored:
    rng = np.random.default_rng(seed)
    included = rng.random(count) < 0.5
    return Scored(included, rng.standard_normal(count) + apart * included)


def test_a_fit_that_leaks_what_it_claims_is_not_accused() -> None:
    claim = claim_of(1.0)
    mu = gaussian_mu(1.0, DELTA)
    accused = sum(claim.refuted(400, scored(mu, seed=seed).right_of()) for seed in range(200))
    assert binom.sf(accused - 1, 200, 1e-3) > 1e-4


@pytest.mark.parametrize("guesses", [40, 80, 400])
def test_each_number_of_guesses_has_its_part_of_the_alarm_and_no_more(guesses: int) -> None:
    """Two bounds for each number of guesses share the chance of a false alarm."""
    claim, part = claim_of(1.0), ALARM / (2 * len(SHARES))
    before = curve_before(claim.epsilons, claim.deltas)
    for correct in range(guesses // 2, guesses + 1):
        by_rate = chance_of(400, guesses, correct, 1.0, DELTA) < part
        by_curve = not possible(400, guesses, correct, part, before)
        assert claim.refuted(400, {guesses: correct}) == (by_rate or by_curve)
    flat = TrainingClaim(1.0, DELTA, np.array([0.0]), np.array([1.0]))  # a curve that says nothing
    chances = {v: chance_of(400, guesses, v, 1.0, DELTA) for v in range(guesses + 1)}
    for correct, chance in chances.items():
        assert flat.refuted(400, {guesses: correct}) == (chance < part)


@pytest.mark.long
def test_the_separation_that_is_needed_refutes_with_the_stated_probability() -> None:
    claim = claim_of(1.0)
    needed = separation_needed(claim, 400)
    found = sum(claim.refuted(400, scored(needed, seed=s).right_of()) for s in range(120))
    assert binom.cdf(found, 120, SURE) > 1e-3
    weaker = sum(claim.refuted(400, scored(needed / 2, seed=s).right_of()) for s in range(60))
    assert weaker < 30
    assert separation_needed(claim_of(3.0), 400) > needed  # more is claimed, more is needed
    assert separation_needed(claim, 1000) < needed  # more canaries see more


def test_few_canaries_refute_nothing() -> None:
    assert separation_needed(claim_of(10.0), 20) == np.inf


def test_separation_is_that_of_normal_scores() -> None:
    assert scored(1.5, 20_000).separation == pytest.approx(1.5, abs=0.05)
    assert scored(0.0, 20_000).separation < 0.05
    assert np.isfinite(scored(99.0).separation)


@pytest.mark.long
def test_the_power_follows_from_a_twin() -> None:
    """A twin that leaks 20 and is told apart half as well as it could be."""
    claim, twin_epsilon = claim_of(1.0), 20.0
    leaked = gaussian_mu(twin_epsilon, DELTA)
    twin = scored(leaked / 2, 1000)
    attack = training(claim, {"white": scored(0.1, 1000)}, {"white": twin}, twin_epsilon, {})
    [power], [finding] = attack.powers, attack.findings
    assert not finding.found and power.key == finding.key == "training:white"
    efficiency = twin.separation / leaked
    needed = separation_needed(claim, 1000)
    expected = GaussianCurve(needed / efficiency).epsilon(1.0, DELTA)
    assert power.least == pytest.approx(expected, rel=1e-6)
    assert 4 < power.least < 20
    assert attack.part.details["views"][0]["twin"]["epsilon"] == twin_epsilon


def test_a_blind_attack_has_no_power_and_says_so() -> None:
    claim = claim_of(1.0)
    views = {"black": scored(0.0)}
    for twins in ({}, {"black": scored(0.05)}):
        [power] = training(claim, views, twins, 20.0, {}).powers
        assert power.least is None
    assert "would not have seen" in power.sentence


@pytest.mark.long
def test_a_twin_that_is_told_apart_too_little_shows_no_power() -> None:
    """It is seen, but would refute nothing: what a larger leak would show was not tried."""
    claim = claim_of(1.0)
    needed = separation_needed(claim, 400)
    twin = scored(needed / 2)
    assert twin.roc.found and 0 < twin.separation < needed
    [power] = training(claim, {"black": scored(0.0)}, {"black": twin}, 20.0, {}).powers
    assert power.least is None and "larger leaks were not tried" in power.sentence


def test_a_leak_is_found_and_told() -> None:
    attack = training(claim_of(1.0), {"white": scored(4.0)}, {}, 9.0, {"background": "run"})
    [finding], [measure] = attack.findings, attack.part.measures
    assert finding.found and "refutes the claim of epsilon 1" in finding.sentence
    assert measure.estimate.value > 1.0 and measure.estimate.reference == 1.0
    details = attack.part.details
    assert details["canaries"] == 400 and details["claim"] == {"epsilon": 1.0, "delta": DELTA}
    [view] = details["views"]
    assert view["correct"] <= view["guesses"] <= 400


def test_a_bound_is_told_rounded_down() -> None:
    attack = training(claim_of(3.0), {"white": scored(0.0)}, {}, 9.0, {})
    assert "proves nothing" in attack.findings[0].sentence
