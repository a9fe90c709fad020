"""Trade-off curves: known values, and what exact error rates refute."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dpsynth.privacy import PoissonSgd
from dpsynth.privacy import epsilon as accounted_epsilon
from dpsynth.privacy.accounting import delta as accounted_delta

from ..support.bench_programs import bench_module

CURVES = bench_module("tradeoff_curves")
GaussianCurve, PureCurve, StepsCurve = CURVES.GaussianCurve, CURVES.PureCurve, CURVES.StepsCurve
ConcentratedCurve, refuted = CURVES.ConcentratedCurve, CURVES.refuted
DELTA = 1e-5


def test_epsilon_of_the_gaussian_curve_is_the_published_one() -> None:
    """Analytic Gaussian at delta 1e-5: noise 3.730632 has epsilon 1."""
    assert GaussianCurve(1 / 3.730632).epsilon(1.0, DELTA) == pytest.approx(1.0, abs=1e-5)
    assert GaussianCurve(0.5 / 3.730632).epsilon(2.0, DELTA) == pytest.approx(1.0, abs=1e-5)


def test_the_curve_of_steps_is_the_accountants() -> None:
    event = PoissonSgd("steps", 0.01, 10_000, 4.0)
    curve = StepsCurve(4.0, 0.01, 10_000)
    assert curve.epsilon(1.0, DELTA) == pytest.approx(0.946999, rel=0.01)
    assert curve.epsilon(1.0, DELTA) == pytest.approx(accounted_epsilon([event], DELTA), rel=0.01)
    (found,) = curve.deltas(1.0, np.array([0.5]))
    assert found == pytest.approx(accounted_delta([event], 0.5), rel=0.02)


def test_histograms_before_the_steps_count() -> None:
    alone, after = StepsCurve(2.0, 1.0, 4), StepsCurve(2.0, 1.0, 4, mu=1.0)
    assert alone.epsilon(1.0, DELTA) == pytest.approx(GaussianCurve(1.0).epsilon(1.0, DELTA), 0.01)
    both = GaussianCurve(math.sqrt(2)).epsilon(1.0, DELTA)
    assert after.epsilon(1.0, DELTA) == pytest.approx(both, rel=0.01)


def test_the_concentrated_curve_is_the_conversion_of_its_source() -> None:
    """Corollary 13, minimised here by brute force over one fine grid."""
    rho, epsilon = 0.5, 3.0
    orders = np.linspace(1.0001, 50, 500_000)
    log_delta = (orders - 1) * (orders * rho - epsilon) - np.log(orders - 1)
    log_delta += orders * np.log1p(-1 / orders)
    (found,) = ConcentratedCurve(rho).deltas(1.0, np.array([epsilon]))
    assert found == pytest.approx(math.exp(log_delta.min()), rel=1e-3)
    assert ConcentratedCurve(rho).epsilon(1.0, DELTA) > GaussianCurve(1.0).epsilon(1.0, DELTA)


def test_randomised_response_is_refuted_at_its_own_epsilon() -> None:
    epsilon = 1.5
    rate = math.exp(epsilon) / (1 + math.exp(epsilon))
    assert refuted(PureCurve(1.0), rate, 1 - rate, 0.0) == pytest.approx(epsilon, rel=1e-3)
    assert refuted(PureCurve(1.0), 0.3, 0.1, 0.0) == pytest.approx(math.log(3), rel=1e-3)


@pytest.mark.parametrize("fpr", [0.01, 0.2, 0.5, 0.9])
def test_exact_rates_of_the_best_test_refute_the_mechanism_itself(fpr: float) -> None:
    mu = 0.8
    tpr = float(norm.cdf(norm.ppf(fpr) + mu))
    found = refuted(GaussianCurve(1.0), tpr, fpr, DELTA)
    assert found == pytest.approx(GaussianCurve(mu).epsilon(1.0, DELTA), rel=0.01)
    assert found <= GaussianCurve(mu).epsilon(1.0, DELTA)


@pytest.mark.long
def test_the_likelihood_ratio_of_a_sampled_step_stays_below_its_curve() -> None:
    """The best test at threshold x: FPR = P(z > x), TPR = (1 - q) FPR + q P(z > x - 1 / noise).

    The curve takes the worse direction of the adjacency on either side, so a part stays unseen.
    """
    noise, rate = 1.0, 0.3
    curve = StepsCurve(noise, rate, 1)
    claimed = curve.epsilon(1.0, DELTA)
    for cut in (0.0, 1.0, 2.0, 3.0):
        fpr = float(norm.sf(cut))
        tpr = (1 - rate) * fpr + rate * float(norm.sf(cut - 1 / noise))
        assert 0.75 * claimed < refuted(curve, tpr, fpr, DELTA) <= claimed


@pytest.mark.parametrize(
    "curve",
    [
        GaussianCurve(1.0),
        pytest.param(StepsCurve(1.0, 0.3, 2), marks=pytest.mark.long),
        PureCurve(1.0),
        ConcentratedCurve(0.5),
    ],
)
def test_a_coin_refutes_nothing_and_a_perfect_attack_a_lot(curve: Any) -> None:
    assert refuted(curve, 0.3, 0.3, DELTA) == 0.0
    assert refuted(curve, 0.2, 0.7, DELTA) == 0.0
    assert refuted(curve, 0.999, 0.001, DELTA) > 5
