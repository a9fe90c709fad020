"""Entropy: the right laws, no bias, no state.

Tests that draw from the operating system cannot be seeded. Each compares a p-value with 1e-8, so
that the false alarms of the whole file stay below 1e-6.
"""

from __future__ import annotations

import math
import os
import ssl
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpsynth.errors import InputError
from dpsynth.privacy import Entropy, OsEntropy, SeededEntropy

pytestmark = pytest.mark.fresh_noise

FALSE_ALARM = 1e-8
BOTH = pytest.mark.parametrize("entropy", [OsEntropy(), SeededEntropy(7)], ids=["os", "seeded"])


def chi_square(observed: np.ndarray, expected: np.ndarray) -> float:
    """P-value; the caller's cells expect at least 50 draws each."""
    assert expected.min() >= 50
    scale = observed.sum() / expected.sum()
    return float(stats.chisquare(observed, expected * scale).pvalue)


def discrete_gaussian_fit(values: np.ndarray, sigma: float) -> float:
    """P-value of integers against the discrete Gaussian, tails pooled."""
    edge = math.ceil(12 * sigma) + 1
    z = np.arange(-edge, edge + 1)
    mass = np.exp(-(z**2) / (2 * sigma**2))
    expected = values.size * mass / mass.sum()
    inner = int(z[expected >= 50].max())
    clipped = np.clip(values, -inner, inner)
    observed = np.bincount(clipped + inner, minlength=2 * inner + 1)
    pooled = np.bincount(np.clip(z, -inner, inner) + inner, weights=expected)
    return chi_square(observed, pooled)


@pytest.mark.smoke
@BOTH
@pytest.mark.parametrize("sigma", [0.6, 3.7, 25.0])
def test_discrete_gaussian_law(entropy: Entropy, sigma: float) -> None:
    draws = entropy.discrete_gaussian(sigma, 60_000)
    assert draws.dtype == np.int64 and draws.shape == (60_000,)
    assert discrete_gaussian_fit(draws, sigma) > FALSE_ALARM


@BOTH
@pytest.mark.parametrize("scale", [0.4, 2.0, 9.5])
def test_discrete_laplace_law(entropy: Entropy, scale: float) -> None:
    draws = entropy.discrete_laplace(scale, 40_000)
    assert draws.dtype == np.int64 and draws.shape == (40_000,)
    z = np.arange(-math.ceil(40 * scale), math.ceil(40 * scale) + 1)
    mass = np.exp(-np.abs(z) / scale)
    expected = 40_000 * mass / mass.sum()
    inner = int(z[expected >= 100].max())
    observed = np.bincount(np.clip(draws, -inner, inner) + inner, minlength=2 * inner + 1)
    pooled = np.bincount(np.clip(z, -inner, inner) + inner, weights=expected)
    assert chi_square(observed, pooled) > FALSE_ALARM


def test_discrete_gaussian_fit_sees_wrong_noise() -> None:
    rng = SeededEntropy(3)
    assert discrete_gaussian_fit(rng.discrete_gaussian(3.7 * 0.95, 60_000), 3.7) < FALSE_ALARM
    assert discrete_gaussian_fit(rng.discrete_gaussian(3.7, 60_000) + 1, 3.7) < FALSE_ALARM
    rounded = np.rint(0.6 * rng.normal(60_000)).astype(np.int64)
    assert discrete_gaussian_fit(rounded, 0.6) < FALSE_ALARM


@BOTH
def test_large_sigma_keeps_its_spread(entropy: Entropy) -> None:
    draws = entropy.discrete_gaussian(1e6, 20_000) / 1e6
    assert stats.kstest(draws, "norm").pvalue > FALSE_ALARM


def test_opendp_adds_no_less_noise_than_is_accounted() -> None:
    """OpenDP's own privacy map, rho = shift^2 / (2 sigma^2), at the very float we account for."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l2_distance(T="f64")
    for sigma in (0.3, 3.7, 151.785, 1 / 3, 1e6):
        rho = dp.m.make_gaussian(*space, scale=sigma).map(1.0)
        assert rho == pytest.approx(1 / (2 * sigma**2), rel=1e-12)


@BOTH
@pytest.mark.parametrize("bad", [0.0, -1.0, math.inf, math.nan])
def test_no_noise_is_refused(entropy: Entropy, bad: float) -> None:
    with pytest.raises(InputError, match="sigma"):
        entropy.discrete_gaussian(bad, 3)


@BOTH
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_normal_law_and_independence(entropy: Entropy, dtype: type) -> None:
    draws = entropy.normal((500, 401), dtype)
    assert draws.dtype == dtype and draws.shape == (500, 401)
    flat = draws.ravel().astype(np.float64)
    assert stats.kstest(flat, "norm").pvalue > FALSE_ALARM
    bound = stats.norm.isf(FALSE_ALARM / 2)
    for lag in (1, 8192, flat.size // 2):  # neighbours, and the two normals of one pair
        products = flat[lag:] * flat[:-lag]
        assert abs(products.mean()) < bound / math.sqrt(products.size)
        squares = (flat[lag:] ** 2 - 1) * (flat[:-lag] ** 2 - 1) / 2
        assert abs(squares.mean()) < 1.5 * bound / math.sqrt(squares.size)


def test_normal_tails_are_there() -> None:
    """Beyond 4.5 standard deviations 6.8 per million are expected."""
    count = 4_000_000
    beyond = int((np.abs(OsEntropy().normal(count, np.float32)) > 4.5).sum())
    expected = count * 2 * float(stats.norm.sf(4.5))
    low, high = stats.poisson.ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2], expected)
    assert low <= beyond <= high


def test_extreme_words_give_finite_normals(monkeypatch: pytest.MonkeyPatch) -> None:
    """All bits 0 is the logarithm's edge; all bits 1 is a radius of 0."""
    monkeypatch.setattr(os, "urandom", lambda count: bytes(count))
    assert OsEntropy().normal(4).tolist() == pytest.approx(
        [math.sqrt(106 * math.log(2))] * 2 + [0.0] * 2
    )
    monkeypatch.setattr(os, "urandom", lambda count: b"\xff" * count)
    assert np.abs(OsEntropy().normal(4)).max() == 0.0
    assert OsEntropy().uniform(2).max() < 1.0


def test_box_and_muller_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two radii of the longest length, at a quarter and at half of the circle."""
    words = np.array([0, 0, 2**62, 2**63], np.uint64)
    monkeypatch.setattr(os, "urandom", lambda count: words.tobytes())
    longest = math.sqrt(106 * math.log(2))
    expected = [0.0, -longest, longest, 0.0]
    assert OsEntropy().normal(4).tolist() == pytest.approx(expected, abs=1e-13)


def test_single_precision_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two radii of the longest length, at a quarter and at half of the circle; then none."""
    radii, angles = np.zeros(2, np.uint64), np.array([2**30, 2**31], np.uint32)
    monkeypatch.setattr(ssl, "RAND_bytes", lambda count: radii.tobytes() + angles.tobytes())
    longest = math.sqrt(106 * math.log(2))
    expected = [0.0, -longest, longest, 0.0]
    assert OsEntropy().normal(4, np.float32).tolist() == pytest.approx(expected, abs=1e-5)
    monkeypatch.setattr(ssl, "RAND_bytes", lambda count: b"\xff" * count)
    assert np.abs(OsEntropy().normal(4, np.float32)).max() == 0.0


def test_every_draw_takes_fresh_bytes_of_the_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """A copy of the process, or of its machine, must not repeat the noise."""
    added: list[bytes] = []
    monkeypatch.setattr(ssl, "RAND_add", lambda fresh, bits: added.append(fresh))
    for _ in range(3):
        OsEntropy().normal(10, np.float32)
    assert len({*added}) == 3 and {len(fresh) for fresh in added} == {32}


@BOTH
def test_uniform_law(entropy: Entropy) -> None:
    draws = entropy.uniform((100, 1000))
    assert draws.shape == (100, 1000) and draws.min() >= 0 and draws.max() < 1
    assert stats.kstest(draws.ravel(), "uniform").pvalue > FALSE_ALARM
    assert (draws * 2**53 == np.floor(draws * 2**53)).all()


def thirds(draws: np.ndarray) -> float:
    observed = np.bincount((draws // 2**61).astype(np.int64), minlength=3)
    return chi_square(observed, np.full(3, draws.size / 3))


@BOTH
def test_integers_have_no_modulo_bias(entropy: Entropy) -> None:
    """On a range of 3/8 of the words, plain modulo draws the first third more often."""
    assert thirds(entropy.integers(0, 3 * 2**61, 30_000)) > FALSE_ALARM
    words = np.random.default_rng(1).integers(0, 2**64, 30_000, np.uint64, endpoint=False)
    assert thirds((words % np.uint64(3 * 2**61)).astype(np.int64)) < FALSE_ALARM


@BOTH
def test_integers_cover_their_range(entropy: Entropy) -> None:
    draws = entropy.integers(-3, 4, (100, 100))
    assert draws.shape == (100, 100) and draws.dtype == np.int64
    observed = np.bincount(draws.ravel() + 3, minlength=7)
    assert chi_square(observed, np.full(7, 10_000 / 7)) > FALSE_ALARM
    assert set(entropy.integers(5, 6, 10).tolist()) == {5}
    with pytest.raises(InputError):
        entropy.integers(3, 3, 1)


@BOTH
def test_permutations_are_uniform(entropy: Entropy) -> None:
    orders = [tuple(entropy.permutation(4).tolist()) for _ in range(4800)]
    counts = np.array([orders.count(order) for order in set(orders)])
    assert len(counts) == 24
    assert chi_square(counts, np.full(24, 200.0)) > FALSE_ALARM
    assert sorted(entropy.permutation(1000).tolist()) == list(range(1000))
    assert entropy.permutation(0).size == 0


def test_equal_keys_are_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [bytes(24), bytes(range(24))]
    monkeypatch.setattr(os, "urandom", lambda count: answers.pop(0))
    assert OsEntropy().permutation(3).tolist() == [0, 1, 2]
    assert not answers


DRAWS: list[Callable[[Entropy], Any]] = [
    lambda source: source.uniform(4),
    lambda source: source.normal(4),
    lambda source: source.integers(0, 2**62, 4),
    lambda source: source.permutation(40),
    lambda source: source.generator().random(4),
    lambda source: source.discrete_gaussian(1e9, 4),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_seeded_entropy_repeats_and_os_entropy_does_not(draw: Callable[[Entropy], Any]) -> None:
    assert np.array_equal(draw(SeededEntropy(5)), draw(SeededEntropy(5)))
    assert not np.array_equal(draw(SeededEntropy(5)), draw(SeededEntropy(6)))
    source = OsEntropy()
    assert not np.array_equal(draw(source), draw(source))
    again = SeededEntropy(5)
    assert not np.array_equal(draw(again), draw(again))


def test_who_may_release() -> None:
    assert OsEntropy.releasable and not SeededEntropy(1).releasable


@BOTH
@pytest.mark.parametrize("size", [0, (0, 3), (3, 0)])
def test_empty_draws(entropy: Entropy, size: int | tuple[int, ...]) -> None:
    for draws in (entropy.normal(size), entropy.uniform(size), entropy.integers(0, 9, size)):
        assert draws.size == 0
    assert entropy.discrete_gaussian(2.0, 0).size == 0


@BOTH
def test_only_floats_are_normal(entropy: Entropy) -> None:
    with pytest.raises(InputError, match="float64 or float32"):
        entropy.normal(3, np.float16)


def test_import_is_light() -> None:
    code = (
        "import sys; from dpsynth.privacy import OsEntropy\n"
        "sys.exit('opendp' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
