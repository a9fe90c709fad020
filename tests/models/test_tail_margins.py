"""Tails fitted again to the pairs: margins by hand, the fit by a sum, and what it gains."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from dpsynth.models.base import Domain, Feature
from dpsynth.models.marginals import tail_margins, tails
from dpsynth.models.marginals.adaptive_cells import leaves_of
from dpsynth.models.marginals.histograms import MergedBins, merge
from dpsynth.models.marginals.pair_selection import Pairs
from dpsynth.models.marginals.tail_margins import bins_with_tails
from dpsynth.models.marginals.tails import Level, tails_of

STAY, SEX = Feature("stay", 92, 91), Feature("sex", 2, 0)  # the last code of a stay is missing
DOMAIN = Domain((STAY, SEX), population=8000, max_rows=1)
ROWS, SIGMA = 8000.0, 30.0
HALVES = MergedBins(np.array([0, 1], np.uint16), np.array([0.5, 0.5]))


def stays() -> np.ndarray:
    rng = np.random.default_rng(1)
    days = np.clip(np.rint(np.exp(rng.normal(1.1, 0.78, int(ROWS) - 400))), 0, 90).astype(int)
    return np.append(np.bincount(days, minlength=91), 400)


def counted(seed: int, sigma: float = SIGMA) -> tuple[list[np.ndarray], MergedBins, Pairs]:
    """One-way counts with noise, bins, and a pair whose sums have half the noise of a cell."""
    rng = np.random.default_rng(seed)
    true = stays()
    noisy = [true + rng.normal(0, sigma, 92).round().astype(int), np.array([4000, 4000])]
    leaves = leaves_of(DOMAIN, noisy, total=ROWS, sigma=sigma)
    bins = merge(leaves[0], total=ROWS, sigma=sigma, maximum=8)
    part = sigma / 2**1.5
    table = np.bincount(bins.bin_of, weights=true)[:, None] / 2
    table = table + rng.normal(0, part, (bins.count, 2))
    return noisy, bins, Pairs(((0, 1),), (table,), (part,))


def again(
    noisy: list[np.ndarray], bins: MergedBins, pairs: Pairs, sigma: float = SIGMA
) -> MergedBins:
    columns = bins_with_tails(DOMAIN, (bins, HALVES), noisy, pairs, total=ROWS, sigma=sigma)
    assert columns[1] is HALVES  # no ordered codes
    return columns[0]


def test_margins_are_averaged_by_their_precision() -> None:
    """Tables of noise 3 with 4 other bins and of noise 2 with 9: both know a bin to 6 rows."""
    bins = MergedBins(np.repeat([0, 1, 2], [5, 5, 2]).astype(np.uint16), np.full(12, 1 / 12))
    first = np.outer([40, 80, 8], np.full(4, 0.25))
    second = np.outer(np.full(9, 1 / 9), [50, 60, 0])
    pairs = Pairs(((0, 2), (1, 0), (1, 2)), (first, second, np.ones((9, 4))), (3.0, 2.0, 1.0))
    found = tail_margins._margin(0, 10, bins, pairs)
    assert found is not None
    np.testing.assert_allclose(found.counts, [45, 70])  # the third bin has no order
    assert found.edges.tolist() == [0, 5, 10] and found.sigma == pytest.approx(6 / 2**0.5)
    finer = Pairs(pairs.places, pairs.tables, (3.0, 1.0, 1.0))
    weighed = tail_margins._margin(0, 10, bins, finer)
    assert weighed is not None
    np.testing.assert_allclose(weighed.counts, [(40 + 4 * 50) / 5, (80 + 4 * 60) / 5])
    assert weighed.sigma == pytest.approx((1 / 36 + 4 / 36) ** -0.5)


def test_a_column_without_pairs_or_order_has_no_margin() -> None:
    bins = MergedBins(np.array([0, 0, 1], np.uint16), np.full(3, 1 / 3))
    table = Pairs(((0, 1),), (np.ones((2, 2)),), (1.0,))
    assert tail_margins._margin(0, 0, bins, table) is None
    assert tail_margins._margin(2, 3, bins, table) is None


def test_bins_enter_the_fit_by_their_own_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a sum over a fine grid of M and the same shapes; cells of noise 9, bins of 4."""
    monkeypatch.setattr(tails, "LEAST", 0.0)
    monkeypatch.setattr(tails, "FALSE", 1e-12)
    rng, size = np.random.default_rng(3), 12
    counts = rng.normal(40 * np.exp(-np.arange(size) / 2), 9)
    edges = np.array([0, 4, 12])
    coarse = np.array([80.0, 9.0])
    levels = [Level(coarse, edges, 4.0), Level(counts, np.arange(size + 1), 9.0)]
    fitted, _ = tails._fit(levels, 0, np.ones(size))
    masses = np.linspace(0, 400, 4001)
    found, weights = [], []
    for bend in tails.BENDS:
        for length in np.geomspace(tails.SHORTEST, size, tails.LENGTHS):
            shape = np.exp(-((np.arange(size) / length) ** bend))
            shape /= shape.sum()
            miss = ((counts - masses[:, None] * shape) ** 2).sum(axis=1) / 81
            sums = np.add.reduceat(shape, edges[:-1])
            miss += ((coarse - masses[:, None] * sums) ** 2).sum(axis=1) / 16
            likely = np.exp(-miss / 2)
            found.append((likely @ masses) / likely.sum() * shape)
            weights.append(likely.sum() / np.sqrt(length))
    np.testing.assert_allclose(fitted, np.average(found, axis=0, weights=weights), rtol=1e-3)


def test_bins_do_not_move_the_place_where_a_tail_begins() -> None:
    noisy, bins, _ = counted(1)
    edges = np.append(np.flatnonzero(np.diff(bins.bin_of[:91], prepend=-1)), 91)
    level = Level(np.full(len(edges) - 1, 900.0), edges, 5.0)
    known = {"rows": ROWS - 400, "sigma": SIGMA}
    alone = tails_of([noisy[0][:91]], (1,), **known)
    with_bins = tails_of([noisy[0][:91]], (1,), bins=level, **known)
    assert (alone.first, alone.last) == (with_bins.first, with_bins.last)
    assert not np.allclose(alone.rows, with_bins.rows)


def test_only_shares_within_bins_change() -> None:
    noisy, bins, pairs = counted(2)
    found = again(noisy, bins, pairs)
    np.testing.assert_array_equal(found.bin_of, bins.bin_of)
    np.testing.assert_allclose(found.bin_shares, bins.bin_shares)
    assert (found.shares >= 0).all() and found.shares.sum() == pytest.approx(1.0)
    assert not np.allclose(found.shares, bins.shares)


def test_a_bin_to_which_the_fit_gives_no_row_keeps_its_shares() -> None:
    """Otherwise its rows would be spread over the bin evenly, to the bound."""
    bins = MergedBins(np.array([0, 0, 1, 1], np.uint16), np.array([0.6, 0.2, 0.15, 0.05]))
    found = tail_margins._reshared(bins, np.array([0.5, 0.5, 0.0, 0.0]))
    np.testing.assert_allclose(found.shares, [0.4, 0.4, 0.15, 0.05])


@pytest.mark.parametrize(("sigma", "limit"), [(30.0, 0.022), (60.0, 0.045)])
def test_the_mean_of_a_long_tail_is_known_better(sigma: float, limit: float) -> None:
    """Noise of epsilon 3 and 1. Bins take their shares from the pair, as the generator does."""
    days, true = np.arange(91), stays()[:91]
    mean = true @ days / true.sum()
    misses: list[list[float]] = []
    for seed in range(40):
        noisy, bins, pairs = counted(seed, sigma)
        sums = np.maximum(pairs.tables[0].sum(axis=1), 0)
        misses.append([])
        for column in (bins, again(noisy, bins, pairs, sigma)):
            shares = (column.shares * (sums / column.bin_shares)[column.bin_of])[:91]
            misses[-1].append(float(shares @ days / shares.sum() / mean - 1))
    before, after = np.sqrt(np.mean(np.square(misses), axis=0))
    print(before, after)
    assert after < before and after < limit


# Privacy --------------------------------------------------------------------------------------


def test_the_second_fit_is_given_nothing_but_released_counts_and_public_facts() -> None:
    known = ["domain", "bins", "counts", "pairs", "total", "sigma"]
    assert list(inspect.signature(bins_with_tails).parameters) == known
