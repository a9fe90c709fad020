"""Gaps in days: factors change how often they are drawn, and stop where noise begins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.models.histories.grids import Grid, RatioGrid
from dpsynth.models.histories.steps.gap_factors import WIDEST, GapCounts, GapFactors, calibrated

DAYS, RATIOS = Grid.of_gaps(5_000), RatioGrid()


def drawn(factors: GapFactors, paces: np.ndarray, seed: int = 1) -> np.ndarray:
    """Draw gaps whose ratios are uniform over the codes, as often as the factors say."""
    rng = np.random.default_rng(seed)
    weights = factors.of_codes(paces, RATIOS)
    ends = weights.cumsum(axis=1)
    codes = (ends <= rng.random((len(paces), 1)) * ends[:, -1:]).sum(axis=1)
    return factors.draw(codes, paces, RATIOS, rng)


@given(st.floats(0.1, 3_000), st.integers(0, 99))
def test_a_drawn_gap_has_its_code(pace: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    factors = GapFactors(DAYS, rng.uniform(1 / WIDEST, WIDEST, DAYS.cells))
    codes = np.arange(RATIOS.cells)
    paces = np.full(len(codes), pace)
    gaps = factors.draw(codes, paces, RATIOS, rng)
    assert (gaps[1:] >= 1).all() and gaps[0] == 0
    clear = np.flatnonzero(pace * RATIOS.bounds[:-1] > 30) + 1  # rounded by little
    assert (np.abs(RATIOS.code(gaps, paces)[clear] - codes[clear]) <= 1).all()


@pytest.mark.long
def test_a_factor_makes_its_gaps_that_much_likelier() -> None:
    paces = np.full(200_000, 200.0)
    before = np.bincount(DAYS.code(drawn(GapFactors.even(DAYS), paces)), minlength=DAYS.cells)
    cell = int(DAYS.code(np.array([366]))[0])
    factors = np.ones(DAYS.cells)
    factors[cell] = 3.0
    after = np.bincount(DAYS.code(drawn(GapFactors(DAYS, factors), paces)), minlength=DAYS.cells)
    odds = [counts[cell] / (counts.sum() - counts[cell]) for counts in (before, after)]
    assert odds[1] / odds[0] == pytest.approx(3.0, rel=0.1)


@pytest.mark.parametrize(("sigma", "moves"), [(1.0, True), (1e6, False)])
def test_factors_meet_what_was_released_unless_it_could_be_noise(sigma: float, moves: bool) -> None:
    paces = np.random.default_rng(3).uniform(50, 400, 20_000)
    weekly = GapFactors(DAYS, np.where(DAYS.edges[:-1] == 4, 5.0, 1.0))
    wanted = np.bincount(DAYS.code(drawn(weekly, paces, seed=4)), minlength=DAYS.cells)
    released = GapCounts(wanted * 100.0, sigma, total=100.0 * wanted.sum())

    def again(factors: GapFactors) -> tuple[np.ndarray, np.ndarray]:
        return drawn(factors, paces), np.full(len(paces), 100)

    found = calibrated(released, DAYS, again)
    assert (np.abs(found.factors - 1) > 1e-9).any() == moves
    if moves:
        shares = np.bincount(DAYS.code(again(found)[0]), minlength=DAYS.cells) / len(paces)
        apart = [np.abs(one - wanted / wanted.sum()).sum() / 2 for one in (shares,)]
        even = np.bincount(DAYS.code(drawn(GapFactors.even(DAYS), paces)), minlength=DAYS.cells)
        assert apart[0] < 0.03 < np.abs(even / len(paces) - wanted / wanted.sum()).sum() / 2


def test_without_a_drawn_gap_nothing_is_changed() -> None:
    released = GapCounts(np.ones(DAYS.cells), 1.0, total=100.0)
    none = np.empty(0, dtype=np.int64)
    found = calibrated(released, DAYS, lambda factors: (none, none))
    assert (found.factors == 1).all()
