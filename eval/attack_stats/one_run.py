"""An audit in one run: what guesses about many canaries in one data set refute.

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

import numpy as np
import numpy.typing as npt

from dpsynth.eval.attack_stats.tradeoff import GaussianCurve
from dpsynth.eval.core.estimate import LEVEL

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

SHARES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)  # of the canaries: numbers of guesses that are tried
MIN_GUESSES = 6  # guesses; with fewer right ones nothing is refuted at 95 %
MAX_EPSILON = 40.0  # epsilon, above which no difference is made
STEPS = 40  # halvings of an interval


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


def _last(refuted: Callable[[float], bool], steps: int = STEPS) -> float:
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
