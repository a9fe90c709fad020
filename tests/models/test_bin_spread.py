"""Wide bins: cut by hand, by a search over all cuts, and only where they hold much spread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.models import Feature
from dpsynth.models.marginals import AdaptiveCells, histograms, merge
from dpsynth.models.marginals.histograms import MORE, PART, cut_wide_bins


def spread(counts: np.ndarray, places: np.ndarray) -> float:
    """Sum of the squared distances of the rows from their mean."""
    if counts.sum() == 0:
        return 0.0
    return float(counts @ (places - np.average(places, weights=counts)) ** 2)


def test_a_bin_is_cut_where_the_parts_hold_least() -> None:
    """Two heaps in one bin, at 5 to 7 and at 20 to 22: any other cut leaves more."""
    counts = np.zeros(30)
    counts[:3], counts[5:8], counts[20:23] = 400, 60, 40
    found = cut_wide_bins(np.repeat([0, 1], [3, 27]), counts, np.arange(30.0), minimum=20)
    assert found[2] == 0 and found[5] == found[7] == 1 and found[20] == found[22] == 2


@given(st.lists(st.integers(0, 90), min_size=2, max_size=9), st.integers(0, 60), st.integers(1, 20))
def test_the_first_cut_is_the_best_of_all(counts: list[int], minimum: int, step: int) -> None:
    rows, places = np.array(counts, dtype=float), np.arange(len(counts)) * float(step)
    whole = np.zeros(len(rows), dtype=np.int64)
    allowed = [
        cut
        for cut in range(1, len(rows))
        if min(rows[:cut].sum(), rows[cut:].sum()) >= max(minimum, 1)
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histograms, "MORE", 1)
        found = cut_wide_bins(whole, rows, places, minimum=minimum)
    if not allowed or spread(rows, places) == 0:
        assert not found.any()
        return
    left = [spread(rows[:cut], places[:cut]) + spread(rows[cut:], places[cut:]) for cut in allowed]
    own = [spread(rows[found == part], places[found == part]) for part in (0, 1)]
    assert sum(own) == pytest.approx(min(left), abs=1e-6)


@given(st.lists(st.integers(0, 500), min_size=1, max_size=60), st.floats(1, 200))
def test_bins_stay_runs_and_their_parts_keep_the_minimum(counts: list[int], least: float) -> None:
    rows = np.array(counts, dtype=float)
    before = np.minimum(np.arange(len(rows)) // 7, 5)
    found = cut_wide_bins(before, rows, np.arange(float(len(rows))), minimum=least)
    assert found[0] == 0 and set(np.diff(found).tolist()) <= {0, 1}
    assert found.max() <= before.max() + MORE
    for part in range(found.max() + 1):
        own = found == part
        assert rows[own].sum() >= least or (before == before[own][0]).sum() == own.sum()
    if found.max() < before.max() + MORE:  # what is still wide cannot be cut
        for part in range(found.max() + 1):
            own = rows[found == part]
            if spread(own, np.arange(float(len(own)))) > PART * spread(rows, np.arange(len(rows))):
                sums = np.cumsum(own)[:-1]
                assert not ((sums >= least) & (own.sum() - sums >= least)).any()


def test_a_normal_column_keeps_its_bins() -> None:
    places = np.arange(101.0)
    counts = 1000 * np.exp(-(((places - 50) / 12) ** 2) / 2)
    bins = np.searchsorted(np.cumsum(counts) / counts.sum(), np.arange(1, 8) / 8)
    before = np.searchsorted(bins, np.arange(101), side="left")
    np.testing.assert_array_equal(cut_wide_bins(before, counts, places, minimum=10), before)


def test_no_rows_and_no_spread_leave_bins_as_they_are() -> None:
    for counts in (np.zeros(5), np.array([0.0, 0, 90, 0, 0])):
        before = np.array([0, 0, 0, 1, 1])
        np.testing.assert_array_equal(
            cut_wide_bins(before, counts, np.arange(5.0), minimum=0.0), before
        )


def test_the_bin_of_a_long_tail_is_cut() -> None:
    """Stays of 8 000 patients: a sixth of them is from day 6 to the bound of 90."""
    rng = np.random.default_rng(1)
    days = np.clip(np.rint(np.exp(rng.normal(1.1, 0.78, 8000))), 0, 90).astype(int)
    counts = np.bincount(days, minlength=91) + rng.normal(0, 30, 91).round().astype(int)
    leaves = AdaptiveCells.of(Feature("stay", 91, 91), [counts], total=8000.0, sigma=30.0)
    bins = merge(leaves, total=8000.0, sigma=30.0, maximum=8)
    first = np.flatnonzero(np.diff(bins.bin_of)) + 1
    assert (first > 9).any()
    assert (bins.bin_shares[1:] * 8000 >= 60 - 1e-6).all()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(histograms, "MORE", 0)
        before = merge(leaves, total=8000.0, sigma=30.0, maximum=8)
    assert before.count < bins.count <= before.count + MORE
    assert np.flatnonzero(np.diff(before.bin_of)).max() < 9
