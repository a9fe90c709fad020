"""A fit of few patients and many columns: the rule, the events, and what is learned."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature, contrast_settings, presets, shares_of
from dpsynth.models.auditing import Transcript
from dpsynth.models.contrast_settings import CLEAR, NARROW, contrasts_first, noise_of_pairs
from dpsynth.models.generators import Mixture
from dpsynth.models.marginals import measure
from dpsynth.models.presets import ONE_WAY, PAIRS
from dpsynth.privacy import (
    ChosenHistograms,
    JointHistograms,
    NonPrivatePlan,
    ObservedPlan,
    PrivacyBudget,
    PrivacyPlan,
    SeededEntropy,
    exact_contrast_products,
    gaussian_mu,
    products_of_units,
)
from dpsynth.privacy.pair_statistics import DEPARTURES, PRODUCTS

BUDGET = PrivacyBudget(epsilon=3.0, delta=1e-6)
UNITS = 400
NAMES = [ONE_WAY, PRODUCTS, DEPARTURES, PAIRS]


def domain(columns: int = 12, units: int = UNITS, max_rows: int = 1) -> Domain:
    features = (Feature(f"c{j}", 4, 4 * (j % 2), target=j == 0) for j in range(columns))
    return Domain(tuple(features), units, max_rows)


def cohort(columns: int = 12, units: int = UNITS, rows: int = 1) -> Cohort:
    """The second column copies the first; the third is large where the first is at an end."""
    rng = np.random.default_rng(1)
    codes = rng.integers(0, 4, (units, rows, columns)).astype(np.uint16)
    codes[..., 1] = codes[..., 0]
    codes[..., 2] = np.where((codes[..., 0] == 0) | (codes[..., 0] == 3), 3, 0)
    mask = np.arange(rows) < rng.integers(1, rows + 1, (units, 1))
    return Cohort(np.where(mask[..., None], codes, 0).astype(np.uint16), mask)


def plan(facts: Domain, budget: PrivacyBudget = BUDGET) -> PrivacyPlan:
    return PrivacyPlan.calibrate(budget, shares_of("mixture", facts, budget))


# The rule and the events ----------------------------------------------------------------------


def test_noise_of_pairs_by_hand() -> None:
    """12 columns of 4 codes have 66 pairs of 16 cells."""
    mu = gaussian_mu(3.0, 1e-6)
    assert noise_of_pairs(domain(), BUDGET) == pytest.approx(math.sqrt(66) * 16 / (UNITS * mu))
    wide = replace(domain(), features=(Feature("w", 10**4, 10**4), Feature("b", 2, 0)))
    assert noise_of_pairs(wide, BUDGET) == pytest.approx(32 / (UNITS * mu))
    assert noise_of_pairs(replace(domain(), features=wide.features[:1]), BUDGET) == 0


def test_the_rule_is_a_function_of_the_noise_of_pairs_and_the_number_of_columns() -> None:
    for columns, bound in ((9, math.inf), (10, NARROW), (17, NARROW), (18, CLEAR), (120, CLEAR)):
        for units in (100, 300, 1_000, 3_000, 10_000, 30_000, 10**6):
            facts = domain(columns, units)
            expected = noise_of_pairs(facts, BUDGET) >= bound
            assert contrasts_first(facts, BUDGET) is expected
    assert not contrasts_first(domain(121), BUDGET)


@pytest.mark.parametrize("max_rows", [1, 5])
def test_the_events_by_hand(max_rows: int) -> None:
    """With several rows a unit there is one column more; it has its pairs in all events."""
    facts = domain(max_rows=max_rows)
    columns, mass = (12, None) if max_rows == 1 else (13, 60)
    pairs = columns * (columns - 1) // 2
    widths = [*[4, 2] * 6, *[2] * (max_rows > 1)]  # 4 codes without an order, 4 with, the rows
    products = sum(a * b for a, b in combinations(widths, 2))
    assert [share.event for share in shares_of("mixture", facts, BUDGET)] == [
        JointHistograms(ONE_WAY, columns, max_rows, math.inf, mass),
        ChosenHistograms(PRODUCTS, products, max_rows, math.inf, 2**19),
        ChosenHistograms(DEPARTURES, pairs, max_rows, math.inf, 2**16),
        ChosenHistograms(PAIRS, pairs, max_rows, math.inf, mass),
    ]


def test_shares_move_with_the_noise() -> None:
    noisy, clear = (
        [share.fraction for share in shares_of("mixture", domain(30, units), BUDGET)]
        for units in (300, 2_500)
    )
    assert noisy == pytest.approx([0.5, 0.2, 0.05, 0.25])
    assert 0.25 < clear[0] < noisy[0] and clear[1] / clear[3] == pytest.approx(noisy[1] / noisy[3])


# A fit ----------------------------------------------------------------------------------------


def test_events_run_once_each_in_their_order() -> None:
    """What is run is what is charged: every draw of noise has an event's scale and size."""
    facts, asked = domain(), []
    paid = plan(facts)

    class Noted(SeededEntropy):
        def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
            asked.append((sigma, size))
            return super().discrete_gaussian(sigma, size)

    measured = measure(cohort(), facts, paid, Noted(2), most_bins=8)
    products, departures = paid.event(PRODUCTS), paid.event(DEPARTURES)
    assert isinstance(products, ChosenHistograms) and isinstance(departures, ChosenHistograms)
    first, second, third, *tables = asked
    assert first == (paid.event(ONE_WAY).sigma, 48)  # type: ignore[union-attr]
    widths = [*[4] * 5, 3, *[1] * 6]  # two codes were merged; ordered bins have one score here
    assert second == (products.sigma_for(1.0), sum(a * b for a, b in combinations(widths, 2)))
    assert third == (departures.sigma_for(66**-0.5), 66)
    of_tables = paid.event(PAIRS)
    assert isinstance(of_tables, ChosenHistograms)
    assert 0 < len(tables) < 66 and of_tables.covers([sigma for sigma, _ in tables])
    assert measured.target.products is not None
    cells = [a * b for a, b in combinations(measured.target.sizes, 2)]
    assert np.isfinite(measured.target.pair_sd).sum() == sum(cells)


def test_relations_with_and_without_a_trend_are_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(presets, "STEPS_OF_FEW", 60)
    facts = replace(domain(), population=2000)
    strong = replace(BUDGET, epsilon=6.0)
    monkeypatch.setattr(contrast_settings, "NARROW", 0.0)
    fitted = Mixture(facts).fit(cohort(units=2000), plan(facts, strong), SeededEntropy(3))
    drawn = fitted.sample(4000, np.random.default_rng(4)).astype(int)
    assert (drawn[:, 0] == drawn[:, 1]).mean() > 0.7
    ends = (drawn[:, 0] == 0) | (drawn[:, 0] == 3)
    assert ((drawn[:, 2] == 3) == ends).mean() > 0.8
    assert abs((drawn[:, 5] == drawn[:, 6]).mean() - 0.25) < 0.06


def test_units_of_several_rows_weigh_alike() -> None:
    facts = domain(max_rows=3).with_visits()
    rows = cohort(rows=3)
    visits = (rows.mask.sum(axis=1) - 1).astype(np.uint16)
    codes = np.concatenate(
        [np.broadcast_to(visits[:, None, None], (UNITS, 3, 1)), rows.codes], axis=2
    )
    measured = measure(Cohort(codes, rows.mask), facts, plan(facts), SeededEntropy(2), most_bins=8)
    assert measured.total == pytest.approx(UNITS, rel=0.2)
    one = measured.target.one[:3]
    np.testing.assert_allclose(one, np.bincount(visits) / UNITS, atol=0.12)


def test_without_privacy_the_same_events_are_exact() -> None:
    facts = domain()
    exact = NonPrivatePlan(plan(facts))
    targets = [
        measure(cohort(), facts, exact, SeededEntropy(seed), most_bins=8).target for seed in (1, 1)
    ]
    np.testing.assert_array_equal(targets[0].pairs, targets[1].pairs)
    one = np.bincount(cohort().codes[:, 0, 0], minlength=4) / UNITS
    np.testing.assert_allclose(targets[0].one[:4], one, atol=1e-6)


def test_an_observer_hears_the_products_and_changes_nothing() -> None:
    facts = domain()
    canaries, others = (
        Cohort(cohort().codes[part], cohort().mask[part])
        for part in (slice(0, 20), slice(20, None))
    )
    heard = Transcript(canaries, others)
    paid = plan(facts)
    watched = measure(others, facts, ObservedPlan(paid, heard), SeededEntropy(7), most_bins=8)
    plain = measure(others, facts, paid, SeededEntropy(7), most_bins=8)
    np.testing.assert_array_equal(watched.target.pairs, plain.target.pairs)
    alone = Transcript(canaries, others)
    with pytest.MonkeyPatch.context() as deaf:
        deaf.setattr(Transcript, "multiplied", lambda *_: None)
        measure(others, facts, ObservedPlan(paid, alone), SeededEntropy(7), most_bins=8)
    assert (np.diag(heard.counts.gram) > 1.05 * np.diag(alone.counts.gram)).any()
    assert (np.diag(heard.counts.gram) >= np.diag(alone.counts.gram)).all()


def test_what_an_observer_knows_of_products_adds_up() -> None:
    """The sum of what units add is what the mechanism adds up."""
    rng = np.random.default_rng(3)
    scores = [rng.integers(-400, 400, (4, 1 + j % 2)) for j in range(5)]
    event = ChosenHistograms(PRODUCTS, 19, 3, 1.0, unit_mass=2**19)
    rows = cohort(5, rows=3)
    added = products_of_units(rows, scores, event)
    assert added.shape == (UNITS, 19)
    assert (added.sum(axis=0) == exact_contrast_products(rows, scores, event)).all()
    assert np.linalg.norm(added, axis=1).max() <= 2**19
