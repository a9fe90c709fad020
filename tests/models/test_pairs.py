"""Which pairs are measured, and again: by hand, and on tables of many columns."""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature, runs_again, shares_of
from dpsynth.models.generators import Mixture
from dpsynth.models.marginals import MergedBins, Pairs, measure, trends_of
from dpsynth.models.marginals import measurement as room
from dpsynth.models.presets import AGAIN, FEW_PAIRS, ONE_WAY, PAIRS
from dpsynth.privacy import PrivacyBudget, PrivacyPlan, SeededEntropy

BUDGET = PrivacyBudget(3.0, 1e-6)
HALVES = tuple(MergedBins(np.array([0, 1], np.uint16), np.array([0.5, 0.5])) for _ in range(3))
LIKE = np.array([[40.0, 10.0], [10.0, 40.0]])
EVEN = np.full((2, 2), 25.0)


def pairs(*tables: np.ndarray, sigma: float = 5.0) -> Pairs:
    places = ((0, 1), (0, 2), (1, 2))[: len(tables)]
    return Pairs(places, tables, (sigma,) * len(tables))


def domain(columns: int) -> Domain:
    features = tuple(Feature(f"c{j}", 2, 0) for j in range(columns))
    return Domain(features, population=4000, max_rows=1)


def cohort(columns: int) -> Cohort:
    """Columns are coins; the second is a copy of the first."""
    codes = np.random.default_rng(1).integers(0, 2, (4000, columns)).astype(np.uint16)
    codes[:, 1] = codes[:, 0]
    return Cohort(codes[:, None], np.ones((4000, 1), dtype=bool))


def test_a_pair_stands_out_by_its_chi_square() -> None:
    """Departures of 15 in four cells, sigma 5: chi-square 36 on 4, (36 - 4) / sqrt(8) = 11.3."""
    assert pairs(LIKE, EVEN, EVEN).related(HALVES, 100.0, hidden=False) == [0]
    # sigma 12.5: (5.76 - 4) / sqrt(8) = 0.6 does not stand out; then the largest score does
    assert pairs(EVEN, LIKE, EVEN, sigma=12.5).related(HALVES, 100.0, hidden=False) == [1]


def test_pairs_of_the_hidden_column_are_always_named() -> None:
    assert pairs(EVEN, EVEN, LIKE).related(HALVES, 100.0, hidden=True) == [0, 1, 2]


def test_nothing_is_named_where_nothing_was_measured() -> None:
    assert Pairs((), (), ()).related(HALVES, 100.0, hidden=False) == []


def test_counts_are_averaged_by_precision() -> None:
    """sigma 5 and 2.5: weights 1 and 4."""
    finer = Pairs(((1, 2),), (np.full((2, 2), 35.0),), (2.5,))
    found = pairs(LIKE, EVEN, EVEN).sharpened([2], finer)
    np.testing.assert_allclose(found.tables[2], (25 + 4 * 35) / 5)
    assert found.sigmas == pytest.approx((5.0, 5.0, (1 / 25 + 4 / 25) ** -0.5))
    np.testing.assert_array_equal(found.tables[0], LIKE)


def test_other_pairs_become_the_product_of_their_columns() -> None:
    independent = pairs(LIKE, LIKE, LIKE).others_independent([1], HALVES, 100.0)
    np.testing.assert_allclose(independent.tables[0], EVEN)
    np.testing.assert_array_equal(independent.tables[1], LIKE)
    assert independent.sigmas == (5.0, 5.0, 5.0)


def test_choices_see_released_values_only() -> None:
    seen = list(inspect.signature(Pairs.related).parameters)
    assert seen == ["self", "bins", "total", "hidden", "trends", "kept"]  # kept: of places alone
    assert list(inspect.signature(trends_of).parameters) == ["bins", "cells"]  # cells: the schema's


@pytest.mark.parametrize(("columns", "again"), [(17, False), (18, True), (100, True)])
def test_rounds_are_a_function_of_the_number_of_columns(columns: int, again: bool) -> None:
    """17 columns have 136 pairs, 18 have 153."""
    assert FEW_PAIRS == 150
    facts = replace(domain(columns), population=10**6)  # of fewer units: products come first
    names = [share.event.name for share in shares_of("mixture", facts, BUDGET)]
    assert names == ([ONE_WAY, PAIRS, AGAIN] if again else [ONE_WAY, PAIRS])
    assert runs_again(domain(columns)) is again


def test_two_rounds_share_the_budget_and_run_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    facts = domain(20)
    shares = shares_of("mixture", facts, BUDGET)
    assert shares[1].fraction == shares[2].fraction == pytest.approx((1 - shares[0].fraction) / 2)
    plan, ran = PrivacyPlan.calibrate(BUDGET, shares), []
    real = room.chosen_histograms

    def noted(*words: Any) -> Any:
        ran.append((words[4].name, tuple(words[2])))
        return real(*words)

    monkeypatch.setattr(room, "chosen_histograms", noted)
    measured = measure(cohort(20), facts, plan, SeededEntropy(2), most_bins=8)
    assert [name for name, _ in ran] == [PAIRS, AGAIN]
    first, second = (set(places) for _, places in ran)
    assert len(first) == 190 and (0, 1) in second and second < first
    assert len(second) < 30  # about one in forty by chance
    block = measured.target.pairs[:2, 2:4]
    np.testing.assert_allclose(block, [[0.5, 0], [0, 0.5]], atol=0.05)
    alone = next(pair for pair in first - second)
    kept = measured.target.pairs[2 * alone[0] : 2 * alone[0] + 2, 2 * alone[1] : 2 * alone[1] + 2]
    one = measured.target.one
    np.testing.assert_allclose(
        kept, np.outer(one[2 * alone[0] :][:2], one[2 * alone[1] :][:2]), atol=1e-9
    )


def test_a_relation_is_learned_among_many_columns() -> None:
    facts = replace(domain(20))
    plan = PrivacyPlan.calibrate(BUDGET, Mixture(facts).shares(BUDGET))
    drawn = (
        Mixture(facts)
        .fit(cohort(20), plan, SeededEntropy(3))
        .sample(4000, np.random.default_rng(4))
    )
    assert (drawn[:, 0] == drawn[:, 1]).mean() > 0.93
    others = [(drawn[:, 2] == drawn[:, j]).mean() for j in range(3, 20)]
    assert np.abs(np.array(others) - 0.5).max() < 0.06


def test_a_trend_stands_out_where_its_cells_do_not() -> None:
    """Chi-square drowns in the noise of 10 x 10 cells; the contrast of a slope does not."""
    codes = np.arange(10, dtype=np.uint16)
    columns = tuple(MergedBins(codes, np.full(10, 0.1)) for _ in range(3))
    scores = trends_of(columns[0], cells=10)
    assert scores.shape == (1, 10) and np.allclose([scores.sum(), (scores**2).sum()], [0.0, 1.0])
    rng = np.random.default_rng(3)
    flat, noise = np.full((10, 10), 100.0), rng.normal(0, 50, (3, 10, 10))
    slope = 600.0 * scores.T @ scores  # twelve standard deviations along the contrast
    tables = (flat + noise[0], flat + slope + noise[1], flat + noise[2])
    found = pairs(*tables, sigma=60.0)
    trends = [trends_of(column, cells=10) for column in columns]
    assert found.related(columns, 10_000.0, hidden=False, trends=trends) == [1]
    silent = pairs(tables[0], tables[2], sigma=60.0)
    assert len(silent.related(columns, 10_000.0, hidden=False, trends=trends)) == 1  # the largest
    kept = found.related(
        columns, 10_000.0, hidden=False, trends=trends, kept=lambda pair: pair == found.places[2]
    )
    assert kept == [1, 2], "whatever it shows"


def test_scores_of_categories_tell_each_from_the_others() -> None:
    bins = MergedBins(np.arange(3, dtype=np.uint16), np.array([0.5, 0.3, 0.2]))
    scores = trends_of(bins, cells=0)
    assert np.allclose(scores @ bins.bin_shares, 0.0) and np.allclose((scores**2).sum(axis=1), 1.0)
    missing = MergedBins(np.array([0, 1, 2], np.uint16), np.array([0.4, 0.4, 0.2]))
    (ordered,) = trends_of(missing, cells=2)
    assert ordered[2] == 0.0 and ordered[0] == pytest.approx(-ordered[1])
