"""Whether an adaptive office can pass the cap that a privacy filter enforces.

The offices below may choose the next fit by all earlier results. Every fit is a pair of laws, with
and without a unit, on a few results, so that the worst of all such offices is found exactly, by
enumeration: its advantage is the sum over histories of max(P - e^epsilon Q, 0).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

import dpsynth.privacy.filter as module
from dpsynth.privacy import JointHistograms, PrivacyFilter, Spend, accounting
from dpsynth.privacy.filter import renyi, renyi_budget

Admits = Callable[[Sequence[Spend]], bool]


@dataclass(frozen=True)
class Law:
    """A mechanism on a few results: their probabilities with and without a unit."""

    p: tuple[float, ...]
    q: tuple[float, ...]

    def divergence(self, order: int) -> float:
        return max(_divergence(self.p, self.q, order), _divergence(self.q, self.p, order))

    def delta(self, epsilon: float) -> float:
        return max(_delta(self.p, self.q, epsilon), _delta(self.q, self.p, epsilon))


@dataclass(frozen=True)
class Fit:
    law: Law
    spend: Spend


def _delta(p: Iterable[float], q: Iterable[float], epsilon: float) -> float:
    return sum(max(a - math.exp(epsilon) * b, 0.0) for a, b in zip(p, q, strict=True))


def _divergence(p: Sequence[float], q: Sequence[float], order: int) -> float:
    if any(b == 0 < a for a, b in zip(p, q, strict=True)):
        return math.inf
    pairs = [(a, b) for a, b in zip(p, q, strict=True) if a > 0]
    logs = [order * math.log(a) + (1 - order) * math.log(b) for a, b in pairs]
    top = max(logs)
    return (top + math.log(sum(math.exp(value - top) for value in logs))) / (order - 1)


def fit(law: Law, epsilon: float, delta: float) -> Fit:
    """A fit with a claim that holds for its law."""
    assert law.delta(epsilon) <= delta + 1e-12
    return Fit(law, Spend(epsilon, delta, (law,)))  # type: ignore[arg-type]


def response(loss: float) -> Fit:
    """Randomised response: the privacy loss is the same either way."""
    p = math.exp(loss) / (1 + math.exp(loss))
    return fit(Law((p, 1 - p), (1 - p, p)), loss * (1 + 1e-12), 0.0)


def telling(loss: float, rarity: float) -> Law:
    """A result that is rare without the unit and exp(loss) times as likely with it."""
    p = rarity * math.exp(loss)
    return Law((p, 1 - p), (rarity, 1 - rarity))


def leak(delta: float) -> Fit:
    """With probability delta everything is told, otherwise nothing."""
    return fit(Law((delta, 1 - delta), (0.0, 1.0)), 1e-9, delta)


def rounded_gaussian(sigma: float, delta: float) -> Fit:
    """A discrete Gaussian with and without a shift of 1, tails in the last cells, and its claim."""
    points = np.arange(-4, 6)
    cells = np.arange(-60, 62)
    masses = [np.exp(-((cells - shift) ** 2) / (2 * sigma**2)) for shift in (1, 0)]
    binned = []
    for mass in masses:
        whole = mass / mass.sum()
        place = np.clip(cells, points[0], points[-1]) - points[0]
        binned.append(tuple(np.bincount(place, weights=whole)))
    event = JointHistograms("counts", 1, 1, sigma)
    return Fit(Law(*binned), Spend(accounting.epsilon([event], delta), delta, (event,)))


def worst(admits: Admits, fits: Sequence[Fit], epsilon: float, rounds: int) -> float:
    """Advantage of the worst adaptive office: the least delta that would be true."""

    def best(p: float, q: float, spent: tuple[Spend, ...], left: int) -> float:
        most = max(p - math.exp(epsilon) * q, 0.0)
        for one in fits if left else ():
            after = (*spent, one.spend)
            if admits(after):
                pairs = zip(one.law.p, one.law.q, strict=True)
                most = max(most, sum(best(p * a, q * b, after, left - 1) for a, b in pairs))
        return most

    return best(1.0, 1.0, (), rounds)


@pytest.fixture
def laws_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the filter take laws for events, by their exact divergence."""

    def total(events: Iterable[Law], order: int) -> float:
        known = [e.divergence(order) if isinstance(e, Law) else renyi(e, order) for e in events]
        return math.fsum(known)

    monkeypatch.setattr(module, "renyi_sum", total)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (2.0, 0.02), (0.7, 0.03)])
def test_no_adaptive_office_passes_the_cap(epsilon: float, delta: float) -> None:
    fits = [
        response(epsilon / 3),
        response(0.9 * epsilon),
        leak(0.9 * delta),
        leak(0.3 * delta),
        *(rounded_gaussian(4 / epsilon, share * delta) for share in (0.1, 0.45)),
        rounded_gaussian(8 / epsilon, 0.2 * delta),
    ]
    unknown = [Fit(f.law, Spend(f.spend.epsilon, f.spend.delta, ())) for f in fits[:4]]
    cap = PrivacyFilter(epsilon, delta)
    loss = worst(cap.admits, unknown + fits[4:], epsilon, 3)
    assert 0.8 * delta < loss <= delta  # and the office is not a straw man


def test_a_filter_that_asks_before_it_adds_is_caught() -> None:
    fits = [response(0.9), response(0.5)]
    cap = PrivacyFilter(1.0, 0.05)
    plain = [Fit(f.law, Spend(f.spend.epsilon, 0.0, ())) for f in fits]
    assert worst(cap.admits, plain, 1.0, 3) <= 0.05
    assert worst(lambda spends: cap.admits(spends[:-1]), plain, 1.0, 3) > 0.05


def branching(first: float, telling_fit: Law, other: Fit) -> list[Fit]:
    """A first response, and two fits of which one goes with either of its answers."""
    claim = Spend(50.0, 0.0, (telling_fit,))  # type: ignore[arg-type]
    return [response(first), Fit(telling_fit, claim), other]


@pytest.mark.usefixtures("laws_count")
def test_without_the_split_of_delta_either_condition_collects_both() -> None:
    """After a telling answer go on by divergences, after the other by the plain sum."""
    epsilon, delta = 0.3, 0.02
    fits = branching(0.15, telling(0.24, 0.29), leak(delta))

    def unsplit(spends: Sequence[Spend]) -> bool:
        order, budget = 10, renyi_budget(epsilon, 10, delta)
        plain = sum(s.epsilon for s in spends) <= epsilon and sum(s.delta for s in spends) <= delta
        return plain or sum(s.divergence(order) for s in spends) <= budget

    assert worst(unsplit, fits, epsilon, 2) > 1.2 * delta
    for split in (PrivacyFilter(epsilon, delta), PrivacyFilter(epsilon, delta / 0.9)):
        for size in (1.0, 0.5, 0.25, 0.1):  # the same office, with as much as it is allowed
            smaller = branching(0.15, telling(0.24, 0.29 * size), leak(0.9 * split.delta))
            assert worst(split.admits, smaller, epsilon, 2) <= split.delta


@pytest.mark.usefixtures("laws_count")
def test_an_order_chosen_after_the_fact_is_caught() -> None:
    """One order after a telling answer, another one after the other."""
    epsilon, delta = 1.0, 0.02
    rare = telling(1.25, 0.0237)
    other = Fit(rare, Spend(50.0, 0.0, (rare,)))  # type: ignore[arg-type]
    fits = branching(0.05, telling(1.0, 0.2643), other)

    def any_order(spends: Sequence[Spend]) -> bool:
        return any(
            sum(s.divergence(order) for s in spends) <= renyi_budget(epsilon, order, delta)
            for order in range(2, 65)
        )

    def one_order(order: int) -> Admits:
        budget = renyi_budget(epsilon, order, delta)
        return lambda spends: sum(s.divergence(order) for s in spends) <= budget

    assert worst(any_order, fits, epsilon, 2) > 1.2 * delta
    for order in (2, 5, 9, 23, 40):
        assert worst(one_order(order), fits, epsilon, 2) <= delta
    assert worst(PrivacyFilter(epsilon, delta).admits, fits, epsilon, 2) <= delta


def test_composing_what_happened_to_be_run_is_no_filter() -> None:
    """Exact composition of the fits of a history, which were chosen by their results."""
    epsilon, first, second = 1.0, 0.4, 0.9
    pair = [response(first), response(second)]
    joint = [
        [a * b for a in getattr(pair[0].law, side) for b in getattr(pair[1].law, side)]
        for side in ("p", "q")
    ]
    delta = _delta(*joint, epsilon)
    fits = [*pair, leak(delta)]
    laws = {one.spend: one.law for one in fits}

    def natural(spends: Sequence[Spend]) -> bool:
        p, q = [1.0], [1.0]
        for spend in spends:
            p = [a * b for a in p for b in laws[spend].p]
            q = [a * b for a in q for b in laws[spend].q]
        return max(_delta(p, q, epsilon), _delta(q, p, epsilon)) <= delta * (1 + 1e-9)

    assert worst(natural, fits, epsilon, 2) > 1.3 * delta
    claims = [Fit(f.law, Spend(f.spend.epsilon, f.spend.delta, ())) for f in fits]
    assert worst(PrivacyFilter(epsilon, delta / 0.9).admits, claims, epsilon, 2) <= delta / 0.9
