"""The privacy filter: what a sequence of fits may spend when budgets are chosen as results come in.

An office chooses the next fit, its budget included, after it has seen the earlier ones. Composition
theorems for budgets that were fixed beforehand do not cover that; a *filter* does (Rogers, Roth,
Ullman, Vadhan, Privacy Odometers and Filters, arXiv 1605.08294). It is asked before each fit
whether the fits so far *and this one* are within (epsilon, delta), and a fit that it refuses is not
run. This one admits a sequence that satisfies either of two conditions:

- **plain**: the epsilons add up to at most epsilon, the deltas to at most 0.9 delta;
- **Renyi**: the divergences of all events of all fits at one order a add up to at most B, where
  (a, B) converts to (epsilon, 0.1 delta).

**Each condition alone** is a filter. Plain: Rogers et al., Theorem 3.6. Renyi: Feldman and Zrnic,
Individual Privacy Accounting via a Renyi Filter, arXiv 2008.11193, section 4. In short:
let L_t = prod_{i <= t} P_i / Q_i be the ratio of the laws of the first t results with and without
a unit, and r_i a bound, *set by the past*, on the divergence of result i given the past. Then
E_Q[(P_i / Q_i)^a | past] <= exp((a - 1) r_i), so that L_t^a exp(-(a - 1) sum_{i <= t} r_i) is a
supermartingale under Q that starts at 1. Where the r_i never add up to more than B,
E_Q[L_t^a] <= exp((a - 1) B): the whole has divergence at most B at order a, and Proposition 12 of
Canonne, Kamath, Steinke (arXiv 2004.00010) makes it (epsilon, 0.1 delta).

**Either of them** is a filter, because delta is split. Let S be a set of histories (all results, in
order) that this filter can let happen, S1 those whose spends satisfy plain when the history ends,
S2 the others.
1. The last fit was admitted with all before it, so a history in S2 satisfies Renyi at its end.
2. Sums only grow. So a history in S1 satisfied plain at every step, and one in S2 Renyi.
3. Let M1 be the same office, stopped before the first fit that would break plain. M1 is run under
   the plain filter, hence (epsilon, 0.9 delta)-private; histories of S1 never stop it, so they have
   the same probabilities in M1 as in truth: P(S1) <= e^epsilon Q(S1) + 0.9 delta.
4. In the same way P(S2) <= e^epsilon Q(S2) + 0.1 delta. S1 and S2 are disjoint: the sum is
   P(S) <= e^epsilon Q(S) + delta.
Without the split the claim is wrong: with the full delta for each condition, an office that goes on
by one condition where its first result was telling, and by the other where it was not, collects
parts of both deltas (tests/privacy/test_adaptive_offices.py has such an office). For the same
reason the order is not chosen after the fact, and composing the exact privacy loss of what happened
to be run is no filter either.

**Assumed.** A fit's (epsilon, delta) holds for its events, and each event's bound holds whatever
the earlier results were; both may depend on the past. The order depends on the public (epsilon,
delta) of the cap alone. A fit counts with its full budget from the moment when it is admitted,
whatever becomes of it. Fits may overlap in time (Haney et al., arXiv 2309.05901). A sum over *some*
of the fits (of a tier, of 365 days) bounds what those reveal to somebody who knows the results of
all others. A cap that was changed in view of results was chosen after the fact, and is not covered.

Renyi divergences of events at one integer order, rounded up, and what they mean as an epsilon.

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
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache

from dpsynth.errors import InputError
from dpsynth.privacy.answer_events import LinkCounts, RowSums, StaySums, TeacherVotes, TopChoice
from dpsynth.privacy.events import (
    ChosenHistograms,
    CodeDiscovery,
    Event,
    JointHistograms,
    KeyCounts,
    LaplaceCounts,
)

PLAIN_PART = 0.9
"""Part of delta for the plain condition; the rest is for the Renyi condition."""


@dataclass(frozen=True)
class Spend:
    """What one fit may cost: its claim, and the events that the claim is about.

    Attributes:
        epsilon: above 0.
        delta: at least 0 and below 1.
        events: all mechanisms of the fit on private rows. Where they are not known, leave them
            empty: the fit then counts by its claim alone.
    """

    epsilon: float
    delta: float
    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        """Refuse what cannot be counted."""
        if not 0 < self.epsilon <= sys.float_info.max:
            raise InputError("the epsilon of a fit must be a finite number above 0")
        if not 0 <= self.delta < 1:
            raise InputError("the delta of a fit must be at least 0 and below 1")

    @property
    def exact(self) -> tuple[Fraction, Fraction]:
        """Epsilon and delta as the decimals that they are written as."""
        return exactly(self.epsilon), exactly(self.delta)

    def divergence(self, order: int) -> Fraction | float:
        """Renyi divergence of all events, in nats; infinite where the events are not known."""
        return renyi_sum(self.events, order) if self.events else math.inf


@dataclass(frozen=True)
class Total(Spend):
    """What many fits cost together, as the ledger keeps it: exact sums in the place of events."""

    exact_epsilon: Fraction = Fraction(0)
    exact_delta: Fraction = Fraction(0)
    divergences: Mapping[int, Fraction | float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Sums may be beyond what one fit can cost."""

    @classmethod
    def of(
        cls, epsilon: Fraction, delta: Fraction, divergences: Mapping[int, Fraction | float]
    ) -> Total:
        """Take exact sums, with the divergence at each order that a cap needs."""
        return cls(upwards(epsilon), upwards(delta), (), epsilon, delta, divergences)

    @property
    def exact(self) -> tuple[Fraction, Fraction]:
        """The sums of epsilons and of deltas."""
        return self.exact_epsilon, self.exact_delta

    def divergence(self, order: int) -> Fraction | float:
        """Return the sum of divergences; its order must be one of those that were summed."""
        return self.divergences[order]


@dataclass(frozen=True)
class PrivacyFilter:
    """A cap of (epsilon, delta) on a sequence of fits whose budgets may depend on the past.

    Attributes:
        epsilon: above 0.
        delta: above 0 and below 1; 0.9 of it serves the plain sum, 0.1 the Renyi sum.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        """Refuse what is no cap."""
        if not 0 < self.epsilon <= sys.float_info.max:
            raise InputError("the epsilon of a cap must be a finite number above 0")
        if not 0 < self.delta < 1:
            raise InputError("the delta of a cap must be above 0 and below 1")

    @property
    def order(self) -> int | None:
        """Order of the Renyi sum, by the cap alone; None where only the plain sum serves."""
        return best_order(self.epsilon, self._renyi_delta)

    @property
    def plain_delta(self) -> Fraction:
        """Most that the deltas may add up to in the plain sum."""
        return exactly(PLAIN_PART) * exactly(self.delta)

    def admits(self, spends: Sequence[Spend]) -> bool:
        """Whether these fits, the one that is asked for included, are within the cap.

        Sums are of decimals as they are written, so that three fits of 0.1 fit a cap of 0.3.
        """
        return self._plain(spends) <= exactly(self.epsilon) or self._within_renyi(spends)

    def used(self, spends: Sequence[Spend]) -> float:
        """Epsilon that these fits have used of the cap's, at its delta; rounded up.

        The smaller of the plain sum of epsilons and of the epsilon that the Renyi sum converts to;
        infinite where the deltas pass the cap's and the Renyi sum is not known. At most the cap's
        epsilon exactly where ``admits`` is true. Before any fit it is 0.
        """
        renyi = self._renyi(spends)
        if self._within_renyi(spends):  # floats must not contradict what is admitted
            renyi = min(renyi, self.epsilon)
        else:
            renyi = max(renyi, math.nextafter(self.epsilon, math.inf))
        return min(upwards(self._plain(spends)), renyi)

    def plain_room(self, spends: Sequence[Spend]) -> tuple[Fraction, Fraction]:
        """Epsilon and delta that the plain sum leaves for one more fit; below 0 where passed."""
        epsilons = sum((spend.exact[0] for spend in spends), Fraction(0))
        deltas = sum((spend.exact[1] for spend in spends), Fraction(0))
        return exactly(self.epsilon) - epsilons, self.plain_delta - deltas

    @property
    def _renyi_delta(self) -> float:
        return float((1 - exactly(PLAIN_PART)) * exactly(self.delta))

    def _plain(self, spends: Sequence[Spend]) -> Fraction | float:
        """Sum of the epsilons; infinite where the deltas do not fit."""
        room, delta_room = self.plain_room(spends)
        return exactly(self.epsilon) - room if delta_room >= 0 else math.inf

    def _renyi(self, spends: Sequence[Spend]) -> float:
        """Epsilon of the Renyi sum; infinite where it is not known."""
        if self.order is None:
            return math.inf
        return renyi_epsilon(self._divergence(spends), self.order, self._renyi_delta)

    def _within_renyi(self, spends: Sequence[Spend]) -> bool:
        if self.order is None:
            return False
        budget = renyi_budget(self.epsilon, self.order, self._renyi_delta)
        return self._divergence(spends) <= budget

    def _divergence(self, spends: Sequence[Spend]) -> float:
        assert self.order is not None
        divergences = [spend.divergence(self.order) for spend in spends]
        if math.inf in divergences:
            return math.inf
        # rounded once, as by math.fsum
        return float(sum((Fraction(value) for value in divergences), Fraction(0)))


@lru_cache(maxsize=4096)
def exactly(value: float) -> Fraction:
    """Give the decimal that a number is written as, as a fraction: sums of it are exact."""
    return Fraction(repr(float(value)))


def rounded_down(value: Fraction | float, digits: int) -> float:
    """Round to significant digits, never upwards.

    >>> rounded_down(Fraction(1, 6), 3), rounded_down(0.3, 3)
    (0.166, 0.3)
    """
    exact = value if isinstance(value, Fraction) else exactly(value)
    context = Context(digits, ROUND_FLOOR)
    return float(context.divide(Decimal(exact.numerator), Decimal(exact.denominator)))


def upwards(value: Fraction | float) -> float:
    """Give the smallest float that is written as this much at least; infinity beyond all floats."""
    try:
        near = float(value)
    except OverflowError:
        return math.inf
    if math.isfinite(near) and exactly(near) < value:
        return math.nextafter(near, math.inf)
    return near


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
