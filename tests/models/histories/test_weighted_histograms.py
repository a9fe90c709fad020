"""What a patient adds to histograms of histories: at most the mass, whatever rows she has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.encoding import SeriesRows
from dpsynth.errors import InputError
from dpsynth.models.histories.steps.table import MASS, Steps, weights_of
from dpsynth.privacy import (
    ChosenHistograms,
    JointHistograms,
    WeightedRows,
    weighted_histograms,
)

from ...support.bare_counts import Silence
from ...support.made_histories import (
    domain_of,
    feature,
    histories_of,
    hostile,
    with_patient,
)

EVENT = JointHistograms("steps", histograms=2, rows_per_unit=59, sigma=1e4, unit_mass=MASS)


def rows_of(counts: list[int], weight: int) -> WeightedRows:
    units = np.repeat(np.arange(len(counts)), counts)
    cells = np.arange(len(units)) % 3
    return WeightedRows((cells, cells), units, np.full(len(units), weight))


def test_weights_are_summed_by_cell() -> None:
    rows = WeightedRows(
        (np.array([0, 1, 1]), np.array([2, 2, 0])), np.array([0, 0, 1]), np.array([5, 7, 11])
    )
    counts = weighted_histograms(rows, (2, 3), (1e4, 1e4), EVENT, Silence())
    assert [count.tolist() for count in counts] == [[5, 18], [11, 0, 12]]


def test_each_cell_gets_noise_of_the_paid_scale() -> None:
    silence = Silence()
    weighted_histograms(rows_of([2], 1), (3, 4), (1e4, 1e4), EVENT, silence)
    assert silence.asked == [(1e4, 3), (1e4, 4)]


def test_what_is_released_is_the_counts_and_the_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    noise = Silence()
    monkeypatch.setattr(noise, "discrete_gaussian", lambda sigma, size: 100 + np.arange(size))
    counts = weighted_histograms(rows_of([2], 7), (3, 2), (1e4, 1e4), EVENT, noise)
    assert [count.tolist() for count in counts] == [[107, 108, 102], [107, 108]]


@pytest.mark.parametrize(
    ("rows", "sizes", "sigmas", "said"),
    [
        (rows_of([3], MASS // 2), (3, 3), (1e4, 1e4), "weigh more"),
        (rows_of([1], 1), (3, 3), (1e4, 9e3), "does not pay"),
        (rows_of([1], 1), (3,), (1e4,), "needs cells"),
        (rows_of([4], 1), (2, 3), (1e4, 1e4), "outside its histogram"),
        (rows_of([1], -1), (3, 3), (1e4, 1e4), "from 0"),
        (rows_of([60], 1), (60, 60), (1e4, 1e4), "a unit has more"),
    ],
)
def test_what_is_not_paid_for_is_refused_before_any_noise(
    rows: WeightedRows, sizes: tuple[int, ...], sigmas: tuple[float, ...], said: str
) -> None:
    silence = Silence()
    with pytest.raises(InputError, match=said):
        weighted_histograms(rows, sizes, sigmas, EVENT, silence)
    assert not silence.asked


def test_chosen_histograms_must_be_covered_together() -> None:
    event = ChosenHistograms("pairs", 4, 59, noise_multiplier=1.0, unit_mass=MASS)
    part = event.sigma_for(0.5**0.5)
    rows = rows_of([2], 1)
    assert len(weighted_histograms(rows, (3, 3), (part, part), event, Silence())) == 2
    with pytest.raises(InputError, match="does not pay"):
        weighted_histograms(rows, (3, 3), (part, part * 0.9), event, Silence())


@given(st.lists(st.integers(0, 60), min_size=1, max_size=6), st.integers(1, 4))
def test_a_patient_s_weights_add_up_to_the_mass_at_most(counts: list[int], series: int) -> None:
    steps = []
    for place in range(series):
        own = np.roll(counts, place)
        who = np.repeat(np.arange(len(own)), np.maximum(own - 1, 0))
        empty = np.zeros(len(who), np.int64)
        steps.append(Steps(empty, who, empty, own[who], empty, np.empty((len(who), 0))))
    weights = weights_of(steps, len(counts))
    sums = sum(
        np.bincount(part.patients, weight, minlength=len(counts))
        for part, weight in zip(steps, weights, strict=True)
    )
    assert (sums <= MASS).all()
    assert all((weight > 0).all() for weight in weights)


def test_weights_by_the_root_of_the_rows_are_refused() -> None:
    """The broken version: k equal rows of weight 1 / sqrt(k) move a cell by sqrt(k)."""
    counts = np.array([1, 4, 25])
    weights = (MASS / np.sqrt(counts)).astype(np.int64).repeat(counts)
    units = np.repeat(np.arange(3), counts)
    cells = np.zeros(len(units), np.int64)
    with pytest.raises(InputError, match="weigh more"):
        weighted_histograms(
            WeightedRows((cells, cells), units, weights), (1, 1), (1e4, 1e4), EVENT, Silence()
        )


def in_series(series: int, *, shared: bool) -> WeightedRows:
    """One patient with a row in each series, of weight M over the root of their number."""
    part = np.arange(series)
    cells = np.zeros(series, np.int64) if shared else part
    weights = np.full(series, int(MASS / np.sqrt(series)))
    return WeightedRows(
        (cells, cells), np.zeros(series, np.int64), weights, None if shared else part
    )


def test_series_are_parts_whose_norms_add_up_in_squares() -> None:
    widths = [[1] * 9] * 2
    counts = weighted_histograms(in_series(9, shared=False), widths, (1e4, 1e4), EVENT, Silence())
    assert counts[0].tolist() == [MASS // 3] * 9
    heavier = replace(in_series(9, shared=False), weights=np.full(9, MASS // 3 + 1))
    with pytest.raises(InputError, match="weigh more"):
        weighted_histograms(heavier, widths, (1e4, 1e4), EVENT, Silence())


def test_the_same_weights_in_one_cell_are_refused() -> None:
    """The broken version: cells that do not name the series, so that nine rows move one cell."""
    with pytest.raises(InputError, match="weigh more"):
        weighted_histograms(in_series(9, shared=True), (1, 1), (1e4, 1e4), EVENT, Silence())
    with pytest.raises(InputError, match="its part of it"):
        overlapping = replace(
            in_series(9, shared=False), cells=(np.zeros(9, np.int64), np.zeros(9, np.int64))
        )
        weighted_histograms(overlapping, [[1] * 9] * 2, (1e4, 1e4), EVENT, Silence())


def test_one_patient_more_has_steps_of_her_own_only() -> None:
    """Steps and weights of the others stay as they were, however many rows she brings."""
    histories, domain = histories_of(60), domain_of()
    for equal in (True, False):
        joined = with_patient(histories, hostile(60, equal, seed=3))
        for table, rows, more in zip(domain.tables, histories.rows, joined.rows, strict=True):
            before, after = (
                [
                    Steps.of(one, series.values, patients)
                    for one, series in zip(part, table.series, strict=True)
                ]
                for part, patients in ((rows, 60), (more, 61))
            )
            weights = zip(weights_of(before, 60), weights_of(after, 61), strict=True)
            for one, other, (old, new) in zip(before, after, weights, strict=True):
                others = other.patients < 60
                assert np.array_equal(old, new[others])
                assert np.array_equal(one.levels, other.levels[others], equal_nan=True)
                for name in ("patients", "index", "counts", "gaps"):
                    assert np.array_equal(getattr(one, name), getattr(other, name)[others])


def test_levels_begin_anew_with_each_patient_and_skip_missing_values() -> None:
    value = feature("value", 10, loose=1)
    codes = np.array([[8], [10], [4], [10], [6], [2]], dtype=np.uint16)
    rows = SeriesRows(np.array([0, 0, 0, 1, 1, 1]), np.zeros(6, np.int64), codes)
    steps = Steps.of(rows, [value], 2)
    assert steps.place.tolist() == [1, 2, 4, 5]
    expected = [8.0, 8.0, np.nan, 6.0]
    assert np.array_equal(steps.levels[:, 0], expected, equal_nan=True)
