"""Votes of teachers: how they are counted, what is refused, and what they cost by brute force."""

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
    TeacherVotes,
    dealt,
    epsilon,
    event_from_dict,
    noisy_votes,
)
from dpsynth.privacy.accounting import delta
from dpsynth.privacy.answers import ABSTAINS
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.filter import renyi

from ..support.bare_counts import Silence
from ..support.renyi_accounting import rdp_epsilon
from .test_accounting_discrete import shifted_cells_delta

EVENT = TeacherVotes("votes", teachers=3, queries=2, classes=3, sigma=4.0)
VOTES = np.array([[0, 2], [0, 1], [1, ABSTAINS]])


def test_each_teacher_counts_once_in_each_query_or_abstains() -> None:
    assert noisy_votes(VOTES, EVENT, Silence()).tolist() == [[2, 1, 0], [0, 1, 1]]


def test_units_are_dealt_to_all_teachers() -> None:
    found = dealt(3000, EVENT, SeededEntropy(1))
    assert set(found.tolist()) == {0, 1, 2}
    assert dealt(0, EVENT, SeededEntropy(1)).shape == (0,)


WRONG: dict[str, tuple[Any, TeacherVotes, str]] = {
    "undecided": (VOTES, replace(EVENT, sigma=UNDECIDED), "not decided"),
    "a teacher more": (np.zeros((4, 2), int), EVENT, "3 teachers"),
    "a query more": (np.zeros((3, 3), int), EVENT, "2 queries"),
    "floats": (np.zeros((3, 2)), EVENT, "whole numbers"),
    "no class": (np.full((3, 2), 3), EVENT, "none of its 3"),
    "below": (np.full((3, 2), -2), EVENT, "none of its 3"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_the_event_does_not_pay_for_is_refused_before_noise(case: str) -> None:
    votes, event, words = WRONG[case]
    silence = Silence()
    with pytest.raises(InputError, match=words):
        noisy_votes(votes, event, silence)
    assert silence.asked == []


@pytest.mark.parametrize(
    "change", [{"teachers": 0}, {"queries": 0}, {"classes": 1}, {"sigma": 0.0}, {"name": ""}]
)
def test_what_is_no_mechanism_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        replace(EVENT, **change)


@pytest.mark.parametrize("queries", [2, 400_000])
def test_an_event_is_written_calibrated_and_read_back(queries: int) -> None:
    event = replace(EVENT, queries=queries)
    plan = PrivacyPlan.calibrate(PrivacyBudget(1.0, 1e-6), [Share(event.undecided(), 1.0)])
    (found,) = plan.events
    assert isinstance(found, TeacherVotes)
    assert (found.sigma > 1000) is (queries > 2)
    assert event_from_dict(found.to_dict()) == found
    assert found.undecided() == event.undecided()
    assert 0.99 < epsilon([found], 1e-6) <= 1.0
    assert rdp_epsilon([found], 1e-6) > 0.99
    assert renyi(found, 8) == pytest.approx(4 * found.moved / found.sigma**2)


@pytest.mark.parametrize("shift", [(1, -1, 1, -1), (1, -1, 1, 0), (1, 0, -1, 0)])
def test_no_unit_is_told_by_more_than_is_accounted(shift: tuple[int, ...]) -> None:
    for eps in (0.0, 0.3, 1.0):
        exact = shifted_cells_delta(tuple(abs(step) for step in shift if step), EVENT.sigma, eps)
        assert exact <= delta([EVENT], eps)
    if all(shift):
        assert exact > 0.99 * delta([EVENT], 1.0)  # and no more than that is charged
