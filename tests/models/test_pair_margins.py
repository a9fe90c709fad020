"""What pairs say of columns: sums and shares by hand, the fit of tails by a sum, what it gains."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

from dpsynth.models import Domain, Feature
from dpsynth.models.marginals import (
    MergedBins,
    Pairs,
    bins_with_margins,
    bins_with_tails,
    leaves_of,
    margins_of,
    merge,
    tails,
    variances_of,
)
from dpsynth.models.marginals import pairs as margins
from dpsynth.models.marginals.pairs import Margin
from dpsynth.models.marginals.tails import Level, tails_of

STAY, SEX = Feature("stay", 92, 91), Feature("sex", 2, 0)  # the last code of a stay is missing
DOMAIN = Domain((STAY, SEX), population=8000, max_rows=1)
ROWS, SIGMA = 8000.0, 30.0
HALVES = MergedBins(np.array([0, 1], np.uint16), np.array([0.5, 0.5]))
THREE = MergedBins(np.repeat([0, 1, 2], [5, 5, 2]).astype(np.uint16), np.full(12, 1 / 12))


def stays() -> np.ndarray:
    rng = np.random.default_rng(1)
    days = np.clip(np.rint(np.exp(rng.normal(1.1, 0.78, int(ROWS) - 400))), 0, 90).astype(int)
    return np.append(np.bincount(days, minlength=91), 400)


Seen = tuple[list[np.ndarray], MergedBins, tuple[Margin, ...]]


def counted(seed: int, sigma: float = SIGMA) -> tuple[Seen, np.ndarray]:
    """Count stays with noise, and by a pair whose sums have half of it; return variances too."""
    rng = np.random.default_rng(seed)
    true = stays()
    noisy = [true + rng.normal(0, sigma, 92).round().astype(int), np.array([4000, 4000])]
    leaves = leaves_of(DOMAIN, noisy, total=ROWS, sigma=sigma)
    bins = merge(leaves[0], total=ROWS, sigma=sigma, maximum=8)
    part = sigma / 2**1.5
    table = np.bincount(bins.bin_of, weights=true)[:, None] / 2
    table = table + rng.normal(0, part, (bins.count, 2))
    margins = margins_of((bins, HALVES), Pairs(((0, 1),), (table,), (part,)))
    return (noisy, bins, margins), variances_of(bins, leaves[0], sigma)


def again(seen: Seen, sigma: float = SIGMA) -> MergedBins:
    noisy, bins, margins = seen
    columns = bins_with_tails(DOMAIN, (bins, HALVES), noisy, margins, total=ROWS, sigma=sigma)
    assert columns[1] is HALVES  # no ordered codes
    return columns[0]


# Shares of bins ------------------------------------------------------------------------------


def test_sums_of_pairs_are_averaged_by_their_precision() -> None:
    """Tables of noise 3 with 4 other bins and of noise 2 with 9: both know a bin to 6 rows."""
    first = np.outer([40, 80, 8], np.full(4, 0.25))
    second = np.outer(np.full(9, 1 / 9), [50, 60, 0])
    columns = [MergedBins(np.arange(k, dtype=np.uint16), np.full(k, 1 / k)) for k in (9, 4)]
    places = ((0, 2), (1, 0), (1, 2))
    tables = (first, second, np.ones((9, 4)))
    found, *_, alone = margins_of((THREE, *columns, HALVES), Pairs(places, tables, (3.0, 2.0, 1.0)))
    np.testing.assert_allclose(found.counts, [45, 70, 4])
    assert found.variance == pytest.approx(36 / 2)
    assert alone.variance == np.inf
    finer = margins_of((THREE, *columns), Pairs(places, tables, (3.0, 1.0, 1.0)))[0]
    np.testing.assert_allclose(finer.counts, [48, 64, 1.6])
    assert finer.variance == pytest.approx(1 / (1 / 36 + 4 / 36))


def test_shares_are_averaged_by_their_precision() -> None:
    """60 rows of variance 40 by one-way counts and 40 of variance 10 by pairs: 44 of 8."""
    codes = np.array([0.5, 0.1, 0.4 * 0.75, 0.4 * 0.25])
    bins = MergedBins(np.array([0, 0, 1, 1], np.uint16), codes)
    margin = Margin(np.array([40.0, 60.0]), 10.0)
    (found,), (spread,) = bins_with_margins((bins,), (np.full(2, 40.0),), (margin,), total=100.0)
    np.testing.assert_allclose(found.bin_shares, [0.44, 0.56])
    np.testing.assert_allclose(spread, 8.0)
    np.testing.assert_allclose(found.shares, [0.44 * 5 / 6, 0.44 / 6, 0.56 * 0.75, 0.56 * 0.25])


def test_a_share_that_pairs_contradict_is_as_uncertain_as_they_say() -> None:
    """One-way counts claim 5 rows of variance .1 in a tail; pairs count 25 of variance 1."""
    bins = MergedBins(np.array([0, 1], np.uint16), np.array([0.05, 0.95]))
    margin, claimed = Margin(np.array([25.0, 75.0]), 1.0), np.array([0.1, 0.1])
    (found,), (spread,) = bins_with_margins((bins,), (claimed,), (margin,), total=100.0)
    np.testing.assert_allclose(found.bin_shares, [0.25, 0.75], atol=1e-3)
    assert (spread > 0.99).all()


def test_a_column_without_pairs_keeps_its_shares() -> None:
    own = np.full(3, 4.0)
    margin = Margin(np.zeros(3), np.inf)
    (found,), (spread,) = bins_with_margins((THREE,), (own,), (margin,), total=12.0)
    assert found is THREE and spread is own


def test_a_bin_that_pairs_empty_keeps_the_shares_of_its_codes() -> None:
    """Otherwise rows that the generator puts there would be spread evenly, to the bound."""
    bins = MergedBins(np.array([0, 1, 1], np.uint16), np.array([0.9, 0.08, 0.02]))
    margin = Margin(np.array([1000.0, -40.0]), 1.0)
    (found,), _ = bins_with_margins((bins,), (np.full(2, 100.0),), (margin,), total=1000.0)
    assert 0 < found.bin_shares[1] < 1e-6
    assert found.shares[1] / found.bin_shares[1] == pytest.approx(0.8)


def test_standard_errors_of_shares_are_those_of_the_noise() -> None:
    """200 draws of both counts; the total is known, so a share differs a little less."""
    rng = np.random.default_rng(2)
    true = np.array([5000.0, 2000, 1000])
    found = []
    for _ in range(200):
        bins = MergedBins(np.arange(3, dtype=np.uint16), (true + rng.normal(0, 40, 3)) / 8000)
        margin = Margin(true + rng.normal(0, 30, 3), 900.0)
        columns, spreads = bins_with_margins(
            (bins,), (np.full(3, 1600.0),), (margin,), total=8000.0
        )
        found.append(columns[0].bin_shares * 8000)
    assert np.sqrt(spreads[0]) == pytest.approx(24)
    np.testing.assert_allclose(np.std(found, axis=0), 24 * (2 / 3) ** 0.5, rtol=0.15)


# Tails ---------------------------------------------------------------------------------------


def test_a_level_has_the_ordered_bins_only() -> None:
    margin = Margin(np.array([40.0, 80, 8]), 9.0)
    level = margins._level(10, THREE, margin)
    assert level is not None
    assert level.edges.tolist() == [0, 5, 10] and level.counts.tolist() == [40, 80]
    assert level.sigma == 3.0
    assert margins._level(0, THREE, margin) is None
    assert margins._level(10, THREE, Margin(margin.counts, np.inf)) is None


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
    (noisy, bins, _), _ = counted(1)
    edges = np.append(np.flatnonzero(np.diff(bins.bin_of[:91], prepend=-1)), 91)
    level = Level(np.full(len(edges) - 1, 900.0), edges, 5.0)
    alone = tails_of([noisy[0][:91]], (1,), rows=ROWS - 400, sigma=SIGMA)
    with_bins = tails_of([noisy[0][:91]], (1,), rows=ROWS - 400, sigma=SIGMA, bins=level)
    assert (alone.first, alone.last) == (with_bins.first, with_bins.last)
    assert not np.allclose(alone.rows, with_bins.rows)


def test_the_fit_changes_only_shares_within_bins() -> None:
    seen, _ = counted(2)
    found, bins = again(seen), seen[1]
    np.testing.assert_array_equal(found.bin_of, bins.bin_of)
    np.testing.assert_allclose(found.bin_shares, bins.bin_shares)
    assert (found.shares >= 0).all() and found.shares.sum() == pytest.approx(1.0)
    assert not np.allclose(found.shares, bins.shares)


def test_a_bin_to_which_the_fit_gives_no_row_keeps_its_shares() -> None:
    bins = MergedBins(np.array([0, 0, 1, 1], np.uint16), np.array([0.6, 0.2, 0.15, 0.05]))
    found = margins._shared(bins, bins.bin_shares, np.array([0.5, 0.5, 0.0, 0.0]))
    np.testing.assert_allclose(found.shares, [0.4, 0.4, 0.15, 0.05])


@pytest.mark.parametrize(("sigma", "limits"), [(30.0, (0.06, 0.022)), (60.0, (0.09, 0.045))])
def test_the_mean_of_a_long_tail_is_known_better(sigma: float, limits: tuple[float, float]) -> None:
    """Noise of epsilon 3 and 1: root mean square of 40 fits, one-way alone and with pairs."""
    days, true = np.arange(91), stays()[:91]
    misses = []
    for seed in range(40):
        (noisy, bins, margins), own = counted(seed, sigma)
        columns, _ = bins_with_margins((bins,), (own,), margins[:1], total=ROWS)
        column = again((noisy, columns[0], margins), sigma)
        shares = [each.shares[:91] for each in (bins, column)]
        misses.append([each @ days / each.sum() for each in shares])
    off = np.sqrt(np.mean((np.array(misses) / (true @ days / true.sum()) - 1) ** 2, axis=0))
    assert off[0] < limits[0] and off[1] < limits[1] < 0.6 * off[0]


# Privacy --------------------------------------------------------------------------------------


def test_both_are_given_nothing_but_released_counts_and_public_facts() -> None:
    known = ["domain", "bins", "counts", "margins", "total", "sigma", "alike"]
    known += ["points"]  # what released grains say of the values of a column
    assert list(inspect.signature(bins_with_tails).parameters) == known
    known = ["bins", "variances", "margins", "total"]
    assert list(inspect.signature(bins_with_margins).parameters) == known
    assert list(inspect.signature(margins_of).parameters) == ["bins", "pairs"]
