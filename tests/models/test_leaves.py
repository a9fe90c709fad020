"""Leaves of a column: counts by a loop, consistency by least squares, splits by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature, shares_of
from dpsynth.models.generators import Independent
from dpsynth.models.marginals import AdaptiveCells, leaves_of, levelled, sizes_of
from dpsynth.models.marginals.adaptive_cells import consistent
from dpsynth.models.presets import ONE_WAY
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

WIDE = Feature("income", 4001, 4000, points=(1, 9) * 2000)  # the last code is missing
NARROW = Feature("sex", 3, 0)
DOMAIN = Domain((NARROW, WIDE), population=5000, max_rows=1)


def rows(codes: np.ndarray) -> Cohort:
    return Cohort(codes.astype(np.uint16)[:, None], np.ones((len(codes), 1), dtype=bool))


def levels_of(codes: np.ndarray, feature: Feature = WIDE) -> list[np.ndarray]:
    """Exact counts of one wide column at its three levels."""
    domain = replace(DOMAIN, features=(feature,))
    found = levelled(rows(codes[:, None]), domain).codes[:, 0]
    return [np.bincount(found[:, i], minlength=size) for i, size in enumerate(sizes_of(domain))]


def test_narrow_columns_have_one_level_and_wide_ones_three() -> None:
    assert NARROW.levels == (1,)
    assert Feature("age", 257, 256).levels == (1,)
    assert WIDE.levels == (64, 8, 1)
    assert sizes_of(DOMAIN) == (3, 63 + 1, 500 + 1, 4001)


def test_every_count_is_a_histogram_of_the_event() -> None:
    """A row enters one cell of each of the four counts: so many the event must pay for."""
    [share] = shares_of("independent", DOMAIN, PrivacyBudget(1.0, 1e-6))
    assert share.event.histograms == 4
    [share, *_] = shares_of("mixture", DOMAIN, PrivacyBudget(1.0, 1e-6))
    assert share.event.histograms == 4


def test_levelled_codes_by_hand() -> None:
    codes = np.array([[0, 0], [1, 63], [2, 64], [0, 3999], [1, 4000]])
    found = levelled(rows(codes), DOMAIN).codes[:, 0]
    expected = [[0, 0, 0, 0], [1, 0, 7, 63], [2, 1, 8, 64], [0, 62, 499, 3999], [1, 63, 500, 4000]]
    assert found.tolist() == expected


def test_a_domain_without_wide_columns_is_left_as_it_is() -> None:
    cohort = rows(np.zeros((4, 1)))
    assert levelled(cohort, replace(DOMAIN, features=(NARROW,))) is cohort


def test_consistency_is_least_squares() -> None:
    """Two levels above 4 leaves, ratio 2: against the normal equations of the same tree."""
    rng = np.random.default_rng(1)
    levels = [rng.normal(50, 9, 1), rng.normal(25, 9, 2), rng.normal(12, 9, 4)]
    design = np.array([[1, 1, 1, 1], [1, 1, 0, 0], [0, 0, 1, 1], *np.eye(4).tolist()], dtype=float)
    best = np.linalg.lstsq(design, np.concatenate(levels), rcond=None)[0]
    found = [level.copy() for level in levels]
    consistent(found, (4, 2, 1))
    np.testing.assert_allclose(found[2], best)
    np.testing.assert_allclose(found[1], [best[:2].sum(), best[2:].sum()])
    np.testing.assert_allclose(found[0], [best.sum()])


def test_consistent_levels_add_up_where_the_last_cells_are_short() -> None:
    rng = np.random.default_rng(2)
    levels = [rng.normal(0, 5, size) for size in (63, 500, 4000)]
    consistent(levels, (64, 8, 1))
    np.testing.assert_allclose(np.add.reduceat(levels[2], np.arange(0, 4000, 8)), levels[1])
    np.testing.assert_allclose(np.add.reduceat(levels[1], np.arange(0, 500, 8)), levels[0])


def test_heaps_are_found_and_empty_stretches_stay_whole() -> None:
    heaps = {0: 250, 1000: 2500, 1002: 1500, 3999: 250, 4000: 500}
    codes = np.repeat(list(heaps), list(heaps.values()))
    leaves = AdaptiveCells.of(WIDE, levels_of(codes), total=5000.0, sigma=10.0, alike=True)
    shares = leaves.code_shares(5000.0)
    assert shares[list(heaps)].tolist() == pytest.approx([0.05, 0.5, 0.3, 0.05, 0.1], abs=0.01)
    assert leaves.counts[leaves.leaf_of[1000]] == pytest.approx(2500, abs=5)
    assert len(np.unique(leaves.leaf_of[64:128])) == 1  # nobody there: one leaf of 64 codes
    assert len(np.unique(leaves.leaf_of)) == len(leaves.counts) == 62 + 7 + 4 + 2 + 1
    assert leaves.ordered == 62 + 7 + 4 + 2  # each end is a tail of one code


def test_within_a_leaf_lattice_points_share_alike() -> None:
    ends = np.repeat([0, 3999], 2000)  # between them one row a code: far below the noise
    codes = np.concatenate([ends, np.arange(64, 128)])
    leaves = AdaptiveCells.of(WIDE, levels_of(codes), total=5000.0, sigma=20.0)
    within = leaves.within[64:128]
    assert within.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(within[1::2] / within[::2], 9.0)  # nine points against one
    assert leaves.code_shares(64.0).sum() == pytest.approx(1.0)


def test_leaves_are_ordered_runs_of_codes() -> None:
    rng = np.random.default_rng(3)
    levels = [
        level + rng.normal(0, 15, len(level)).round().astype(int)
        for level in levels_of(np.clip(rng.lognormal(5, 1.5, 5000), 0, 4000).astype(int))
    ]
    leaves = AdaptiveCells.of(WIDE, levels, total=5000.0, sigma=15.0)
    steps = np.diff(leaves.leaf_of.astype(int))
    assert set(steps.tolist()) == {0, 1}
    assert leaves.leaf_of[-1] == len(leaves.counts) - 1 == leaves.ordered
    assert 64 < (~leaves.is_tail).sum() < 1000


def test_a_narrow_column_is_its_own_leaves() -> None:
    [narrow, _] = leaves_of(
        DOMAIN,
        [np.array([5, -1, 7]), *levels_of(np.zeros(10, dtype=int))],
        total=11.0,
        sigma=1.0,
    )
    assert narrow.counts.tolist() == [5, -1, 7] and narrow.leaf_of.tolist() == [0, 1, 2]
    assert (narrow.ordered, narrow.within.tolist()) == (0, [1.0, 1.0, 1.0])


def test_a_wide_column_is_learned_at_epsilon_1() -> None:
    """Heaps and a tail, of 5000 units; counting 4001 cells alone would drown the tail in noise."""
    rng = np.random.default_rng(4)
    income = np.where(rng.random(5000) < 0.3, 2000, np.clip(rng.gamma(2, 400, 5000), 0, 3999))
    codes = np.column_stack([rng.integers(0, 3, 5000), income.astype(int)])
    budget = PrivacyBudget(1.0, 1e-6)
    plan = PrivacyPlan.calibrate(budget, Independent(DOMAIN).shares(budget))
    model = Independent(DOMAIN).fit(rows(codes), plan, SeededEntropy(5))
    assert plan.event(ONE_WAY).histograms == 4
    drawn = model.sample(5000, np.random.default_rng(6))[:, 1].astype(int)
    assert (drawn == 2000).mean() == pytest.approx(0.3, abs=0.03)
    tails = [
        np.quantile(column[column != 2000], [0.1, 0.5, 0.9]) for column in (codes[:, 1], drawn)
    ]
    np.testing.assert_allclose(tails[1], tails[0], rtol=0.12)
