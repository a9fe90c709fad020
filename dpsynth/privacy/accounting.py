"""Accounting: what a list of events costs, as one (epsilon, delta).

Each event becomes the privacy loss distribution (PLD) of a pair of laws that dominates it for both
directions of the adjacency (add and remove a unit), the PLDs of *all* events are composed, and
epsilon is read off the composition. Everything is pessimistic: "connect the dots" discretisation
(Doroshenko et al., arXiv 2207.04380) only ever rounds the privacy loss curve up.

**Poisson-subsampled Gaussian steps** are `from_gaussian_mechanism` with a sampling probability,
composed `steps` times; add and remove are kept apart, the larger epsilon counts.

**Joint histograms, one row per unit.** A unit adds 1 to one cell of each histogram. The noise of
the cells is independent, and a cell that does not move has the same law with and without the unit.
So the pair is *exactly* the `histograms`-fold product of (N_Z(0, s^2), N_Z(1, s^2)), and its PLD
the `histograms`-fold self-composition of `from_discrete_gaussian_mechanism` at shift 1. The pair
is its own mirror image (z -> 1 - z), so add and remove have the same PLD.

**Joint histograms, mass M > 1 per unit** (its k rows counted 1 each, M = k, or floor(M / r) for
each of r rows). In one histogram a unit adds non-negative integers of L2 norm at most M, because
their sum is, or the sum of the squares of their sums in disjoint parts (mechanisms.py). The shift
is an integer vector D with |D| <= M sqrt(h) =: S over h histograms, with at most m = k h cells that
move, and which D is worst is not obvious. All of them are dominated by one continuous Gaussian
(Peikert, An Efficient and Parallel Gaussian Sampler for Lattices, CRYPTO 2010, Theorem 3.1):

1. Let s = SMOOTHING = 1.5, t^2 = sigma^2 - s^2, X ~ N(c, t^2) with an integer c, and Y the discrete
   Gaussian of scale s around X: P(Y = y | X = x) = r_s(y - x) / r_s(Z - x), with
   r_s(z) = exp(-z^2 / 2s^2). By Poisson summation r_s(Z - x) = s sqrt(2 pi) (1 + 2 sum_{j>=1}
   exp(-2 pi^2 s^2 j^2) cos(2 pi j x)), which is s sqrt(2 pi) times a number in [1 - b, 1 + b],
   b = 2 exp(-2 pi^2 s^2) (1 + 1e-50) = 1.04e-19.
2. The numerator integrates in closed form, a product of Gaussians: P(Y = y) = f(y - c) / [1 - b,
   1 + b] with f the density of N(0, sigma^2).
3. N_Z(c, sigma^2) has mass f(y - c) sigma sqrt(2 pi) / r_sigma(Z) = f(y - c) / [1, 1 + b] at
   y, by the same formula and sigma >= s. So its ratio to P(Y = y) lies within exp(+-g) for each y,
   g = ln((1 + b) / (1 - b)) <= 4.01 exp(-2 pi^2 s^2) = 2.1e-19.
4. Cells that do not move drop out as above; over the others the ratio of the two joint laws is
   within exp(+-K), K = m g. For P, Q the true laws with and without the unit, P', Q' the laws of Y:
   H_e(P, Q) = sup_A P(A) - exp(e) Q(A) <= exp(K) H_{e - 2K}(P', Q'), where H_e is the hockey-stick
   divergence at epsilon e. Y is post-processing of X, hence H(P', Q') <= H(N(0, t^2), N(S, t^2)).
5. H_e has slope at most 1 in e and is at most 1, so H_e(P, Q) <= H_e(Gaussian) + 2K + (exp(K) - 1)
   <= H_e(Gaussian) + 4K. That 4K is added to delta; it holds inside a composition too, where the
   same density ratio enters once. For 1e5 moving cells 4K = 8.4e-14; for 5 rows and 48 histograms
   2e-16.

Giving up s^2 of the variance is needed: at sigma = 3, two rows in one cell and epsilon 5.7, a
continuous Gaussian of the same sigma would claim 24 % too little delta (tests).

The same bound serves one row per unit once sigma is above 1000, where it costs 1.1e-6 of epsilon.

**Chosen histograms.** The same bound with scales sigma_i of their own, t_i^2 = sigma_i^2 - s^2:
scaled by t_i, the shift has norm sqrt(sum M^2 / t_i^2), which the event bounds by
1 / noise_multiplier. Choosing histograms and scales by earlier releases changes nothing: given
those, the pair is dominated by (N(0, 1), N(1 / noise_multiplier, 1)), whatever they were, and so is
the composition (adaptive composition, as for any event of a plan).

**Code discovery.** Its counts are chosen histograms with a noise multiplier of their own; its
threshold takes -ln(1 - delta) of the budget's delta. discovery/event.py derives both.

**Floating point.** Transforms leave an error of at most about 1e-17 per composition in delta (seen
against the analytic Gaussian, tests); 1e-16 * (100 + compositions) is added to delta, and deltas
below 1e-10 are refused.

**The Gaussian mechanism** has its delta at an epsilon, and back, in closed form: ``mu`` is
sensitivity over noise. It measures any mechanism that resembles a Gaussian one, which serves to
choose grids and to start searches, and never claims (Balle and Wang, arXiv 1805.06530, Theorem 8).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dpsynth.errors import InputError
from dpsynth.privacy.events import Event

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution


__all__ = [
    "delta",
    "deltas",
    "epsilon",
    "profile",
    "rough_epsilon",
]

MIN_DELTA = 1e-10

_INFLATION = 1e-3  # of the variance of the privacy loss, by discretisation; at most a quarter of it
_COARSE = 6  # times the step of the fine grid: for the first look
_MAX_POINTS = 100_000  # of the discretised loss of one composition: about half a second


def epsilon(events: Sequence[Event], delta: float, *, near: float | None = None) -> float:
    """Epsilon of all events together at this delta, by composed privacy loss distributions.

    The value is an upper bound; for the mechanisms of this package it is within 0.1 % of the least
    one that a finer grid would show. A guess of the value (``near``) spares a first coarse look.

    Raises:
        InputError: if delta is not in [1e-10, 1), or the noise of an event is not decided.
    """
    events, budget = tuple(events), _usable_delta(events, delta)
    first = _COARSE * _grid(events, min(_total_mu(events), 10.0))
    value = near or _on_grid(events, budget, first)
    while 0 < value < math.inf:
        mu = gaussian_mu(value, delta)
        value = _on_grid(events, budget, _grid(events, mu))
        if value in (0, math.inf) or _fine_enough(events, mu, gaussian_mu(value, delta)):
            break
    return value


def rough_epsilon(events: Sequence[Event], delta: float, *, near: float) -> float:
    """Epsilon on a grid made coarse for values near ``near``: an upper bound within about 1 %.

    Several times faster than ``epsilon``; for searches only.
    """
    grid = _COARSE * _grid(events, gaussian_mu(near, delta))
    return _on_grid(tuple(events), _usable_delta(events, delta), grid)


def delta(events: Sequence[Event], epsilon: float) -> float:
    """Delta of all events together at this epsilon; an upper bound, at least about 1e-14.

    Raises:
        InputError: if epsilon is negative, or the noise of an event is not decided.
    """
    _require_decided(events)
    if not (epsilon >= 0 and math.isfinite(epsilon)):
        raise InputError("epsilon must be a finite number, 0 or above")
    slack = _slack(events)
    coarse = _COARSE * _grid(events, min(_total_mu(events), 10.0))
    value = float(_compose(events, coarse).get_delta_for_epsilon(epsilon)) + slack
    while True:
        mu = gaussian_mu(epsilon, min(value, 0.5))
        value = float(_compose(events, _grid(events, mu)).get_delta_for_epsilon(epsilon)) + slack
        if _fine_enough(events, mu, gaussian_mu(epsilon, min(value, 0.5))):
            return min(value, 1.0)


def deltas(events: Sequence[Event], epsilons: NDArray[np.float64]) -> NDArray[np.float64]:
    """Upper bounds of delta at several epsilons, on one grid: the curve that the events claim."""
    _require_decided(events)
    composed = _compose(events, _grid(events, _total_mu(events)))
    values = np.asarray(composed.get_delta_for_epsilon(epsilons)) + _slack(events)
    return np.asarray(np.minimum(values, 1.0))


@lru_cache(maxsize=64)
def profile(events: tuple[Event, ...]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the privacy profile of all events together: epsilons from 0 on, and each one's delta.

    The deltas are upper bounds. The epsilons are multiples of the step of the grid of losses, as
    far as the losses of a Gaussian mechanism that the events resemble.

    Raises:
        InputError: there is no event, or the noise of one is not decided.
    """
    _require_decided(events)
    mu, slack = min(_total_mu(events), 10.0), _slack(events)
    while True:
        grid = _grid(events, mu)
        composed = _compose(events, grid)
        advantage = float(composed.get_delta_for_epsilon(0.0)) + slack
        used, mu = mu, gaussian_mu(0.0, min(advantage, 1 - 1e-9))
        if _fine_enough(events, used, mu):
            break
    last = math.ceil((mu**2 / 2 + 8 * mu) / grid)
    epsilons = np.asarray(grid * np.arange(0, last + 1, 1 + last // _MAX_POINTS), np.float64)
    values = np.asarray(composed.get_delta_for_epsilon(epsilons)) + slack
    return epsilons, np.asarray(np.minimum(values, 1.0), np.float64)


@lru_cache(maxsize=1024)  # a run is calibrated, certified and verified with the same events
def _on_grid(events: tuple[Event, ...], delta: float, grid: float) -> float:
    return float(_compose(events, grid).get_epsilon_for_delta(delta))


def _compose(events: Sequence[Event], grid: float) -> PrivacyLossDistribution:
    """Composed PLD of all events, losses rounded up to multiples of ``grid``."""
    composed: PrivacyLossDistribution | None = None
    for event in events:
        loss = event.loss.distribution(grid)
        composed = loss if composed is None else composed.compose(loss)
    assert composed is not None  # no events: refused before
    return composed


def _slack(events: Sequence[Event]) -> float:
    """What is added to delta: rounding, 4K of the bound for several rows, and what is set aside."""
    slack = _set_aside(events) + 1e-16 * (100 + sum(event.loss.times for event in events))
    return slack + math.fsum(event.loss.slack for event in events)


def _set_aside(events: Sequence[Event]) -> float:
    return math.fsum(event.set_aside for event in events)


def _usable_delta(events: Sequence[Event], delta: float) -> float:
    """Delta less the slack, after the checks."""
    _require_decided(events)
    if not MIN_DELTA <= delta < 1:
        raise InputError(
            f"delta must be at least {MIN_DELTA:g} and below 1;"
            " below that, floating point does not carry the proof"
        )
    slack = _slack(events)
    if slack - _set_aside(events) > delta / 10 or slack > 0.9 * delta:
        raise InputError(
            f"delta {delta:g} is too small for this many compositions;"
            f" take at least {20 * slack:.0e}"
        )
    return delta - slack


def _require_decided(events: Sequence[Event]) -> None:
    if not events:
        raise InputError("there is no event to account for")
    for event in events:
        if not event.decided:
            raise InputError(f"event '{event.name}': its noise is not decided; calibrate a plan")


def _total_mu(events: Sequence[Event]) -> float:
    return math.hypot(*(event.mu() for event in events))


def _grid(events: Sequence[Event], mu: float) -> float:
    """Step of the grid of losses at which N compositions stay tight.

    Connect the dots moves each loss to the two neighbouring grid points so that E[exp(-loss)] is
    kept; this adds at most grid^2 / 4 to its variance (and half of that to its mean). N of them are
    compared with the variance mu^2 of the Gaussian mechanism that the total resembles. The grid
    only decides how tight the claim is, never whether it holds.
    """
    count = sum(event.loss.times for event in events)
    interval = mu * min(4e-3, math.sqrt(_INFLATION / count))
    widest = max(event.loss.widest for event in events)
    return max(interval, widest / _MAX_POINTS, 1e-12)


def _fine_enough(events: Sequence[Event], used: float, mu: float) -> bool:
    """Whether the grid for ``used`` also serves the mu that was then seen."""
    return mu > used / 1.5 or _grid(events, mu) == _grid(events, used)


_PRECISION = 1e-12


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Least delta for which the Gaussian mechanism is (epsilon, delta)-private.

    >>> round(gaussian_delta(1.0, 1.0), 6)
    0.126937
    """
    from scipy.special import log_ndtr

    gain = float(log_ndtr(mu / 2 - epsilon / mu))
    loss = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return -math.exp(gain) * math.expm1(loss - gain) if loss < gain else 0.0


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Largest mu for which the Gaussian mechanism is (epsilon, delta)-private, by bisection.

    >>> round(1 / gaussian_mu(1.0, 1e-5), 6)  # noise for a sensitivity of 1
    3.730632

    Raises:
        InputError: if epsilon is negative or not finite, or delta is not between 0 and 1.
    """
    if not (0 <= epsilon < math.inf and 0 < delta < 1):
        raise InputError("a budget has a finite epsilon of 0 or above and a delta between 0 and 1")
    low, high = 0.0, 1.0
    while gaussian_delta(high, epsilon) < delta:
        low, high = high, 2 * high
    while high - low > _PRECISION * high:
        middle = (low + high) / 2
        if gaussian_delta(middle, epsilon) < delta:
            low = middle
        else:
            high = middle
    return low
