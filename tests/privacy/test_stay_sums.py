"""Series of stays: who is counted where, what is refused, and what the accountant makes of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import (
    PrivacyBudget,
    PrivacyPlan,
    SeededEntropy,
    Share,
    Stays,
    StaySums,
    epsilon,
    event_from_dict,
    noise_of_periods,
    stay_sums,
    unfiltered,
)
from dpsynth.privacy.filter import renyi

from ..support.bare_counts import Silence
from ..support.renyi_accounting import rdp_epsilon

BEDS = StaySums("beds", 8, longest=4, stays_per_unit=3, sigma=1e7)


def stays(*rows: tuple[int, int, int, int]) -> Stays:
    return Stays(*np.array(rows, np.int64).reshape(-1, 4).T)


def counted(found: Stays, groups: int = 1) -> list[list[float]]:
    [series] = stay_sums(found, groups, BEDS, Silence(0))
    return (unfiltered(series, BEDS).round(6) + 0).tolist()


def test_each_unit_counts_once_in_each_period_that_it_covers() -> None:
    assert counted(stays((0, 0, 1, 3))) == [[0, 1, 1, 1, 0, 0, 0, 0]]
    assert counted(stays((0, 0, 1, 3), (1, 0, 3, 4))) == [[0, 1, 1, 2, 1, 0, 0, 0]]
    overlapping = stays((0, 0, 4, 5), (0, 0, 1, 3), (0, 0, 2, 4))
    assert counted(overlapping) == [[0, 1, 1, 1, 1, 1, 0, 0]]
    assert counted(stays((0, 0, 0, 3), (0, 0, 1, 2))) == [[1, 1, 1, 1, 0, 0, 0, 0]]
    groups = stays((0, 0, 0, 1), (0, 1, 1, 2), (5, 1, 7, 7))
    assert counted(groups, 2) == [[1, 1, 0, 0, 0, 0, 0, 0], [0, 1, 1, 0, 0, 0, 0, 1]]
    assert counted(stays(), 1) == [[0] * 8]


def test_noise_is_that_of_the_plan_and_of_the_way_back() -> None:
    silence = Silence(0)
    stay_sums(stays((0, 0, 1, 3)), 3, BEDS, silence)
    assert silence.asked == [(BEDS.sigma, 24)]
    [noise] = stay_sums(stays(), 4000, BEDS, SeededEntropy(5))
    found = unfiltered(noise, BEDS).std(axis=0)
    np.testing.assert_allclose(found, noise_of_periods(BEDS), rtol=0.07)


WRONG: dict[str, tuple[Stays, str]] = {
    "too long": (stays((0, 0, 0, 4)), "stays of 1 to 4"),
    "ends before it begins": (stays((0, 0, 3, 2)), "stays of 1 to 4"),
    "outside the window": (stays((0, 0, 6, 8)), "outside the window"),
    "before the window": (stays((0, 0, -1, 2)), "numbers from 0"),
    "another group": (stays((0, 1, 0, 1)), "outside the window"),
    "too many": (stays(*[(0, 0, 0, 1)] * 4), "3 stays of each unit"),
    "floats": (replace(stays((0, 0, 0, 1)), first=np.zeros(1)), "whole numbers"),
    "of two lengths": (replace(stays((0, 0, 0, 1)), units=np.zeros(2, np.int64)), "one of each"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_was_not_accounted_for_is_refused_before_any_noise(case: str) -> None:
    found, words = WRONG[case]
    silence = Silence(0)
    with pytest.raises(InputError, match=words):
        stay_sums(found, 1, BEDS, silence)
    assert silence.asked == []


def test_an_event_without_noise_answers_nothing() -> None:
    with pytest.raises(InputError, match="not decided"):
        stay_sums(stays((0, 0, 0, 1)), 1, BEDS.undecided(), SeededEntropy(0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"periods": 0}, "periods"),
        ({"periods": 20_000}, "periods"),
        ({"longest": 9}, "longest"),
        ({"stays_per_unit": 0}, "stays_per_unit"),
        ({"sigma": 2.0}, "at least 3"),
        ({"sigma": 2.0**55}, "64 bits"),
    ],
)
def test_what_is_no_mechanism_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(BEDS, **change)


def test_an_event_is_written_calibrated_and_read_back() -> None:
    plan = PrivacyPlan.calibrate(PrivacyBudget(1.0, 1e-6), [Share(BEDS.undecided(), 1.0)])
    (found,) = plan.events
    assert isinstance(found, StaySums)
    assert event_from_dict(found.to_dict()) == found
    assert 0.99 < epsilon([found], 1e-6) <= 1.0
    assert rdp_epsilon([found], 1e-6) > 0.99
    assert renyi(found, 8) == pytest.approx(4 * (found.sensitivity / found.sigma) ** 2)
    assert found.with_mu(found.mu()).sigma == pytest.approx(found.sigma, rel=1e-5)


def test_one_who_takes_anothers_place_moves_a_series_twice_as_far() -> None:
    found = BEDS.substituted()
    assert found.sensitivity == pytest.approx(BEDS.replacement * BEDS.sensitivity)
    assert found.moved >= 2 * BEDS.moved
