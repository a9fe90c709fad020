"""Accounting over several fits: one order, one condition for all fits, all events of each.

The proof of the privacy filter says "for one order that the cap fixes" and "all fits by the same
condition". Each is a quantifier that a slip may swap: an order chosen once the fits are known, some
fits counted by their claims and others by their divergences, the largest in the place of the sum.
So the filter is held, on hundreds of histories near the edge of their caps, against the proof's
words written out; and each swapped version is told apart from it by one of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cache
from itertools import chain, combinations

import numpy as np
import pytest

from dpsynth.privacy import (
    ChosenHistograms,
    Event,
    JointHistograms,
    PoissonSgd,
    PrivacyFilter,
    Spend,
)
from dpsynth.privacy.filter import renyi

DELTA = 1e-5
Admits = Callable[[float, Sequence[Spend]], bool]
EVENTS: tuple[tuple[Event, ...], ...] = (
    (JointHistograms("counts", 4, 1, 40.0),),
    (JointHistograms("counts", 9, 3, 60.0), ChosenHistograms("pairs", 5, 3, 20.0)),
    (PoissonSgd("steps", 0.01, 300, 1.2),),
    (PoissonSgd("steps", 0.001, 100, 0.6),),
    (PoissonSgd("steps", 0.002, 1000, 0.8),),
    (JointHistograms("counts", 2, 1, 30.0), PoissonSgd("steps", 0.02, 200, 2.0)),
    tuple(JointHistograms(f"counts {part}", 4, 1, 30.0) for part in range(5)),
    tuple(PoissonSgd(f"steps {part}", 0.01, 300, 1.2) for part in range(3)),
)


def budget(epsilon: float, order: int) -> float:
    """Largest divergence that is (epsilon, 0.1 delta): Canonne, Kamath, Steinke, Prop. 12."""
    room = math.log1p(-1 / order) - (math.log(0.1 * DELTA) + math.log(order)) / (order - 1)
    return epsilon - room


@cache
def order_of(epsilon: float) -> int | None:
    """The order of a cap: at which it leaves most for Gaussian noise."""
    order = max(range(2, 1025), key=lambda one: budget(epsilon, one) / one)
    return order if budget(epsilon, order) > 0 else None


@cache
def divergence(events: tuple[Event, ...], order: int) -> float:
    return math.fsum(renyi(event, order) for event in events) if events else math.inf


def plain(epsilon: float, spends: Sequence[Spend]) -> bool:
    def exact(values: Sequence[float]) -> Fraction:
        return sum((Fraction(repr(value)) for value in values), Fraction(0))

    within = exact([spend.epsilon for spend in spends]) <= Fraction(repr(epsilon))
    return within and exact([spend.delta for spend in spends]) <= Fraction(9, 10) * Fraction(
        repr(DELTA)
    )


def by_order(epsilon: float, spends: Sequence[Spend], order: int) -> bool:
    return math.fsum(divergence(s.events, order) for s in spends) <= budget(epsilon, order) - 1e-12


def proved(epsilon: float, spends: Sequence[Spend]) -> bool:
    """All fits by the sum of their claims, or all of them by the one order of the cap."""
    order = order_of(epsilon)
    return plain(epsilon, spends) or (order is not None and by_order(epsilon, spends, order))


def real(epsilon: float, spends: Sequence[Spend]) -> bool:
    return PrivacyFilter(epsilon, DELTA).admits(spends)


# Swapped quantifiers -----------------------------------------------------------------------------


def any_order(epsilon: float, spends: Sequence[Spend]) -> bool:
    return proved(epsilon, spends) or any(by_order(epsilon, spends, a) for a in range(2, 65))


def an_order_for_each_fit(epsilon: float, spends: Sequence[Spend]) -> bool:
    """Each fit by the order that is best for it."""
    parts = [
        min(divergence(s.events, a) / max(budget(epsilon, a), 1e-9) for a in range(2, 65))
        for s in spends
    ]
    return proved(epsilon, spends) or math.fsum(parts) <= 1


def each_fit_by_its_better_condition(epsilon: float, spends: Sequence[Spend]) -> bool:
    """Some fits by their claims, the others by their divergences, each within the cap."""
    numbers = range(len(spends))
    for some in chain.from_iterable(combinations(numbers, size) for size in numbers):
        rest = [spends[n] for n in numbers if n not in some]
        order = order_of(epsilon)
        if order is not None and plain(epsilon, [spends[n] for n in some]):
            if by_order(epsilon, rest, order):
                return True
    return proved(epsilon, spends)


def the_largest_fit(epsilon: float, spends: Sequence[Spend]) -> bool:
    return all(proved(epsilon, [spend]) for spend in spends)


def the_last_fit_alone(epsilon: float, spends: Sequence[Spend]) -> bool:
    return proved(epsilon, spends[-1:])


def the_first_event_of_each(epsilon: float, spends: Sequence[Spend]) -> bool:
    return proved(epsilon, [Spend(s.epsilon, s.delta, s.events[:1]) for s in spends])


def the_largest_event_of_each(epsilon: float, spends: Sequence[Spend]) -> bool:
    order = order_of(epsilon)
    parts = [
        max((divergence((e,), order or 2) for e in s.events), default=math.inf) for s in spends
    ]
    return plain(epsilon, spends) or (
        order is not None and math.fsum(parts) <= budget(epsilon, order) - 1e-12
    )


def deltas_of_the_largest(epsilon: float, spends: Sequence[Spend]) -> bool:
    worst = max((spend.delta for spend in spends), default=0.0)
    return proved(epsilon, spends) or (
        worst <= 0.9 * DELTA and plain(epsilon, [Spend(s.epsilon, 0.0, s.events) for s in spends])
    )


SWAPPED: dict[str, Admits] = {
    "any order": any_order,
    "an order for each fit": an_order_for_each_fit,
    "each fit by its better condition": each_fit_by_its_better_condition,
    "the largest fit": the_largest_fit,
    "the last fit alone": the_last_fit_alone,
    "the first event of each": the_first_event_of_each,
    "the largest event of each": the_largest_event_of_each,
    "the largest delta": deltas_of_the_largest,
}


@pytest.fixture(scope="module")
def histories() -> list[tuple[float, list[Spend]]]:
    """Caps and fits, in which what is spent is near the cap by one condition or the other."""
    rng = np.random.default_rng(6)
    events = []
    for _ in range(500):
        epsilon = float(rng.choice([0.5, 1.0, 2.0, 3.5]))
        spends = []
        for _ in range(int(rng.integers(1, 6))):
            claim = round(float(rng.choice([0.1, 0.2, 0.35, 0.6, 1.2])) * epsilon, 6)
            delta = float(rng.choice([0.0, 1e-6, 5e-6]))
            which = int(rng.integers(-1, len(EVENTS)))
            spends.append(Spend(claim, delta, EVENTS[which] if which >= 0 else ()))
        events.append((epsilon, spends))
    return events


def test_the_filter_is_what_was_proved(histories: list[tuple[float, list[Spend]]]) -> None:
    for epsilon, spends in histories:
        assert real(epsilon, spends) == proved(epsilon, spends), (epsilon, spends)
        assert PrivacyFilter(epsilon, DELTA).order == order_of(epsilon)
    kinds = Counter(
        (plain(epsilon, spends), proved(epsilon, spends)) for epsilon, spends in histories
    )
    assert min(kinds[kind] for kind in ((True, True), (False, True), (False, False))) >= 20


@pytest.mark.parametrize("name", SWAPPED)
def test_a_swapped_quantifier_is_told_apart(
    name: str, histories: list[tuple[float, list[Spend]]]
) -> None:
    wrong = [history for history in histories if SWAPPED[name](*history) and not real(*history)]
    assert len(wrong) >= 3
