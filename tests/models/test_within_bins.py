"""Codes within a bin follow the other columns of the row, and keep their shares of the bin."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest
from scipy.special import ndtri

from dpsynth.models import Domain, Feature
from dpsynth.models.marginals import Binning, MergedBins, Products
from dpsynth.models.marginals.bin_scores import regressions_of

Ints = npt.NDArray[np.int64]
CELLS, BINS, ROWS = 240, 6, 20_000
DOMAIN = Domain(
    (
        Feature("weight", CELLS, CELLS),
        Feature("waist", CELLS + 1, CELLS),  # the last code: no value
        Feature("sex", 2, 0),
    ),
    ROWS,
    1,
)


def patients(correlation: float, seed: int = 1) -> Ints:
    """Two normal columns, the second without a value in a tenth of the rows; sex moves both."""
    rng = np.random.default_rng(seed)
    sex = rng.integers(0, 2, ROWS)
    weight = rng.normal(size=ROWS)
    waist = correlation * weight + np.sqrt(1 - correlation**2) * rng.normal(size=ROWS)
    waist += 0.8 * sex
    codes = [
        np.clip((part.argsort().argsort() / ROWS * CELLS), 0, CELLS - 1) for part in (weight, waist)
    ]
    codes[1] = np.where(rng.random(ROWS) < 0.1, CELLS, codes[1])
    return np.column_stack([*codes, sex]).astype(np.int64)


def binning_of(rows: Ints) -> Binning:
    """Bins of 40 codes each, with the shares of the rows."""
    columns = []
    for j, feature in enumerate(DOMAIN.features):
        bin_of = np.arange(feature.size)
        if feature.cells:
            bin_of = np.minimum(bin_of // (CELLS // BINS), BINS)
        shares = np.bincount(rows[:, j], minlength=feature.size) / len(rows)
        columns.append(MergedBins(bin_of.astype(np.uint16), shares))
    return Binning(DOMAIN, tuple(columns))


def products_of(binning: Binning, rows: Ints) -> Products:
    """Each combination of bins as a component: pairs are those of the rows."""
    bins = np.column_stack([c.bin_of[rows[:, j]] for j, c in enumerate(binning.columns)])
    kinds, counts = np.unique(bins, axis=0, return_counts=True)
    starts = np.concatenate([[0], np.cumsum(binning.sizes)[:-1]])
    tables = np.zeros((len(kinds), sum(binning.sizes)), np.float32)
    np.put_along_axis(tables, kinds + starts, 1.0, axis=1)
    return Products(binning.sizes, counts / counts.sum(), tables)


def followed(rows: Ints) -> tuple[Binning, Ints]:
    binning, rng = binning_of(rows), np.random.default_rng(5)
    following = binning.following(products_of(binning, rows), rng)
    bins = np.column_stack([c.bin_of[rows[:, j]] for j, c in enumerate(binning.columns)])
    return following, bins.astype(np.int64)


def within(codes: npt.NDArray[np.integer]) -> float:
    """Correlation of the two columns within bins of both."""
    present = codes[:, 1] < CELLS
    one, other = codes[present, :2].astype(int).T
    width = CELLS // BINS
    key = one // width * BINS + other // width
    apart = []
    for part in (one, other):
        means = np.bincount(key, part) / np.maximum(np.bincount(key), 1)
        apart.append(part - means[key])
    return float(np.corrcoef(*apart)[0, 1])


@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("correlation", [0.0, 0.6, 0.9, -0.8])
def test_codes_within_bins_go_together_as_those_of_the_rows(correlation: float, even: bool) -> None:
    rows = patients(correlation)
    binning, bins = followed(rows)
    rng = np.random.default_rng(7)
    drawn = binning.refine(bins, rng, even=even)
    alone = replace(binning, within=None).refine(bins, rng, even=even)
    assert abs(within(alone)) < 0.05
    assert within(drawn) == pytest.approx(within(rows), abs=0.06)


def test_a_category_moves_the_codes_within_bins() -> None:
    rows = patients(0.5)
    binning, bins = followed(rows)
    drawn = binning.refine(bins, np.random.default_rng(7), even=True)

    def gap(codes: npt.NDArray[np.integer]) -> float:
        there = codes[:, 1] // (CELLS // BINS) == 2
        place = codes[there, 1] % (CELLS // BINS)
        return float(place[codes[there, 2] == 1].mean() - place[codes[there, 2] == 0].mean())

    assert gap(drawn) == pytest.approx(gap(rows), abs=0.8)
    assert gap(rows) > 1.0


@pytest.mark.parametrize("even", [True, False])
def test_bins_and_the_shares_of_their_codes_are_kept(even: bool) -> None:
    rows = patients(0.9)
    binning, bins = followed(rows)
    drawn = binning.refine(bins, np.random.default_rng(2), even=even)
    found = np.column_stack([c.bin_of[drawn[:, j]] for j, c in enumerate(binning.columns)])
    np.testing.assert_array_equal(found, bins)
    for j in (0, 1):
        counts = np.bincount(drawn[:, j], minlength=DOMAIN.features[j].size)
        expected = binning.columns[j].shares * ROWS
        limit = 1.5 if even else 4 * np.sqrt(expected.max()) + 0.15 * expected.max()
        assert np.abs(counts - expected)[:CELLS].max() <= limit


@pytest.mark.long
def test_few_rows_follow_too() -> None:
    """Of rows drawn one by one, none has neighbours in its bin."""
    binning, _ = followed(patients(0.96))
    row, rng = np.array([[2, 2, 0]]), np.random.default_rng(3)
    parts = [binning.refine(row, rng, even=True)[0, :2] for _ in range(800)]
    together = binning.refine(np.repeat(row, 20_000, axis=0), rng, even=True)[:, :2]
    expected = np.corrcoef(together.T)[0, 1]
    assert expected > 0.2
    assert np.corrcoef(np.array(parts).T)[0, 1] == pytest.approx(expected, abs=0.1)


def test_rows_of_a_plain_sample_vary_as_independent_ones() -> None:
    """The number of rows with a code of a bin is binomial; spread evenly, it would hardly vary."""
    binning, _ = followed(patients(0.9))
    rows, rng = np.tile([[2, 2, 0]], (600, 1)), np.random.default_rng(6)

    def spread(even: bool) -> float:
        counts = [(binning.refine(rows, rng, even=even)[:, 0] < 100).sum() for _ in range(60)]
        return float(np.var(counts))

    assert 60 < spread(even=False) < 300  # 600 / 4 = 150
    assert spread(even=True) < 5


def test_nothing_follows_where_bins_leave_no_choice() -> None:
    rows = patients(0.9)
    single = Domain((Feature("a", 4, 4), Feature("b", 3, 0)), ROWS, 1)
    columns = tuple(
        MergedBins(np.arange(size, dtype=np.uint16), np.full(size, 1 / size)) for size in (4, 3)
    )
    products = Products((4, 3), np.ones(1), np.full((1, 7), 0.3, np.float32))
    assert regressions_of(products, single, columns) is None
    assert Binning(single, columns).following(products, np.random.default_rng(0)).within is None
    assert regressions_of(products_of(binning_of(rows), rows), DOMAIN, binning_of(rows).columns)


def test_an_empty_column_and_an_empty_bin_do_no_harm() -> None:
    rows = patients(0.9)
    rows[:, 1] = CELLS  # nobody has a value
    binning, bins = followed(rows)
    drawn = binning.refine(bins, np.random.default_rng(1), even=True)
    assert (drawn[:, 1] == CELLS).all()
    bins[:3, 1] = 0  # a network may draw what the counts do not have
    drawn = binning.refine(bins, np.random.default_rng(1), even=True)
    assert (drawn[:3, 1] < CELLS // BINS).all()


def test_a_run_keeps_it_and_an_earlier_run_is_read_as_it_stands() -> None:
    binning, bins = followed(patients(0.9))
    arrays = binning.arrays()
    again = Binning.restore(DOMAIN, arrays)
    same = [one.refine(bins, np.random.default_rng(4), even=True) for one in (binning, again)]
    np.testing.assert_array_equal(*same)
    earlier = {name: array for name, array in arrays.items() if not name.startswith("within.")}
    old = Binning.restore(DOMAIN, earlier)
    assert old.within is None
    plain = replace(binning, within=None).refine(bins, np.random.default_rng(4), even=True)
    np.testing.assert_array_equal(old.refine(bins, np.random.default_rng(4), even=True), plain)


def test_the_regression_of_two_scores_is_that_of_a_normal_pair() -> None:
    rows = patients(0.7)[:, :2]
    binning = binning_of(np.column_stack([rows, np.zeros(ROWS, int)]))
    found = regressions_of(
        products_of(binning, np.column_stack([rows, np.zeros(ROWS, int)])), DOMAIN, binning.columns
    )
    assert found is not None and found.places.tolist() == [0, 1]
    present = rows[:, 1] < CELLS
    scores = ndtri((rows[present] + 0.5) / CELLS)
    slope = float(np.cov(scores.T)[0, 1])
    assert found.of_scores[0, 1] == pytest.approx(slope, abs=0.05)
    assert found.spread[0] == pytest.approx(np.sqrt(1 - slope**2), abs=0.05)
