"""Plans: one calibration for all events, close below the budget, from public facts only."""

from __future__ import annotations

import json
import math

import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import (
    Event,
    JointHistograms,
    PoissonSgd,
    PrivacyBudget,
    PrivacyPlan,
    Share,
    epsilon,
    gaussian_mu,
)
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.plan import MAX_EPSILON, NOMINAL_BUDGET


def counts(number: int = 12, rows: int = 1) -> JointHistograms:
    return JointHistograms("counts", number, rows, UNDECIDED)


def steps(rate: float = 0.1, number: int = 300) -> PoissonSgd:
    return PoissonSgd("steps", rate, number, UNDECIDED)


def calibrate(eps: float, at: float, *shares: tuple[Event, float]) -> PrivacyPlan:
    return PrivacyPlan.calibrate(
        PrivacyBudget(eps, at), [Share(event, fraction) for event, fraction in shares]
    )


EPSILONS, DELTAS = (0.1, 1.0, 20.0), (1e-5, 1e-9)
PAIRS = [
    (counts(), steps(), 0.15),
    (counts(48, 5), steps(0.05, 2000), 0.5),
    (counts(24, 2), steps(0.001, 50), 0.3),
    (counts(48), steps(0.2, 2000), 0.9),
    (counts(12), steps(0.001, 2000), 0.5),
]
# `make test` has each pair of events, epsilon and delta; `make test-all` every combination
GRID = [
    pytest.param(*pair, eps, at, marks=() if quick else pytest.mark.long)
    for place, pair in enumerate(PAIRS)
    for i, eps in enumerate(EPSILONS)
    for j, at in enumerate(DELTAS)
    for quick in [i == place % len(EPSILONS) and j == place % len(DELTAS)]
]


@pytest.mark.parametrize(("first", "second", "fraction", "eps", "at"), GRID)
def test_close_below_the_budget(
    first: Event, second: Event, fraction: float, eps: float, at: float
) -> None:
    plan = calibrate(eps, at, (first, fraction), (second, 1 - fraction))
    assert 0.995 * eps < plan.epsilon <= eps
    assert epsilon(plan.events, at) <= plan.epsilon
    assert all(event.decided for event in plan.events)


def test_one_gaussian_event_gets_the_analytic_noise() -> None:
    """Full batches are a Gaussian mechanism: noise = sqrt(T) / mu, with mu in closed form."""
    event = calibrate(1.0, 1e-5, (steps(1.0, 25), 1.0)).event("steps")
    assert isinstance(event, PoissonSgd)
    assert event.noise_multiplier == pytest.approx(5 * 3.730632, rel=1.5e-3)
    assert event.noise_multiplier > 5 * 3.730632


def test_shares_are_shares_of_mu_squared() -> None:
    plan = calibrate(1.0, 1e-5, (counts(), 0.2), (steps(1.0, 10), 0.8))
    squares = [event.mu() ** 2 for event in plan.events]
    assert squares[0] / sum(squares) == pytest.approx(0.2, rel=1e-4)
    assert math.sqrt(sum(squares)) == pytest.approx(gaussian_mu(1.0, 1e-5), rel=2e-3)


def test_noise_in_a_share_is_replaced_and_order_kept() -> None:
    plan = calibrate(1.0, 1e-5, (JointHistograms("counts", 12, 1, 1.0), 0.5), (steps(), 0.5))
    assert plan == calibrate(1.0, 1e-5, (counts(), 0.5), (steps(), 0.5))
    assert [event.name for event in plan.events] == ["counts", "steps"]


def test_more_budget_less_noise() -> None:
    tight = calibrate(0.5, 1e-6, (counts(), 0.3), (steps(), 0.7))
    loose = calibrate(2.0, 1e-6, (counts(), 0.3), (steps(), 0.7))
    strict = calibrate(0.5, 1e-8, (counts(), 0.3), (steps(), 0.7))
    noise = [(plan.events[0].mu(), plan.events[1].mu()) for plan in (strict, tight, loose)]
    assert noise == sorted(noise)


def test_least_noise_leaves_budget_unused() -> None:
    plan = calibrate(20.0, 1e-5, (counts(1, 2), 1.0))
    event = plan.event("counts")
    assert isinstance(event, JointHistograms)
    assert event.sigma == 3.0
    assert plan.epsilon < 10


def test_document_round_trip_and_its_own_accounting() -> None:
    plan = calibrate(1.0, 1e-6, (counts(), 0.3), (steps(), 0.7))
    document = json.loads(json.dumps(plan.to_dict()))
    assert PrivacyPlan.from_dict(document) == plan
    assert set(document) == {"epsilon", "delta", "composed_epsilon", "events"}
    with pytest.raises(InputError, match="less than its events cost"):
        PrivacyPlan.from_dict(document | {"composed_epsilon": 0.9 * plan.epsilon})
    with pytest.raises(InputError, match="above its budget"):
        PrivacyPlan.from_dict(document | {"composed_epsilon": 1.01})
    more = json.loads(json.dumps(document))
    more["events"][0]["sigma"] *= 0.9
    with pytest.raises(InputError, match="less than its events cost"):
        PrivacyPlan.from_dict(more)
    for broken in (
        document | {"extra": 1},
        document | {"events": []},
        document | {"events": "all"},
        document | {"epsilon": "1"},
        document | {"events": [document["events"][0]] * 2},
        [],
    ):
        with pytest.raises(InputError):
            PrivacyPlan.from_dict(broken)  # type: ignore[arg-type]


def test_event_by_name() -> None:
    plan = calibrate(1.0, 1e-6, (counts(), 1.0))
    assert plan.event("counts") is plan.events[0]
    with pytest.raises(InputError, match="no event 'pairs'; it has counts"):
        plan.event("pairs")


@pytest.mark.parametrize(
    ("eps", "at"),
    [
        (0.0, 1e-5),
        (-1.0, 1e-5),
        (math.inf, 1e-5),
        (math.nan, 1e-5),
        (1.0, 0.0),
        (1.0, 1.0),
        (1.0, math.nan),
        (1.0, 1e-12),
        (True, 1e-5),
        ("1", 1e-5),
    ],
)
def test_what_is_no_budget(eps: float, at: float) -> None:
    with pytest.raises(InputError, match="epsilon|delta"):
        PrivacyBudget(eps, at)


@pytest.mark.parametrize("eps", [1000.1, 1e30, 1e308, 10**400])
def test_a_budget_that_is_no_protection_is_refused(eps: float) -> None:
    with pytest.raises(InputError, match=r"at most 1000: so large an epsilon is no protection"):
        PrivacyBudget(eps, 1e-6)


def test_the_largest_budget_has_a_plan() -> None:
    assert NOMINAL_BUDGET.epsilon <= MAX_EPSILON == 1000
    plan = calibrate(MAX_EPSILON, 1e-6, (counts(), 0.3), (steps(), 0.7))
    assert plan.epsilon <= MAX_EPSILON


@pytest.mark.parametrize("eps", [1e-6, 1e-9, 1e-300])
def test_a_budget_too_small_is_refused_in_words(eps: float) -> None:
    with pytest.raises(InputError, match="too small: the noise would be more than 1e\\+08 rows"):
        calibrate(eps, 1e-10, (counts(400, 100), 0.5), (steps(), 0.5))


def test_noise_is_limited_in_units_where_rows_share_a_units_mass() -> None:
    """A unit's mass is a matter of scale: it makes no budget too small."""
    shared = JointHistograms("shared", 20, 100, UNDECIDED, 720_720)
    plan = calibrate(0.5, 1e-6, (counts(), 0.99), (shared, 0.01))
    event = plan.event("shared")
    assert isinstance(event, JointHistograms)
    assert event.sigma > 1e8 and event.sigma / event.mass < 1e4


def test_an_ambitious_delta_is_refused_in_words() -> None:
    with pytest.raises(InputError, match="too small for this many compositions"):
        calibrate(1.0, 1e-10, (steps(0.01, 1_000_000), 1.0))


def test_shares_must_add_up() -> None:
    with pytest.raises(InputError, match="must add up to 1, not to 0.9"):
        calibrate(1.0, 1e-5, (counts(), 0.3), (steps(), 0.6))
    with pytest.raises(InputError, match="at least one share"):
        calibrate(1.0, 1e-5)
    for fraction in (0.0, -0.5, 1.5, math.nan):
        with pytest.raises(InputError, match="fraction must be"):
            Share(counts(), fraction)
    with pytest.raises(InputError, match="distinct names"):
        calibrate(1.0, 1e-5, (counts(), 0.5), (counts(), 0.5))
