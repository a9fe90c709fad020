"""No bin has codes of two kinds: days before an origin and after it, ends by death and by loss."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models import Feature
from dpsynth.models.histories import HistoryDomain
from dpsynth.models.histories.grids import TimeGrid
from dpsynth.models.histories.persons.ending import Ending
from dpsynth.models.marginals import AdaptiveCells, MergedBins, merge

ROWS = 4_000


def binned(feature: Feature, codes: np.ndarray, sigma: float = 8.0) -> MergedBins:
    """Bins of a column from its noisy counts."""
    rng = np.random.default_rng(1)
    levels = []
    for width in feature.levels:
        cells = -(-feature.cells // width) + feature.size - feature.cells
        counts = np.bincount(codes // width, minlength=cells)
        levels.append(np.rint(counts + sigma * rng.standard_normal(cells)).astype(np.int64))
    leaves = AdaptiveCells.of(feature, levels, total=float(len(codes)), sigma=sigma)
    total = float(len(codes))
    return merge(leaves, total=total, sigma=sigma, maximum=8, landmarks=feature.landmarks)


def straddles(bins: MergedBins, landmark: int) -> bool:
    return bool(bins.bin_of[landmark] == bins.bin_of[landmark - 1])


def test_early_deaths_share_no_bin_with_those_who_stayed_longest() -> None:
    rng = np.random.default_rng(2)
    ending = Ending(Feature("end", 320, 320, (1,) * 320), Feature("died", 2, 0))
    died = rng.random(ROWS) < 0.05
    ends = np.where(died, rng.integers(0, 30, ROWS), rng.integers(0, 320, ROWS))
    codes = ending.joined(ends, died.astype(np.int64))
    (landmark,) = ending.feature.landmarks
    assert landmark == ending.block
    bins = binned(ending.feature, codes)
    assert not straddles(bins, landmark)
    late = np.unique(bins.bin_of[codes[died]])
    stayed = np.unique(bins.bin_of[codes[~died]])
    assert not np.intersect1d(late, stayed).size


@pytest.mark.parametrize(("first", "last"), [(-14_600, 7_305), (-365, 3_650)])
def test_days_after_the_origin_share_no_bin_with_days_before(first: int, last: int) -> None:
    rng = np.random.default_rng(3)
    grid = TimeGrid(first, last)
    feature = grid.feature("first day of pressure", none=True, apart=True)
    days = rng.integers(-300, 1_000, ROWS)
    codes = grid.code(days, np.full(ROWS, 1_000))
    (landmark,) = feature.landmarks
    assert grid.code(np.array([0, 1]), np.array([9, 9])).tolist() == [landmark - 1, landmark]
    assert not straddles(binned(feature, codes), landmark)


def test_a_window_that_ends_at_the_origin_has_no_landmark() -> None:
    assert TimeGrid(-365, 0).feature("day", apart=True).landmarks == ()
    assert HistoryDomain((), (), (), 0, 0, 10).days.feature("day", apart=True).landmarks == ()
