"""Counts with Laplace noise: their cost against brute force, and when a plan takes them."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import (
    Contributions,
    LaplaceCounts,
    Loss,
    PrivacyBudget,
    PrivacyPlan,
    Share,
    epsilon,
    event_from_dict,
    laplace_counts,
)
from dpsynth.privacy.accounting import delta
from dpsynth.privacy.answers import NOWHERE
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.filter import renyi
from dpsynth.privacy.noisy_event import PURE

from ..support.bare_counts import Silence

ONE = LaplaceCounts("counts", 1, once=False, scale=2.0)
ROWS = LaplaceCounts("visits", 3, once=False, scale=4.0)
ONCE = LaplaceCounts("patients", 3, once=True, scale=4.0)


def exact(shift: tuple[int, ...], scale: float, eps: float) -> float:
    """Hockey-stick divergence of Laplace noise and the same moved, by direct sums over cells."""
    z = np.arange(-60, 61)
    mass = np.exp(-np.abs(z) / scale)
    mass /= mass.sum()
    moved = [np.exp(-np.abs(z - step) / scale) for step in shift]
    moved = [one / np.exp(-np.abs(np.arange(-4000, 4001)) / scale).sum() for one in moved]
    first, second = (reduce(np.multiply.outer, laws) for laws in ([mass] * len(shift), moved))
    growth = math.exp(eps)
    return max(
        float(np.maximum(first - growth * second, 0).sum()),
        float(np.maximum(second - growth * first, 0).sum()),
    )


CASES: list[tuple[LaplaceCounts, tuple[int, ...]]] = [
    (ONE, (1,)),
    (ONCE, (1, 1, 1)),
    (ONCE, (1,)),
    (ROWS, (3,)),
    (ROWS, (2, 1)),
    (ROWS, (1, 1, 1)),
]


@pytest.mark.parametrize(("event", "shift"), CASES)
def test_no_unit_is_told_by_more_than_is_accounted(
    event: LaplaceCounts, shift: tuple[int, ...]
) -> None:
    for eps in (0.0, 0.1, 0.3, 0.6):
        assert exact(shift, event.scale, eps) <= delta([event], eps) * (1 + 1e-9) + 1e-6
    if event is ONE or shift == (1, 1, 1):
        assert exact(shift, event.scale, 0.1) > 0.4 * delta([event], 0.1)


@pytest.mark.parametrize(("event", "shift"), [(ONE, (1, 1)), (ONCE, (1,) * 3), (ROWS, (3, 3))])
def test_substitution_costs_at_most_what_its_event_does(
    event: LaplaceCounts, shift: tuple[int, ...]
) -> None:
    """Noise is symmetric, so that signs of a shift do not matter."""
    for eps in (0.2, 0.6):
        assert exact(shift, event.scale, eps) <= delta([event.substituted()], eps) + 1e-6
    assert epsilon([event.substituted()], 1e-6) > 1.8 * epsilon([event], 1e-6)


def test_rows_of_one_cell_charged_cell_by_cell_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: three rows in one cell are not three cells that move by 1."""
    honest, eps = exact((3,), ROWS.scale, 0.6), 0.6
    cells = Loss(PURE, 1 / ROWS.scale, 3)
    monkeypatch.setattr(LaplaceCounts, "loss", cells)
    assert honest > 1.2 * delta([ROWS], eps)
    monkeypatch.setattr(LaplaceCounts, "loss", Loss(PURE, 1 / ROWS.scale))  # a row for a patient
    assert honest > delta([ROWS], eps)


def test_an_interval_misses_as_seldom_as_it_says() -> None:
    z = np.arange(-3000, 3001)
    for scale in (0.3, 1.0, 2.5, 40.0):
        event = replace(ONE, scale=scale)
        mass = np.exp(-np.abs(z) / scale)
        mass /= mass.sum()
        for chance in (0.5, 0.05, 1e-4):
            reach = event.reach(chance)
            assert mass[np.abs(z) > reach].sum() <= chance * (1 + 1e-6)
            assert reach == 0 or mass[np.abs(z) >= reach].sum() > chance
        assert event.sd == pytest.approx(math.sqrt(float((mass * z.astype(float) ** 2).sum())))


def contributions(units: list[int], cells: Any, values: Any = None) -> Contributions:
    numbers = None if values is None else np.array(values, np.int64)
    return Contributions(np.array(units, np.int64), np.array(cells, np.int64), numbers)


def test_rows_and_units_are_counted_and_noise_is_drawn_for_every_cell() -> None:
    rows, silence = contributions([0, 0, 0, 1], [[0], [0], [2], [NOWHERE]]), Silence(0)
    assert laplace_counts(rows, 3, ROWS, silence)[0].tolist() == [2, 0, 1]
    assert laplace_counts(rows, 3, ONCE, silence)[0].tolist() == [1, 0, 1]
    assert silence.asked == [(4.0, 3)] * 2


def test_what_is_not_paid_for_is_refused_before_any_noise() -> None:
    silence = Silence(0)
    for event, rows in (
        (ONE, contributions([0, 0], [[0], [1]])),
        (ROWS, contributions([0, 1], [[0], [3]])),
        (ROWS, contributions([0, 1], [[0], [1]], [[1], [5]])),
        (replace(ROWS, scale=UNDECIDED), contributions([0], [[0]])),
    ):
        with pytest.raises(InputError):
            laplace_counts(rows, 3, event, silence)
    assert silence.asked == []
    for change in ({"scale": 0.01}, {"scale": 0.0}, {"rows_per_unit": 0}, {"name": ""}):
        with pytest.raises(InputError):
            replace(ONE, **change)  # type: ignore[arg-type]


@pytest.mark.parametrize("event", [ONE, ROWS, ONCE])
def test_a_plan_pays_for_it(event: LaplaceCounts) -> None:
    shares = [Share(replace(event, name=name, scale=UNDECIDED), 0.5) for name in "ab"]
    plan = PrivacyPlan.calibrate(PrivacyBudget(1.0, 1e-7), shares)
    assert 0.99 < plan.epsilon <= 1.0
    assert [event_from_dict(one.to_dict()) for one in plan.events] == list(plan.events)
    each = plan.events[0].loss.parameter
    assert renyi(plan.events[0], 2) <= plan.events[0].loss.times * each**2 * (1 + 1e-6)
