"""Rates: Clopper-Pearson bounds, by their definition and by trial."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dpsynth.eval.core import Rate


@pytest.mark.parametrize(("hits", "runs"), [(1, 10), (300, 1000), (3000, 6000), (5999, 6000)])
def test_at_the_bound_what_was_seen_has_the_stated_probability(hits: int, runs: int) -> None:
    low, high = Rate(hits, runs).bounds(5e-7)
    assert binom.sf(hits - 1, runs, low) == pytest.approx(5e-7, rel=1e-6)
    assert binom.cdf(hits, runs, high) == pytest.approx(5e-7, rel=1e-6)
    assert low < Rate(hits, runs).value < high


def test_none_and_all_leave_one_side_open() -> None:
    assert Rate(0, 10).bounds(0.025) == (0.0, pytest.approx(0.3085, abs=1e-4))
    assert Rate(10, 10).bounds(0.025) == (pytest.approx(0.6915, abs=1e-4), 1.0)


def test_bounds_hold_as_often_as_they_say() -> None:
    rng = np.random.default_rng(0)
    for truth in (0.02, 0.3, 0.9):
        hits = rng.binomial(200, truth, 2000)
        bounds = [Rate(int(each), 200).bounds(0.05) for each in hits]
        assert np.mean([truth < low for low, _ in bounds]) <= 0.065  # 0.05, and three deviations
        assert np.mean([truth > high for _, high in bounds]) <= 0.065


@pytest.mark.parametrize(("hits", "runs"), [(-1, 10), (11, 10), (0, 0)])
def test_what_is_no_count_of_trials_is_refused(hits: int, runs: int) -> None:
    with pytest.raises(ValueError, match="no rate"):
        Rate(hits, runs)
