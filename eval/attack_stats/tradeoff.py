"""What an attack refutes: from error rates and guesses to the epsilon that cannot hold.

Whoever is (epsilon, delta)-private keeps every test between neighbours to
TPR <= e^epsilon FPR + delta and 1 - FPR <= e^epsilon (1 - TPR) + delta. One pair of rates says
little about one epsilon at a tiny delta; but a mechanism is private at all epsilons at once, by its
trade-off curve (Dong, Roth, Su, arXiv 1905.02383). So the rates are held against the curves of the
same mechanism with less and less noise, and the epsilon of the last curve that they refute is what
they prove (Nasr et al., Tight Auditing of Differentially Private Machine Learning, arXiv
2302.07956, section 3).

The curves are computed here from the libraries, not from the package's own accounting, which they
are there to check.

**An audit in one run**: what guesses about many canaries in one data set refute.
Each of m canaries was put into the data by a fair coin of its own. An attacker sees what was
released and guesses r of the m coins. Privacy keeps the number of right guesses small, whatever the
attack is:

- `chance_of`: if the release is (epsilon, delta)-private, at least v right guesses of r have
  probability at most beta + 2 m delta alpha, with beta = P[B >= v] and alpha = max over i of
  P[v - i <= B < v] / i, for B binomial with r trials of chance e^epsilon / (1 + e^epsilon)
  (Steinke, Nasr and Jagielski, Privacy Auditing with One (1) Training Run, arXiv 2305.08846, the
  main result for approximate privacy).
- `possible`: the same question for a whole trade-off curve (Mahloujifar, Melis and Chaudhuri,
  Auditing f-Differential Privacy in One Run, arXiv 2410.22235, the bound for a fixed number of
  guesses). Let c be the number of right guesses, and let B(p) be the most that an event of
  probability p can have after one canary's coin is turned; B is concave. Turning the coin of a
  canary that was guessed rightly makes the guess wrong and lowers c by one. So for every i, by
  Jensen's inequality, averaged over canaries and coins,

      E[c; c >= i] / m <= B(E[r - c; c >= i - 1] / m).

  A law of c with P[c >= v] = p that needs the least mass below v puts p on v itself and, going
  down, at each i no more than the inequality asks for: any other can be moved down to it without
  breaking an inequality. If even that one needs more than mass 1, no law exists.

The number of guesses must not be chosen by how many were right. Here several are tried, and each
has its part of the error that is allowed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core.estimate import LEVEL

Floats = npt.NDArray[np.float64]

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
        """Return the least delta at each epsilon (Balle and Wang, arXiv 1805.06530, Theorem 8)."""
        from scipy.special import log_ndtr, ndtr

        mu = self.mu * dial
        first = ndtr(mu / 2 - epsilons / mu)
        second = np.exp(epsilons + log_ndtr(-mu / 2 - epsilons / mu))
        return np.asarray(np.maximum(first - second, 0.0))

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
    """Return the least epsilon at which the curve's delta is small enough, to 1e-9."""
    low, high = 0.0, 1.0
    while curve.deltas(dial, np.array([high]))[0] > delta:
        low, high = high, 2 * high
    if curve.deltas(dial, np.array([0.0]))[0] <= delta:
        return 0.0
    while high - low > 1e-9 * max(1.0, high):
        middle = (low + high) / 2
        if curve.deltas(dial, np.array([middle]))[0] > delta:
            low = middle
        else:
            high = middle
    return high


Bools = npt.NDArray[np.bool_]

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)  # of the canaries: numbers of guesses that are tried
MIN_GUESSES = 6  # guesses; with fewer right ones nothing is refuted at 95 %
MAX_EPSILON = 40.0  # epsilon, above which no difference is made
HALVINGS = 40  # halvings of an interval


@dataclass(frozen=True)
class OneRun:
    """What the guesses of one audit refute.

    Attributes:
        canaries: m.
        guesses: r, of which the bound on ``epsilon`` is made.
        correct: right ones among them.
        epsilon: the release is not (epsilon, delta)-private for any smaller epsilon, with 95 %
            confidence; 0 where nothing is refuted.
        curve_guesses: r, of which the bound on ``curve_epsilon`` is made.
        curve_correct: right ones among them.
        curve_epsilon: the same by Gaussian trade-off curves: the release is not mu-GDP for the mu
            that has this epsilon at delta, nor for a smaller one.
    """

    canaries: int
    guesses: int
    correct: int
    epsilon: float
    curve_guesses: int
    curve_correct: int
    curve_epsilon: float


def audited(scores: Floats, included: Bools, delta: float) -> OneRun:
    """Guess by scores, and say what the right guesses refute.

    Args:
        scores: one a canary, higher where it seems to be in.
        included: whether each canary is, by a fair coin of its own.
        delta: at which epsilon is bounded.

    Raises:
        ValueError: a score is no finite number, or there are too few canaries.
    """
    m, fails = len(scores), (1 - LEVEL) / len(SHARES)
    if m < MIN_GUESSES or not np.isfinite(scores).all():
        raise ValueError(f"an audit needs {MIN_GUESSES} canaries or more, with finite scores")
    counts = [(r, right(scores, included, r)) for r in numbers_of_guesses(m)]
    plain = [(least_epsilon(m, r, v, delta, fails), r, v) for r, v in counts]
    curved = [(least_on_curve(m, r, v, delta, fails), r, v) for r, v in counts]
    (epsilon, r, v), (on_curve, r_curve, v_curve) = max(plain), max(curved)
    return OneRun(m, r, v, epsilon, r_curve, v_curve, on_curve)


def numbers_of_guesses(canaries: int) -> list[int]:
    """Return the numbers of guesses that are tried, each even: half "in", half "out"."""
    maximum = canaries - canaries % 2
    return [min(maximum, max(MIN_GUESSES, 2 * round(share * canaries / 2))) for share in SHARES]


def right(scores: Floats, included: Bools, guesses: int) -> int:
    """Count right guesses: the highest half of them says "in", the lowest half "out"."""
    half = min(guesses, len(scores)) // 2
    order = np.argsort(scores, kind="stable")
    return int(included[order[len(order) - half :]].sum() + (~included[order[:half]]).sum())


def chance_of(canaries: int, guesses: int, correct: int, epsilon: float, delta: float) -> float:
    """Bound the probability of so many right guesses under (epsilon, delta)."""
    from scipy.stats import binom

    rate = 1 / (1 + math.exp(-epsilon))
    beta = float(binom.sf(correct - 1, guesses, rate))
    if delta == 0 or correct == 0:
        return beta
    below = np.cumsum(binom.pmf(np.arange(correct - 1, -1, -1), guesses, rate))
    alpha = float((below / np.arange(1, correct + 1)).max())
    return min(1.0, beta + 2 * canaries * delta * alpha)


def least_epsilon(
    canaries: int, guesses: int, correct: int, delta: float, fails: float = 1 - LEVEL
) -> float:
    """Return the largest epsilon that so many right guesses refute; 0 where they refute none."""

    def refuted(epsilon: float) -> bool:
        return chance_of(canaries, guesses, correct, epsilon, delta) < fails

    return _last(refuted)


def possible(
    canaries: int, guesses: int, correct: int, chance: float, before: Callable[[float], float]
) -> bool:
    """Say whether so many right guesses can have at least this probability.

    Args:
        canaries: m.
        guesses: r.
        correct: v.
        chance: p.
        before: the inverse of B: the least probability of an event that has this one after a
            canary's coin was turned.
    """
    hit, missed = chance * correct / canaries, chance * (guesses - correct) / canaries
    for i in range(correct - 1, -1, -1):
        more = before(min(hit, 1.0)) - missed
        if more <= 0:  # enough is missed already, and further down it stays so
            break
        missed += more
        hit += more * i / (guesses - i)
    return hit + missed <= guesses / canaries * (1 + 1e-12)


def gaussian_before(mu: float) -> Callable[[float], float]:
    """Return the inverse of B for a Gaussian mechanism: B(p) = Phi(Phi^-1(p) + mu)."""
    from scipy.special import ndtr, ndtri

    def before(chance: float) -> float:
        return float(ndtr(ndtri(chance) - mu))

    return before


def curve_before(epsilons: Floats, deltas: Floats) -> Callable[[float], float]:
    """Return the inverse of B for what is (epsilon, delta)-private at several pairs at once.

    At each pair B is at most e^epsilon p + delta and 1 - e^-epsilon (1 - delta - p); see
    `dpsynth.eval.attack_stats.result.ceiling`.
    """
    grown = np.exp(epsilons)

    def before(chance: float) -> float:
        first = ((chance - deltas) / grown).max()
        second = (1 - deltas - grown * (1 - chance)).max()
        return max(0.0, float(first), float(second))

    return before


def least_on_curve(
    canaries: int, guesses: int, correct: int, delta: float, fails: float = 1 - LEVEL
) -> float:
    """Return the epsilon of the largest mu that so many right guesses refute; 0 if none."""

    def refuted(epsilon: float) -> bool:
        mu = gaussian_mu(epsilon, delta)
        return not possible(canaries, guesses, correct, fails, gaussian_before(mu))

    return _last(refuted, 20)


def gaussian_mu(epsilon: float, delta: float) -> float:
    """Return the mu of the Gaussian mechanism that has this epsilon at delta; independent route."""
    low, high = 0.0, 1.0
    while GaussianCurve(high).deltas(1.0, np.array([epsilon]))[0] <= delta:
        low, high = high, 2 * high
    while high - low > 1e-6 * high:
        middle = (low + high) / 2
        if GaussianCurve(middle).deltas(1.0, np.array([epsilon]))[0] <= delta:
            low = middle
        else:
            high = middle
    return low


def _last(refuted: Callable[[float], bool], steps: int = HALVINGS) -> float:
    """Return the largest epsilon that is refuted, by halving; smaller ones are refuted too."""
    if not refuted(0.0):
        return 0.0
    low, high = 0.0, MAX_EPSILON
    for _ in range(steps):
        middle = (low + high) / 2
        if refuted(middle):
            low = middle
        else:
            high = middle
    return low
