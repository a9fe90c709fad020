"""Sums over rows: what they hold, what they refuse, and what they cost against brute force."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import (
    Contributions,
    JointHistograms,
    PrivacyBudget,
    PrivacyPlan,
    RowSums,
    SeededEntropy,
    Share,
    epsilon,
    event_from_dict,
    row_sums,
)
from dpsynth.privacy.accounting import delta
from dpsynth.privacy.answers import NOWHERE
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.filter import renyi

from ..support.bare_counts import Silence
from ..support.renyi_accounting import rdp_epsilon
from .test_accounting_discrete import shifted_cells_delta

COUNTS = RowSums("counts", 1, 1, largest=1, signed=False, once=False, shared=False, sigma=4.0)
VISITS = replace(COUNTS, name="visits", rows_per_unit=3)
TOTALS = replace(VISITS, name="totals", parts=2, largest=10, signed=True, sigma=200.0)
ONCE = replace(VISITS, name="patients", once=True)


SHARES = replace(VISITS, name="shares", largest=12, signed=True, shared=True, sigma=50.0)


def contributions(units: list[int], cells: Any, values: Any = None) -> Contributions:
    numbers = None if values is None else np.array(values, np.int64)
    return Contributions(np.array(units, np.int64), np.array(cells, np.int64), numbers)


def bare(rows: Contributions, sizes: list[int], event: RowSums) -> list[list[int]]:
    return [part.tolist() for part in row_sums(rows, sizes, event, Silence(0))]


def test_rows_add_one_to_their_cell_or_to_none() -> None:
    rows = contributions([0, 0, 1, 2], [[0], [2], [2], [NOWHERE]])
    assert bare(rows, [3], VISITS) == [[1, 0, 2]]


def test_rows_add_their_values_part_by_part() -> None:
    rows = contributions([0, 0, 1], [[0, 1], [1, NOWHERE], [1, 0]], [[-3, 10], [4, 7], [5, -10]])
    assert bare(rows, [2, 2], TOTALS) == [[-3, 9], [-10, 10]]


def test_a_unit_that_counts_once_does_so_in_each_cell() -> None:
    rows = contributions([0, 0, 0, 1], [[0], [0], [1], [0]])
    assert bare(rows, [2], ONCE) == [[2, 1]]


def test_no_rows_give_noise_alone() -> None:
    rows = Contributions(np.zeros(0, np.int64), np.zeros((0, 1), np.int64))
    (noise,) = row_sums(rows, [400], COUNTS, SeededEntropy(3))
    assert 3.2 < noise.std() < 4.8 and abs(noise.mean()) < 1


WRONG = {
    "undecided": ([0], [[0]], None, [1], replace(COUNTS, sigma=UNDECIDED), "not decided"),
    "parts": ([0], [[0, 0]], None, [1, 1], COUNTS, "1 parts"),
    "no cell": ([0], [[0]], None, [0], COUNTS, "at least one cell"),
    "outside": ([0], [[1]], None, [1], COUNTS, "outside its part"),
    "below": ([0], [[-2]], None, [1], COUNTS, "outside its part"),
    "too large": ([0], [[0, 0]], [[11, 0]], [1, 1], TOTALS, "clip it"),
    "least of 64 bits": ([0], [[0, 0]], [[-(2**63), 0]], [1, 1], TOTALS, "clip it"),
    "negative": ([0], [[0]], [[-1]], [1], VISITS, "negative"),
    "values of once": ([0], [[0]], [[1]], [1], ONCE, "adds 1"),
    "together": ([4, 4], [[0], [1]], [[7], [-6]], [2], SHARES, "together"),
    "rows": ([5, 5], [[0], [0]], None, [1], COUNTS, "a unit has more"),
    "units": ([-1], [[0]], None, [1], COUNTS, "from 0"),
    "shape": ([0, 1], [[0]], None, [1], COUNTS, "a row each"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_the_event_does_not_pay_for_is_refused_before_noise(case: str) -> None:
    units, cells, values, sizes, event, words = WRONG[case]
    silence = Silence(0)
    with pytest.raises(InputError, match=words):
        row_sums(contributions(units, cells, values), sizes, event, silence)
    assert silence.asked == []


def test_floats_are_refused() -> None:
    rows = Contributions(np.array([0.0]), np.array([[0]]))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="whole numbers of 64 bits"):
        row_sums(rows, [1], COUNTS, SeededEntropy(0))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"largest": 0}, "largest"),
        ({"parts": 0}, "parts"),
        ({"signed": 1}, "signed must be"),
        ({"once": True, "largest": 2}, "adds 1"),
        ({"sigma": 2.9, "rows_per_unit": 2}, "at least 3"),
        ({"sigma": -1.0}, "sigma"),
        ({"sigma": 2.0**55, "largest": 2**31}, "64 bits"),
    ],
)
def test_what_is_no_mechanism_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        replace(COUNTS, **change)


@pytest.mark.parametrize(
    "event", [COUNTS, VISITS, TOTALS, ONCE, SHARES], ids=lambda event: event.name
)
def test_an_event_is_written_calibrated_and_read_back(event: RowSums) -> None:
    plan = PrivacyPlan.calibrate(PrivacyBudget(1.0, 1e-6), [Share(event.undecided(), 1.0)])
    (found,) = plan.events
    assert isinstance(found, RowSums)
    assert event_from_dict(found.to_dict()) == found
    assert found.undecided() == event.undecided()
    assert 0.99 < epsilon([found], 1e-6) <= 1.0
    assert rdp_epsilon([found], 1e-6) > 0.99
    assert renyi(found, 8) == pytest.approx(4 * (found.sensitivity / found.sigma) ** 2)


def test_counts_of_one_row_cost_what_joint_histograms_do() -> None:
    three = replace(COUNTS, parts=3)
    for eps in (0.1, 1.0, 3.0):
        alike = delta([JointHistograms("counts", 3, 1, 4.0)], eps)
        assert delta([three], eps) == alike


@pytest.mark.parametrize(
    ("event", "shift"),
    [
        (replace(COUNTS, parts=2), (1, 1)),
        (replace(VISITS, sigma=12.0), (3,)),
        (replace(VISITS, sigma=12.0), (2, 1)),
        (replace(ONCE, sigma=6.0), (1, 1, 1)),
        (SHARES, (12,)),
        (SHARES, (6, 6)),
        (replace(VISITS, largest=4, rows_per_unit=2, parts=2, sigma=30.0), (8, 8)),
    ],
)
def test_no_unit_is_told_by_more_than_is_accounted(event: RowSums, shift: tuple[int, ...]) -> None:
    for eps in (0.0, 0.3, 1.0):
        exact = shifted_cells_delta(shift, event.sigma, eps)
        assert exact <= delta([event], eps)
    if np.linalg.norm(shift) == pytest.approx(event.sensitivity):
        assert exact > 0.7 * delta([event], 1.0)  # and the bound is near


def test_replacement_is_stated_for_the_sign() -> None:
    assert COUNTS.replacement == pytest.approx(2**0.5)
    assert TOTALS.replacement == 2


@pytest.mark.parametrize(
    ("event", "shift"),
    [
        (COUNTS, (1, 1)),
        (replace(VISITS, sigma=12.0), (3, 3)),
        (replace(ONCE, sigma=6.0), (1, 1, 1, 1, 1, 1)),
        (SHARES, (24,)),
    ],
)
def test_substitution_costs_at_most_what_its_event_does(
    event: RowSums, shift: tuple[int, ...]
) -> None:
    """Signs of a shift do not matter: the noise is symmetric."""
    for eps in (0.3, 1.0):
        exact = shifted_cells_delta(shift, event.sigma, eps)
        assert delta([event], eps) < exact <= delta([event.substituted()], eps)


def test_an_event_without_a_derivation_says_nothing_of_substitution() -> None:
    with pytest.raises(InputError, match="not derived"):
        JointHistograms("counts", 1, 1, 4.0).substituted()
