"""Trade-off curves: from error rates of an attack to the epsilon that a mechanism cannot have.

Whoever is (epsilon, delta)-private keeps every test between neighbours to
TPR <= e^epsilon FPR + delta and 1 - FPR <= e^epsilon (1 - TPR) + delta. One pair of rates says
little about one epsilon at a tiny delta; but a mechanism is private at all epsilons at once, by its
trade-off curve (Dong, Roth, Su, arXiv 1905.02383). So the rates are held against the curves of the
same mechanism with less and less noise, and the epsilon of the last curve that they refute is what
they prove (Nasr et al., Tight Auditing of Differentially Private Machine Learning, arXiv
2302.07956, section 3).

The curves are computed here from the libraries, not from the package's own accounting, which they
are there to check.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpsynth.eval.attack_stats.one_run import gaussian_deltas, least_epsilon_at

Floats = NDArray[np.float64]

MIN_NOISE_SHARE, MAX_NOISE_SHARE = (
    2.0**-5,
    2.0**4,
)  # shares of the claimed noise that are considered
STEPS = 16  # halvings of that range, on a logarithmic scale: relative error 1e-4
EPSILONS = np.concatenate([[0.0], np.geomspace(1e-4, 60.0, 400)])  # of the points of a curve


class TradeoffCurve(Protocol):
    """A mechanism with a dial: at ``dial`` its noise is that much smaller than was claimed."""

    def __hash__(self) -> int:
        """Hash what the mechanism is, by which its points are kept."""
        ...

    def deltas(self, dial: float, epsilons: Floats) -> Floats:
        """Return the least delta at each epsilon, or an upper bound of it."""
        ...

    def epsilon(self, dial: float, delta: float) -> float:
        """Return the epsilon at a delta."""
        ...


def refuted(curve: TradeoffCurve, low: float, high: float, delta: float) -> float:
    """Return the largest epsilon at ``delta`` that error rates refute; 0 where they refute none.

    Args:
        curve: the mechanism that was claimed.
        low: the true positive rate is at least this.
        high: the false positive rate is at most this.
        delta: of the claim.
    """
    if not _contradicts(curve, MIN_NOISE_SHARE, low, high):
        return 0.0
    below, above = math.log(MIN_NOISE_SHARE), math.log(MAX_NOISE_SHARE)
    for _ in range(STEPS):
        middle = (below + above) / 2
        if _contradicts(curve, math.exp(middle), low, high):
            below = middle
        else:
            above = middle
    return curve.epsilon(math.exp(below), delta)


def _contradicts(curve: TradeoffCurve, dial: float, low: float, high: float) -> bool:
    """Whether a true positive rate of ``low`` is out of reach at a false positive rate ``high``."""
    deltas, growth = _deltas(curve, dial), np.exp(EPSILONS)
    hit = float((growth * high + deltas).min())
    missed = float((growth * (1 - low) + deltas).min())
    return low > hit or 1 - high > missed


@lru_cache(maxsize=1024)  # each game on a mechanism, and each search, begins with the same dials
def _deltas(curve: TradeoffCurve, dial: float) -> Floats:
    return curve.deltas(dial, EPSILONS)


@dataclass(frozen=True)
class GaussianCurve:
    """The Gaussian mechanism.

    Attributes:
        mu: sensitivity over the standard deviation of the noise, as claimed.
    """

    mu: float

    def deltas(self, dial: float, epsilons: Floats) -> Floats:
        """Return the least delta at each epsilon."""
        return gaussian_deltas(self.mu * dial, epsilons)

    def epsilon(self, dial: float, delta: float) -> float:
        """Return the epsilon at a delta."""
        return _solved(self, dial, delta)


@dataclass(frozen=True)
class DiscreteCurve:
    """Histograms with discrete Gaussian noise, in each of which the unit moves one cell by one.

    Small noise on integers is told apart a little better than the Gaussian of the same epsilon at
    one delta, so that curve would accuse it.

    Attributes:
        sigma: parameter of the noise, as claimed.
        histograms: how many there are.
    """

    sigma: float
    histograms: int

    def deltas(self, dial: float, epsilons: Floats) -> Floats:
        """Return the least delta at each epsilon: exact, from the law of the sum of the noise.

        With total noise n over h moved cells, the loss is (n + h / 2) / sigma^2.
        """
        sigma = self.sigma / dial
        reach = math.ceil(12 * sigma) + 2
        law = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * sigma**2))
        law /= law.sum()
        total = law
        for _ in range(self.histograms - 1):
            total = np.convolve(total, law)
        noise = np.arange(len(total)) - self.histograms * reach
        loss = (noise + self.histograms / 2) / sigma**2
        # delta at e is the sum of P(loss) (1 - exp(e - loss)) over losses above e
        costly = loss > 0
        loss, total = loss[costly], total[costly]
        with_unit, without = (
            np.append(np.cumsum(masses[::-1])[::-1], 0.0)
            for masses in (total, total * np.exp(-loss))
        )
        first = np.searchsorted(loss, epsilons, side="right")
        least = with_unit[first] - np.exp(epsilons) * without[first]
        return np.asarray(np.maximum(least, 0.0))

    def epsilon(self, dial: float, delta: float) -> float:
        """Return the epsilon at a delta."""
        return _solved(self, dial, delta)


@dataclass(frozen=True)
class StepsCurve:
    """Poisson-subsampled Gaussian steps after a Gaussian mechanism, as DP-SGD after histograms.

    Attributes:
        noise: standard deviation of a step's noise over the clipping norm, as claimed.
        rate: sampling rate.
        steps: number of steps.
        mu: of the Gaussian mechanism before them; 0 where there is none.
    """

    noise: float
    rate: float
    steps: int
    mu: float = 0.0

    def deltas(self, dial: float, epsilons: Floats) -> Floats:
        """Return an upper bound of delta at each epsilon, both directions of the adjacency."""
        losses = _losses(self, round(math.log(dial), 9))
        return np.asarray(losses.get_delta_for_epsilon(epsilons))

    def epsilon(self, dial: float, delta: float) -> float:
        """Return the epsilon at a delta."""
        return float(_losses(self, round(math.log(dial), 9)).get_epsilon_for_delta(delta))


@lru_cache(maxsize=256)
def _losses(curve: StepsCurve, log_dial: float) -> Any:
    """Privacy loss distribution of the steps at a dial, by dp_accounting, rounded up."""
    from dp_accounting.pld import privacy_loss_distribution as pld

    dial = math.exp(log_dial)
    noise = curve.noise / dial
    growth = math.expm1(min(noise**-2, 50.0))
    total = math.hypot(curve.mu * dial, curve.rate * math.sqrt(curve.steps * growth))
    # fine against the spread of all losses together, and at most some ten thousand points a step
    fine = min(total, 5.0) * min(4e-3, math.sqrt(1e-3 / (curve.steps + 1)))
    widest = max(10 / noise + 0.5 / noise**2, 10 * curve.mu * dial)
    settings: dict[str, Any] = {"value_discretization_interval": max(fine, widest / 10_000)}
    composed = pld.from_gaussian_mechanism(noise, sampling_prob=curve.rate, **settings)
    if curve.steps > 1:
        composed = composed.self_compose(curve.steps)
    if curve.mu:
        composed = composed.compose(pld.from_gaussian_mechanism(1 / (curve.mu * dial), **settings))
    return composed


@dataclass(frozen=True)
class PureCurve:
    """A mechanism that is private at delta 0, as the exponential mechanism.

    Attributes:
        claimed: its epsilon.
    """

    claimed: float

    def deltas(self, dial: float, epsilons: Floats) -> Floats:
        """Return what randomised response has, the worst mechanism of this epsilon."""
        top = self.claimed * dial
        return np.maximum(-np.expm1(epsilons - top), 0.0) / (1 + math.exp(-top))

    def epsilon(self, dial: float, delta: float) -> float:
        """Return the epsilon itself: no part of it is left to delta."""
        return self.claimed * dial


@dataclass(frozen=True)
class ConcentratedCurve:
    """Whatever has Renyi divergence at most a * rho at every order a above 1.

    Attributes:
        rho: as claimed (zero-concentrated privacy, Bun and Steinke, arXiv 1605.02065).
    """

    rho: float

    def deltas(self, dial: float, epsilons: Floats) -> Floats:
        """Return delta by the best order (Canonne, Kamath, Steinke, 2004.00010, Corollary 13)."""
        rho = self.rho * dial**2
        orders = 1 + np.geomspace(1e-3, 1e3, 400)[:, None]
        exponent = (orders - 1) * (orders * rho - epsilons)
        room = orders * np.log1p(-1 / orders) - np.log(orders - 1)
        return np.asarray(np.exp(np.minimum((exponent + room).min(axis=0), 0.0)))

    def epsilon(self, dial: float, delta: float) -> float:
        """Return the epsilon at a delta."""
        return _solved(self, dial, delta)


def _solved(curve: TradeoffCurve, dial: float, delta: float) -> float:
    """Return the least epsilon at which the curve's delta is small enough."""
    return least_epsilon_at(lambda epsilon: curve.deltas(dial, np.array([epsilon]))[0], delta)
