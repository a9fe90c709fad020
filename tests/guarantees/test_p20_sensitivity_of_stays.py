"""P20: one day of a stay, or one stay, sold as a patient, for series of who is there.

The check: over all ways in which a unit may stay, what it moves is within the event's bound, and
one stay reaches it. Noise is left out, so no outcome is random.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations_with_replacement, product

import numpy as np
import pytest

from dpsynth.privacy import Stays, StaySums, stay_sums
from dpsynth.privacy import answers as mechanism
from dpsynth.privacy.stay_filters import WHOLE, filter_weights, most_moved

from ..support.bare_counts import Silence

PERIODS, GROUPS = 6, 2
EVENTS = [
    StaySums("beds", PERIODS, longest, stays, sigma=99.0)
    for longest, stays in ((1, 1), (3, 1), (6, 1), (1, 2), (3, 2), (6, 2))
]


def units(event: StaySums) -> Iterator[Stays]:
    """Every unit: as many stays as may be, of any length that may be, anywhere in any group."""
    places = product(range(GROUPS), range(PERIODS), range(1, event.longest + 1))
    every = [(g, s, s + n - 1) for g, s, n in places if s + n <= PERIODS]
    for chosen in combinations_with_replacement(every, event.stays_per_unit):
        groups, first, last = np.array(chosen, np.int64).T
        yield Stays(np.zeros(len(chosen), np.int64), groups, first, last)


def farthest(event: StaySums) -> float:
    """How far one unit moves the series of both groups, at most: L2."""
    return max(
        float(np.linalg.norm(stay_sums(unit, GROUPS, event, Silence(0))[0]))
        for unit in units(event)
    )


@pytest.mark.parametrize("event", EVENTS, ids=lambda e: f"{e.stays_per_unit} of {e.longest}")
def test_no_unit_moves_the_series_further_than_declared(event: StaySums) -> None:
    found = farthest(event)
    assert found <= event.sensitivity
    if event.stays_per_unit == 1:
        assert found == pytest.approx(event.sensitivity)


TWINS: dict[str, Callable[[StaySums], float]] = {
    "a period for a stay": lambda event: WHOLE * event.stays_per_unit**0.5,
    "a stay for a patient": lambda event: most_moved(event.periods, event.longest) ** 0.5,
}


@pytest.mark.parametrize("twin", TWINS)
def test_a_smaller_bound_is_caught(twin: str) -> None:
    assert farthest(EVENTS[-2]) > TWINS[twin](EVENTS[-2]) * 1.1


def test_stays_that_overlap_counted_twice_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """The broken twin: one patient in two beds at once moves the series by twice a stay."""

    def twice(stays: Stays, groups: int, periods: int) -> np.ndarray:
        counts = np.zeros((groups, periods), np.int64)
        for group, first, last in zip(stays.groups, stays.first, stays.last, strict=True):
            counts[group, first : last + 1] += 1
        return counts

    monkeypatch.setattr(mechanism, "_present", twice)
    assert farthest(EVENTS[-2]) > EVENTS[-2].sensitivity * 1.3


@pytest.mark.parametrize(("periods", "longest"), [(40, 1), (40, 7), (400, 90), (400, 400)])
def test_stays_without_a_common_period_do_not_add_up(periods: int, longest: int) -> None:
    """What k stays are accounted by: products of two periods are not positive, exactly."""
    weights = filter_weights(periods, longest)
    for lag in range(1, periods):
        assert (np.cumsum(weights[: periods - lag] * weights[lag:]) <= 0).all()
