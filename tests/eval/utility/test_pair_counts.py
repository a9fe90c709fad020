"""All pair tables at once, against one at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.eval.fidelity import mean_tvd
from dpsynth.eval.utility.subgroups import mean_tvds, pair_counts

SIZES = (3, 2, 5)


def table(rows: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, rows) for size in SIZES]).astype(np.uint16)


def test_counts_by_hand() -> None:
    bins = np.array([[0, 1, 1], [0, 0, 1]], dtype=np.uint16)
    assert pair_counts(bins, (2, 2)).tolist() == [
        [1, 0, 1, 0],
        [0, 2, 1, 1],
        [1, 1, 2, 0],
        [0, 1, 0, 1],
    ]


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 99))
def test_distances_are_those_of_one_pair_at_a_time(a: int, b: int, seed: int) -> None:
    one, other = table(a, seed), table(b, seed + 1)
    distances = mean_tvds(pair_counts(one, SIZES), pair_counts(other, SIZES), SIZES)
    assert distances[0] == pytest.approx(mean_tvd(one.T, other.T, 1))
    assert distances[1] == pytest.approx(mean_tvd(one.T, other.T, 2))


def test_many_rows_are_counted_in_chunks() -> None:
    bins = table(10_000, 5)
    counts = pair_counts(bins, SIZES)
    assert np.diag(counts)[:3].tolist() == np.bincount(bins[0]).tolist()
    assert counts[:3, 3:5].sum() == 10_000


def test_one_column_has_no_pairs() -> None:
    counts = pair_counts(np.array([[0, 1]], dtype=np.uint16), (2,))
    assert mean_tvds(counts, counts, (2,)) == (0, None)
