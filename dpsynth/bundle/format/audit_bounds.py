"""What right guesses of an audit refute, computed again where a bundle is written or checked.

The bound is that of `one_run`, which makes audits and is not at hand where a bundle is
verified: at least v right guesses of r about m canaries have probability at most
beta + 2 m delta alpha under (epsilon, delta), with beta = P[B >= v] and alpha = max over i of
P[v - i <= B < v] / i, for B binomial with r trials of chance e^epsilon / (1 + e^epsilon) (Steinke,
Nasr and Jagielski, arXiv 2305.08846, the main result for approximate privacy).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

TRIED = 7  # numbers of guesses that an audit tries; they share the error that is allowed
FAILS = 0.05 / TRIED  # of a bound on epsilon
ALARM = 1e-3 / (2 * TRIED)  # of "the claim is refuted", by two bounds
MAX_EPSILON = 40.0  # epsilon, above which an audit makes no difference
TOLERANCE = 1e-3  # of epsilon


@dataclass(frozen=True)
class Guesses:
    """What an attacker got right.

    Attributes:
        canaries: m, each of them in by a fair coin.
        guesses: r of the coins were guessed.
        correct: v guesses were right.
        delta: of the claim.
    """

    canaries: int
    guesses: int
    correct: int
    delta: float

    def chance(self, epsilon: float) -> float:
        """Bound the probability of so many right guesses under (epsilon, delta)."""
        r, v = self.guesses, self.correct
        if v == 0:
            return 1.0
        places = np.arange(r + 1)
        choices = np.concatenate([[0.0], np.log((r - places[1:] + 1) / places[1:]).cumsum()])
        missed = -epsilon - math.log1p(math.exp(-epsilon))  # logarithm of a wrong guess's chance
        law = np.exp(choices + r * missed + places * epsilon)
        below = law[v - 1 :: -1].cumsum() / np.arange(1, v + 1)
        return min(1.0, float(law[v:].sum() + 2 * self.canaries * self.delta * below.max()))

    def prove(self, epsilon: float) -> bool:
        """Say whether this is the largest epsilon that they refute, within `TOLERANCE`."""
        low = epsilon - TOLERANCE
        return (low < 0 or self.chance(low) < FAILS) and not self.prove_more(epsilon)

    def prove_more(self, epsilon: float) -> bool:
        """Say whether they refute a larger epsilon than this, beyond `TOLERANCE`."""
        high = epsilon + TOLERANCE
        return high <= MAX_EPSILON and self.chance(high) < FAILS

    def refute(self, epsilon: float) -> bool:
        """Say whether they refute a claim of this epsilon, by this bound alone."""
        return self.chance(epsilon) < ALARM
