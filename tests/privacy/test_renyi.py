"""Renyi divergences of events: closed forms, brute force, and the other accountant."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from dp_accounting.rdp import rdp_privacy_accountant as rdp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from dpsynth.errors import InputError
from dpsynth.privacy import (
    ChosenHistograms,
    CodeDiscovery,
    Event,
    JointHistograms,
    KeyCounts,
    PoissonSgd,
    accounting,
)
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.filter import best_order, renyi, renyi_budget, renyi_epsilon, renyi_sum

COUNTS = JointHistograms("counts", histograms=12, rows_per_unit=1, sigma=20.0)
MANY = JointHistograms("many", histograms=9, rows_per_unit=3, sigma=40.0, unit_mass=5)
CHOSEN = ChosenHistograms("pairs", most=30, rows_per_unit=4, noise_multiplier=7.0)
STEPS = PoissonSgd("steps", sampling_rate=0.02, steps=400, noise_multiplier=1.5)
EVENTS = (COUNTS, MANY, CHOSEN, STEPS)


def exact_step(rate: float, noise: float, order: int) -> Decimal:
    """The binomial sum of a subsampled step, in 80 digits."""
    with localcontext() as context:
        context.prec = 80
        q, total = Decimal(rate), Decimal(0)
        for k in range(order + 1):
            weight = Decimal(math.comb(order, k)) * (1 - q) ** (order - k) * q**k
            total += weight * (Decimal(k * k - k) / (2 * Decimal(noise) ** 2)).exp()
        return total.ln() / (order - 1)


def test_closed_forms() -> None:
    assert renyi(COUNTS, 6) == pytest.approx(6 * 12 / (2 * 400), rel=1e-8)
    assert renyi(MANY, 6) == pytest.approx(6 * 25 * 9 / (2 * 1600), rel=1e-8)
    assert renyi(CHOSEN, 6) == pytest.approx(6 / 98, rel=1e-8)
    whole = replace(STEPS, sampling_rate=1.0)
    assert renyi(whole, 6) == pytest.approx(400 * 6 / (2 * 2.25), rel=1e-8)


@pytest.mark.parametrize(("divergence", "order"), [(0.5, 8), (0.01, 2), (3.0, 40), (0.2, 1024)])
def test_a_conversion_rounds_upwards(divergence: float, order: int) -> None:
    """The epsilon of a divergence is above, and the budget of an epsilon below, 50 digits of it."""
    delta = 1e-7
    with localcontext() as context:
        context.prec = 50
        own = (1 - 1 / Decimal(order)).ln()
        own -= (Decimal(delta).ln() + Decimal(order).ln()) / (order - 1)
        assert Decimal(renyi_epsilon(divergence, order, delta)) >= Decimal(divergence) + own
        assert Decimal(renyi_budget(9.0, order, delta)) <= 9 - own


@pytest.mark.parametrize("order", [2, 3, 8])
@pytest.mark.parametrize(("sigma", "shift"), [(0.3, 1), (0.5, 1), (1.0, 1), (3.0, 2), (4.0, 5)])
def test_discrete_gaussians_by_brute_force(sigma: float, shift: int, order: int) -> None:
    width = int(30 * sigma + order * shift) + 10
    points = np.arange(-width, width + 1)
    norm = np.exp(-(points**2) / (2 * sigma**2)).sum()
    # sum of P^a Q^(1 - a) with P centred at 0 and Q at the shift, in one exponent
    exponents = -(order * points**2 + (1 - order) * (points - shift) ** 2) / (2 * sigma**2)
    brute_force = math.log(np.exp(exponents).sum() / norm) / (order - 1)
    event = JointHistograms("one", 1, shift, sigma)
    assert renyi(event, order) >= brute_force
    assert renyi(event, order) == pytest.approx(brute_force, rel=1e-6)  # exact at integer orders


@pytest.mark.parametrize("order", [2, 5, 30])
@pytest.mark.parametrize(("rate", "noise"), [(0.3, 0.6), (0.02, 1.5), (1e-3, 1.0), (0.9, 3.0)])
def test_a_subsampled_step_against_the_integral_and_dp_accounting(
    rate: float, noise: float, order: int
) -> None:
    mine = renyi(PoissonSgd("s", rate, 1, noise), order)
    theirs = rdp._compute_rdp_poisson_subsampled_gaussian(rate, noise, [order])[0]
    assert mine == pytest.approx(theirs, rel=1e-6)
    top = order + 20 * noise
    z = np.linspace(-20 * noise, top, 400_001)
    base = -(z**2) / (2 * noise**2) - math.log(noise * math.sqrt(2 * math.pi))
    loss = np.logaddexp(
        math.log1p(-rate), math.log(rate) + (2 * z - 1) / (2 * noise**2)
    )  # ln(P / Q), P with the unit
    step = math.log((top + 20 * noise) / 400_000)
    for sign in (order, 1 - order):  # both directions: add and remove
        integral = float(logsumexp(base + sign * loss) + step) / (order - 1)
        assert mine >= integral - 1e-13


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-9, 0.99), st.floats(0.3, 1e6), st.integers(2, 40))
def test_a_step_is_never_below_its_exact_sum(rate: float, noise: float, order: int) -> None:
    exact = exact_step(rate, noise, order)
    mine = Decimal(renyi(PoissonSgd("s", rate, 1, noise), order))
    assert exact <= mine <= exact * (1 + Decimal("3e-9"))


def test_the_library_loses_digits_where_this_sum_does_not() -> None:
    """Why the sum is written here: at these settings the other one is below the truth."""
    exact = exact_step(1e-9, 1e6, 2)
    theirs = rdp._compute_rdp_poisson_subsampled_gaussian(1e-9, 1e6, [2])[0]
    assert theirs <= 0 < exact <= Decimal(renyi(PoissonSgd("s", 1e-9, 1, 1e6), 2))


@pytest.mark.parametrize("events", [*((event,) for event in EVENTS), EVENTS])
def test_epsilon_is_never_below_that_of_the_loss_distributions(events: tuple[Event, ...]) -> None:
    tight = accounting.epsilon(events, 1e-6)
    bounds = [renyi_epsilon(renyi_sum(events, a), a, 1e-6) for a in (2, 3, 5, 8, 16, 32, 64, 256)]
    assert min(bounds) >= tight * (1 - 1e-3)
    assert min(bounds) <= 1.6 * tight  # and it is a bound worth having


@given(st.sampled_from(EVENTS), st.integers(2, 300), st.integers(1, 300))
@settings(max_examples=30, deadline=None)
def test_grows_with_the_order_and_shrinks_with_the_noise(
    event: Event, order: int, more: int
) -> None:
    assert renyi(event, order) <= renyi(event, order + more)
    field = "sigma" if isinstance(event, JointHistograms) else "noise_multiplier"
    louder = replace(event, **{field: 1.5 * getattr(event, field)})
    assert renyi(louder, order) < renyi(event, order)


def test_divergences_of_one_order_add_up() -> None:
    assert renyi_sum(EVENTS, 9) == pytest.approx(sum(renyi(event, 9) for event in EVENTS))
    assert renyi_sum((), 9) == 0
    assert renyi(replace(STEPS, steps=800), 9) == pytest.approx(2 * renyi(STEPS, 9))


@given(st.floats(0.01, 20), st.floats(1e-9, 0.1), st.integers(2, 1024))
def test_budget_and_epsilon_are_inverse_and_round_against_the_spender(
    epsilon: float, delta: float, order: int
) -> None:
    budget = renyi_budget(epsilon, order, delta)
    if budget > 0:
        back = renyi_epsilon(budget, order, delta)
        assert back == pytest.approx(epsilon, rel=1e-9)
        by_hand = budget + math.log((order - 1) / order)
        by_hand -= (math.log(delta) + math.log(order)) / (order - 1)
        assert by_hand < epsilon


@pytest.mark.parametrize(("epsilon", "delta"), [(0.405, 1e-6), (3.0, 1e-7), (10.0, 1e-5)])
def test_the_order_leaves_most_for_gaussian_noise(epsilon: float, delta: float) -> None:
    order = best_order(epsilon, delta)
    assert order is not None
    worths = {a: renyi_budget(epsilon, a, delta) / a for a in range(2, 1025)}
    assert worths[order] == max(worths.values()) > 0


def test_a_tiny_cap_has_no_order() -> None:
    assert best_order(1e-3, 1e-7) is None


def test_noise_beyond_floats_is_still_bounded() -> None:
    assert renyi(replace(STEPS, noise_multiplier=1e200), 2) > 0
    assert renyi(replace(CHOSEN, noise_multiplier=1e-200), 2) == math.inf
    assert renyi(replace(STEPS, noise_multiplier=0.3), 1024) < math.inf


def test_undecided_noise_and_other_orders_are_refused() -> None:
    with pytest.raises(InputError, match="not decided"):
        renyi(replace(COUNTS, sigma=UNDECIDED), 2)
    for order in (1, 0, -3, 1025, 2.5):
        with pytest.raises(InputError, match="order"):
            renyi(COUNTS, order)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="delta"):
        renyi_epsilon(0.1, 2, 0.0)


@pytest.mark.parametrize(
    "event",
    [
        CodeDiscovery("codes", 2, 1, delta=1e-6, noise_multiplier=4.0),
        KeyCounts("keys", 1, once=True, delta=1e-6, sigma=4.0),
        KeyCounts("keys", 3, once=False, delta=1e-6, sigma=4e6),
    ],
)
@pytest.mark.parametrize("order", [2, 64, 1024])
def test_codes_that_nobody_declared_have_no_finite_divergence(event: Event, order: int) -> None:
    """A code that one patient alone has is listed with some chance, and never without them."""
    assert event.set_aside > 0
    assert renyi(event, order) == math.inf == renyi_sum([COUNTS, event], order)
    assert all(renyi(one, order) < math.inf for one in EVENTS if not one.set_aside)
