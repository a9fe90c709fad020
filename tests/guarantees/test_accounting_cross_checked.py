"""P09, P10: what a plan claims to cost, against accountants that share no code with it.

The check: for random lists of events the claimed epsilon is within the bracket of `loss_grid.py`
(not below what a real pair of neighbours costs, not above what holds), below Renyi accounting where
that is a bound, and near Opacus' PRV accountant; and it grows with steps, rate and precision. Wrong
accountants, each with one common mistake, are outside the bracket.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpsynth.privacy import (
    ChosenHistograms,
    Event,
    JointHistograms,
    PoissonSgd,
    PrivacyBudget,
    PrivacyPlan,
    Share,
    epsilon,
)
from dpsynth.privacy.events import SMOOTHING

from ..support.renyi_accounting import rdp_epsilon
from .loss_grid import Losses, bracket, discrete_gaussian, gaussian, of_event

Accountant = Callable[[Sequence[Event], float], float]
ROOM = 1.002  # of the accountant's own grid above the bracket
EXAMPLES = 7
quick = settings(max_examples=EXAMPLES, deadline=None)

deltas = st.floats(-7.0, -3.0).map(lambda power: 10.0**power)
steps_of_sgd = st.builds(
    PoissonSgd,
    st.just("sgd"),
    st.one_of(st.just(1.0), st.floats(0.02, 0.6)),
    st.integers(1, 25),
    st.floats(1.0, 4.0),
)
sampled_steps = steps_of_sgd.filter(lambda event: event.sampling_rate < 1)
row_histograms = st.builds(
    JointHistograms, st.just("rows"), st.integers(1, 6), st.just(1), st.floats(3.0, 30.0)
)
unit_histograms = st.builds(
    JointHistograms,
    st.just("units"),
    st.integers(1, 6),
    st.integers(2, 5),
    st.floats(12.0, 60.0),
    st.one_of(st.none(), st.integers(5, 8)),
)
chosen_histograms = st.builds(
    ChosenHistograms,
    st.just("chosen"),
    st.integers(1, 50),
    st.integers(1, 5),
    st.floats(2.0, 9.0),
    st.one_of(st.none(), st.integers(5, 8)),
)
any_event: st.SearchStrategy[Event] = st.one_of(
    steps_of_sgd, row_histograms, unit_histograms, chosen_histograms
)
several = st.lists(any_event, min_size=1, max_size=5).map(
    lambda events: [replace(event, name=f"{i}") for i, event in enumerate(events)]
)


@functools.lru_cache(maxsize=8)
def true_cost(events: tuple[Event, ...], delta: float) -> tuple[float, float]:
    """Between what and what epsilon lies, by an accountant of this folder."""
    return bracket(events, delta, near=epsilon(events, delta))


def faults(claim: Accountant, events: Sequence[Event], delta: float) -> list[str]:
    """Say what is wrong with a claimed epsilon."""
    claimed = claim(events, delta)
    least, most = true_cost(tuple(events), delta)
    found = []
    if claimed < least:
        found.append("below what two neighbours cost")
    if claimed > ROOM * most + 1e-4:
        found.append("above what holds")
    return found


@quick
@given(several, deltas)
def test_claims_are_within_the_bracket(events: list[Event], at: float) -> None:
    assume(0.02 < epsilon(events, at) < 25)
    assert faults(epsilon, events, at) == []


@quick
@given(several, st.floats(0.1, 12.0), deltas, st.randoms(use_true_random=False))
def test_a_plan_is_within_its_budget_by_both_accountants(
    events: list[Event], eps: float, at: float, chance: Any
) -> None:
    """Several events of each kind: the truth, from below and composed afresh, is not above it."""
    weights = [chance.uniform(0.2, 1.0) for _ in events]
    shares = [
        Share(event.undecided(), weight / sum(weights))
        for event, weight in zip(events, weights, strict=True)
    ]
    plan = PrivacyPlan.calibrate(PrivacyBudget(eps, at), shares)
    assert epsilon(plan.events, at) <= plan.epsilon <= eps
    least, most = bracket(plan.events, at, near=plan.epsilon)
    assert least <= plan.epsilon
    assert most <= 1.006 * eps  # the bracket is 0.6 % wide


def exact_epsilon(sigma: float, shift: int, at: float) -> float:
    """By brute force over the integers: every loss of the pair, sorted, none rounded."""
    noise = np.arange(-math.ceil(12 * sigma), math.ceil(12 * sigma) + 1, dtype=np.float64)
    mass = np.exp(-(noise**2) / (2 * sigma**2))
    mass /= mass.sum()
    loss = (shift**2 + 2 * shift * noise) / (2 * sigma**2)
    low, high = 0.0, float(loss[-1])
    for _ in range(80):
        middle = (low + high) / 2
        spent = math.fsum(mass * np.maximum(-np.expm1(np.minimum(middle - loss, 0)), 0))
        low, high = (middle, high) if spent > at else (low, middle)
    return high


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([2, 3, 5]), st.floats(3.0, 10.0), deltas, st.booleans())
def test_the_bound_for_several_rows_holds_and_its_price_is_known(
    rows: int, sigma: float, at: float, shared: bool
) -> None:
    """It is paid as if the variance were less by SMOOTHING squared: 33 % of epsilon at most."""
    event = JointHistograms("rows", 1, 2 if shared else rows, sigma, rows if shared else None)
    exact, claimed = exact_epsilon(sigma, rows, at), epsilon([event], at)
    assert exact <= claimed
    price = sigma**2 / (sigma**2 - SMOOTHING**2)  # of mu squared
    assert claimed <= 1.003 * price * exact + 0.01
    assert price <= 1.34


def test_the_bound_is_not_met_without_smoothing() -> None:
    """Broken twin: a continuous Gaussian of the same scale is too little for a discrete one."""
    sigma, rows, short = 3.0, 5, []
    for at in np.geomspace(1e-3, 1e-7, 9):
        plain = gaussian(rows / sigma, 1e-3, up=True).epsilon(at)
        short.append(plain < exact_epsilon(sigma, rows, at))
        assert epsilon([JointHistograms("rows", 1, rows, sigma)], at) > plain
    assert any(short)


@pytest.mark.parametrize("shift", [1, 2, 5])
def test_the_two_programs_of_this_test_agree(shift: int) -> None:
    for sigma in (3.0, 7.7):
        exact = exact_epsilon(sigma, shift, 1e-5)
        for up in (False, True):
            epsilon = discrete_gaussian(sigma, shift, 1e-4, up=up).epsilon(1e-5)
            assert epsilon == pytest.approx(exact, abs=2e-4) and (epsilon >= exact) == up


@settings(max_examples=3, deadline=None)
@given(st.lists(sampled_steps, min_size=1, max_size=3), st.integers(2, 20))
def test_renyi_and_prv_agree_on_steps_of_sgd(steps: list[PoissonSgd], more: int) -> None:
    from opacus.accountants import PRVAccountant

    events = [replace(one, name=f"{i}", steps=one.steps * more) for i, one in enumerate(steps)]
    ours = epsilon(events, 1e-5)
    assume(0.2 < ours < 12)
    assert rdp_epsilon(events, 1e-5) >= ours
    other = PRVAccountant()
    other.history = [(e.noise_multiplier, e.sampling_rate, e.steps) for e in events]
    error = 0.02 * ours
    upper = other.get_epsilon(1e-5, eps_error=error, delta_error=1e-8)  # estimate plus error
    assert upper - 2.1 * error <= ours <= upper


@quick
@given(steps_of_sgd, st.floats(1.05, 2.0), deltas)
def test_more_steps_a_larger_rate_and_less_noise_cost_more(
    event: PoissonSgd, factor: float, at: float
) -> None:
    base = epsilon([event], at)
    assume(0.05 < base < 20)
    assert epsilon([replace(event, steps=event.steps + 1)], at) > base
    assert epsilon([replace(event, noise_multiplier=event.noise_multiplier * factor)], at) < base
    assert epsilon([replace(event, sampling_rate=event.sampling_rate / factor)], at) < base


# ---- broken twins: each changes what is accounted, and claims that for the real events


def each(change: Callable[[Any], Event]) -> Accountant:
    return lambda events, at: epsilon([change(event) for event in events], at)


def sgd_only(change: Callable[[PoissonSgd], Event]) -> Accountant:
    return each(lambda event: change(event) if isinstance(event, PoissonSgd) else event)


def noise_of_another(events: Sequence[Event], at: float) -> float:
    """Every event of SGD is accounted with the noise of the one before it."""
    noises = [e.noise_multiplier for e in events if isinstance(e, PoissonSgd)]
    turned = iter(noises[-1:] + noises[:-1])
    moved = [
        replace(e, noise_multiplier=next(turned)) if isinstance(e, PoissonSgd) else e
        for e in events
    ]
    return epsilon(moved, at)


def one_direction(events: Sequence[Event], at: float) -> float:
    """Only adding a unit is accounted, however carefully."""
    parts = [of_event(event, 1e-3, add=True, up=True) for event in events]
    return functools.reduce(Losses.plus, parts).epsilon(at)


def central_limit(events: Sequence[Event], at: float) -> float:
    """The events as if they were the Gaussian mechanism that they resemble."""
    return gaussian(math.hypot(*(event.mu() for event in events)), 1e-4, up=True).epsilon(at)


def optimistic(events: Sequence[Event], at: float) -> float:
    """Losses rounded down, on a grid that is too coarse for that to be harmless."""
    near = epsilon(events, at)
    return bracket(events, at, near=20 * near)[0]


SGD = [PoissonSgd("a", 0.2, 12, 1.1), PoissonSgd("b", 0.05, 30, 2.5)]
COUNTS: list[Event] = [JointHistograms("a", 4, 1, 9.0), JointHistograms("b", 3, 3, 20.0)]
CHOSEN: list[Event] = [ChosenHistograms("c", 9, 3, 4.0), JointHistograms("a", 2, 1, 9.0)]
BELOW, ABOVE = "below what two neighbours cost", "above what holds"

WRONG: dict[str, tuple[Accountant, Sequence[Event], str]] = {
    "sampling forgotten": (sgd_only(lambda e: replace(e, sampling_rate=1.0)), SGD, ABOVE),
    "sampled twice": (sgd_only(lambda e: replace(e, sampling_rate=e.sampling_rate**2)), SGD, BELOW),
    "a step less": (sgd_only(lambda e: replace(e, steps=e.steps - 1)), SGD, BELOW),
    "a hundredth more noise than there is": (
        sgd_only(lambda e: replace(e, noise_multiplier=e.noise_multiplier * 1.01)),
        SGD,
        BELOW,
    ),
    "noise of another event": (noise_of_another, SGD, BELOW),
    "only adding a unit": (one_direction, SGD, BELOW),
    "only the first event": (lambda events, at: epsilon(events[:1], at), SGD, BELOW),
    "the last event left out": (lambda events, at: epsilon(events[:-1], at), COUNTS, BELOW),
    "the dearest event alone": (
        lambda events, at: max(epsilon([event], at) for event in events),
        SGD,
        BELOW,
    ),
    "epsilons added up": (
        lambda events, at: sum(epsilon([event], at / len(events)) for event in events),
        SGD,
        ABOVE,
    ),
    "the central limit": (central_limit, SGD, BELOW),
    "histograms counted once": (each(lambda e: replace(e, histograms=1)), COUNTS, BELOW),
    "rows accounted as one": (
        each(lambda e: replace(e, rows_per_unit=1)),
        COUNTS,
        BELOW,
    ),
    "chosen histograms left out": (lambda events, at: epsilon(events[1:], at), CHOSEN, BELOW),
    "delta of another fit": (lambda events, at: epsilon(events, 10 * at), SGD, BELOW),
    "losses rounded down coarsely": (optimistic, SGD, BELOW),
}


@pytest.mark.parametrize("events", [SGD, COUNTS, CHOSEN])
def test_the_right_accountant_has_no_fault(events: Sequence[Event]) -> None:
    assert faults(epsilon, events, 1e-5) == []


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_accountant_is_caught(name: str) -> None:
    wrong, events, fault = WRONG[name]
    assert faults(wrong, events, 1e-5) == [fault]
