"""Bounds of epsilon from guesses in one run: published values, independent routes, coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr, ndtri
from scipy.stats import binom

from dpsynth.eval.attack_stats import (
    GaussianCurve,
    audited,
    chance_of,
    curve_before,
    gaussian_mu,
    numbers_of_guesses,
    possible,
    right,
)
from dpsynth.eval.attack_stats.tradeoff import gaussian_before, least_epsilon, least_on_curve
from dpsynth.privacy import gaussian_mu as accounted_mu

ORACLES = [
    *[(10, 10, 1.0519), (50, 50, 2.7847), (100, 100, 3.4930), (1000, 1000, 5.8091)],
    *[(5000, 5000, 7.4197), (100, 60, 0.0519), (100, 75, 0.7022), (100, 90, 1.6308)],
    *[(1000, 550, 0.0942), (1000, 600, 0.2975), (1000, 750, 0.9767), (1000, 900, 2.0212)],
]


@pytest.mark.parametrize(("guesses", "correct", "epsilon"), ORACLES)
def test_bounds_are_the_published_ones(guesses: int, correct: int, epsilon: float) -> None:
    assert least_epsilon(guesses, guesses, correct, 0.0) == pytest.approx(epsilon, abs=6e-5)


@pytest.mark.parametrize("guesses", [10, 62, 1000])
def test_all_right_has_a_closed_form(guesses: int) -> None:
    expected = -math.log(0.05 ** (-1 / guesses) - 1)
    assert least_epsilon(guesses, guesses, guesses, 0.0) == pytest.approx(expected, abs=1e-9)


def test_delta_adds_what_the_theorem_says() -> None:
    m, r, v, epsilon, delta = 40, 12, 9, 0.4, 1e-3
    rate = 1 / (1 + math.exp(-epsilon))
    beta = sum(binom.pmf(k, r, rate) for k in range(v, r + 1))
    alpha = max(sum(binom.pmf(k, r, rate) for k in range(v - i, v)) / i for i in range(1, v + 1))
    assert chance_of(m, r, v, epsilon, delta) == pytest.approx(beta + 2 * m * delta * alpha)
    assert chance_of(m, r, v, epsilon, 0.0) == pytest.approx(beta)
    assert chance_of(m, r, 0, epsilon, delta) == pytest.approx(1.0)


@given(
    guesses=st.integers(6, 60),
    wrong=st.integers(0, 20),
    spare=st.integers(0, 60),
    delta=st.sampled_from([0.0, 1e-6, 1e-3]),
)
@settings(max_examples=30, deadline=None)
def test_more_right_guesses_and_a_smaller_delta_prove_more(
    guesses: int, wrong: int, spare: int, delta: float
) -> None:
    correct = max(1, guesses - wrong)
    m = guesses + spare
    assert least_epsilon(m, guesses, correct, delta) >= least_epsilon(
        m, guesses, correct - 1, delta
    )
    assert least_epsilon(m, guesses, correct, 0.0) >= least_epsilon(m, guesses, correct, delta)
    curved = [least_on_curve(m, guesses, v, 1e-5) for v in (correct - 1, correct)]
    assert curved[1] >= curved[0]


def test_the_curve_of_randomised_response_is_reached_by_no_more_than_its_own_guesses() -> None:
    """Independent coins, each told truly with chance e^eps / (1 + e^eps): c is binomial."""
    epsilon, m = 1.0, 200
    rate = 1 / (1 + math.exp(-epsilon))
    before = curve_before(np.array([epsilon]), np.array([0.0]))
    for correct in (130, 146, 160, 170):
        true = float(binom.sf(correct - 1, m, rate))
        assert possible(m, m, correct, true * 0.999, before)  # what happens must be possible
    likely = float(binom.ppf(0.999999, m, rate))
    assert not possible(m, m, int(likely) + 25, 0.01, before)


@pytest.mark.parametrize("mu", [0.5, 1.5])
def test_the_gaussian_curve_never_accuses_a_gaussian_mechanism(mu: float) -> None:
    """Each canary has a coordinate of its own; guesses with abstentions by the size of scores."""
    rng = np.random.default_rng(3)
    m, repeats, fails = 300, 300, 0.05
    before = gaussian_before(mu)
    accused = dict.fromkeys(numbers_of_guesses(m), 0)
    for _ in range(repeats):
        included = rng.random(m) < 0.5
        scores = rng.standard_normal(m) + mu * included
        for r in accused:
            accused[r] += not possible(m, r, right(scores, included, r), fails, before)
    for r, count in accused.items():
        assert binom.sf(count - 1, repeats, fails) > 1e-4, r


def test_the_gaussian_curve_proves_more_than_one_epsilon_does() -> None:
    """As in the paper: a curve that fits the mechanism is not far from the truth."""
    rng = np.random.default_rng(4)
    included = rng.random(1000) < 0.5
    run = audited(rng.standard_normal(1000) + included, included, 1e-6)
    truth = GaussianCurve(1.0).epsilon(1.0, 1e-6)
    assert run.epsilon < run.curve_epsilon < truth
    assert run.curve_epsilon > 0.4 * truth


@pytest.mark.long
def test_bounds_hold_with_the_stated_confidence_whatever_number_of_guesses_is_best() -> None:
    rng = np.random.default_rng(5)
    too_high = 0
    for _ in range(150):
        included = rng.random(200) < 0.5
        run = audited(rng.standard_normal(200), included, 0.0)
        too_high += run.epsilon > 0
    assert binom.sf(too_high - 1, 150, 0.05) > 1e-3


def test_the_inverse_of_the_blow_up_inverts_it() -> None:
    for chance in (1e-6, 0.01, 0.3, 0.9):
        after = float(ndtr(ndtri(chance) + 0.7))
        assert gaussian_before(0.7)(after) == pytest.approx(chance, rel=1e-6)
    epsilons = np.linspace(0, 12, 4000)
    before = curve_before(epsilons, GaussianCurve(0.7).deltas(1.0, epsilons))
    for chance in (0.01, 0.3, 0.9):  # the hull of many pairs is the curve itself
        assert before(chance) == pytest.approx(gaussian_before(0.7)(chance), rel=1e-3)
        assert before(chance) <= gaussian_before(0.7)(chance) * (1 + 1e-9)


def test_mu_is_that_of_the_accountant() -> None:
    for epsilon, delta in ((0.1, 1e-5), (1.0, 1e-6), (10.0, 1e-6)):
        assert gaussian_mu(epsilon, delta) == pytest.approx(accounted_mu(epsilon, delta), rel=1e-4)


def test_guesses_take_the_extremes_and_ties_by_place() -> None:
    scores = np.array([3.0, 1.0, 2.0, -1.0, -2.0, 0.0])
    included = np.array([True, True, False, False, True, False])
    assert right(scores, included, 2) == 1  # "in": 3.0, right; "out": -2.0, wrong
    assert right(scores, included, 4) == 2  # 3.0 right, 2.0 wrong, -2.0 wrong, -1.0 right
    assert right(scores, included, 6) == 4


@pytest.mark.parametrize("canaries", [6, 7, 50, 303, 1003])
def test_there_are_never_more_guesses_than_canaries(canaries: int) -> None:
    tried = numbers_of_guesses(canaries)
    assert all(r % 2 == 0 and 6 <= r <= canaries for r in tried)


def test_what_cannot_be_judged_is_refused() -> None:
    with pytest.raises(ValueError, match="canaries"):
        audited(np.zeros(3), np.zeros(3, dtype=bool), 1e-6)
    with pytest.raises(ValueError, match="finite"):
        audited(np.full(10, np.nan), np.zeros(10, dtype=bool), 1e-6)
