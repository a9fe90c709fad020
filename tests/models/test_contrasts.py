"""Contrasts, what is expected from their products, and which tables are worth their noise."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

from dpsynth.encoding import Cohort
from dpsynth.models import Feature
from dpsynth.models.base import VISITS
from dpsynth.models.marginals import MergedBins
from dpsynth.models.marginals.contrasts.factors import Factored, factored
from dpsynth.models.marginals.contrasts.measurement import (
    Departed,
    blended,
    distances_of,
    expected_tables,
    prior_sd,
    raked,
    worthwhile,
)
from dpsynth.models.marginals.contrasts.scores import LARGEST, TARGET, Contrasts, contrasts_of
from dpsynth.privacy import ChosenHistograms, exact_contrast_products
from dpsynth.privacy.pair_statistics import _bounded_scores, pairs_asked

MASS, MOST = 2**19, 1000
QUIET, LOUD = 0.0, 1e9  # noise of a product, in whole parts


def bins_of(*shares: Sequence[float] | np.ndarray) -> tuple[MergedBins, ...]:
    """Columns whose bins are their codes."""
    return tuple(
        MergedBins(np.arange(len(own), dtype=np.uint16), np.asarray(own, dtype=float))
        for own in shares
    )


def one(
    shares: Sequence[float] | np.ndarray,
    cells: int = 0,
    *,
    target: bool = False,
    noise: float = LOUD,
) -> np.ndarray:
    """The scores of one column, ``[bins, k]``."""
    feature = Feature("a", len(shares), cells, target=target)
    return contrasts_of(bins_of(shares), [feature], MASS, noise, MOST).values[0]


def of_columns(shares: Sequence[np.ndarray], cells: int = 0) -> Contrasts:
    features = [Feature("a", len(own), cells and len(own)) for own in shares]
    return contrasts_of(bins_of(*shares), features, MASS, LOUD, MOST)


# Scores ---------------------------------------------------------------------------------------


def test_nothing_but_released_values_and_public_facts_goes_in() -> None:
    known = ["bins", "features", "mass", "noise", "most"]
    assert list(inspect.signature(contrasts_of).parameters) == known
    assert list(inspect.signature(worthwhile).parameters) == ["departed", "cells", "noise"]
    known = ["products", "contrasts", "shares", "sd", "rng"]
    assert list(inspect.signature(factored).parameters) == known


@pytest.mark.parametrize(
    ("shares", "cells"),
    [([0.2, 0.3, 0.5], 3), ([0.2, 0.3, 0.4, 0.1], 3), ([0.7, 0.2, 0.1], 0), ([0.5, 0.5], 2)],
)
def test_scores_have_mean_0_and_mean_squared_length_1(shares: list[float], cells: int) -> None:
    scores = one(shares, cells)
    np.testing.assert_allclose(np.array(shares) @ scores, 0, atol=0.01)
    assert float(np.array(shares) @ (scores**2).sum(axis=1)) == pytest.approx(1, abs=0.02)


def test_ordered_bins_have_normal_scores_and_missing_the_mean() -> None:
    [scores] = one([0.25, 0.25, 0.25, 0.25], 4).T
    middles = norm.pdf(ndtri([0.0, 0.25, 0.5, 0.75])) - norm.pdf(ndtri([0.25, 0.5, 0.75, 1.0]))
    np.testing.assert_allclose(scores, middles / np.sqrt((middles**2).mean()), atol=0.01)
    [scores] = one([0.2, 0.3, 0.4, 0.1], 3).T
    assert scores[0] < scores[1] < scores[2] and scores[3] == pytest.approx(0, abs=0.02)


def test_further_scores_tell_what_the_first_does_not() -> None:
    """Where noise leaves room: how far out a value lies, and that it is missing."""
    shares = np.array([0.1, 0.2, 0.2, 0.2, 0.1, 0.2])
    scores = one(shares, 5, noise=QUIET)
    assert scores.shape == (6, 3)
    first, outer, missing = scores.T
    assert outer[0] == pytest.approx(outer[4], abs=0.02) and outer[0] > 0 > outer[2]
    assert np.ptp(missing[:5]) == 0 and missing[5] > 0 and first[5] == outer[5] == 0
    np.testing.assert_allclose(
        (scores * shares[:, None]).T @ scores, np.diag([1, 0.25, 0.25]), atol=0.01
    )


def test_a_column_that_is_mostly_missing_tells_missing_from_the_rest() -> None:
    bins = MergedBins(np.array([0, 0, 1], dtype=np.uint16), np.array([0.1, 0.1, 0.8]))
    [[[first], [second]]] = contrasts_of([bins], [Feature("a", 3, 2)], MASS, LOUD, MOST).values
    assert first == pytest.approx(-2, abs=0.01) and second == pytest.approx(0.5, abs=0.01)


@pytest.mark.parametrize("shares", [[0.5, 0.5], [0.5000001, 0.4999999], [0.25] * 4, [1.0]])
def test_scores_of_a_lone_column_stay_small_enough_for_exact_sums(shares: list[float]) -> None:
    """Noise may leave one bin of all columns but one: a charged fit must not end there."""
    bins = bins_of(*[[1.0]] * 9, shares)
    features = [Feature(f"c{j}", column.count, 0) for j, column in enumerate(bins)]
    rows = Cohort(np.zeros((5, 1, 10), dtype=np.uint16), np.ones((5, 1), dtype=bool))
    whole = contrasts_of(bins, features, MASS, QUIET, MOST).whole
    event = ChosenHistograms("products", 180, 1, noise_multiplier=1.0, unit_mass=MASS)
    assert (exact_contrast_products(rows, whole, event) == 0).all()


def test_each_category_has_a_score_of_its_own() -> None:
    """Rare ones have larger scores, by the fourth root of their share."""
    shares = np.array([0.1, 0.6, 0.1, 0.2])
    scores = one(shares)
    assert scores.shape == (4, 4)
    assert scores.argmax(axis=0).tolist() == [1, 3, 0, 2]  # the commonest come first
    own = scores.max(axis=0) / (1 - shares[[1, 3, 0, 2]])
    assert own[0] / own[2] == pytest.approx((0.1 / 0.6) ** 0.25, rel=0.01)


def test_a_wide_column_keeps_the_scores_of_its_commonest_categories() -> None:
    """No event has more products than the plan counts."""
    shares = np.linspace(1, 2, 30) / 45
    features = [Feature("wide", 30, 0), Feature("a", 2, 0)]
    found = contrasts_of(bins_of(shares, [0.5, 0.5]), features, MASS, QUIET, most=8)
    assert [scores.shape for scores in found.values] == [(30, 4), (2, 1)]
    assert found.values[0].argmax(axis=0).tolist() == [29, 28, 27, 26]


def test_a_rare_category_is_cut_and_a_target_is_longer() -> None:
    assert np.abs(one([0.995, 0.005])).max() == pytest.approx(LARGEST, rel=0.01)
    plain = one([0.4, 0.6])
    np.testing.assert_allclose(one([0.4, 0.6], target=True), TARGET * plain, rtol=0.01)
    hidden = [Feature(VISITS, 2, 2)]
    [longer] = contrasts_of(bins_of([0.4, 0.6]), hidden, MASS, LOUD, MOST).values
    np.testing.assert_allclose(np.abs(longer), TARGET * np.abs(plain), rtol=0.01)


def test_a_column_of_one_bin_has_no_score() -> None:
    features = [Feature("a", 1, 0), Feature("b", 2, 0)]
    contrasts = contrasts_of(bins_of([1.0], [0.5, 0.5]), features, MASS, QUIET, MOST)
    assert contrasts.whole[0].tolist() == [[0]]


def test_about_a_third_of_independent_rows_are_longer_than_a_unit_may_be() -> None:
    shares = [np.random.default_rng(j).dirichlet(np.ones(4)) for j in range(20)]
    features = [Feature("a", 4, 4 * (j % 2)) for j in range(20)]
    contrasts = contrasts_of(bins_of(*shares), features, MASS, LOUD, MOST)
    rng = np.random.default_rng(3)
    bins = [rng.choice(4, 20_000, p=share) for share in shares]
    rows = np.concatenate([own[b] for own, b in zip(contrasts.values, bins, strict=True)], axis=1)
    assert 0.2 < (contrasts.shrunk(rows) != rows).any(axis=1).mean() < 0.4


def test_rows_are_shrunk_as_the_event_shrinks_them() -> None:
    """The model's rows lose what the patients' rows lost, but for rounding."""
    rng = np.random.default_rng(7)
    shares = [rng.dirichlet(np.ones(5)) for _ in range(8)]
    contrasts = of_columns(shares)
    bins = np.stack([rng.choice(5, 500, p=share) for share in shares], axis=1)
    rows = np.concatenate([contrasts.values[j][bins[:, j]] for j in range(8)], axis=1)
    wanted = pairs_asked([own.shape[1] for own in contrasts.whole])
    whole = _bounded_scores(bins, np.ones(500, dtype=np.int64), contrasts.whole, MASS, wanted)
    np.testing.assert_allclose(contrasts.shrunk(rows), whole / contrasts.scale, atol=0.02)


# The factor model ------------------------------------------------------------------------------


def frail(columns: int, rows: int = 40_000) -> tuple[np.ndarray, list[np.ndarray]]:
    """Rare diagnoses that go together."""
    rng = np.random.default_rng(1)
    common = rng.standard_normal((rows, 1))
    codes = (0.7 * common + 0.7 * rng.standard_normal((rows, columns)) > 1.2).astype(int)
    return codes, [np.bincount(codes[:, j], minlength=2) / rows for j in range(columns)]


def products_of_rows(contrasts: Contrasts, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The mean products of rows as they are, and as they are counted, 0 within columns."""
    places = enumerate(contrasts.values)
    rows = np.concatenate([scores[codes[:, j]] for j, scores in places], axis=1)
    apart = contrasts.columns[:, None] != contrasts.columns
    kept = contrasts.shrunk(rows)
    return apart * (rows.T @ rows) / len(rows), apart * (kept.T @ kept) / len(rows)


def test_products_of_shrunk_rows_are_restored() -> None:
    """Twelve rare diagnoses: shrinking takes a fifth or more, and it comes back."""
    codes, shares = frail(12)
    contrasts = of_columns(shares)
    true, released = products_of_rows(contrasts, codes)
    back = factored(released, contrasts, shares, 1e-3, np.random.default_rng(2)).products
    assert released.sum() < 0.8 * true.sum()
    assert abs(back.sum() / true.sum() - 1) < 0.15


def test_the_model_says_what_the_products_say_and_keeps_the_shares() -> None:
    codes, shares = frail(10)
    contrasts = of_columns(shares)
    _, released = products_of_rows(contrasts, codes)
    found = factored(released, contrasts, shares, 1e-2, np.random.default_rng(2))
    np.testing.assert_allclose(found.laws.mean(axis=0), np.concatenate(shares), atol=2e-3)
    both = np.array(
        [((codes[:, 0] == a) & (codes[:, 1] == b)).mean() for a in (0, 1) for b in (0, 1)]
    )
    np.testing.assert_allclose(found.pair(slice(0, 2), slice(2, 4)).ravel(), both, atol=0.01)


def test_the_model_takes_noise_for_noise() -> None:
    """Products of columns that are not related give tables of columns that are not related."""
    rng = np.random.default_rng(4)
    shares = [rng.dirichlet(np.full(4, 5.0)) for _ in range(12)]
    contrasts = of_columns(shares)
    apart = contrasts.columns[:, None] != contrasts.columns
    noise = np.triu(apart * rng.standard_normal(apart.shape) * 0.1, 1)
    found = factored(noise + noise.T, contrasts, shares, 0.1, np.random.default_rng(2))
    ends = np.arange(0, 49, 4)
    off = [
        np.abs(found.pair(slice(*ends[i : i + 2]), slice(*ends[j : j + 2])) - np.outer(a, b)).sum()
        for (i, a), (j, b) in combinations(enumerate(shares), 2)
    ]
    assert np.mean(off) < 0.1


# Expected tables -------------------------------------------------------------------------------


def independent(shares: Sequence[np.ndarray], products: np.ndarray) -> Factored:
    """A model without factors beside released products."""
    return Factored(products, np.concatenate(shares)[None])


def between(product: float) -> np.ndarray:
    return np.array([[0.0, product], [product, 0.0]])


def test_expected_tables_have_the_margins_and_the_products() -> None:
    shares = [np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.4])]
    contrasts = of_columns(shares, cells=1)
    [table] = expected_tables(shares, contrasts, [(0, 1)], independent(shares, between(0.3)), 1e-9)
    np.testing.assert_allclose(table.sum(axis=1), shares[0], atol=1e-6)
    np.testing.assert_allclose(table.sum(axis=0), shares[1], atol=1e-6)
    [[product]] = contrasts.values[0].T @ table @ contrasts.values[1]
    assert product == pytest.approx(0.3, abs=0.02)


def test_the_table_of_two_nominal_columns_comes_back_from_all_their_products() -> None:
    rng = np.random.default_rng(6)
    true = rng.dirichlet(np.ones(20)).reshape(4, 5) * 0.3 + 0.7 / 20
    shares = [true.sum(axis=1), true.sum(axis=0)]
    contrasts = of_columns(shares)
    scores = contrasts.values
    block = scores[0].T @ true @ scores[1]
    products = np.block([[np.zeros((4, 4)), block], [block.T, np.zeros((5, 5))]])
    [table] = expected_tables(shares, contrasts, [(0, 1)], independent(shares, products), 1e-6)
    np.testing.assert_allclose(table, true, atol=2e-3)


def test_products_within_their_noise_say_nothing_beyond_the_model() -> None:
    shares = [np.array([0.5, 0.5])] * 2
    contrasts = of_columns(shares)
    [table] = expected_tables(shares, contrasts, [(0, 1)], independent(shares, between(0.05)), 0.06)
    np.testing.assert_allclose(table, 0.25)
    strong = independent(shares, between(1.8))
    [large] = expected_tables(shares, contrasts, [(0, 1)], strong, 0.01)
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
