"""Combining rules: numbers by hand, coverage where the rules are exact, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from dpsynth.errors import InputError
from dpsynth.eval.combine import Combined, combine

# By hand ---------------------------------------------------------------------------------------


def test_four_tables_by_hand() -> None:
    """Mean 2.5; b = 5/3; (1 + 1/4) b = 25/12; T = 25/12 - 1/2 = 19/12; df = 3 (19/25)^2."""
    combined = combine([1, 2, 3, 4], [0.2, 0.8, 0.4, 0.6])
    assert combined.value == 2.5
    assert combined.standard_error == pytest.approx(math.sqrt(19 / 12))
    assert combined.df == pytest.approx(3 * (19 / 25) ** 2)
    half = stats.t(3 * (19 / 25) ** 2).ppf(0.975) * math.sqrt(19 / 12)
    assert (combined.low, combined.high) == pytest.approx((2.5 - half, 2.5 + half))
    assert (combined.m, combined.adjusted) == (4, False)


def test_corrected_by_a_table_of_the_run_by_hand() -> None:
    """2 x 3 - 2.5 = 3.5; T + 4 x 0.25 = 31/12; df = 3 (31/25)^2."""
    combined = combine([1, 2, 3, 4], [0.2, 0.8, 0.4, 0.6], original=(3.0, 0.25))
    assert combined.value == 3.5
    assert combined.standard_error == pytest.approx(math.sqrt(31 / 12))
    assert combined.df == pytest.approx(3 * (31 / 25) ** 2)


def test_without_a_positive_variance_that_of_a_real_table_stands_in() -> None:
    """b = 0.01, so T = 0.04/3 - 1 < 0; in its place v = 1, times the ratio of rows, with 2 df."""
    combined = combine([0.9, 1.0, 1.1], [1, 1, 1])
    assert (combined.value, combined.standard_error) == (1.0, 1.0)
    assert combined.adjusted and combined.df == 2
    assert combined.high == pytest.approx(1 + 4.302653, abs=1e-6)  # t of 2 degrees, from tables
    assert combine([0.9, 1.0, 1.1], [1, 1, 1], ratio=9.0).standard_error == 3.0
    assert combine([1, 1], [1, 3], original=(1, 0.5)).standard_error == 2.0


def test_degrees_of_freedom_never_fall_below_one() -> None:
    """T = 3/2 x 1/2 - 0.7499 > 0 by a hair: the formula gives 2e-8 degrees."""
    combined = combine([0, 1], [0.7499, 0.7499])
    assert not combined.adjusted and combined.df == 1.0
    assert combined.high - combined.value == pytest.approx(12.7062 * 0.01, rel=1e-4)


def test_a_combined_estimate_is_json() -> None:
    entries = combine([1, 2], [0.1, 0.1]).to_dict()
    assert entries == vars(Combined(**entries))
    assert set(map(type, entries.values())) == {float, int, bool}


# Where the rules are exact ---------------------------------------------------------------------

STUDIES = 4000


def simulated(fit: float, drawing: float, bias: float, m: int) -> list[Combined]:
    """Normal estimates about 0: a fit errs, refits err about it in the same way, tables drawn."""
    rng = np.random.default_rng(1)
    found = []
    for _ in range(STUDIES):
        fitted = bias + fit * rng.standard_normal()
        refitted = fitted + bias + fit * rng.standard_normal(m)
        q = refitted + drawing * rng.standard_normal(m)
        original = (fitted + drawing * rng.standard_normal(), drawing**2) if bias else None
        found.append(combine(q, np.full(m, drawing**2), original=original))
    return found


def coverage(found: list[Combined]) -> float:
    return float(np.mean([one.low <= 0 <= one.high for one in found]))


@pytest.mark.parametrize(("m", "most"), [(5, 0.995), (20, 0.97), (100, 0.965)])
def test_intervals_cover_where_fits_are_normal(m: int, most: float) -> None:
    """With few tables the degrees of freedom err on the wide side."""
    estimates = simulated(fit=1.0, drawing=0.5, bias=0.0, m=m)
    assert 0.935 < coverage(estimates) < most  # 4.4 standard errors of a share of 4000: 0.015
    mean = np.mean([one.standard_error**2 for one in estimates])
    assert mean == pytest.approx(1 + 1.25 / m, rel=0.06)  # V + (V + v)/m
    assert np.var([one.value for one in estimates]) == pytest.approx(1 + 1.25 / m, rel=0.1)


def test_naive_intervals_do_not_cover_there() -> None:
    """One table's own standard error is 0.5; the estimate errs by sqrt(1 + 0.25) about 0."""
    assert 2 * stats.norm.cdf(1.96 * 0.5 / math.sqrt(1.25)) - 1 < 0.63


def test_a_bias_that_refits_repeat_is_corrected() -> None:
    estimates = simulated(fit=1.0, drawing=0.5, bias=3.0, m=20)
    assert abs(np.mean([one.value for one in estimates])) < 0.1
    assert abs(coverage(estimates) - 0.95) < 0.015


# Properties ------------------------------------------------------------------------------------

numbers = st.floats(-1e3, 1e3).map(lambda number: round(number, 3))
pairs = st.lists(st.tuples(numbers, st.floats(0.01, 100)), min_size=2, max_size=8)


@given(pairs=pairs, shift=numbers, scale=st.floats(0.01, 100))
def test_units_of_measurement_do_not_matter(
    pairs: list[tuple[float, float]], shift: float, scale: float
) -> None:
    q, v = np.array(pairs).T
    one = combine(q, v)
    two = combine(scale * q + shift, scale**2 * v)
    between = (1 + 1 / len(q)) * q.var(ddof=1)
    assume(abs(between - v.mean()) > 1e-6 * (between + v.mean()))  # clear of the adjustment's edge
    near = pytest.approx
    assert two.value == near(scale * one.value + shift, abs=1e-6)
    assert two.standard_error == near(scale * one.standard_error, rel=1e-3)
    assert two.adjusted == one.adjusted


@pytest.mark.long
@given(pairs=pairs)
def test_an_interval_is_finite_and_around_its_value(pairs: list[tuple[float, float]]) -> None:
    q, v = zip(*pairs, strict=True)
    combined = combine(q, v)
    assert combined.low < combined.value < combined.high
    assert 1 <= combined.df <= len(q) - 1
    assert all(math.isfinite(number) for number in combined.to_dict().values())


# Refused ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("estimates", "variances", "more", "words"),
    [
        ([1.0], [1.0], {}, "at least 2 estimates"),
        ([1.0, 2.0], [1.0], {}, "as many variances"),
        ([1.0, 2.0], [1.0, 0.0], {}, "above 0"),
        ([1.0, 2.0], [1.0, -1.0], {}, "above 0"),
        ([1.0, math.nan], [1.0, 1.0], {}, "estimates must be a list of finite numbers"),
        ([1.0, 2.0], [1.0, math.inf], {}, "variances must be a list of finite numbers"),
        ([[1.0], [2.0]], [1.0, 1.0], {}, "estimates must be a list of finite numbers"),
        (["a", "b"], [1.0, 1.0], {}, "estimates must be numbers"),
        ([1.0, 2.0], [1.0, 1.0], {"ratio": 0.0}, "above 0"),
        ([1.0, 2.0], [1.0, 1.0], {"original": (1.0,)}, "an estimate and its variance"),
        ([1.0, 2.0], [1.0, 1.0], {"original": (1.0, -1.0)}, "an estimate and its variance"),
    ],
)
def test_refused(estimates: Any, variances: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        combine(estimates, variances, **more)
