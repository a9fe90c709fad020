"""P10: the stated attack rates bound an attack on all events of a plan, not on some of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpsynth.privacy import (
    AttackRates,
    ChosenHistograms,
    Event,
    JointHistograms,
    PoissonSgd,
    PrivacyBudget,
    PrivacyPlan,
    Share,
    event_from_dict,
    worst_case_rates,
)
from dpsynth.privacy.events import UNDECIDED

RUNS = 40_000
Rates = Callable[[tuple[Event, ...]], AttackRates]


@pytest.fixture(scope="module")
def events() -> tuple[Event, ...]:
    """Return the events of a plan, each with a large enough share to be missed."""
    shares = (
        Share(ChosenHistograms("pairs", 20, 1, UNDECIDED), 0.4),
        Share(JointHistograms("columns", 8, 1, UNDECIDED), 0.3),
        Share(PoissonSgd("steps", 0.1, 60, UNDECIDED), 0.3),
    )
    return PrivacyPlan.calibrate(PrivacyBudget(8.0, 1e-6), shares).events


def attacked(events: tuple[Event, ...], *, inside: bool, seed: int) -> Any:
    """Play the events' worst case, and return an attacker's log-likelihood ratio of each run."""
    rng = np.random.default_rng(seed)
    ratio = np.zeros(RUNS)
    for event in events:
        if isinstance(event, PoissonSgd):
            noise = event.noise_multiplier
            for _ in range(event.steps):
                drawn = (rng.random(RUNS) < event.sampling_rate) & inside
                x = drawn + noise * rng.standard_normal(RUNS)
                grown = np.expm1((2 * x - 1) / (2 * noise**2))
                ratio += np.log1p(event.sampling_rate * grown)
            continue
        # all cells that a unit moves, as one number; the noise of counts is close to a Gaussian
        mu = event.mu()
        x = mu * inside + rng.standard_normal(RUNS)
        ratio += mu * x - mu**2 / 2
    return ratio


def exceeds(rates: AttackRates, events: tuple[Event, ...]) -> bool:
    """Say whether the best attack on all events finds more than is stated, beyond chance."""
    outside, inside = (attacked(events, inside=there, seed=7 + there) for there in (False, True))
    for fpr, stated in ((0.01, rates.tpr_at_1_percent), (0.1, rates.tpr_at_10_percent)):
        few = fpr - 4 * np.sqrt(fpr / RUNS)  # so the attack's own false positives stay below
        found = (inside > np.quantile(outside, 1 - few)).mean()
        if found - 4 * np.sqrt(found / RUNS) > stated:
            return True
    apart = max((inside > t).mean() - (outside > t).mean() for t in np.quantile(inside, [0.3, 0.5]))
    return bool(apart - 4 / np.sqrt(RUNS) > rates.advantage)


def of_the_last(events: tuple[Event, ...]) -> AttackRates:
    """Account for the last event alone: a broken version."""
    return worst_case_rates(events[-1:])


def without(index: int) -> Rates:
    """Leave one event out: a broken version."""
    return lambda events: worst_case_rates(events[:index] + events[index + 1 :])


def the_largest(events: tuple[Event, ...]) -> AttackRates:
    """Take the largest rates of single events in the place of their composition: broken."""
    each = [vars(worst_case_rates((event,))) for event in events]
    return AttackRates(**{name: max(rates[name] for rates in each) for name in each[0]})


@pytest.mark.parametrize("broken", [of_the_last, the_largest, *map(without, range(3))])
def test_rates_that_forget_an_event_are_refuted_by_an_attack(
    broken: Rates, events: tuple[Event, ...]
) -> None:
    assert exceeds(broken(events), events)


def test_no_attack_refutes_the_rates_of_all_events(events: tuple[Event, ...]) -> None:
    assert not exceeds(worst_case_rates(events), events)


@pytest.mark.parametrize("name", ["tpr_at_1_percent", "tpr_at_10_percent", "advantage"])
@pytest.mark.parametrize("factor", [0.5, 0.99, 1.01])
def test_verify_refuses_other_rates_than_those_of_the_events(
    name: str, factor: float, forger: Any
) -> None:
    def change(document: dict[str, Any]) -> None:
        document["attack_rates"][name] *= factor

    forger.recertify(change)
    assert "attack_rates states" in forger.findings()


def test_verify_refuses_rates_of_some_events(forger: Any) -> None:
    def change(document: dict[str, Any]) -> None:
        last = event_from_dict(document["events"][-1])
        document["attack_rates"] = dict(vars(worst_case_rates((last,))))

    forger.recertify(change)
    assert "attack_rates states" in forger.findings()
