"""Empty ends of columns: which cells are emptied, and that nothing is drawn there."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.encoding.cohort import Cohort
from dpsynth.models.base import Domain, Feature
from dpsynth.models.marginals.adaptive_cells import AdaptiveCells
from dpsynth.models.marginals.histograms import merge
from dpsynth.models.marginals.tails import MIN_CELLS, empty_codes, empty_ends
from dpsynth.models.registry import NAMES, generator_class
from dpsynth.privacy.entropy import SeededEntropy
from dpsynth.privacy.plan import PrivacyBudget, PrivacyPlan

from ..support.toy_generators import FEW_STEPS, settle_for


def noisy(true: np.ndarray, sigma: float, seed: int) -> np.ndarray:
    return true + np.random.default_rng(seed).normal(0, sigma, len(true)).round().astype(int)


def test_a_tail_ends_before_the_cells_that_stand_out() -> None:
    """A heap of 100 rows, noise of 10: cells 0 to 19 and 25 to 39 are empty."""
    counts = np.array([4, -6, 9, -11] * 5 + [100, 90, 80, 95, 100] + [-3, 8, 1] * 5)
    assert np.flatnonzero(~empty_ends(counts, sigma=10.0)).tolist() == [20, 21, 22, 23, 24]


def test_many_thin_cells_stand_out_together() -> None:
    """Each holds two standard deviations of the noise at most, sixteen of them hold eight."""
    counts = np.array([0] * 30 + [18, 20] * 8)
    assert np.flatnonzero(~empty_ends(counts, sigma=10.0)).tolist() == list(range(30, 46))


def test_a_heap_alone_keeps_its_cell() -> None:
    counts = np.zeros(50)
    counts[37] = 300
    assert np.flatnonzero(~empty_ends(counts, sigma=10.0)).tolist() == [37]


def test_a_column_that_is_mostly_noise_keeps_its_ends() -> None:
    """Four standard deviations of the noise of 50 cells together are 283 rows."""
    counts = np.zeros(50)
    counts[37] = 280
    assert not empty_ends(counts, sigma=10.0).any()


def test_columns_of_few_cells_and_of_noise_alone_keep_all() -> None:
    assert not empty_ends([0] * (MIN_CELLS - 2) + [500], sigma=10.0).any()
    assert not empty_ends(np.zeros(200), sigma=10.0).any()
    assert not empty_ends([], sigma=10.0).any()


def test_without_noise_the_empty_cells_are_those_without_rows() -> None:
    counts = np.array([0, 0, 1, 0, 5, 7, 0, 2, 0, 0, 0])
    assert np.flatnonzero(empty_ends(counts, sigma=0.0)).tolist() == [0, 1, 8, 9, 10]


@given(st.lists(st.integers(-60, 400), max_size=120), st.floats(0, 80))
def test_only_ends_are_emptied_and_never_all(counts: list[int], sigma: float) -> None:
    empty = empty_ends(counts, sigma=sigma)
    kept = np.flatnonzero(~empty)
    assert len(empty) == len(counts)
    if counts:
        assert len(kept) and not empty[kept[0] : kept[-1] + 1].any()


def test_a_stay_bounded_at_90_days_keeps_to_14() -> None:
    """Of noise of sixteen rows in each cell, what lies beyond falls to half or less."""
    true = np.zeros(91, dtype=int)
    true[1:15] = np.array([900, 1200, 1300, 1200, 1000, 800, 600, 400, 250, 150, 90, 60, 40, 20])
    feature, before, after = Feature("stay", 91, 91), [], []
    for seed in range(40):
        counts = noisy(true, 16.0, seed)
        leaves = AdaptiveCells.of(feature, [counts], total=8010.0, sigma=16.0)
        whole = AdaptiveCells(*[getattr(leaves, name) for name in ("leaf_of", "ordered")],
                              leaves.counts, leaves.within, np.zeros(91, dtype=bool))  # fmt: skip
        before.append(whole.code_shares(8010.0)[15:].sum())
        after.append(leaves.code_shares(8010.0)[15:].sum())
    assert np.mean(before) > 0.015
    assert np.mean(after) < np.mean(before) / 2


WIDE = Feature("cost", 2001, 2000, points=(1, 3) * 1000)


def levels(codes: np.ndarray, sigma: float, seed: int) -> list[np.ndarray]:
    found = []
    for width in WIDE.levels:
        size = -(-2000 // width) + 1
        places = np.where(codes == 2000, size - 1, codes // width)
        found.append(noisy(np.bincount(places, minlength=size), sigma, seed + width))
    return found


def test_a_wide_column_is_emptied_by_its_coarsest_cells_then_within_them() -> None:
    codes = np.repeat(np.arange(300, 340), 200)
    counts = [level[:-1].astype(float) for level in levels(codes, 10.0, 1)]
    kept = np.flatnonzero(~empty_codes(counts, WIDE.levels, sigma=10.0))
    assert 296 <= kept[0] <= 300 and 339 <= kept[-1] <= 343


@pytest.mark.parametrize("rows", [1, 30, 3000])
def test_no_code_of_an_empty_end_has_a_share(rows: int) -> None:
    codes = np.random.default_rng(2).integers(300, 400, rows)
    noise = levels(codes, 12.0, 3)
    beyond = empty_codes([level[:-1].astype(float) for level in noise], WIDE.levels, sigma=12.0)
    leaves = AdaptiveCells.of(WIDE, noise, total=float(rows), sigma=12.0)
    shares = leaves.code_shares(float(rows))
    assert shares.sum() == pytest.approx(1.0) and (shares >= 0).all()
    assert not shares[:-1][beyond].any()
    bins = merge(leaves, total=float(rows), sigma=12.0, maximum=16)
    assert not bins.shares[:-1][beyond].any()


def test_rounding_draws_no_code_without_a_share() -> None:
    leaves = AdaptiveCells.of(Feature("x", 40, 40), [np.array([0] * 10 + [70] * 20 + [0] * 10)],
                              total=1400.0, sigma=5.0)  # fmt: skip
    bins = merge(leaves, total=1400.0, sigma=5.0, maximum=5)

    class Ends:
        """Uniform numbers at both ends of the unit interval."""

        def random(self, count: int) -> np.ndarray:
            return np.resize([0.0, np.nextafter(1.0, 0.0)], count)

    drawn = bins.refine(np.repeat(np.arange(bins.count), 2), Ends())  # type: ignore[arg-type]
    assert drawn.min() >= 10 and drawn.max() <= 29


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


def test_the_rule_is_given_nothing_but_released_counts_and_public_facts() -> None:
    assert list(inspect.signature(empty_ends).parameters) == ["noisy", "sigma"]
    assert list(inspect.signature(empty_codes).parameters) == ["levels", "widths", "sigma"]
