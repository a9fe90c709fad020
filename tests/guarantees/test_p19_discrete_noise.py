"""P19: floating-point noise on counts. Counts get integers from an exact discrete sampler.

A float sum of count and noise shows in its low bits which count it was (Mironov 2012); integer
noise has one grid for every count. The law is compared with the mass function by chi-square; each
p-value is held against 1e-7, so that unseeded runs raise a false alarm less than once in a million.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from scipy import stats

from dpsynth.privacy import JointHistograms, OsEntropy, PaidEntropy, joint_histograms
from dpsynth.privacy.accounting import delta, gaussian_delta

from ..support.bare_counts import Rows

FALSE_ALARM = 1e-7
CELLS = 50_000
Release = Callable[[int, float], np.ndarray]


def ours(count: int, sigma: float) -> np.ndarray:
    """Release CELLS cells, the first with ``count`` rows; return the noise of all."""
    rows = Rows(np.zeros((count, 1, 1), np.uint16), np.ones((count, 1), bool))
    event = JointHistograms("counts", histograms=1, rows_per_unit=1, sigma=sigma)
    (noisy,) = joint_histograms(rows, (CELLS,), event, PaidEntropy([event], OsEntropy()))
    noisy[0] -= count
    return noisy


def floats(count: int, sigma: float) -> np.ndarray:
    """Broken twin: continuous noise in floating point."""
    return OsEntropy().generator().normal(0, sigma, CELLS) + count - count


def rounded(count: int, sigma: float) -> np.ndarray:
    """Broken twin: continuous noise, rounded, sold as discrete Gaussian."""
    return np.rint(floats(count, sigma)).astype(np.int64)


def less_noise(count: int, sigma: float) -> np.ndarray:
    """Broken twin: less noise than was accounted for; of 50 000 cells one test in 30 misses it."""
    return np.concatenate([ours(count, 0.97 * sigma) for _ in range(3)])


def on_grid(noise: np.ndarray) -> bool:
    return noise.dtype == np.int64


def follows_the_law(noise: np.ndarray, sigma: float) -> bool:
    z = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1)
    mass = np.exp(-(z**2) / (2 * sigma**2))
    expected = noise.size * mass / mass.sum()
    inner = int(z[expected >= 50].max())
    observed = np.bincount(np.clip(noise, -inner, inner) + inner, minlength=2 * inner + 1)
    pooled = np.bincount(np.clip(z, -inner, inner) + inner, weights=expected)
    return bool(stats.chisquare(observed, pooled).pvalue > FALSE_ALARM)


def holds(release: Release, sigma: float) -> bool:
    noise = release(3, sigma)
    return on_grid(noise) and follows_the_law(noise, sigma)


@pytest.mark.parametrize("sigma", [0.5, 3.1])
def test_noise_is_integer_and_has_the_law_that_was_accounted(sigma: float) -> None:
    assert holds(ours, sigma)


@pytest.mark.parametrize(("twin", "sigma"), [(floats, 3.1), (rounded, 0.5), (less_noise, 3.1)])
def test_broken_twins_are_caught(twin: Release, sigma: float) -> None:
    assert not holds(twin, sigma)


def test_discrete_noise_is_not_accounted_as_continuous() -> None:
    """At small sigma the two differ by a factor; a Gaussian claim would be too small."""
    sigma, eps = 0.5, 1.0
    z = np.arange(-30, 31)
    mass = np.exp(-(z**2) / (2 * sigma**2)) / np.exp(-(z**2) / (2 * sigma**2)).sum()
    moved = np.roll(mass, 1)
    true = float(np.maximum(mass - math.exp(eps) * moved, 0).sum())
    assert delta([JointHistograms("counts", 1, 1, sigma)], eps) >= true
    assert gaussian_delta(1 / sigma, eps) < 0.9 * true  # the broken claim
