"""Which pairs are measured, and how the noise is split among them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature, Preset, shares_of
from dpsynth.models.histories.steps.pairs import step_pairs
from dpsynth.models.marginals import InitialModel, MergedBins, choose_pairs, pair_noise, weight_of
from dpsynth.models.marginals.binning import row_factors
from dpsynth.models.presets import PAIRS
from dpsynth.privacy import ChosenHistograms, PrivacyBudget, PrivacyPlan, SeededEntropy


def bins_of(*shares: Sequence[float]) -> tuple[MergedBins, ...]:
    """Columns whose bins are their codes."""
    return tuple(
        MergedBins(np.arange(len(own), dtype=np.uint16), np.asarray(own, dtype=float))
        for own in shares
    )


def event(most: int, noise: float = 1e-3) -> ChosenHistograms:
    return ChosenHistograms(PAIRS, most, 3, max(noise, 1e-3), unit_mass=6)


def test_choices_read_bins_and_public_facts_alone() -> None:
    """No argument through which a row could reach a choice, a scale or a factor."""
    assert list(inspect.signature(choose_pairs).parameters) == ["bins", "units", "event", "hidden"]
    assert list(inspect.signature(pair_noise).parameters) == ["sizes", "pairs", "event", "weights"]
    assert list(inspect.signature(step_pairs).parameters) == ["places", "changes"]  # the weights
    assert list(inspect.signature(row_factors).parameters) == ["bins"]
    assert list(inspect.signature(weight_of).parameters) == ["domain"]


def test_a_constant_column_has_no_pair() -> None:
    bins = bins_of([1.0], [0.5, 0.5], [0.6, 0.4], [1.0, 0.0])
    assert choose_pairs(bins, 1000, event(6), hidden=True) == [(1, 2)]


def test_all_pairs_are_chosen_while_they_fit() -> None:
    bins = bins_of([0.5, 0.5], [0.6, 0.4], [0.9, 0.1], [0.2, 0.8])
    assert choose_pairs(bins, 1e6, event(6), hidden=True) == list(combinations(range(4), 2))


@pytest.mark.parametrize("most", [1, 2, 3, 4, 5])
def test_the_first_columns_pairs_go_first_then_those_that_can_say_most(most: int) -> None:
    """Mass outside the commonest bin: .1, .4, .3, .5; a pair has the lesser of its two."""
    bins = bins_of([0.9, 0.1], [0.6, 0.4], [0.7, 0.3], [0.5, 0.5])
    order = [(0, 1), (0, 2), (0, 3), (1, 3), (1, 2), (2, 3)]
    assert choose_pairs(bins, 1e6, event(most), hidden=True) == sorted(order[:most])


def test_a_pair_that_could_only_show_noise_is_left_out() -> None:
    """Three pairs at noise multiplier 5 and 1000 units: noise of a cell is 5 sqrt(3) / 1000."""
    floor = 5 * math.sqrt(3) / 1000
    for spare, worth in [(1.01 * floor, True), (0.99 * floor, False)]:
        bins = bins_of([0.5, 0.5], [0.6, 0.4], [1 - spare, spare])
        chosen = choose_pairs(bins, 1000, event(3, noise=5.0), hidden=True)
        assert ((0, 2) in chosen) == worth and ((1, 2) in chosen) == worth
        assert (0, 1) in chosen
    assert choose_pairs(bins_of([0.5, 0.5], [0.5, 0.5]), 1, event(1, noise=50.0), hidden=True) == []


@given(st.integers(0, 10**6), st.integers(2, 5), st.integers(2, 5))
def test_no_cell_of_a_pair_differs_by_more_than_the_bound(seed: int, one: int, two: int) -> None:
    """The bound by which pairs are ranked: a cell of the joint table against the product."""
    joint = np.random.default_rng(seed).dirichlet(np.full(one * two, 0.2)).reshape(one, two)
    first, second = joint.sum(axis=1), joint.sum(axis=0)
    gap = np.abs(joint - np.outer(first, second)).max()
    assert gap <= min(1 - first.max(), 1 - second.max()) + 1e-12


# How precisely --------------------------------------------------------------------------------


def domain_of(sizes: Sequence[int], *targets: int) -> Domain:
    features = [Feature(f"c{j}", n, 0, target=j in targets) for j, n in enumerate(sizes)]
    return Domain(tuple(features), population=500, max_rows=1)


@given(
    st.lists(st.integers(1, 40), min_size=2, max_size=8),
    st.floats(0.5, 50.0),
    st.sets(st.integers(0, 7)),
)
def test_the_scales_of_the_pairs_keep_the_events_bound(
    sizes: list[int], noise: float, targets: set[int]
) -> None:
    pairs = list(combinations(range(len(sizes)), 2))
    paid, weight = event(len(pairs), noise), weight_of(domain_of(sizes, *targets))
    for weights in (None, [weight(pair) for pair in pairs]):
        sigmas = pair_noise(tuple(sizes), pairs, paid, weights)
        assert len(sigmas) == len(pairs)
        assert paid.covers(sigmas)


def test_pairs_of_a_target_are_told_twice_as_precisely() -> None:
    sizes, pairs = (5, 5, 5), [(0, 1), (0, 2), (1, 2)]
    weight = weight_of(domain_of(sizes, 1))
    sigmas = pair_noise(sizes, pairs, event(3, noise=10.0), [weight(pair) for pair in pairs])
    assert sigmas[1] == pytest.approx(2 * sigmas[0], rel=1e-4)
    assert sigmas[2] == sigmas[0]
    assert {weight_of(domain_of(sizes))(pair) for pair in pairs} == {1.0}


def test_a_fit_measures_the_pairs_of_its_target_more_precisely() -> None:
    """As the schema says what the target is, so its pairs are measured."""
    facts, budget = domain_of((5, 5, 5), 1), PrivacyBudget(epsilon=3.0, delta=1e-6)
    codes = np.random.default_rng(0).integers(0, 5, (500, 1, 3)).astype(np.uint16)
    rows = Cohort(codes, np.ones((500, 1), dtype=bool))
    plan = PrivacyPlan.calibrate(budget, shares_of("mixture", facts, budget))
    preset = replace(Preset.of("mixture", facts, budget), components=2, mixture_steps=1)
    start = InitialModel.fit(rows, facts, plan, SeededEntropy(1), preset)
    assert start.target is not None
    paid, sizes = plan.event(PAIRS), start.target.sizes
    assert isinstance(paid, ChosenHistograms)
    pairs, starts = [(0, 1), (0, 2), (1, 2)], np.cumsum([0, *sizes])
    found = [start.target.pair_sd[starts[i], starts[j]] for i, j in pairs]
    expected = pair_noise(sizes, pairs, paid, [2.0, 1.0, 2.0])
    assert found / found[1] == pytest.approx(np.array(expected) / expected[1], rel=1e-6)


def test_no_pair_needs_no_noise() -> None:
    assert pair_noise((3, 4), [], event(1)) == []


def test_precision_is_split_so_that_the_total_error_is_least() -> None:
    """The sum over pairs of cells times noise, against 300 other splits of the same bound."""
    sizes, pairs = (2, 5, 16, 30), list(combinations(range(4), 2))
    paid = event(6, noise=10.0)
    cells = np.array([sizes[i] * sizes[j] for i, j in pairs])
    ours = float(cells @ np.array(pair_noise(sizes, pairs, paid)))
    rng = np.random.default_rng(5)
    for power in np.linspace(0, 1, 100):
        parts = cells**power * np.exp(rng.normal(0, 0.2, (3, 6)))
        for part in parts / np.sqrt((parts**2).sum(axis=1, keepdims=True)):
            other = float(cells @ np.array([paid.sigma_for(float(p)) for p in part]))
            assert ours <= other * (1 + 1e-5)
