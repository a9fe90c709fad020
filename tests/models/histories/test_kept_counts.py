"""What counts of linked tables released is kept for a fit that goes on, to the bit."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from dpsynth.models.histories import kept_counts
from dpsynth.models.histories.kept_counts import counts_of, grains_of, with_gaps
from dpsynth.models.histories.steps.gap_factors import GapCounts
from dpsynth.models.marginals import GrainCounts


def grains(sigma: float, *columns: int) -> GrainCounts:
    rng = np.random.default_rng(int(sigma))
    return GrainCounts(tuple(rng.normal(size=size) for size in columns), sigma, 12.0)


def test_grains_come_back_in_the_order_of_tables_and_series() -> None:
    """Also of more than nine series, of columns without grains, and of the table of patients."""
    found = {
        -1: [grains(1.0, 0, 3)],
        0: [grains(2.0 + series, 2) for series in range(12)],
        2: [grains(20.0)],
    }
    kept = grains_of(counts_of([], found))
    assert list(kept) == [-1, 0, 2]
    for place, of_series in found.items():
        assert [one.sigma for one in kept[place]] == [one.sigma for one in of_series]
        for one, other in zip(kept[place], of_series, strict=True):
            assert one.mass == other.mass and len(one.counts) == len(other.counts)
            pairs = zip(one.counts, other.counts, strict=True)
            assert all(np.array_equal(*both) for both in pairs)
    assert grains_of({}) == {}


def test_days_between_rows_come_back_to_their_series(monkeypatch: Any) -> None:
    gaps = GapCounts(np.array([0.1, -3.0, 1e9]), 4.5, 17.0)
    models: Any = [[SimpleNamespace(released=None), SimpleNamespace(released=gaps)]]
    monkeypatch.setattr(kept_counts, "replace", lambda model, released: released)
    ((none, kept),) = with_gaps(models, counts_of(models, {}))
    assert none is None and isinstance(kept, GapCounts)
    assert (kept.sigma, kept.total) == (gaps.sigma, gaps.total)
    assert np.array_equal(kept.counts, gaps.counts)
