"""Numbers of rows: far codes follow those before them where noise hides them, and no further."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models.histories.grids import Grid
from dpsynth.models.histories.persons.thinning import thinned

GRID = Grid.of_counts(40)
EXACT = np.full(GRID.cells, 1e-12)


def power(exponent: float) -> np.ndarray:
    numbers = np.arange(1, 41) ** -exponent
    shares = np.bincount(GRID.code(np.arange(1, 41)), weights=numbers, minlength=GRID.cells)
    return np.asarray(shares / shares.sum())


def test_without_noise_shares_stay_as_they_are() -> None:
    shares = np.random.default_rng(0).dirichlet(np.ones(GRID.cells))
    assert thinned(shares, EXACT, GRID) == pytest.approx(shares, abs=1e-6)


def test_far_codes_are_nearer_the_truth() -> None:
    shares, noise = power(3.0), 1e-3
    before, after = [], []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        noisy = np.maximum(shares + noise * rng.standard_normal(GRID.cells), 0)
        noisy /= noisy.sum()
        found = thinned(noisy, np.full(GRID.cells, noise), GRID)
        assert found.sum() == pytest.approx(1.0)
        before.append(np.abs(noisy - shares)[5:].sum())
        after.append(np.abs(found - shares)[5:].sum())
    assert np.mean(after) < 0.8 * np.mean(before)


def test_a_number_that_a_protocol_asks_for_is_kept() -> None:
    shares = power(3.0)
    shares[8] += 0.05  # 9 to 11 rows
    shares /= shares.sum()
    found = thinned(shares, np.full(GRID.cells, 1e-3), GRID)
    assert found[8] == pytest.approx(shares[8], rel=0.02)


def test_shares_of_nothing_are_shares() -> None:
    shares = np.zeros(GRID.cells)
    shares[1] = 1.0
    found = thinned(shares, np.full(GRID.cells, 1e-3), GRID)
    assert found == pytest.approx(shares, abs=1e-6)
    assert (found >= 0).all()
