"""Tails of columns: where they begin, how they thin out, and that nothing is drawn beyond."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import truncnorm

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature, generator_class
from dpsynth.models.marginals import AdaptiveCells, merge, tails
from dpsynth.models.marginals.adaptive_cells import MISFIT
from dpsynth.models.marginals.tails import MIN_CELLS, Level, Tails, clear_of, tails_of
from dpsynth.models.registry import NAMES
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

from ..support.toy_generators import FEW_STEPS, settle_for


def noisy(true: np.ndarray, sigma: float, seed: int) -> np.ndarray:
    return true + np.random.default_rng(seed).normal(0, sigma, len(true)).round().astype(int)


def of(counts: object, sigma: float) -> Tails:
    """Tails of a column of few codes whose number of rows is known."""
    values = np.asarray(counts, dtype=float)
    return tails_of([values], (1,), rows=float(values.sum()), sigma=sigma)


def test_a_tail_begins_where_a_cell_stands_out() -> None:
    """A heap of 100 rows, noise of 10: cells 0 to 19 and 25 to 39 hold nothing but noise."""
    counts = np.array([4, -6, 9, -11] * 5 + [100, 90, 80, 95, 100] + [-3, 8, 1] * 5)
    found = of(counts, 10.0)
    assert (found.first, found.last) == (21, 24)  # the clear cells themselves are fitted
    assert found.rows[:19].sum() + found.rows[26:].sum() < 20


def test_many_thin_cells_stand_out_together() -> None:
    """Each holds two standard deviations of the noise at most, sixteen of them hold eight."""
    counts = np.array([0] * 30 + [18, 20] * 8)
    found = of(counts, 10.0)
    assert 30 <= found.first <= found.last <= 46
    assert found.rows[:24].sum() < 15 and found.rows[24 : found.first].sum() > 60


def test_a_heap_alone_is_the_body() -> None:
    counts = np.zeros(50)
    counts[37] = 300
    found = of(counts, 10.0)
    assert (found.first, found.last) == (37, 38)


def test_columns_of_few_cells_and_of_noise_alone_have_no_tails() -> None:
    for counts in ([0] * (MIN_CELLS - 2) + [500], np.zeros(200), []):
        found = of(counts, 10.0)
        assert (found.first, found.last) == (0, len(counts)) and not found.rows.any()


def test_noise_alone_stands_out_in_few_columns() -> None:
    """Of `FALSE` columns one cell does; several widths of windows make it a few times that."""
    rng = np.random.default_rng(1)
    found = [of(rng.normal(0, 10, 100) + 1e-9, 10.0) for _ in range(2000)]
    assert np.mean([tail.rows.any() for tail in found]) < 4 * tails.FALSE
    assert clear_of(100) == pytest.approx(3.891, abs=0.001)


def test_without_noise_the_body_and_tails_are_the_cells_with_rows() -> None:
    counts = np.array([0, 0, 1, 0, 5, 7, 0, 2, 0, 0, 0])
    found = of(counts, 0.0)
    kept = found.rows.copy()
    kept[found.first : found.last] = counts[found.first : found.last]
    assert kept.tolist() == counts.tolist() and (found.first, found.last) == (3, 7)


@pytest.mark.parametrize("cells", [3, 12])
def test_the_fit_is_the_posterior_mean(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a sum over a fine grid of M, and over the same shapes, by the formulas as written."""
    monkeypatch.setattr(tails, "LEAST", 0.0)
    monkeypatch.setattr(tails, "FALSE", 1e-12)
    counts = np.random.default_rng(cells).normal(40 * np.exp(-np.arange(cells) / 2), 9)
    level = Level(counts, np.arange(cells + 1), 9.0)
    fitted, variance = tails._fit([level], 0, np.ones(cells))
    masses = np.linspace(0, 600, 6001)
    lengths = np.geomspace(tails.SHORTEST, cells, tails.LENGTHS)
    found, weights, noise = [], [], []
    for bend in tails.BENDS:
        for length in lengths:
            shape = np.exp(-((np.arange(cells) / length) ** bend))
            shape /= shape.sum()
            miss = ((counts - masses[:, None] * shape) ** 2).sum(axis=1) / 81
            likely = np.exp(-miss / 2)
            found.append((likely @ masses) / likely.sum() * shape)
            weights.append(likely.sum() / np.sqrt(length))
            noise.append(1 / (shape @ shape))
    np.testing.assert_allclose(fitted, np.average(found, axis=0, weights=weights), rtol=1e-3)
    assert variance == pytest.approx(np.average(noise, weights=weights), rel=1e-3)


def test_a_mean_of_a_normal_law_cut_at_0() -> None:
    """One cell, one shape: SciPy's truncated normal law."""
    fitted, _ = tails._fit([Level(np.array([-15.0]), np.arange(2), 10.0)], 0, np.ones(1))
    assert fitted[0] == pytest.approx(truncnorm(1.5, np.inf, loc=-15, scale=10).mean())


@given(st.lists(st.integers(-60, 400), max_size=120), st.floats(0, 80))
def test_tails_are_at_the_ends_and_never_negative(counts: list[int], sigma: float) -> None:
    found = of(counts, sigma)
    assert 0 <= found.first <= found.last <= len(counts) == len(found.rows)
    assert (found.rows >= 0).all() and not found.rows[found.first : found.last].any()


STAYS = np.zeros(91, dtype=int)
STAYS[1:15] = [900, 1200, 1300, 1200, 1000, 800, 600, 400, 250, 150, 90, 60, 40, 20]
STAY = Feature("stay", 91, 91)


def test_a_stay_bounded_at_90_days_keeps_to_14() -> None:
    """Of noise of sixteen rows in each cell, what lies beyond falls to a fifth or less."""
    before, after = [], []
    for seed in range(40):
        counts = noisy(STAYS, 16.0, seed)
        after.append(shares_of_stays(counts, 16.0)[15:].sum())
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tails, "MIN_CELLS", 1000)
            before.append(shares_of_stays(counts, 16.0)[15:].sum())
    assert np.mean(before) > 0.015
    assert np.mean(after) < np.mean(before) / 5


def shares_of_stays(counts: np.ndarray, sigma: float) -> np.ndarray:
    leaves = AdaptiveCells.of(STAY, [counts], total=float(STAYS.sum()), sigma=sigma)
    shares = leaves.code_shares(float(STAYS.sum()))
    assert shares.sum() == pytest.approx(1.0) and (shares >= 0).all()
    return shares


def test_a_thin_tail_keeps_its_rows_and_its_slope() -> None:
    """Log-normal stays of 11 500 patients: cells from the 14th day on are below the noise of 30."""
    rng = np.random.default_rng(1)
    days = np.clip(np.rint(np.exp(rng.normal(1.1, 0.78, 11_500))), 0, 90).astype(int)
    true = np.bincount(days, minlength=91)
    found = []
    for seed in range(30):
        leaves = AdaptiveCells.of(STAY, [noisy(true, 30.0, seed)], total=11_500.0, sigma=30.0)
        shares = leaves.code_shares(11_500.0)
        found.append((shares @ np.arange(91), np.searchsorted(np.cumsum(shares), 0.99)))
    mean, last = np.mean(found, axis=0)
    assert mean == pytest.approx(days.mean(), rel=0.02)
    assert last == pytest.approx(np.quantile(days, 0.99), rel=0.1)


def test_a_heap_within_a_tail_keeps_its_count() -> None:
    counts = np.concatenate([[900, 700, 500, 300, 150, 60, 20], np.zeros(60), [250], np.zeros(9)])
    found = of(noisy(counts, 10.0, 2), 10.0)
    assert found.last == 67  # it stands out: the tail begins there
    assert found.rows[67] == pytest.approx(250, abs=30)


WIDE = Feature("cost", 2001, 2000, points=(1, 3) * 1000)


def levels(codes: np.ndarray, sigma: float, seed: int) -> list[np.ndarray]:
    found = []
    for width in WIDE.levels:
        size = -(-2000 // width) + 1
        places = np.where(codes == 2000, size - 1, codes // width)
        found.append(noisy(np.bincount(places, minlength=size), sigma, seed + width))
    return found


def test_a_wide_column_is_fitted_at_all_its_levels() -> None:
    codes = np.repeat(np.arange(300, 340), 200)
    counts = [level[:-1] for level in levels(codes, 10.0, 1)]
    tails = tails_of(counts, WIDE.levels, rows=8000.0, sigma=10.0, points=WIDE.points)
    assert 300 <= tails.first < tails.last <= 340
    assert tails.rows[:296].sum() + tails.rows[344:].sum() < 80


@pytest.mark.parametrize("rows", [1, 30, 3000])
def test_bins_keep_the_shares_of_the_tails(rows: int) -> None:
    codes = np.random.default_rng(2).integers(300, 400, rows)
    noise = levels(codes, 12.0, 3)
    leaves = AdaptiveCells.of(WIDE, noise, total=float(rows), sigma=12.0)
    shares = leaves.code_shares(float(rows))
    assert shares.sum() == pytest.approx(1.0) and (shares >= 0).all()
    bins = merge(leaves, total=float(rows), sigma=12.0, maximum=16)
    np.testing.assert_allclose(bins.shares, shares)
    if rows == 3000:
        tails = tails_of([level[:-1] for level in noise], WIDE.levels, rows=3000.0 - noise[2][-1],
                         sigma=12.0, points=WIDE.points)  # fmt: skip
        assert leaves.is_tail[leaves.leaf_of[[0, 1999]]].all()
        assert (leaves.variances > 0).all()
        body = np.flatnonzero(~leaves.is_tail[: leaves.ordered])
        ends = [leaves.variances[: body[0]], leaves.variances[body[-1] + 1 : leaves.ordered]]
        for end, variance in zip(ends, tails.variances, strict=True):
            assert end.sum() == pytest.approx(MISFIT * variance, rel=0.01) and variance > 0.5
        assert not shares[:-1][np.r_[0:280, 420:2000]].sum() > 0.02
        assert tails.first < 330 and tails.last > 370


def test_rounding_draws_no_code_without_a_share() -> None:
    leaves = AdaptiveCells.of(Feature("x", 40, 40), [np.array([0] * 10 + [70] * 20 + [0] * 10)],
                              total=1400.0, sigma=5.0)  # fmt: skip
    bins = merge(leaves, total=1400.0, sigma=5.0, maximum=5)

    class Ends:
        """Uniform numbers at both ends of the unit interval."""

        def random(self, count: int) -> np.ndarray:
            return np.resize([0.0, np.nextafter(1.0, 0.0)], count)

    drawn = bins.refine(np.repeat(np.arange(bins.count), 2), Ends())  # type: ignore[arg-type]
    assert (leaves.code_shares(1400.0)[drawn] > 0).all()
    assert drawn.min() >= 8 and drawn.max() <= 31


@pytest.mark.parametrize("model", NAMES)
def test_no_generator_draws_beyond_an_emptied_end(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mixture and networks bring mass into bins again, and each bin is refined within its ends."""
    kind = generator_class(model)
    if kind in FEW_STEPS:
        settle_for(monkeypatch, kind, **FEW_STEPS[kind])
    features = (Feature("stay", 91, 91), Feature("sex", 2, 0), Feature("hba1c", 171, 170))
    domain = Domain(features, population=4000, max_rows=1)
    rng = np.random.default_rng(4)
    codes = np.column_stack(
        [rng.integers(1, 8, 4000), rng.integers(0, 2, 4000), rng.integers(20, 60, 4000)]
    ).astype(np.uint16)
    budget = PrivacyBudget(10.0, 1e-6)
    generator = kind(domain)
    plan = PrivacyPlan.calibrate(budget, generator.shares(budget))
    cohort = Cohort(codes[:, None], np.ones((4000, 1), dtype=bool))
    drawn = generator.fit(cohort, plan, SeededEntropy(5)).sample(
        20_000, np.random.default_rng(6), even=False
    )
    assert drawn[:, 0].max() < 12
    values = drawn[drawn[:, 2] < 170, 2]
    assert values.min() >= 14 and values.max() < 66


# Privacy --------------------------------------------------------------------------------------


def test_the_fit_is_given_nothing_but_released_counts_and_public_facts() -> None:
    known = ["levels", "widths", "rows", "sigma", "points", "bins"]
    assert list(inspect.signature(tails_of).parameters) == known
