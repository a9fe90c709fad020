"""Chosen histograms: one bound for all of them, whatever is chosen, and nothing beyond it."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.privacy import ChosenHistograms, JointHistograms, epsilon, event_from_dict, gaussian_mu
from dpsynth.privacy.accounting import delta, gaussian_delta
from dpsynth.privacy.events import SMOOTHING

from ..support.renyi_accounting import rdp_epsilon

PAIRS = ChosenHistograms("pairs", most=3, rows_per_unit=2, noise_multiplier=4.0, unit_mass=2)
ONE_ROW = ChosenHistograms("pairs", most=6, rows_per_unit=1, noise_multiplier=2.0)


# The event ------------------------------------------------------------------------------------


def test_mu_and_mass_by_hand() -> None:
    assert PAIRS.mu() == 0.25
    assert PAIRS.mass == 2
    assert replace(PAIRS, unit_mass=None, rows_per_unit=5).mass == 5
    assert replace(PAIRS, unit_mass=60, rows_per_unit=5).mass == 60
    assert PAIRS.undecided().mu() == 0
    assert not PAIRS.undecided().decided and PAIRS.undecided().undecided() == PAIRS.undecided()


def test_the_scale_of_a_part_by_hand() -> None:
    """sigma^2 = (mass noise / part)^2 + s^2, rounded up to six digits; 3 at least."""
    assert PAIRS.sigma_for(0.5) == 16.0702  # sqrt(16^2 + 1.5^2) = 16.07015...
    assert PAIRS.sigma_for(1.0) == 8.13942  # sqrt(8^2 + 1.5^2) = 8.139410...
    assert replace(ONE_ROW, noise_multiplier=0.5).sigma_for(1.0) == 3.0
    for bad in (0.0, -0.5, 1.0001, math.nan, math.inf):
        with pytest.raises(InputError, match="a part must be"):
            PAIRS.sigma_for(bad)


@given(st.floats(1e-4, 3.0))
def test_noise_for_a_mu_is_never_too_small(mu: float) -> None:
    assert mu * (1 - 1e-4) <= PAIRS.with_mu(mu).mu() <= mu * (1 + 1e-12)


def test_least_noise() -> None:
    assert PAIRS.with_mu(1e5).noise_multiplier == 0.3
    for bad in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(InputError):
            PAIRS.with_mu(bad)


def test_the_document_round_trips() -> None:
    for event in (PAIRS, ONE_ROW, replace(PAIRS, unit_mass=60)):
        document = json.loads(json.dumps(event.to_dict()))
        assert document["kind"] == "chosen_histograms"
        assert event_from_dict(document) == event


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"most": 0}, "most"),
        ({"most": 2.0}, "most"),
        ({"most": True}, "most"),
        ({"rows_per_unit": 0}, "rows_per_unit"),
        ({"noise_multiplier": 0}, "noise_multiplier"),
        ({"noise_multiplier": "4"}, "noise_multiplier"),
        ({"noise_multiplier": math.nan}, "noise_multiplier"),
        ({"noise_multiplier": math.inf}, "no noise"),
        ({"unit_mass": 0}, "unit_mass"),
        ({"unit_mass": 60.0}, "unit_mass"),
        ({"unit_mass": True}, "unit_mass"),
        ({"unit_mass": 1}, "at least rows_per_unit"),
        ({"name": ""}, "name"),
        ({"sigmas": [4.0]}, "exactly"),
        ({"kind": "joint_histograms"}, "exactly"),
    ],
)
def test_a_document_that_is_not_the_event_is_refused(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(InputError, match=message):
        event_from_dict(PAIRS.to_dict() | change)


def test_undecided_noise_is_not_written() -> None:
    with pytest.raises(InputError, match="not decided"):
        PAIRS.undecided().to_dict()


# The bound ------------------------------------------------------------------------------------


def precision(sigmas: Sequence[float], mass: int) -> float:
    """What the histograms cost, in mu squared, written out."""
    return sum(mass**2 / (sigma**2 - SMOOTHING**2) for sigma in sigmas)


@given(st.lists(st.floats(0.05, 20.0), min_size=1, max_size=6), st.integers(1, 80))
def test_parts_whose_squares_add_up_to_one_are_covered_and_no_more(
    weights: list[float], mass: int
) -> None:
    event = ChosenHistograms("pairs", 6, 1, 2.0, unit_mass=mass)
    length = math.sqrt(math.fsum(weight**2 for weight in weights))
    sigmas = [event.sigma_for(min(1.0, weight / length)) for weight in weights]
    assert event.covers(sigmas)
    assert precision(sigmas, mass) <= event.mu() ** 2 * (1 + 1e-12)
    if min(sigmas) > 3.0:
        assert precision(sigmas, mass) > event.mu() ** 2 * (1 - 1e-4)  # nothing is wasted
        assert not event.covers([sigma * (1 - 1e-4) for sigma in sigmas])


def test_covers_by_hand() -> None:
    """mass 2 and noise 4: precision 1/16. Three of sigma^2 = 2.25 + 3 * 64 use it up."""
    full = math.sqrt(2.25 + 3 * 64) * (1 + 1e-9)
    assert PAIRS.covers([full] * 3)
    assert PAIRS.covers([full])
    assert not PAIRS.covers([full] * 2 + [0.999 * full])
    assert not PAIRS.covers([full] * 4)  # more than `most`, at any noise
    assert not PAIRS.covers([1e6] * 4)
    assert not PAIRS.covers([])
    # 0.999 of the scale that one histogram needs
    assert PAIRS.covers([8.14]) and not PAIRS.covers([8.13])


def test_noise_below_what_the_bound_needs_is_never_covered() -> None:
    loose = replace(ONE_ROW, noise_multiplier=0.3)
    assert loose.covers([3.0]) and not loose.covers([2.999])
    assert not loose.covers([1.5]) and not loose.covers([-9.0]) and not loose.covers([0.0])


def test_noise_that_is_no_number_is_never_covered() -> None:
    for sigmas in ([math.nan], [math.nan, 50.0], [50.0, math.nan], [-math.inf]):
        assert not ONE_ROW.covers(sigmas)


def test_an_undecided_event_covers_nothing() -> None:
    assert not PAIRS.undecided().covers([1e9])


# Accounting -----------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.3, 0.8, 2.0, 25.0])
def test_it_costs_what_a_gaussian_costs(noise: float) -> None:
    """The closed form of Balle and Wang, and Renyi divergences, which are looser."""
    events = [replace(PAIRS, noise_multiplier=noise)]
    for eps in (0.0, 0.05, 0.7, 3.0):
        exact = gaussian_delta(1 / noise, eps)
        assert exact <= delta(events, eps) <= 1.003 * exact + 1e-13
    for at in (1e-9, 1e-5):
        composed = epsilon(events, at)
        assert gaussian_mu(composed, at) == pytest.approx(1 / noise, rel=2e-3)
        assert gaussian_mu(composed, at) >= 1 / noise
        assert rdp_epsilon(events, at) >= composed


def test_with_other_events_the_squares_of_mu_add_up() -> None:
    counts = JointHistograms("counts", 4, 5, sigma=300.0, unit_mass=60)
    parts = [counts, replace(PAIRS, noise_multiplier=2.5)]
    whole = math.hypot(counts.mu(), 0.4)
    composed = epsilon(parts, 1e-6)
    assert whole <= gaussian_mu(composed, 1e-6) <= 1.002 * whole
    assert rdp_epsilon(parts, 1e-6) >= composed


def test_equal_noise_costs_as_much_as_joint_histograms() -> None:
    sigma, most, mass = 400.0, 5, 60
    joint = JointHistograms("counts", most, 5, sigma, unit_mass=mass)
    noise = math.sqrt(sigma**2 - SMOOTHING**2) / (mass * math.sqrt(most))
    chosen = ChosenHistograms("pairs", most, 5, noise, unit_mass=mass)
    assert chosen.covers([sigma] * most)
    for eps in (0.1, 1.0):
        assert delta([chosen], eps) == pytest.approx(delta([joint], eps), rel=1e-9)


def test_slack_grows_with_what_could_move() -> None:
    """4K of the bound: 4 * 4.01 exp(-2 pi^2 s^2) for each of rows * histograms cells."""
    few = ChosenHistograms("pairs", 1, 1, 1e4)
    many = ChosenHistograms("pairs", 100_000, 1000, 1e4, unit_mass=5040)
    slack = 4 * 4.01 * math.exp(-2 * (math.pi * SMOOTHING) ** 2) * 1e8
    assert delta([many], 1.0) - delta([few], 1.0) == pytest.approx(slack, rel=1e-6)


def law(sigma: float) -> tuple[np.ndarray, int]:
    """Masses of the discrete Gaussian on -edge .. edge, from the definition."""
    edge = math.ceil(10 * sigma)
    z = np.arange(-edge, edge + 1, dtype=np.float64)
    mass = np.exp(-(z**2) / (2 * sigma**2))
    return mass / mass.sum(), edge


def noisy_pair(shift: Sequence[int], sigmas: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Joint masses of independent cells, moved and not, over all outcomes."""
    moved, still = np.ones(1), np.ones(1)
    for step, sigma in zip(shift, sigmas, strict=True):
        mass, _ = law(sigma)
        pad = np.zeros(step)
        moved = np.outer(moved, np.concatenate([pad, mass])).ravel()
        still = np.outer(still, np.concatenate([mass, pad])).ravel()
    return moved, still


def divergence(p: np.ndarray, q: np.ndarray, eps: float) -> float:
    """Both directions of the hockey-stick divergence."""
    one = float(np.maximum(p - math.exp(eps) * q, 0).sum())
    two = float(np.maximum(q - math.exp(eps) * p, 0).sum())
    return max(one, two)


CHOICES = [  # what a unit of mass 2 may add to each histogram; noise that the event covers
    ([(2,), (1, 1)], (5.5,)),
    ([(2,), (1, 1)], (3.4, 4.0)),
    ([(2,), (1, 1)], (3.0, 7.0)),
]


@pytest.mark.parametrize(("ways", "sigmas"), CHOICES)
def test_the_true_divergence_is_within_the_claim(
    ways: list[tuple[int, ...]], sigmas: tuple[float, ...]
) -> None:
    """Every way to spread two rows over cells, against brute force over all outcomes.

    The event is the least that covers the noise, so the claim is as small as it can be.
    """
    event = replace(PAIRS, noise_multiplier=precision(sigmas, 2) ** -0.5 * (1 - 1e-9))
    assert event.covers(sigmas)
    claims = {eps: delta([event], eps) for eps in (0.0, 0.5, 1.5)}
    for spread in product(ways, repeat=len(sigmas)):
        cells = [(step, sigmas[i]) for i, way in enumerate(spread) for step in way]
        if len(cells) > 3:
            continue  # four cells are 10^7 outcomes; their shift is the shortest
        moved, still = noisy_pair([step for step, _ in cells], [sigma for _, sigma in cells])
        for eps, claim in claims.items():
            assert divergence(moved, still, eps) <= claim


@pytest.mark.parametrize("eps", [0.0, 0.2, 0.6])
def test_choosing_by_an_earlier_release_costs_nothing(eps: float) -> None:
    """Brute force over both releases: which noise the second one gets depends on the first.

    First one noisy count; if it came out positive, one precise histogram follows, otherwise two
    of less precision each. A choice that was worth something would beat the claim, which knows of
    none.
    """
    first = JointHistograms("counts", 1, 1, sigma=5.0)
    event = ChosenHistograms("pairs", 2, 1, noise_multiplier=6.0)
    one, two = (event.sigma_for(1.0),), (event.sigma_for(0.5), event.sigma_for(0.75**0.5))
    assert event.covers(one) and event.covers(two)
    second = {True: noisy_pair((1,), one), False: noisy_pair((1, 1), two)}
    (moved, still), (_, edge) = noisy_pair((1,), (5.0,)), law(5.0)
    true = 0.0
    for place, (p, q) in enumerate(zip(moved, still, strict=True)):
        added, kept = second[place - edge > 0]
        true += float(np.maximum(p * added - math.exp(eps) * q * kept, 0).sum())
    assert true <= delta([first, event], eps)
    assert true > 0.75 * delta([first, event], eps)  # nor is the claim an empty one


# The mechanism --------------------------------------------------------------------------------
