"""Contrasts, what is expected from their products, and which tables are worth their noise."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.models import Feature
from dpsynth.models.base import VISITS
from dpsynth.models.marginals import MergedBins
from dpsynth.models.marginals.contrasts.blend import blended, prior_sd
from dpsynth.models.marginals.contrasts.departed import Departed, distances_of, worthwhile
from dpsynth.models.marginals.contrasts.expected import expected_tables, raked
from dpsynth.models.marginals.contrasts.restored import restored
from dpsynth.models.marginals.contrasts.scores import LARGEST, TARGET, Contrasts, contrasts_of
from dpsynth.privacy import ChosenHistograms, exact_contrast_products

MASS = 2**19


def bins_of(*shares: Sequence[float]) -> tuple[MergedBins, ...]:
    """Columns whose bins are their codes."""
    return tuple(
        MergedBins(np.arange(len(own), dtype=np.uint16), np.asarray(own, dtype=float))
        for own in shares
    )


def one(shares: Sequence[float], cells: int = 0, *, target: bool = False) -> np.ndarray:
    feature = Feature("a", len(shares), cells, target=target)
    return contrasts_of(bins_of(shares), [feature], MASS).values[0]


# Scores ---------------------------------------------------------------------------------------


def test_nothing_but_released_values_and_public_facts_goes_in() -> None:
    assert list(inspect.signature(contrasts_of).parameters) == ["bins", "features", "mass"]
    assert list(inspect.signature(worthwhile).parameters) == ["departed", "cells", "noise"]
    known = ["products", "contrasts", "shares", "mass", "sd", "rng"]
    assert list(inspect.signature(restored).parameters) == known


@pytest.mark.parametrize(
    ("shares", "cells"),
    [([0.2, 0.3, 0.5], 3), ([0.2, 0.3, 0.4, 0.1], 3), ([0.7, 0.2, 0.1], 0), ([0.5, 0.5], 2)],
)
def test_scores_have_mean_0_and_variance_1(shares: list[float], cells: int) -> None:
    scores = one(shares, cells)
    assert float(np.array(shares) @ scores) == pytest.approx(0, abs=0.01)
    assert float(np.array(shares) @ scores**2) == pytest.approx(1, abs=0.02)


def test_ordered_bins_have_their_ranks_and_missing_the_mean() -> None:
    scores = one([0.2, 0.3, 0.4, 0.1], 3)
    assert scores[0] < scores[1] < scores[2] and scores[3] == pytest.approx(0, abs=0.02)


def test_a_column_that_is_mostly_missing_tells_missing_from_the_rest() -> None:
    bins = MergedBins(np.array([0, 0, 1], dtype=np.uint16), np.array([0.1, 0.1, 0.8]))
    [scores] = contrasts_of([bins], [Feature("a", 3, 2)], MASS).values
    assert scores[0] == pytest.approx(2, abs=0.01) and scores[1] == pytest.approx(-0.5, abs=0.01)


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.5000001, 0.4999999], [0.25] * 4, [1.0]])
def test_scores_of_a_lone_column_stay_small_enough_for_exact_sums(shares: list[float]) -> None:
    """Noise may leave one bin of all columns but one: a charged fit must not end there."""
    bins = bins_of(*[[1.0]] * 9, shares)
    features = [Feature(f"c{j}", column.count, 0) for j, column in enumerate(bins)]
    rows = Cohort(np.zeros((5, 1, 10), dtype=np.uint16), np.ones((5, 1), dtype=bool))
    whole = contrasts_of(bins, features, MASS).whole
    event = ChosenHistograms("products", 45, 1, noise_multiplier=1.0, unit_mass=MASS)
    assert (exact_contrast_products(rows, whole, event) == 0).all()


def test_the_commonest_category_is_told_from_the_rest() -> None:
    scores = one([0.15, 0.6, 0.1, 0.15])
    assert scores[0] == scores[2] == scores[3] < 0 < scores[1]


def test_categories_that_rise_and_fall_in_their_order_are_grades() -> None:
    """Bands of age; two peaks, or a category of half the rows, are none."""
    assert (np.diff(one([0.1, 0.2, 0.3, 0.25, 0.15])) > 0).all()
    assert len(np.unique(one([0.3, 0.05, 0.3, 0.05, 0.3]))) == 2
    assert len(np.unique(one([0.1, 0.2, 0.55, 0.1, 0.05]))) == 2
    assert len(np.unique(one([0.3, 0.4, 0.3]))) == 2  # of three, two in three look like grades


def test_a_rare_category_is_cut_and_a_target_is_longer() -> None:
    assert np.abs(one([0.995, 0.005])).max() == pytest.approx(LARGEST, rel=0.01)
    plain = one([0.4, 0.6])
    np.testing.assert_allclose(one([0.4, 0.6], target=True), TARGET * plain, rtol=0.01)
    [hidden] = contrasts_of(bins_of([0.4, 0.6]), [Feature(VISITS, 2, 2)], MASS).values
    np.testing.assert_allclose(np.abs(hidden), TARGET * np.abs(plain), rtol=0.01)


def test_a_column_of_one_bin_has_no_score() -> None:
    contrasts = contrasts_of(bins_of([1.0], [0.5, 0.5]), [Feature("a", 1, 0)] * 2, MASS)
    assert contrasts.whole[0].tolist() == [0]


def test_about_a_third_of_independent_rows_are_longer_than_a_unit_may_be() -> None:
    shares = [np.random.default_rng(j).dirichlet(np.ones(4)) for j in range(20)]
    features = [Feature("a", 4, 4 * (j % 2)) for j in range(20)]
    contrasts = contrasts_of(bins_of(*shares), features, MASS)
    rows = drawn(contrasts, shares)
    norms = ((rows**2).sum(axis=1) ** 2 - (rows**4).sum(axis=1)) / 2
    assert 0.2 < (norms > (MASS / contrasts.scale**2) ** 2).mean() < 0.4


def drawn(contrasts: Contrasts, shares: Sequence[np.ndarray], count: int = 20_000) -> np.ndarray:
    rng = np.random.default_rng(3)
    columns = zip(contrasts.values, shares, strict=True)
    return np.column_stack([rng.choice(score, count, p=share) for score, share in columns])


# What shrinking took ---------------------------------------------------------------------------


def test_products_of_shrunk_rows_are_restored() -> None:
    """Twelve rare diagnoses that go together: shrinking takes a third, and it comes back."""
    rng = np.random.default_rng(1)
    frail = rng.standard_normal((40_000, 1))
    codes = (0.7 * frail + 0.7 * rng.standard_normal((40_000, 12)) > 1.2).astype(int)
    shares = [np.bincount(codes[:, j], minlength=2) / len(codes) for j in range(12)]
    contrasts = contrasts_of(bins_of(*shares), [Feature("a", 2, 0)] * 12, MASS)
    rows = np.column_stack([contrasts.values[j][codes[:, j]] for j in range(12)])
    pairs = np.triu_indices(12, 1)
    true = (rows.T @ rows / len(rows))[pairs]
    norms = ((rows**2).sum(axis=1) ** 2 - (rows**4).sum(axis=1)) / 2
    factors = np.minimum(1, (MASS / contrasts.scale**2) ** 2 / np.maximum(norms, 1e-9)) ** 0.25
    shrunk = rows * factors[:, None]
    released = (shrunk.T @ shrunk / len(rows))[pairs]
    back = restored(released, contrasts, shares, MASS, 1e-3, np.random.default_rng(2))
    assert released.sum() < 0.75 * true.sum()
    assert abs(back.sum() / true.sum() - 1) < 0.1
    unclear = restored(released, contrasts, shares, MASS, 10.0, np.random.default_rng(2))
    assert np.abs(unclear - released).mean() < 0.02  # by chance, rows that are not related


# Expected tables -------------------------------------------------------------------------------


def test_expected_tables_have_the_margins_and_the_product() -> None:
    shares = [np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.4])]
    scores = [np.array([-1.5, -0.4, 0.84]), np.array([-0.8, 1.2])]
    [table] = expected_tables(shares, scores, [(0, 1)], np.array([0.3]), 1e-9)
    np.testing.assert_allclose(table.sum(axis=1), shares[0], atol=1e-6)
    np.testing.assert_allclose(table.sum(axis=0), shares[1], atol=1e-6)
    assert float(scores[0] @ table @ scores[1]) == pytest.approx(0.3, abs=0.02)


def test_a_product_within_its_noise_says_nothing() -> None:
    shares = [np.array([0.5, 0.5])] * 2
    scores = [np.array([-1.0, 1.0])] * 2
    [table] = expected_tables(shares, scores, [(0, 1)], np.array([0.05]), 0.06)
    np.testing.assert_allclose(table, 0.25)
    [large] = expected_tables(shares, scores, [(0, 1)], np.array([1.8]), 0.01)
    assert large.min() > 0  # no cell is ruled out by a noisy number


def test_a_table_is_fitted_to_both_margins() -> None:
    table = raked(np.array([[0.4, 0.1], [0.1, 0.4]]), np.array([0.7, 0.3]), np.array([0.6, 0.4]))
    np.testing.assert_allclose(table.sum(axis=1), [0.7, 0.3], atol=1e-4)
    np.testing.assert_allclose(table.sum(axis=0), [0.6, 0.4], atol=1e-4)
    odds = table[0, 0] * table[1, 1] / (table[0, 1] * table[1, 0])
    assert odds == pytest.approx(16)


# Distances -------------------------------------------------------------------------------------


def test_chance_alone_is_no_distance() -> None:
    rng = np.random.default_rng(5)
    expected = rng.dirichlet(np.ones(40), 300) * 2000
    sums = np.array([np.abs(rng.poisson(table) - table).sum() for table in expected])
    calm = [np.zeros(40)] * 300
    found = distances_of(
        np.rint(sums * 8).astype(np.int64), list(expected), calm, parts=8, sigma=40.0
    )
    assert found.sd == 5.0
    assert np.median(found.distances) < 0.06 * np.mean(sums) * 5
    wavering = [np.full(40, 900.0)] * 300  # noisy margins explain more than that
    assert (
        distances_of(
            np.rint(sums * 8).astype(np.int64), list(expected), wavering, parts=8, sigma=40.0
        ).distances
        == 0
    ).all()


def test_a_distance_beyond_chance_is_found() -> None:
    expected = np.full(10, 100.0)
    chance = 10 * math.sqrt(2 / math.pi * 100)
    found = distances_of(
        np.array([round(500 * 16), 0]), [expected] * 2, [np.zeros(10)] * 2, parts=16, sigma=16.0
    )
    assert found.distances[0] == pytest.approx(math.sqrt(500**2 - chance**2), rel=1e-6)
    assert found.distances[1] == 0  # noise may make it less than chance does


def test_tables_are_taken_while_they_save_more_than_they_cost() -> None:
    """Eight cells have C = 4. The first is worth 1.5 x .3 x .798 x s x 2 x 4 units, 2.87 s."""
    departed = Departed(np.array([100.0, 2.0, 50.0]), 1.0)
    assert worthwhile(departed, [8, 8, 8], 30.0) == [0]
    assert worthwhile(departed, [8, 8, 8], 10.0) == [0, 2]
    assert worthwhile(departed, [8, 8, 8], 0.1) == [0, 1, 2]
    assert worthwhile(departed, [8, 8, 8], 1e3) == []
    # by distance over cells^(2/3): a large table needs more
    assert worthwhile(Departed(np.array([100.0, 90.0]), 1.0), [1000, 8], 20.0) == [1]


# What the mixture is fitted to -----------------------------------------------------------------


def test_cells_are_averaged_by_precision() -> None:
    mean, sd = blended(np.array([10.0]), np.array([3.0]), np.array([20.0]), 6.0)
    assert mean[0] == pytest.approx((4 * 10 + 20) / 5)
    assert sd[0] == pytest.approx((1 / 9 + 1 / 36) ** -0.5)


def test_a_far_pair_and_a_noisy_distance_widen_what_is_expected() -> None:
    table = np.array([[400.0, 100.0], [100.0, 400.0]])
    near = prior_sd(table, 0.0, 1.0, 1000.0)  # the least: 5 units of 1000 over 4 cells
    assert near[0, 0] == pytest.approx(1.25 * 5 / 4 * math.sqrt(1.65))
    assert prior_sd(table, 80.0, 1.0, 1000.0)[0, 0] == pytest.approx(16 * near[0, 0])
    assert prior_sd(table, 80.0, 60.0, 1000.0)[0, 0] == pytest.approx(24 * near[0, 0])
    assert near[0, 0] > near[0, 1]
