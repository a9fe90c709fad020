"""What a claim allows: the highest curve, and the largest area under one."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from dpsynth.eval.attack_stats import ceiling, ceiling_auc


def allowed(epsilon: float, delta: float, false: float) -> float:
    """The most of P(S) with Q(S) = false over two-point tests: by search, not by formula."""
    grown = math.exp(epsilon)
    grid = np.linspace(0, 1, 40_001)
    fine = (grid <= grown * false + delta + 1e-12) & (
        1 - false <= grown * (1 - grid) + delta + 1e-12
    )
    return float(grid[fine].max())


@pytest.mark.parametrize("claim", [(0.0, 0.0), (1.0, 1e-5), (0.5, 0.1), (3.0, 0.0)], ids=str)
def test_the_ceiling_is_the_most_that_both_inequalities_allow(claim: tuple[float, float]) -> None:
    grid = np.linspace(0, 1, 21)
    by_search = [allowed(*claim, float(false)) for false in grid]
    assert ceiling(*claim, grid) == pytest.approx(by_search, abs=3e-5)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_randomised_response_is_on_the_ceiling_and_under_no_lower_one(epsilon: float) -> None:
    """Told truly with chance t: tests answer as told, always, never, or mix these."""
    t = math.exp(epsilon) / (1 + math.exp(epsilon))
    for mix in np.linspace(0, 1, 11):
        for false, true in (
            (mix * (1 - t), mix * t),
            ((1 - mix) * (1 - t) + mix, mix + (1 - mix) * t),
        ):
            assert ceiling(epsilon, 0.0, np.array([false]))[0] == pytest.approx(true)
    assert ceiling(0.9 * epsilon, 0.0, np.array([1 - t]))[0] < t - 1e-3


def test_a_release_that_fails_with_delta_is_on_the_ceiling() -> None:
    """With chance delta it says who is in, else randomised response answers."""
    epsilon, delta = 1.0, 0.05
    t = math.exp(epsilon) / (1 + math.exp(epsilon))
    false, true = (1 - delta) * (1 - t), delta + (1 - delta) * t
    assert ceiling(epsilon, delta, np.array([false]))[0] == pytest.approx(true)
    assert ceiling(epsilon, delta, np.array([0.0]))[0] == pytest.approx(delta)
    assert ceiling(epsilon, delta, np.array([1 - delta]))[0] == pytest.approx(1.0)


@given(st.floats(0, 8), st.floats(0, 0.9))
@settings(max_examples=40, deadline=None)
def test_the_ceiling_of_the_area_is_the_integral(epsilon: float, delta: float) -> None:
    corner = (1 - delta) / (1 + math.exp(epsilon))
    integral = quad(
        lambda x: float(ceiling(epsilon, delta, np.array([x]))[0]),
        *(0, 1),
        points=sorted({corner, 1 - delta}),
        limit=200,
    )[0]
    assert ceiling_auc(epsilon, delta) == pytest.approx(integral, abs=1e-7)
    assert 0.5 <= ceiling_auc(epsilon, delta) <= 1


def test_a_claim_that_allows_everything_has_a_ceiling_of_one() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for epsilon in (600.0, 1e6, math.inf):
            assert ceiling_auc(epsilon, 1e-6) == pytest.approx(1.0)
            auc = ceiling(epsilon, 1e-6, np.array([0.0, 0.01, 1.0]))
            assert auc == pytest.approx([1e-6, 1.0, 1.0])
