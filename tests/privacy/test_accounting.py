"""Accounting against published values and closed forms; discrete laws are in another file."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import norm

from dpsynth.errors import InputError
from dpsynth.privacy import Event, JointHistograms, PoissonSgd, deltas, epsilon, gaussian_mu
from dpsynth.privacy.accounting import delta, gaussian_delta, rough_epsilon
from dpsynth.privacy.events import UNDECIDED

from ..support.renyi_accounting import rdp_epsilon

# q, noise, steps, delta, RDP, PLD. The PLD column was made on a grid of 1e-4, which by itself is up
# to 5e-4 above the limit of fine grids; hence the one-sided tolerance below.
ORACLES = [
    (0.04, 1.5, 2250, 1e-5, 7.329335, 6.768787),
    (0.04, 1.5, 2249, 1e-5, 7.327501, 6.767051),
    (0.0025, 1.3, 6000, 1e-5, 0.724223, 0.640111),
    pytest.param(0.001, 1.0, 30000, 1e-7, 1.415499, 1.098200, marks=pytest.mark.long),
    (0.01, 0.7, 120, 1e-5, 3.239268, 2.461238),
    (0.01, 4.0, 10000, 1e-5, 1.035490, 0.946999),
    (0.01, 1.0, 10000, 1e-5, 6.712757, 6.187745),
    (1.0, 1.0, 1, 1e-5, 4.728507, 4.377178),
]


def sgd(rate: float, steps: int, noise: float) -> PoissonSgd:
    return PoissonSgd("steps", rate, steps, noise)


def histograms(count: int, rows: int, sigma: float) -> JointHistograms:
    return JointHistograms("histograms", count, rows, sigma)


def gaussian_epsilon(mu: float, target: float) -> float:
    """Analytic Gaussian, written out with the plain normal law."""

    def excess(eps: float) -> float:
        tail = norm.cdf(mu / 2 - eps / mu) - math.exp(eps) * norm.cdf(-mu / 2 - eps / mu)
        return float(tail - target)

    return float(brentq(excess, 0, 100, xtol=1e-13))


@pytest.mark.smoke
@pytest.mark.parametrize(("rate", "noise", "steps", "at", "rdp", "pld"), ORACLES)
def test_published_values(
    rate: float, noise: float, steps: int, at: float, rdp: float, pld: float
) -> None:
    events = [sgd(rate, steps, noise)]
    ours = epsilon(events, at)
    assert 0.9994 * pld <= ours <= 1.003 * pld
    assert rdp_epsilon(events, at) == pytest.approx(rdp, rel=1e-5)
    assert rdp_epsilon(events, at) >= ours
    assert delta(events, ours) == pytest.approx(at, rel=1e-3)


@pytest.mark.parametrize(
    ("rate", "noise", "steps", "at", "published"),
    [
        (0.04, 1.5, 2250, 1e-5, 7.32911117143),  # Opacus, RDP test
        (0.0025, 1.3, 6000, 1e-5, 0.7242234026),  # TensorFlow Privacy, RDP tests
        (0.001, 1.0, 30000, 1e-7, 1.4154988495),
        (0.01, 0.7, 120, 1e-5, 3.2392676),
    ],
)
def test_renyi_values_published_elsewhere(
    rate: float, noise: float, steps: int, at: float, published: float
) -> None:
    assert rdp_epsilon([sgd(rate, steps, noise)], at) == pytest.approx(published, rel=4e-5)


def test_tf_privacy_loss_distribution_value() -> None:
    assert epsilon([sgd(0.01, 120, 0.7)], 1e-5) == pytest.approx(2.4612381, rel=2e-4)


@pytest.mark.parametrize(("rate", "noise", "steps"), [(0.01, 0.7, 120), (0.04, 1.5, 600)])
def test_opacus_prv_agrees_within_its_stated_error(rate: float, noise: float, steps: int) -> None:
    from opacus.accountants import PRVAccountant

    other = PRVAccountant()
    other.history = [(noise, rate, steps)]
    error = 0.01
    upper = other.get_epsilon(1e-5, eps_error=error)  # estimate plus error
    ours = epsilon([sgd(rate, steps, noise)], 1e-5)
    assert upper - 2.1 * error <= ours <= upper


@pytest.mark.parametrize(("at", "sigma"), [(1e-5, 3.730632), (1e-6, 4.224679)])
def test_noise_of_the_analytic_gaussian(at: float, sigma: float) -> None:
    assert 1 / gaussian_mu(1.0, at) == pytest.approx(sigma, rel=1e-6)
    assert epsilon([sgd(1.0, 1, sigma)], at) == pytest.approx(1.0, rel=1e-5)
    assert gaussian_delta(1 / sigma, 1.0) == pytest.approx(at, rel=1e-5)


def test_one_gaussian_query_has_its_published_epsilon() -> None:
    assert epsilon([sgd(1.0, 1, 1.0)], 1e-5) == pytest.approx(4.377178095681, rel=1e-5)


@pytest.mark.parametrize("steps", [10, 1000, 20000])
@pytest.mark.parametrize("mu", [0.05, 1.0, 5.0])
@pytest.mark.parametrize("at", [1e-5, 1e-9, 2e-10])
def test_full_batches_are_a_gaussian_and_floats_do_not_undercut_it(
    steps: int, mu: float, at: float
) -> None:
    event = sgd(1.0, steps, math.sqrt(steps) / mu)
    exact = gaussian_epsilon(mu, at)
    assert exact <= epsilon([event], at) <= 1.003 * exact


def one_step_delta(rate: float, noise: float, eps: float, *, add: bool) -> float:
    """One subsampled Gaussian in closed form: removing the unit, or adding it.

    The mixture (1 - q) N(0) + q N(1) exceeds exp(eps) N(0) from some output on, see its ratio.
    """
    lift = 1 + math.expm1(-eps if add else eps) / rate
    if lift <= 0:
        return 0.0 if add else -math.expm1(eps)
    edge = 0.5 + noise**2 * math.log(lift)
    if add:
        mixture = rate * norm.cdf((edge - 1) / noise) + (1 - rate) * norm.cdf(edge / noise)
        return float(norm.cdf(edge / noise) - math.exp(eps) * mixture)
    mixture = rate * norm.sf((edge - 1) / noise) + (1 - rate) * norm.sf(edge / noise)
    return float(mixture - math.exp(eps) * norm.sf(edge / noise))


@pytest.mark.parametrize(("rate", "noise"), [(0.2, 1.0), (0.01, 0.6), (0.5, 3.0), (0.9, 2.0)])
@pytest.mark.parametrize("at", [1e-3, 1e-6])
def test_one_step_has_its_closed_form(rate: float, noise: float, at: float) -> None:
    def excess(eps: float) -> float:
        return max(one_step_delta(rate, noise, eps, add=add) for add in (False, True)) - at

    exact = brentq(excess, 0, 100, xtol=1e-12)
    assert exact * (1 - 1e-9) <= epsilon([sgd(rate, 1, noise)], at) <= 1.003 * exact + 1e-6


@pytest.mark.long
def test_two_steps_against_quadrature_in_both_directions() -> None:
    """delta_2(eps) is the mean of delta_1(eps - loss of the first step), for each direction."""
    rate, noise, eps = 0.3, 1.2, 0.4
    outputs = np.linspace(-12, 14, 5201)
    plain = norm.pdf(outputs, 0, noise)
    loss = np.log1p(rate * np.expm1((outputs - 0.5) / noise**2))  # of removing the unit
    values = []
    for add in (False, True):
        first, sign = (plain, -1) if add else (plain * np.exp(loss), 1)
        rest = [one_step_delta(rate, noise, eps - sign * moved, add=add) for moved in loss]
        values.append(float(np.trapezoid(first * rest, outputs)))
    assert values[0] > values[1] > 0
    ours = delta([sgd(rate, 2, noise)], eps)
    assert values[0] * (1 - 1e-6) <= ours <= 1.003 * values[0]


def test_order_and_monotonicity() -> None:
    base = epsilon([sgd(0.02, 500, 1.0)], 1e-6)
    assert epsilon([sgd(0.02, 510, 1.0)], 1e-6) > base
    assert epsilon([sgd(0.021, 500, 1.0)], 1e-6) > base
    assert epsilon([sgd(0.02, 500, 1.02)], 1e-6) < base
    assert epsilon([sgd(0.02, 500, 1.0)], 1e-7) > base
    counts = epsilon([histograms(12, 1, 20.0)], 1e-6)
    assert epsilon([histograms(13, 1, 20.0)], 1e-6) > counts
    assert epsilon([histograms(12, 2, 20.0)], 1e-6) > 1.5 * counts
    assert epsilon([histograms(12, 1, 21.0)], 1e-6) < counts


MIXES: list[Any] = [
    [histograms(12, 1, 30.0), sgd(0.1, 300, 4.0)],
    [histograms(48, 5, 90.0), sgd(0.05, 300, 2.0)],
    [histograms(2, 1, 0.8)],
    [histograms(7, 3, 12.0)],
    pytest.param([histograms(3, 1, 2000.0), sgd(0.001, 2000, 0.9)], marks=pytest.mark.long),
]


@pytest.mark.parametrize("events", MIXES)
def test_renyi_is_looser_and_the_whole_costs_more_than_its_parts(events: list[Event]) -> None:
    together = epsilon(events, 1e-6)
    assert rdp_epsilon(events, 1e-6) >= together
    assert rough_epsilon(events, 1e-6, near=together) == pytest.approx(together, rel=0.02)
    assert together >= max(epsilon([event], 1e-6) for event in events)
    assert epsilon(events[::-1], 1e-6) == pytest.approx(together, rel=1e-6)


def test_histograms_can_be_split_into_events() -> None:
    whole = epsilon([histograms(5, 1, 4.0)], 1e-6)
    parts: list[Event] = [JointHistograms("a", 2, 1, 4.0), JointHistograms("b", 3, 1, 4.0)]
    assert epsilon(parts, 1e-6) == pytest.approx(whole, rel=1e-9)


def test_large_sigma_leaves_the_table_without_a_jump() -> None:
    table = epsilon([histograms(4, 1, 1000.0)], 1e-6) * 1000.0
    bound = epsilon([histograms(4, 1, 1000.001)], 1e-6) * 1000.001
    assert bound == pytest.approx(table, rel=2e-5)
    assert epsilon([histograms(4, 1, 5e6)], 1e-6) < 1e-5


def test_slack_for_floats_is_in_epsilon_and_in_delta() -> None:
    """50 000 compositions at delta 2e-10: the slack is 2.5 % of delta, and both sides carry it."""
    events = [sgd(1.0, 50_000, 300.0)]
    eps = epsilon(events, 2e-10)
    assert delta(events, eps) == pytest.approx(2e-10, rel=1.5e-2)
    exact = gaussian_delta(math.sqrt(50_000) / 300, eps)
    assert 0.94 * 2e-10 < exact < 0.99 * 2e-10


def test_slack_for_several_rows_is_in_delta() -> None:
    """4K with K = rows * histograms * 2.1e-19, where it is large enough to be seen."""
    wide = [histograms(1_000_000, 1_000_000, 1e12)]
    assert 8e-7 < delta(wide, 1.0) < 9e-7
    assert 8e-7 < deltas(wide, np.array([1.0, 9.0])).min() < 9e-7
    assert delta([histograms(1_000_000, 1, 1e8)], 1.0) < 1e-12
    with pytest.raises(InputError, match="take at least 2e-05"):
        epsilon(wide, 1e-6)


# ---- refusals


@pytest.mark.parametrize("bad", [0.0, 1.0, 1e-11, math.nan, -1e-5])
def test_delta_out_of_range_is_refused(bad: float) -> None:
    with pytest.raises(InputError, match="delta must be at least 1e-10"):
        epsilon([sgd(0.1, 10, 1.0)], bad)


def test_too_many_compositions_for_the_delta() -> None:
    with pytest.raises(InputError, match="too small for this many compositions"):
        epsilon([sgd(0.1, 1_000_000, 100.0)], 2e-10)


def test_undecided_noise_and_no_events_are_refused() -> None:
    for events in ([], [sgd(0.1, 10, UNDECIDED)], [histograms(2, 1, UNDECIDED)]):
        with pytest.raises(InputError):
            epsilon(events, 1e-5)
        with pytest.raises(InputError):
            delta(events, 1.0)
    with pytest.raises(InputError):
        delta([sgd(0.1, 10, 1.0)], -1.0)


def test_next_to_nothing_costs_nothing() -> None:
    assert epsilon([sgd(1e-4, 1, 50.0)], 1e-2) == 0.0
    assert delta([sgd(1.0, 1, 1e6)], 5.0) < 1e-13
