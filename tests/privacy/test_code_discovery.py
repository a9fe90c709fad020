"""The event of code discovery: its threshold, its noise, and what it takes of a plan's delta."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import (
    ChosenHistograms,
    CodeDiscovery,
    Occurrences,
    Outlook,
    PrivacyBudget,
    PrivacyFilter,
    PrivacyPlan,
    SeededEntropy,
    Share,
    Spend,
    epsilon,
    event_from_dict,
    select_codes,
)
from dpsynth.privacy.accounting import _slack, delta
from dpsynth.privacy.discovery_events import MASS, weight
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.filter import renyi

from ..support.bare_counts import Silence
from ..support.bench_programs import bench_module
from ..support.renyi_accounting import rdp_epsilon

EVENT = CodeDiscovery("codes", 1, 1, delta=1e-4, noise_multiplier=1.0)
SEVERAL = CodeDiscovery("codes", 3, 4, delta=1e-3, noise_multiplier=2.0)
LITTLE_NOISE = replace(SEVERAL, noise_multiplier=0.5)  # a unit with one code decides the threshold


def tail(event: CodeDiscovery, least: int) -> float:
    """P(Z >= least) for the discrete Gaussian, summed term by term."""
    end = int(12 * event.sigma)
    masses = np.exp(-0.5 * (np.arange(-end, end + 1) / event.sigma) ** 2)
    return float(masses[end + least :].sum() / masses.sum())


@pytest.mark.parametrize("event", [EVENT, SEVERAL, LITTLE_NOISE, replace(SEVERAL, delta=0.05)])
def test_a_unit_with_codes_of_its_own_shows_one_with_at_most_delta(event: CodeDiscovery) -> None:
    chances = []
    for codes in range(1, event.most_codes + 1):
        alone = tail(event, event.threshold - weight(codes))
        chances.append(1 - (1 - alone) ** codes)
    assert 0.99 * event.delta < max(chances) <= event.delta


@pytest.mark.parametrize("codes", [1, 2, 3, 7, 100, 4096])
def test_a_unit_moves_all_counts_by_one_unit_at_most(codes: int) -> None:
    assert 0.99 * MASS < weight(codes) * math.sqrt(codes) <= MASS


def test_counts_are_sums_of_weights_and_repeats_count_once() -> None:
    event = replace(SEVERAL, columns=1, delta=0.1)
    silence = Silence(0)
    many = np.repeat(np.arange(40), 2)
    units = np.concatenate([many, np.arange(40)])  # units 0 to 39: codes 5 twice, and 6
    codes = np.concatenate([np.full(80, 5), np.full(40, 6)])
    found = select_codes(Occurrences(units, codes), event, silence)
    assert found.codes.tolist() == [5, 6]
    assert found.counts.tolist() == [40 * weight(2)] * 2
    assert silence.asked == [(event.sigma, 2)]


def test_noise_is_no_less_than_the_multiplier_says() -> None:
    for event in (EVENT, SEVERAL, replace(EVENT, noise_multiplier=0.3)):
        smooth = math.sqrt(event.sigma**2 - 1.5**2) / MASS
        assert event.noise_multiplier <= smooth < 1.00001 * event.noise_multiplier


def test_the_threshold_takes_its_part_of_delta_and_no_more() -> None:
    bare = ChosenHistograms("counts", 1, 1, EVENT.noise_multiplier)
    other = ChosenHistograms("others", 3, 1, 1.5)
    for at in (0.5, 1.0, 3.0):
        whole, without = delta([EVENT, other], at), delta([bare, other], at)
        assert whole == pytest.approx(without - math.log1p(-EVENT.delta), abs=2e-6)
    aside = EVENT.set_aside + other.set_aside
    rest = 1e-3 - aside
    assert epsilon([EVENT, other], 1e-3) == pytest.approx(epsilon([bare, other], rest), rel=1e-4)
    rough = rdp_epsilon([bare, other], rest)
    assert rdp_epsilon([EVENT, other], 1e-3) == pytest.approx(rough, rel=1e-9)


def test_what_is_seen_of_two_codes_is_within_the_claim_in_both_directions() -> None:
    """One code that others have, whose noisy count is shown, and one of the unit alone."""
    event = replace(SEVERAL, columns=1, rows_per_unit=2, delta=0.02)
    end = int(9 * event.sigma)
    masses = np.exp(-0.5 * (np.arange(-end, end + 1) / event.sigma) ** 2)
    masses /= masses.sum()
    shift = weight(2)
    without, within = masses[shift:], masses[:-shift]  # of the count that is shown
    alone = tail(event, event.threshold - weight(2))
    assert 0.001 < alone < event.delta
    for at in (0.1, 0.3, 1.0):
        claim = delta([event], at)
        added = alone + np.maximum((1 - alone) * within - math.exp(at) * without, 0).sum()
        removed = np.maximum(without - math.exp(at) * (1 - alone) * within, 0).sum()
        assert added <= claim and removed <= claim
        assert added > 0.3 * claim  # the bound is not idle


def test_a_plan_with_discovery_keeps_its_budget() -> None:
    budget = PrivacyBudget(epsilon=2.0, delta=1e-6)
    shares = (
        Share(CodeDiscovery("codes", 2, 3, 1e-7, UNDECIDED), 0.2),
        Share(ChosenHistograms("counts", 4, 3, UNDECIDED), 0.8),
    )
    plan = PrivacyPlan.calibrate(budget, shares)
    assert 0.99 * 2.0 < plan.epsilon <= 2.0
    assert epsilon(plan.events, 1e-6) <= plan.epsilon
    assert delta(plan.events, 2.0) <= 1e-6
    assert PrivacyPlan.from_dict(plan.to_dict()) == plan
    found = plan.event("codes")
    assert found.mu() ** 2 / sum(one.mu() ** 2 for one in plan.events) == pytest.approx(0.2, 1e-4)


def test_every_code_that_a_unit_may_have_counts_among_the_cells_that_move() -> None:
    """As for chosen histograms: one for each row and column."""
    event = CodeDiscovery("codes", 30, 1000, delta=1e-13, noise_multiplier=1.0)
    alike = ChosenHistograms("counts", 30, 1000, 1.0)
    assert _slack([event]) - event.set_aside == pytest.approx(_slack([alike]), rel=0.01, abs=0.0)
    assert _slack([alike]) > 1.5 * _slack([replace(alike, most=1)])


def test_a_delta_that_the_threshold_uses_up_is_refused() -> None:
    with pytest.raises(InputError, match="delta 0.0001 is too small"):
        epsilon([EVENT], 1e-4)


@pytest.mark.parametrize(
    "change", [{"delta": 0.0}, {"delta": 0.5}, {"columns": 0}, {"rows_per_unit": 0}, {"name": ""}]
)
def test_what_is_no_mechanism_is_refused(change: dict[str, object]) -> None:
    with pytest.raises(InputError):
        replace(EVENT, **change)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at most 65536 can be counted"):
        replace(EVENT, rows_per_unit=65_537)
    with pytest.raises(InputError, match="exactly the keys"):
        event_from_dict({**EVENT.to_dict(), "threshold": 1})


def test_occurrences_beyond_the_bound_are_refused_before_any_noise() -> None:
    silence = Silence(0)
    for units, codes in (
        ([1, 1], [1, 2]),  # two codes where one is paid for
        ([-1], [1]),
        ([1], [-1]),
        ([1, 2], [1]),
    ):
        with pytest.raises(InputError):
            select_codes(Occurrences(np.array(units), np.array(codes)), EVENT, silence)
    with pytest.raises(InputError, match="not decided"):
        select_codes(
            Occurrences(np.array([1]), np.array([1])),
            replace(EVENT, noise_multiplier=UNDECIDED),
            silence,
        )
    assert silence.asked == []
    none = np.empty(0, dtype=np.int64)
    assert len(select_codes(Occurrences(none, none), EVENT, silence).codes) == 0


def test_it_counts_in_a_ledger_by_epsilon_and_delta_alone() -> None:
    assert renyi(EVENT, 8) == math.inf
    cap = PrivacyFilter(epsilon=3.0, delta=1e-5)
    spend = Spend(1.0, 1e-6, (EVENT,))
    assert cap.admits([spend] * 3) and not cap.admits([spend] * 4)
    gaussian = Spend(1.0, 1e-6, (ChosenHistograms("counts", 1, 1, 5.0),))
    assert cap.admits([gaussian] * 4)  # what has a divergence adds up to less


def test_the_outlook_is_what_happens() -> None:
    event = replace(SEVERAL, columns=1, rows_per_unit=1, noise_multiplier=8.0)
    outlook = Outlook(event)
    half, sure = outlook.units_needed(0.5), outlook.units_needed(0.95)
    for units, expected in ((half, 0.5), (sure, 0.95)):
        assert float(outlook.found(np.array(units))) == pytest.approx(expected, abs=0.05)
        many = 1000
        codes = np.repeat(np.arange(many), units)
        found = select_codes(Occurrences(np.arange(many * units), codes), event, SeededEntropy(1))
        share = len(found.codes) / many
        assert share == pytest.approx(float(outlook.found(np.array(units))), abs=0.04)
    assert float(outlook.found(np.array(0))) == 0.0
    expected = outlook.expected(500, 20_000, 1.0)
    assert expected.found + expected.missed == pytest.approx(500)
    assert 0 < expected.cells < expected.missed / 500


def test_the_optimal_mechanism_is_as_good_as_its_guarantee_allows() -> None:
    """Neighbouring numbers of units, found and not found, are within (epsilon, delta)."""
    optimal_probability = bench_module("discovery").optimal_probability
    chances = [optimal_probability(units, 1.0, 1e-3) for units in range(25)]
    growth = math.exp(1.0)
    for low, high in pairwise(chances):
        assert high <= growth * low + 1e-3 + 1e-12
        assert 1 - low <= growth * (1 - high) + 1e-3 + 1e-12
    assert chances[0] == 0 and chances[-1] == pytest.approx(1)
