"""Accounting of discrete noise against brute force over discrete laws, and its proof in numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from dpsynth.privacy import JointHistograms
from dpsynth.privacy.accounting import delta, gaussian_delta
from dpsynth.privacy.events import SMOOTHING


def histograms(count: int, rows: int, sigma: float) -> JointHistograms:
    return JointHistograms("histograms", count, rows, sigma)


def discrete_gaussian(sigma: float, reach: float = 14.0) -> tuple[np.ndarray, int]:
    """Masses on -edge .. edge, from the definition."""
    edge = math.ceil(reach * sigma)
    z = np.arange(-edge, edge + 1, dtype=np.float64)
    mass = np.exp(-(z**2) / (2 * sigma**2))
    return mass / mass.sum(), edge


def shifted_cells_delta(shift: tuple[int, ...], sigma: float, eps: float) -> float:
    """Hockey-stick divergence between noise and noise moved by ``shift``; both directions.

    The loss at z is (|D|^2 - 2 D.z) / 2 sigma^2, so only the law of the integer D.z matters: a
    direct convolution of nonnegative masses, exact to rounding.
    """
    mass, edge = discrete_gaussian(sigma)
    law, reach = np.ones(1), 0
    for step in shift:
        spread = np.zeros(2 * step * edge + 1)
        spread[::step] = mass
        law, reach = np.convolve(law, spread), reach + step * edge
    square = sum(step**2 for step in shift)
    product = np.arange(-reach, reach + 1)
    without = (square - 2 * product) / (2 * sigma**2)  # losses when the noise is not moved
    moved = -(square - 2 * (product + square)) / (2 * sigma**2)  # when it is moved
    removed = float(np.sum(law * np.maximum(-np.expm1(np.minimum(eps - without, 0)), 0)))
    added = float(np.sum(law * np.maximum(-np.expm1(np.minimum(eps - moved, 0)), 0)))
    assert removed == pytest.approx(added, rel=1e-9, abs=1e-300)
    return max(removed, added)


def partitions(total: int, largest: int | None = None) -> list[tuple[int, ...]]:
    largest = total if largest is None else largest
    if total == 0:
        return [()]
    found = []
    for first in range(min(total, largest), 0, -1):
        found += [(first, *rest) for rest in partitions(total - first, first)]
    return found


def test_partitions_are_all_there() -> None:
    assert [len(partitions(k)) for k in (2, 3, 4, 5)] == [2, 3, 5, 7]


@pytest.mark.parametrize("sigma", [0.5, 2.0, 9.7])
@pytest.mark.parametrize("count", [1, 3, 12])
def test_one_row_per_unit_is_exact(sigma: float, count: int) -> None:
    events = [histograms(count, 1, sigma)]
    for eps in (0.0, 0.3, 1.0, 4.0):
        exact = shifted_cells_delta((1,) * count, sigma, eps)
        claimed = delta(events, eps)
        assert exact <= claimed <= 1.003 * exact + 1e-13
    if sigma == 0.5 and count == 1:  # a continuous Gaussian would claim too little here
        assert gaussian_delta(1 / sigma, 1.0) < 0.9 * delta(events, 1.0)


@pytest.mark.parametrize("rows", [2, 3, 4, 5])
@pytest.mark.parametrize("sigma", [3.0, 4.7, 17.3])
def test_no_way_to_spread_a_units_rows_is_worse_than_accounted(rows: int, sigma: float) -> None:
    ways = partitions(rows)
    pairs = [(a, b) for i, a in enumerate(ways) for b in ways[i:]]
    for eps in (0.0, 0.2, 1.0, 3.0, 6.0):
        one = delta([histograms(1, rows, sigma)], eps)
        two = delta([histograms(2, rows, sigma)], eps)
        assert all(shifted_cells_delta(way, sigma, eps) <= one for way in ways)
        assert all(shifted_cells_delta(a + b, sigma, eps) <= two for a, b in pairs)
        # the bound is not empty: identical rows come near it where smoothing is small
        if sigma > 10 and one > 1e-9:
            assert shifted_cells_delta((rows,), sigma, eps) > 0.8 * one


def test_accounting_k_rows_as_one_would_be_caught() -> None:
    sigma, eps = 17.3, 1.0
    broken = delta([histograms(1, 1, sigma)], eps)
    assert shifted_cells_delta((5,), sigma, eps) > 100 * broken


def test_a_continuous_gaussian_of_the_same_sigma_would_be_caught() -> None:
    """Why the bound gives up SMOOTHING: at the same sigma a continuous claim is 30 % short."""
    true = shifted_cells_delta((2,), 3.0, 5.7)
    assert gaussian_delta(2 / 3.0, 5.7) < 0.8 * true
    assert delta([histograms(1, 2, 3.0)], 5.7) >= true


@pytest.mark.parametrize("smoothing", [0.3, 0.4, 0.5])
def test_rounding_a_gaussian_gives_a_discrete_one_within_the_stated_ratio(smoothing: float) -> None:
    """Steps 1 to 3 of the proof, by quadrature, where the ratio is large enough to be seen."""
    continuous = 0.8
    sigma = math.hypot(continuous, smoothing)
    base = 2 * math.exp(-2 * (math.pi * smoothing) ** 2)
    bound = math.log((1 + base * 1.01) / (1 - base * 1.01))
    mass, edge = discrete_gaussian(sigma)
    integers = np.arange(-40, 41)
    ratios = []
    for y in range(-4, 5):

        def density(x: float, y: int = y) -> float:
            around = np.exp(-((integers - x) ** 2) / (2 * smoothing**2))
            at_y = math.exp(-((y - x) ** 2) / (2 * smoothing**2))
            return float(norm.pdf(x, 0, continuous) * at_y / around.sum())

        rounded = quad(density, -12, 12, limit=600, epsabs=1e-13, points=[y - 1, y, y + 1])[0]
        ratios.append(abs(math.log(rounded / mass[y + edge])))
    assert max(ratios) <= bound
    assert max(ratios) > bound / 1000
    assert 4.01 * math.exp(-2 * (math.pi * SMOOTHING) ** 2) < 2.1e-19
