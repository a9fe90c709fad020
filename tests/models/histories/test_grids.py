"""Public grids: every number has a cell, and what is drawn from a cell lies in it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.models.histories.grids import Grid, TimeGrid

LONGEST = 5_000


@given(st.integers(1, 4_000))
def test_counts_are_exact_to_six_and_end_at_the_cap(maximum: int) -> None:
    grid = Grid.of_counts(maximum)
    few = np.arange(min(maximum, 6) + 1)
    assert grid.code(few).tolist() == few.tolist()
    assert grid.edges[-1] == maximum + 1
    assert (np.diff(grid.edges) > 0).all()


@pytest.mark.parametrize("grid", [Grid.of_gaps(LONGEST), Grid.of_paces(LONGEST), Grid.of_gaps(0)])
def test_what_is_drawn_from_a_cell_has_its_code(grid: Grid) -> None:
    codes = np.repeat(np.arange(grid.cells), 20)
    drawn = grid.draw(codes, np.random.default_rng(1))
    assert np.array_equal(grid.code(drawn), codes)
    assert sum(grid.feature("gap").points) == grid.edges[-1]
    assert grid.feature("gap", none=True).size == grid.cells + 1


@pytest.mark.parametrize("exponent", [-4.0, 0.0, 2.0])
def test_numbers_within_a_cell_fall_as_the_cells_around_do(exponent: float) -> None:
    grid, numbers = Grid.of_counts(60), np.arange(1, 61)
    law = numbers**exponent
    shares = np.bincount(grid.code(numbers), weights=law, minlength=grid.cells)
    codes = np.full(40_000, int(grid.code(np.array([9]))[0]))  # 9, 10 and 11
    drawn = grid.draw(codes, np.random.default_rng(0), shares)
    assert np.array_equal(grid.code(drawn), codes)
    found = np.bincount(drawn, minlength=12)[9:12] / len(drawn)
    assert found == pytest.approx(law[8:11] / law[8:11].sum(), abs=0.02)


def test_numbers_are_even_within_a_cell_beside_an_empty_one() -> None:
    grid = Grid.of_counts(60)
    code = int(grid.code(np.array([9]))[0])
    shares = np.zeros(grid.cells)
    shares[code] = 1.0
    drawn = grid.draw(np.full(30_000, code), np.random.default_rng(0), shares)
    assert np.bincount(drawn)[9:12] / len(drawn) == pytest.approx(1 / 3, abs=0.02)


@given(st.integers(-4_000, 0), st.integers(0, 8_000), st.integers(0, 8_000), st.integers(0, 99))
def test_days_are_drawn_within_window_and_follow_up(
    first: int, last: int, end: int, seed: int
) -> None:
    grid, rng = TimeGrid(first, last), np.random.default_rng(seed)
    codes = np.arange(grid.cells)
    ends = np.full(len(codes), end)
    days = grid.draw(codes, ends, rng)
    assert (days >= first).all() and (days <= min(end, last)).all()
    assert (np.diff(days) >= 0).all()


@given(st.lists(st.integers(-3_000, 3_000), min_size=1, max_size=20), st.integers(1, 3_000))
def test_a_day_and_its_cell_are_on_one_side_of_the_origin(days: list[int], end: int) -> None:
    grid = TimeGrid(-3_000, 3_000)
    bounded = np.minimum(days, end)
    ends = np.full(len(bounded), end)
    drawn = grid.draw(grid.code(bounded, ends), ends, np.random.default_rng(0))
    assert np.array_equal(np.sign(drawn), np.sign(bounded))
