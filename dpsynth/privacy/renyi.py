"""Renyi divergences of events at one integer order, rounded up, and what they mean as an epsilon.

D_a(P | Q) = ln(E_Q[(P / Q)^a]) / (a - 1), the larger of both directions (add and remove a unit).

**Joint histograms.** Integer counts shifted by an integer vector D of norm at most S, the event's
sensitivity. The divergence of the discrete Gaussian at an integer shift d is at most
a d^2 / (2 sigma^2), and exactly that where a d is an integer (Canonne, Kamath, Steinke, arXiv
2004.00010, Proposition 5); the noise of the cells is independent, so the sum is at most
a S^2 / (2 sigma^2). No smoothing is needed here.

**Chosen histograms.** The choice and the scales sigma_i may depend on earlier releases; the event
bounds sum_i M^2 / (sigma_i^2 - s^2), hence sum_i M^2 / sigma_i^2, by 1 / noise_multiplier^2 on
every path. So a / (2 noise_multiplier^2) bounds their divergence, by the argument for the Renyi
condition in privacy_filter.py, within the event.

**Sums over rows and stays** shift whole numbers by a vector of norm at most S, as joint histograms
do.

**Choices** are e-private each: their divergence is at most e, and at most a e^2 / 2 (Bun and
Steinke, arXiv 1605.02065, Proposition 1.4).

**Poisson-subsampled Gaussian steps** with sampling rate q (Mironov, Talwar, Zhang, arXiv
1908.10530, section 3.3, and Corollary 7 for the direction that is the larger): a step has
ln(sum_k C(a, k) (1 - q)^(a - k) q^k exp((k^2 - k) / (2 sigma^2))) / (a - 1). The binomial weights
add up to 1 and the terms k = 0, 1 are the weights themselves, so the sum is 1 plus the same sum
over k >= 2 with exp(x) - 1 in the place of exp(x). All of its terms are positive, so divergences
far below 1e-10 a step keep their digits; dp_accounting's sum around 1 loses them, also downwards
(at q = 1e-9, sigma = 1e6, a = 2 it is negative).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache

from dpsynth.errors import InputError
from dpsynth.privacy.answers.choice_event import TopChoice
from dpsynth.privacy.answers.event import RowSums
from dpsynth.privacy.answers.links_event import LinkCounts
from dpsynth.privacy.answers.stay_event import StaySums
from dpsynth.privacy.answers.votes_event import TeacherVotes
from dpsynth.privacy.events import (
    ChosenHistograms,
    CodeDiscovery,
    Event,
    JointHistograms,
    KeyCounts,
    LaplaceCounts,
)

MAX_ORDER = 1024
_ROUNDING = 1 + 1e-9  # above what floats lose in any of the sums
_MIN_NOISE, _MAX_NOISE = 1e-3, 1e12  # outside, floats would overflow; no plan comes near
_SLACK = 1e-12  # of a budget, in nats: floats of a conversion lose less


def renyi(event: Event, order: int) -> float:
    """Upper bound of an event's Renyi divergence, both directions, in nats; maybe infinite.

    Args:
        event: with its noise decided.
        order: a whole number from 2 to 1024.

    Raises:
        InputError: the noise is not decided, or the order is out of range.
    """
    if not event.decided:
        raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan")
    _require_order(order)
    # what one unit alone has is listed with a chance, and never without it
    if event.set_aside or isinstance(event, CodeDiscovery | KeyCounts):
        return math.inf
    if isinstance(event, LaplaceCounts):
        each = event.loss.parameter
        return event.loss.times * min(each, order * each**2 / 2) * _ROUNDING
    if isinstance(event, TopChoice):
        each = event.epsilon_each
        return event.chosen * min(each, order * each**2 / 2) * _ROUNDING
    if isinstance(event, RowSums | StaySums | TeacherVotes | LinkCounts):
        return order * (event.sensitivity / max(event.sigma, _MIN_NOISE)) ** 2 / 2 * _ROUNDING
    noise = event.sigma if isinstance(event, JointHistograms) else event.noise_multiplier
    if noise < _MIN_NOISE:
        return math.inf
    noise = min(noise, _MAX_NOISE)  # less noise, more divergence: still an upper bound
    if isinstance(event, JointHistograms):
        return order * event.histograms * (event.mass / noise) ** 2 / 2 * _ROUNDING
    if isinstance(event, ChosenHistograms):
        return order / (2 * noise**2) * _ROUNDING
    return event.steps * _step(event.sampling_rate, noise, order) * _ROUNDING


def renyi_sum(events: Iterable[Event], order: int) -> float:
    """Upper bound of the divergence of all events together: divergences of one order add up."""
    return math.fsum(renyi(event, order) for event in events)


def renyi_epsilon(divergence: float, order: int, delta: float) -> float:
    """Epsilon at this delta of whatever has at most this divergence, at least 0.

    Source: Canonne, Kamath, Steinke, arXiv 2004.00010, Proposition 12.
    """
    return max(0.0, divergence + _conversion(order, delta) + _SLACK)


def renyi_budget(epsilon: float, order: int, delta: float) -> float:
    """Largest divergence that converts to at most epsilon at this delta; negative where none."""
    return epsilon - _conversion(order, delta) - _SLACK


@lru_cache(maxsize=4096)
def best_order(epsilon: float, delta: float) -> int | None:
    """Order at which (epsilon, delta) leaves most for Gaussian noise: most budget over order.

    Returns:
        The order, or None where no order up to 1024 leaves anything.
    """

    def worth(order: int) -> float:
        return renyi_budget(epsilon, order, delta) / order

    order = max(range(2, MAX_ORDER + 1), key=worth)
    return order if worth(order) > 0 else None


def _conversion(order: int, delta: float) -> float:
    """What Proposition 12 adds to a divergence."""
    _require_order(order)
    if not 0 < delta < 1:
        raise InputError("delta must be above 0 and below 1")
    return math.log1p(-1 / order) - (math.log(delta) + math.log(order)) / (order - 1)


def _require_order(order: int) -> None:
    if not isinstance(order, int) or not 2 <= order <= MAX_ORDER:
        raise InputError(f"the order of a divergence is a whole number from 2 to {MAX_ORDER}")


@lru_cache(maxsize=4096)
def _step(rate: float, noise: float, order: int) -> float:
    """Divergence of one Poisson-subsampled Gaussian step."""
    if rate == 1:
        return order / (2 * noise**2)
    terms = []
    for k in range(2, order + 1):
        weight = math.log(math.comb(order, k)) + (order - k) * math.log1p(-rate)
        growth = (k * k - k) / (2 * noise**2)  # ln(exp(x) - 1) below, without overflow
        terms.append(weight + k * math.log(rate) + growth + math.log(-math.expm1(-growth)))
    top = max(terms)
    above_one = top + math.log(math.fsum(math.exp(term - top) for term in terms))
    if above_one > 30:  # then ln(1 + exp(x)) is x to 1e-13; rounded up below
        return (above_one + math.exp(-above_one)) / (order - 1)
    return math.log1p(math.exp(above_one)) / (order - 1)
