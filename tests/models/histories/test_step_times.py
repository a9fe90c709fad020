"""The times of a step: what is left of a patient's own rows, and nothing of her neighbour's."""

from __future__ import annotations

import numpy as np

from dpsynth.encoding import SeriesRows
from dpsynth.models.histories import PersonTable
from dpsynth.models.histories.persons.table import SPAN_GRID
from dpsynth.models.histories.steps.rows import days_before, mean_days_left
from dpsynth.models.histories.steps.table import Steps

from ...support.made_histories import domain_of, histories_of, hostile, with_patient

ROWS = SeriesRows(
    np.array([0, 0, 0, 2, 2]),
    np.array([10, 40, 100, 7, 7]),
    np.zeros((5, 0), dtype=np.uint16),
)


def test_the_mean_of_what_is_left_ends_with_the_last_row() -> None:
    steps = Steps.of(ROWS, (), 3)
    assert mean_days_left(steps, ROWS).tolist() == [45.0, 60.0, 0.0]


def test_the_gap_before_is_of_the_same_patient() -> None:
    steps = Steps.of(ROWS, (), 3)
    assert days_before(steps).tolist() == [-1, 30, -1]


def test_rows_span_a_share_of_the_time_left() -> None:
    histories, domain = histories_of(80), domain_of()
    person = PersonTable(domain)
    codes = person.codes(histories)
    for rows, hidden in zip(histories.rows[0], person.hidden[0], strict=True):
        assert hidden.span is not None
        for patient in range(80):
            days = rows.days[rows.patients == patient]
            code = codes[patient, hidden.span]
            if len(days) < 2:
                assert code == SPAN_GRID.cells
                continue
            room = histories.ends[patient] - days[0]
            expected = SPAN_GRID.code(np.array([days[-1] - days[0]]), np.array([room]))
            assert code == expected[0]


def test_one_patient_more_moves_no_row_of_the_others() -> None:
    histories = histories_of(60)
    person = PersonTable(domain_of())
    before = person.codes(histories)
    for equal in (True, False):
        joined = with_patient(histories, hostile(60, equal, seed=3))
        assert np.array_equal(before, person.codes(joined)[:60])
        for rows, more in zip(histories.rows[0], joined.rows[0], strict=True):
            steps, others = Steps.of(rows, (), 60), Steps.of(more, (), 61)
            own = others.patients < 60
            one, other = mean_days_left(steps, rows), mean_days_left(others, more)[own]
            assert np.array_equal(one, other)
            assert np.array_equal(days_before(steps), days_before(others)[own])
