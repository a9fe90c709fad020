"""Noisy histograms become distributions and bins by rules that hold for every histogram."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dpsynth.models import Feature
from dpsynth.models.marginals import AdaptiveCells, MergedBins, even_points, merge, noisy_total
from dpsynth.models.marginals import histograms as bin_spread
from dpsynth.models.marginals.projection import project

Floats = npt.NDArray[np.float64]


# The total ------------------------------------------------------------------------------------


def test_the_total_weighs_each_histogram_by_its_noise() -> None:
    two = np.array([12, 8])  # sums to 20, noise variance 2 s^2: weight 1/2
    four = np.array([7, 7, 7, 7])  # sums to 28, variance 4 s^2: weight 1/4
    assert noisy_total([two, four]) == pytest.approx((20 / 2 + 28 / 4) / (3 / 4))


def test_the_total_is_at_least_one() -> None:
    assert noisy_total([np.array([-5, 3])]) == 1.0


def test_a_wide_histogram_does_not_spoil_the_total() -> None:
    """By the plain mean of sums the error would be that of the widest column."""
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(300):
        noisy = [rng.normal(0, 10, size).round() for size in (2, 2, 500)]
        noisy[0][0] += 1000
        noisy[1][1] += 1000
        noisy[2][7] += 1000
        errors.append(noisy_total(noisy) - 1000)
    # variance of the weighted mean: 100 / (1/2 + 1/2 + 1/500)
    assert np.std(errors) == pytest.approx(np.sqrt(100 / 1.002), rel=0.2)


# The projection -------------------------------------------------------------------------------


def closest_by_enumeration(counts: Floats, total: float) -> Floats:
    """The nearest point of the simplex: the best of all supports, each solved by Lagrange.

    On a support S without further constraints, the nearest point with the given total is
    counts[S] minus one common number; the answer is the nearest of those that are not negative.
    """
    best, distance = np.zeros(0), np.inf
    cells = range(len(counts))
    for size in range(1, len(counts) + 1):
        for support in combinations(cells, size):
            chosen = list(support)
            point = np.zeros(len(counts))
            point[chosen] = counts[chosen] - (counts[chosen].sum() - total) / size
            gap = float(((point - counts) ** 2).sum())
            if (point >= -1e-9).all() and gap < distance:
                best, distance = point, gap
    return best


histograms = st.lists(st.integers(-60, 200), min_size=1, max_size=7)
totals = st.floats(1.0, 400.0)


@given(histograms, totals)
@example([-5, -5, -5], 1.0)
@example([0, 0], 3.0)
def test_the_projection_is_the_nearest_point(histogram: list[int], total: float) -> None:
    counts = np.array(histogram, dtype=float)
    expected = closest_by_enumeration(counts, total) / total
    np.testing.assert_allclose(project(counts, total), expected, atol=1e-8)


@given(st.lists(st.integers(-1000, 100_000), min_size=1, max_size=300), st.floats(1.0, 1e7))
def test_the_projection_is_a_distribution_in_the_same_order(
    histogram: list[int], total: float
) -> None:
    shares = project(np.array(histogram), total)
    assert shares.shape == (len(histogram),)
    assert (shares >= 0).all() and shares.sum() == pytest.approx(1.0, abs=1e-9)
    order = np.argsort(histogram, kind="stable")
    assert (np.diff(shares[order]) >= -1e-12).all()


def test_counts_without_noise_pass_through() -> None:
    np.testing.assert_allclose(project([30, 0, 50, 20], 100.0), [0.3, 0.0, 0.5, 0.2])


def test_empty_cells_do_not_keep_the_positive_half_of_their_noise() -> None:
    noise = np.random.default_rng(2).normal(0, 20, 1000).round()
    noise[0] += 10_000
    clipped = np.maximum(noise, 0)
    assert clipped[0] / clipped.sum() < 0.6  # what clipping at zero would make of it
    assert project(noise, 10_000.0)[0] > 0.99


# Merging --------------------------------------------------------------------------------------


def merged(
    counts: npt.ArrayLike, *, cells: int, sigma: float = 1.0, maximum: int = 10, pool: float = 0.004
) -> MergedBins:
    histogram = np.asarray(counts, dtype=np.int64)
    feature = Feature("column", len(histogram), cells)
    total = max(1.0, float(histogram.sum()))
    leaves = AdaptiveCells.of(feature, [histogram], total=total, sigma=sigma)
    return merge(leaves, total=total, sigma=sigma, maximum=maximum, pool=pool)


def test_a_smooth_column_is_cut_into_about_as_many_bins_as_asked() -> None:
    bins = merged(np.full(256, 1000), cells=256, maximum=16)
    assert bins.count == 16
    np.testing.assert_array_equal(bins.bin_of, np.repeat(np.arange(16), 16))
    np.testing.assert_allclose(bins.bin_shares, 1 / 16)


def test_noise_sets_the_least_size_of_a_bin(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 sigma = 400 rows a bin, though 1/90 of the rows would be 10; the last 100 join a bin.

    Both hold much of the column's spread, so they are cut, into parts of 200 rows or more.
    """
    bins = merged(np.full(90, 10), cells=90, sigma=100, maximum=90)
    np.testing.assert_array_equal(bins.bin_of, np.repeat(np.arange(4), [20, 20, 25, 25]))
    monkeypatch.setattr(bin_spread, "MORE", 0)
    bins = merged(np.full(90, 10), cells=90, sigma=100, maximum=90)
    np.testing.assert_array_equal(bins.bin_of, np.repeat([0, 1], [40, 50]))
    assert merged(np.full(100, 10), cells=100, sigma=1, maximum=100).count == 100


def test_a_heaped_value_keeps_a_bin_of_its_own() -> None:
    """Blood pressure by hand: every tenth value holds most readings.

    A bin needs 236 rows; between two heaps there are bins of 240 and of 120, more than half of it.
    """
    counts = np.full(100, 40)
    counts[::10] = 2000
    bins = merged(counts, cells=100, maximum=100, sigma=1)
    for heap in range(0, 100, 10):
        assert (bins.bin_of == bins.bin_of[heap]).sum() == 1, heap


def test_a_heap_dominates_its_bin_even_where_its_neighbours_are_thin() -> None:
    counts = np.full(100, 5)
    counts[::10] = 2000
    bins = merged(counts, cells=100, maximum=100, sigma=1)
    for heap in range(0, 100, 10):
        share = bins.shares[heap] / bins.bin_shares[bins.bin_of[heap]]
        assert share > 2 / 3, heap


def test_common_categories_stand_alone_and_rare_ones_share_a_bin() -> None:
    bins = merged([500, 3, 400, 2, 95], cells=0, sigma=5)  # fewer than 15 rows are rare
    assert bins.bin_of.tolist() == [0, 3, 1, 3, 2]
    np.testing.assert_allclose(bins.bin_shares, [0.5, 0.4, 0.095, 0.005])


def test_rare_is_measured_against_the_table_too() -> None:
    bins = merged([9_940, 30, 30], cells=0, sigma=1, pool=0.004)  # fewer than 40 of 10 000 rows
    assert bins.bin_of.tolist() == [0, 1, 1]


def test_the_code_of_missing_is_never_merged_with_a_value() -> None:
    bins = merged([100] * 20 + [50], cells=20, maximum=4)
    assert (bins.bin_of == bins.bin_of[20]).sum() == 1
    thin = merged([100] * 20 + [1], cells=20, maximum=4)
    assert (thin.bin_of == thin.bin_of[20]).sum() == 1


columns = st.integers(0, 40).flatmap(
    lambda cells: st.tuples(
        st.just(cells),
        st.lists(
            st.one_of(st.integers(-20, 60), st.integers(0, 5000)),
            min_size=max(1, cells),
            max_size=cells + 6,
        ),
        st.floats(0.5, 200.0),
        st.integers(1, 50),
    )
)


@given(columns)
@example((4, [100, 100, 0, 0], 0.5, 2))  # a tail without rows
@example((3, [0, 0, 0], 5.0, 4))
def test_bins_are_runs_of_cells_and_none_is_empty(
    column: tuple[int, list[int], float, int],
) -> None:
    cells, counts, sigma, most = column
    bins = merged(counts, cells=cells, sigma=sigma, maximum=most)
    assert bins.bin_of.dtype == np.uint16
    assert set(bins.bin_of.tolist()) == set(range(bins.count))
    ordered = bins.bin_of[:cells].astype(int)
    assert set(np.diff(ordered).tolist()) <= {0, 1}
    assert not set(ordered.tolist()) & set(bins.bin_of[cells:].tolist())
    assert bins.bin_shares.sum() == pytest.approx(1.0)


@given(columns)
@example((4, [100, 100, 0, 0], 0.5, 2))
def test_every_run_but_the_first_holds_half_the_least(
    column: tuple[int, list[int], float, int],
) -> None:
    """The first may be a thin stretch before a heap; no other bin is there for noise to fill."""
    cells, counts, sigma, most = column
    assume(cells > 0)
    bins = merged(counts, cells=cells, sigma=sigma, maximum=most)
    total = max(1.0, float(sum(counts)))
    least = max(total / most, 4 * sigma)
    cut = max(0.004 * total, 2 * sigma)  # what the parts of a bin keep that is cut
    runs = bins.bin_shares[: int(bins.bin_of[:cells].max()) + 1] * total
    assert (runs[1:] >= min(least / 2, cut) - 1e-6).all()


# Back from bins to codes ----------------------------------------------------------------------


def test_refining_draws_codes_in_proportion_to_their_shares() -> None:
    """Bins that interleave; expected counts by hand. Seeded: the outcome is always the same."""
    bins = MergedBins(
        bin_of=np.array([0, 1, 0, 2, 1, 0], dtype=np.uint16),
        shares=np.array([0.1, 0.3, 0.2, 0.05, 0.1, 0.25]),
    )
    rng = np.random.default_rng(3)
    drawn = bins.refine(np.repeat([0, 1, 2], 100_000), rng)
    assert drawn.dtype == np.uint16
    within = {0: {0: 0.1, 2: 0.2, 5: 0.25}, 1: {1: 0.3, 4: 0.1}, 2: {3: 0.05}}
    for bin_, law in within.items():
        part = drawn[bin_ * 100_000 : (bin_ + 1) * 100_000]
        assert set(part.tolist()) <= set(law)
        for code, share in law.items():
            expected = share / sum(law.values())
            assert abs((part == code).mean() - expected) < 5 * np.sqrt(0.25 / 100_000)


def test_a_bin_without_mass_is_refined_uniformly() -> None:
    bins = MergedBins(np.array([0, 1, 1, 1, 1], dtype=np.uint16), np.array([1.0, 0, 0, 0, 0]))
    drawn = bins.refine(np.ones(40_000, dtype=int), np.random.default_rng(4))
    counts = np.bincount(drawn, minlength=5)
    assert counts[0] == 0
    assert (abs(counts[1:] - 10_000) < 5 * np.sqrt(40_000 * 0.25 * 0.75)).all()


@given(
    st.lists(st.tuples(st.integers(0, 5), st.floats(0, 1)), min_size=1, max_size=40),
    st.integers(0, 2**32),
)
def test_refining_stays_within_the_bin(codes: list[tuple[int, float]], seed: int) -> None:
    bin_of = np.unique([bin_ for bin_, _ in codes], return_inverse=True)[1].astype(np.uint16)
    bins = MergedBins(bin_of, np.array([share for _, share in codes]))
    rng = np.random.default_rng(seed)
    wanted = rng.integers(0, bins.count, 200)
    np.testing.assert_array_equal(bins.coarsen(bins.refine(wanted, rng)), wanted)


def test_coarsening_keeps_the_shape() -> None:
    bins = MergedBins(np.array([0, 0, 1], dtype=np.uint16), np.full(3, 1 / 3))
    codes = np.array([[0, 2], [1, 0]], dtype=np.uint16)
    np.testing.assert_array_equal(bins.coarsen(codes), [[0, 1], [0, 0]])


# Even points ----------------------------------------------------------------------------------


@pytest.mark.parametrize("most", [4, 2**20])
def test_points_follow_the_last_key_then_the_one_before(most: int) -> None:
    """Packed keys (few bits) and rows of keys (2^20 thrice leaves no room) order alike."""
    rng = np.random.default_rng(8)
    keys = [rng.normal(0, 3, 500), *(rng.integers(0, most, (3, 500)))]
    points = even_points(keys, rng)
    along = points[np.lexsort(tuple(keys))]
    expected = (along[0] + np.arange(500) * (5**0.5 - 1) / 2) % 1.0
    np.testing.assert_allclose(along, expected, atol=1e-12)


def test_ties_are_broken_at_random() -> None:
    """Equal keys: the order of rows must not show in the points."""
    rng = np.random.default_rng(10)
    points = even_points([np.zeros(2000, dtype=np.int64)], rng)
    steps = np.diff(points) % 1.0  # in the order of the rows, all would be the golden ratio
    assert (np.abs(steps - (5**0.5 - 1) / 2) < 1e-6).mean() < 0.01
