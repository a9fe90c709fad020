"""Counts of linked pairs: how pairs are counted, what is refused, and what they cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import (
    LinkCounts,
    Links,
    PrivacyBudget,
    PrivacyPlan,
    Share,
    epsilon,
    event_from_dict,
    link_counts,
)
from dpsynth.privacy.accounting import delta
from dpsynth.privacy.events import UNDECIDED

from ..support.bare_counts import Silence
from ..support.renyi_accounting import rdp_epsilon
from .test_accounting_discrete import shifted_cells_delta

EVENT = LinkCounts("pairs", cells=2, cap=1, records=1, sigma=4.0)
FIRST, SECOND = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 0])
LINKS = Links(FIRST, SECOND, np.array([[1, 1], [1, 0], [1, 0], [0, 1]], bool))


def test_each_cell_has_its_own_largest_matching_and_a_pair_counts_once() -> None:
    assert link_counts(LINKS, EVENT, Silence()).tolist() == [2, 1]
    twice = Links(FIRST[[2, 3]], SECOND[[2, 3]], np.ones((2, 2), bool))
    assert link_counts(twice, replace(EVENT, cap=2, sigma=9.0), Silence()).tolist() == [1, 1]
    none = Links(FIRST[:0], SECOND[:0], LINKS.cells[:0])
    silence = Silence()
    assert link_counts(none, EVENT, silence).tolist() == [0, 0] and silence.asked == [(4.0, 2)]


WRONG: dict[str, tuple[Links, LinkCounts, str]] = {
    "undecided": (LINKS, replace(EVENT, sigma=UNDECIDED), "not decided"),
    "a cell more": (LINKS, replace(EVENT, cells=1), "1 cells"),
    "a record less": (Links(FIRST[:3], SECOND, LINKS.cells), EVENT, "two records"),
    "floats": (Links(FIRST.astype(float), SECOND, LINKS.cells), EVENT, "whole numbers"),
    "no record": (Links(FIRST - 1, SECOND, LINKS.cells), EVENT, "from 0"),
    "weights": (Links(FIRST, SECOND, LINKS.cells.astype(int)), EVENT, "or not"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_the_event_does_not_pay_for_is_refused_before_noise(case: str) -> None:
    links, event, words = WRONG[case]
    silence = Silence()
    with pytest.raises(InputError, match=words):
        link_counts(links, event, silence)
    assert silence.asked == []


@pytest.mark.parametrize(
    "change",
    [{"cells": 0}, {"cap": 0}, {"records": 3}, {"records": 0}, {"sigma": 0.0}, {"sigma": 2.0**60}]
    + [{"cap": 2, "sigma": 2.0}, {"name": ""}],
)
def test_what_is_no_mechanism_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        replace(EVENT, **change)


@pytest.mark.parametrize(("cap", "records"), [(1, 1), (1, 2), (40, 2)])
def test_an_event_is_written_calibrated_and_read_back(cap: int, records: int) -> None:
    event = replace(EVENT, cells=5, cap=cap, records=records, sigma=UNDECIDED)
    plan = PrivacyPlan.calibrate(PrivacyBudget(1.0, 1e-6), [Share(event, 1.0)])
    (found,) = plan.events
    assert event_from_dict(found.to_dict()) == found and found.undecided() == event
    assert 0.99 < epsilon([found], 1e-6) <= 1.0 <= 1.01 * rdp_epsilon([found], 1e-6)
    assert isinstance(found, LinkCounts) and found.substituted() == found
    assert found.sigma / found.mu() ** -1 == pytest.approx(found.sensitivity, rel=0.01)


@pytest.mark.parametrize(
    ("event", "shift"), [(EVENT, (1, 1)), (EVENT, (1,)), (replace(EVENT, records=2), (2, 1))]
)
def test_no_person_is_told_by_more_than_is_accounted(
    event: LinkCounts, shift: tuple[int, ...]
) -> None:
    for eps in (0.0, 0.3, 1.0):
        assert shifted_cells_delta(shift, event.sigma, eps) <= delta([event], eps)
