"""Questions: what is counted, how far a unit can move it, and what an event pays for."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.privacy import ChosenHistograms, Counts, Deviation, ask

from ..support.bare_counts import Rows, Silence

EVENT = ChosenHistograms("quality", most=3, rows_per_unit=2, noise_multiplier=2.0)
SIZES = (3, 2)
EQUAL = (math.sqrt(1 / 3) * (1 - 1e-9),) * 3


def first(rows: np.ndarray) -> np.ndarray:
    return rows[:, 0].astype(np.int64)


def both(rows: np.ndarray) -> np.ndarray:
    return rows[:, 0].astype(np.int64) * 2 + rows[:, 1]


THIRDS = np.full(3, 1 / 3)
SIXTHS = np.full(6, 1 / 6)
COUNTS = Counts(first, 3)
MEAN = Deviation(((first, THIRDS), (both, SIXTHS)))


def cohort(units: list[list[tuple[int, int]]]) -> Rows:
    codes = np.zeros((len(units), 2, 2), np.uint16)
    mask = np.zeros((len(units), 2), bool)
    for place, rows in enumerate(units):
        for row, cells in enumerate(rows):
            codes[place, row], mask[place, row] = cells, True
    return Rows(codes, mask)


def exact(units: list[list[tuple[int, int]]]) -> list[list[int]]:
    answers = ask(cohort(units), SIZES, [COUNTS, MEAN], EQUAL, EVENT, Silence())
    return [answer.counts.tolist() for answer in answers]


def test_answers_by_hand() -> None:
    # rows: (0,0), (0,1), (2,1): counts 2, 0, 1 against 1, 1, 1, which is 2 apart; and 1, 1, 0, 0,
    # 0, 1 against 1/2 six times, which is 3 apart; the mean 2.5 rounded down
    assert exact([[(0, 0), (0, 1)], [(2, 1)]]) == [[3], [2, 0, 1], [2]]


def test_no_rows_at_all_are_answered_like_any_number() -> None:
    # one row is expected where there is none: 1 apart in both histograms
    assert exact([]) == [[0], [0, 0, 0], [1]]


def test_cells_with_less_than_a_row_each_count_in_full() -> None:
    """Expected counts that were rounded to whole ones made every rare cell look empty."""
    rare = Deviation((((lambda rows: rows[:, 0].astype(np.int64)), np.full(1000, 1e-3)),))
    rows = np.full((100, 1), 7, np.uint16)
    assert rare.exact(rows, 100.0).tolist() == [199]  # 99.9 rows too many, 99.9 missing


ROW = st.tuples(st.integers(0, 2), st.integers(0, 1))
UNIT = st.lists(ROW, min_size=1, max_size=2)


@given(st.lists(UNIT, max_size=12), UNIT, st.integers(0, 40))
def test_a_unit_moves_an_answer_by_its_rows_at_most(
    others: list[list[tuple[int, int]]], unit: list[tuple[int, int]], total: int
) -> None:
    def rows(units: list[list[tuple[int, int]]]) -> np.ndarray:
        return np.array([row for unit in units for row in unit], np.uint16).reshape(-1, 2)

    for question in (COUNTS, MEAN):
        out = question.exact(rows(others), float(total))
        within = question.exact(rows([*others, unit]), float(total))
        assert np.linalg.norm(within - out) <= EVENT.mass


def test_each_answer_has_the_noise_of_its_part() -> None:
    silence = Silence()
    parts = (0.5, 0.5, 0.7)
    answers = ask(cohort([[(0, 0)]]), SIZES, [COUNTS, MEAN], parts, EVENT, silence)
    sigmas = [sigma for sigma, _ in silence.asked]
    assert sigmas == [EVENT.sigma_for(part) for part in parts]
    assert [answer.sigma for answer in answers] == sigmas
    assert sigmas[0] == pytest.approx(math.hypot(2 * 2.0 / 0.5, 1.5), rel=1e-5)


@pytest.mark.parametrize(
    ("questions", "parts"),
    [
        ([COUNTS, MEAN], (0.7, 0.7, 0.7)),  # squares add up to more than one
        ([COUNTS, MEAN], (0.5, 0.5)),  # a question without a part
        ([COUNTS, MEAN, COUNTS], (0.4,) * 4),  # more than the event pays for
    ],
)
def test_what_is_not_paid_for_is_refused_before_any_noise(questions: Any, parts: Any) -> None:
    silence = Silence()
    with pytest.raises(InputError, match="does not pay"):
        ask(cohort([[(0, 0)]]), SIZES, questions, parts, EVENT, silence)
    assert silence.asked == []


def test_weighted_rows_are_refused() -> None:
    weighted = ChosenHistograms("quality", 3, 2, 2.0, unit_mass=2)
    with pytest.raises(InputError, match="does not pay"):
        ask(cohort([[(0, 0)]]), SIZES, [COUNTS, MEAN], EQUAL, weighted, Silence())


def test_more_rows_of_a_unit_than_were_paid_for_are_refused() -> None:
    narrow = ChosenHistograms("quality", 3, 1, 2.0)
    with pytest.raises(InputError, match="max_rows"):
        ask(cohort([[(0, 0), (1, 1)]]), SIZES, [COUNTS, MEAN], EQUAL, narrow, Silence())


@pytest.mark.parametrize(
    "cells",
    [
        lambda rows: rows[:, 0].astype(float),
        lambda rows: rows[:1, 0].astype(np.int64),
        lambda rows: rows[:, 0].astype(np.int64) + 3,
        lambda rows: rows[:, 0].astype(np.int64) - 1,
        lambda rows: np.repeat(rows[:, 0].astype(np.int64), 2),
    ],
)
def test_a_question_that_does_not_place_each_row_once_is_refused(cells: Any) -> None:
    with pytest.raises(InputError, match="each row"):
        ask(cohort([[(0, 0)], [(1, 1)]]), SIZES, [Counts(cells, 3), MEAN], EQUAL, EVENT, Silence())
