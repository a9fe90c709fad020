"""Attack rates: what a plan lets the best membership attack reach, from all of its events.

A membership attack decides whether one unit is in the data. Of those who are in it finds a share
(the true-positive rate, TPR); of those who are not it accuses a share (the false-positive rate,
FPR). Let delta(e) be the plan's privacy profile: what `accounting` gives for all events together at
epsilon e, for both directions of the adjacency. Then for every attack, every e >= 0 and every FPR a

    TPR <= e^e a + delta(e)   and   TPR <= 1 - e^-e (1 - delta(e) - a).

The first is the definition of (e, delta(e))-privacy for the set of outcomes at which the attack
says "in"; the second is the same for its complement, with and without the unit exchanged (Wasserman
and Zhou, A Statistical Framework for Differential Privacy, JASA 2010, Theorem 2.4; Kairouz, Oh,
Viswanath, arXiv 1311.0776, Theorem 2.1). The least of them over all e is the bound here. For the
best attack on the pair of laws that dominates the plan it is attained (Dong, Roth, Su, Gaussian
Differential Privacy, arXiv 1905.02383, Proposition 2.12), so one pair (epsilon, delta) gives a
weaker bound: at epsilon 1 and delta 1e-6, .272 at 10 % false positives, where counts with Gaussian
noise have .148.

**Rounding.** Profiles are upper bounds, by the grid of losses and by what `accounting` adds to
delta, so each bound is one too. Between two multiples of the grid's step the discretised profile is
linear in exp(e), and both bounds are linear in exp(e) or exp(-e): their least over these multiples
is their least over all e. A few multiples are left out far beyond the losses of a plan, which can
only raise a bound. Rates are rounded up.

**Advantage.** The most by which the TPR of an attack exceeds its FPR is delta(0), the total
variation between the two laws.

**Several units.** A person with at most k units is found at a rate of at most T(T(...T(a))), k
times, T being the bound for one unit: each of them is removed in turn (Dong, Roth, Su, Theorem
2.14). T is concave and does not decrease, so this is concave as well, and its greatest advantage
lies where ternary search finds it. The advantage between the last two points is bounded by the
rate at the upper one less the FPR at the lower one.

These are bounds from the noise that was planned. An audit, which attacks, gives rates that were
reached. The two are never one number.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from dpsynth._util.formatting import percent_at_most
from dpsynth._util.strict_json import check_keys, names, number
from dpsynth.errors import ArtifactError, InputError
from dpsynth.privacy.accounting import profile
from dpsynth.privacy.events import Event, round_up

FALSE_POSITIVES = (0.01, 0.1)
"""The false-positive rates at which certificates state the greatest true-positive rate."""

_STATED_OVER = 1.0001  # computed: rounding on another machine must not contradict a claim
_TOLERANCE = 1e-3  # relative; versions of the accountant differ by less
_LEAST = 1.0005  # of a risk: true over false positives, so that the margin leaves something
_MAX_EXPONENT = 700.0  # e^700 is about the largest float
_NEAR = 1e-7  # of false-positive rates, at which the search for the greatest advantage ends


@dataclass(frozen=True)
class AttackRates:
    """Upper bounds on what any membership attack on the results of a plan can reach.

    Attributes:
        tpr_at_1_percent: greatest true-positive rate at a false-positive rate of 1 %.
        tpr_at_10_percent: the same at 10 %.
        advantage: greatest difference of the two rates, at any false-positive rate.
    """

    tpr_at_1_percent: float
    tpr_at_10_percent: float
    advantage: float

    @classmethod
    def from_dict(cls, document: Any, place: str) -> Self:
        """Read strictly what ``vars`` of one wrote.

        Raises:
            ArtifactError: anything is missing, unknown, of the wrong type or no rate.
        """
        check_keys(document, place, names(cls))
        rates = {key: number(document[key], f"{place}.{key}", above=0) for key in names(cls)}
        if max(rates.values()) > 1:
            raise ArtifactError(f"{place}: a rate is above 1")
        return cls(**rates)

    def agrees(self, other: AttackRates) -> bool:
        """Say whether no rate differs by more than versions of the accountant do."""
        pairs = zip(vars(self).values(), vars(other).values(), strict=True)
        return all(abs(one - another) <= _TOLERANCE * another for one, another in pairs)

    @property
    def words(self) -> str:
        """Say the rates in one line.

        >>> AttackRates(0.05, 0.2, 0.15).words
        'at most 5 % found at 1 % false alarms, 20 % at 10 %; advantage at most 15 %'
        """
        low, high, most = map(percent_at_most, vars(self).values())
        return f"at most {low} found at 1 % false alarms, {high} at 10 %; advantage at most {most}"


@dataclass(frozen=True)
class AttackRisk:
    """The attack rate that is allowed: a greatest true-positive rate at a false-positive rate.

    Attributes:
        tpr: share of those in the data who may be found; above ``fpr`` and below 1.
        fpr: share of those not in the data who are accused; above 0.
    """

    tpr: float
    fpr: float

    def __post_init__(self) -> None:
        """Refuse what is no rate, and what no noise can reach.

        Raises:
            InputError: it says which of them, and what to ask for.
        """
        if not (0 < self.fpr < 1 and 0 < self.tpr < 1):
            raise InputError(
                f"risk {self}: both rates must be above 0 and below 1, as in {_EXAMPLE}"
            )
        if self.tpr < _LEAST * self.fpr:
            alarms = f"{100 * self.fpr:.10g} %"
            raise InputError(
                f"risk {self}: no noise can keep to this, because random guesses with {alarms} "
                f"false alarms find {alarms}; allow a larger share found"
            )

    def __str__(self) -> str:
        """Write it as it is asked for.

        >>> str(AttackRisk(0.05, 0.01)), AttackRisk(0.05, 0.01).words
        ('0.05@0.01', 'at most 5 % found at 1 % false alarms')
        """
        return f"{self.tpr:.10g}@{self.fpr:.10g}"

    @property
    def words(self) -> str:
        """Say it in words."""
        return f"at most {100 * self.tpr:.10g} % found at {100 * self.fpr:.10g} % false alarms"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a risk such as 0.05@0.01.

        Raises:
            InputError: the text is not two rates with @ between them, or no noise can reach it.
        """
        found = _RISK.fullmatch(text)
        if found is None:
            raise InputError(
                f"a risk is two numbers with @ between them, such as {_EXAMPLE}: at most 5 % found "
                "at 1 % false alarms"
            )
        return cls(*map(float, found.groups()))


_EXAMPLE = "0.05@0.01"
_RISK = re.compile(r"([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)@([0-9]*\.?[0-9]+(?:e-?[0-9]+)?)", re.ASCII)


@lru_cache(maxsize=256)
def worst_case_rates(events: tuple[Event, ...], units: int = 1) -> AttackRates:
    """Bound every membership attack on all events together, rounded up.

    Args:
        events: all mechanisms of a plan, with their noise.
        units: how many units one person has at most.

    Raises:
        InputError: there is no event, or the noise of one is not decided.
    """
    curve = _Curve(*profile(events), units)
    return AttackRates(*map(_stated, (*map(curve.tpr, FALSE_POSITIVES), curve.advantage())))


def rates_of_claim(epsilon: float, delta: float) -> AttackRates:
    """Bound every membership attack on whatever is (epsilon, delta)-private, rounded up.

    It uses these two numbers alone, so it is weaker than `worst_case_rates` of the events.
    """
    if epsilon > _MAX_EXPONENT or delta >= 1:
        return AttackRates(1.0, 1.0, 1.0)
    curve = _Curve(np.array([epsilon]), np.array([delta]), 1)
    advantage = delta + (1 - delta) * math.tanh(epsilon / 2)
    return AttackRates(*map(_stated, (*map(curve.tpr, FALSE_POSITIVES), advantage)))


def highest_tpr(events: tuple[Event, ...], fpr: float, units: int = 1) -> float:
    """Bound the true-positive rate of every attack at one false-positive rate, rounded up."""
    return _stated(_Curve(*profile(events), units).tpr(fpr))


def gaussian_separation(tpr: float, fpr: float) -> float:
    """Return the mu of the Gaussian mechanism whose best attack has these rates; for searches only.

    >>> round(gaussian_separation(0.389144, 0.1), 4)
    1.0
    """
    from scipy.special import ndtri

    return float(ndtri(tpr) - ndtri(fpr))


@dataclass(frozen=True)
class _Curve:
    """The bound of a privacy profile, at every false-positive rate.

    Attributes:
        epsilons: of the profile, ``[points]``.
        deltas: of the profile, ``[points]``.
        units: how many units one person has at most.
    """

    epsilons: NDArray[np.float64]
    deltas: NDArray[np.float64]
    units: int

    def tpr(self, fpr: float) -> float:
        """Return the bound at a false-positive rate."""
        rate, grown = fpr, np.exp(self.epsilons)
        for _ in range(self.units):
            low = float((grown * rate + self.deltas).min())
            high = float((1 - (1 - self.deltas - rate) / grown).min())
            rate = min(low, high, 1.0)
            if rate == 1:
                break
        return rate

    def advantage(self) -> float:
        """Return the greatest excess of the bound over the false-positive rate."""
        if self.units == 1:
            return float(self.deltas[0])
        low, high = 0.0, 1.0
        while high - low > _NEAR:
            left, right = low + (high - low) / 3, high - (high - low) / 3
            if self.tpr(left) - left < self.tpr(right) - right:
                low = left
            else:
                high = right
        return min(1.0, self.tpr(high) - low)


def _stated(rate: float) -> float:
    return min(1.0, round_up(_STATED_OVER * rate))
