"""Where the tree of a wide column is cut: heaps stand apart, noise makes no comb."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models.marginals import AdaptiveCells, MergedBins, merge
from dpsynth.models.marginals.heaps import cut_tree, heaps_among

SIGMA = 20.0


def tree(fine: np.ndarray) -> list[np.ndarray]:
    return [np.add.reduceat(fine, np.arange(0, len(fine), width)) for width in (64, 8, 1)]


def cut(fine: np.ndarray, points: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    points = np.ones(len(fine)) if points is None else points
    least = 5 * SIGMA
    return cut_tree(tree(fine), (64, 8, 1), points, minimum=least, most=1e9, sigma=SIGMA)[:2]


def test_noise_on_an_even_column_makes_few_leaves() -> None:
    """Each cell of 8 codes has 240 rows, more than twice the least, and would have been a comb."""
    rng = np.random.default_rng(1)
    fine = 30.0 + rng.normal(0, SIGMA, 640)
    leaf_of, rows = cut(fine)
    assert len(rows) < 150
    error = np.abs((rows / np.bincount(leaf_of))[leaf_of] - 30.0).mean()
    assert error < 0.5 * np.abs(fine - 30.0).mean()
    assert rows.sum() == pytest.approx(fine.sum())


def test_heaps_keep_their_rows_and_the_codes_between_them_are_one_leaf() -> None:
    fine = np.full(64, 30.0)
    fine[[8, 13]] = 500.0
    leaf_of, rows = cut(fine)
    assert rows[leaf_of[[8, 13]]].tolist() == [500.0, 500.0]
    assert leaf_of[9:13].tolist() == [leaf_of[9]] * 4
    assert rows[leaf_of[9]] == pytest.approx(120.0)


def test_a_steep_cell_is_split_into_its_codes() -> None:
    fine = np.repeat(np.linspace(0, 400, 8), 8)
    leaf_of, rows = cut(fine)
    np.testing.assert_allclose((rows / np.bincount(leaf_of))[leaf_of], fine, atol=1e-6)


def test_many_points_explain_many_rows() -> None:
    points = np.tile([1.0, 9.0], 4)
    fine = np.tile([30.0, 270.0], 4)
    assert not heaps_among(fine, points, fine.sum(), SIGMA).any()
    assert heaps_among(fine, np.ones(8), fine.sum(), SIGMA).sum() > 2


def test_what_is_smooth_and_large_is_cut_evenly_so_that_bins_can_end_in_it() -> None:
    fine, points = np.full(64, 30.0), np.tile([1.0, 3.0], 32)
    fine *= points / 2
    leaf_of, rows, noise = cut_tree(
        tree(fine), (64, 8, 1), points, minimum=100.0, most=250.0, sigma=SIGMA
    )
    assert len(rows) == 8
    np.testing.assert_allclose(rows, np.bincount(leaf_of, weights=fine))
    assert rows.max() <= 270
    assert noise.sum() == pytest.approx(1.0)


def test_codes_that_are_not_alike_are_told_apart() -> None:
    """They differ in what they stand for: half a year, a day, a part of follow-up."""
    fine = 30.0 + np.random.default_rng(1).normal(0, SIGMA, 40)
    levels = [np.add.reduceat(fine, np.arange(0, 40, 10)), fine]
    least = 5 * SIGMA
    _, rows, _ = cut_tree(
        levels, (10, 1), np.ones(40), minimum=least, most=1e9, sigma=SIGMA, alike=False
    )
    assert len(rows) == 40


def test_codes_of_a_tail_get_nothing() -> None:
    levels = tree(np.full(64, 30.0))
    levels[2][40:] = -np.inf
    levels[1][5:] = -np.inf
    levels[0][0] = 1200.0
    leaf_of, rows, _ = cut_tree(
        levels, (64, 8, 1), np.ones(64), minimum=100.0, most=1e9, sigma=SIGMA
    )
    assert rows.sum() == pytest.approx(1200.0)
    assert not set(leaf_of[:40]) & set(leaf_of[40:]) or len(rows) == 1


def test_what_lies_outside_heaps_is_cut_by_its_own_mass() -> None:
    """Of 92 % zeros and a thin tail, the tail would be two bins; a smooth column is as it was."""
    tail = np.linspace(30, 3, 60)
    counts = np.concatenate([[0.92], 0.08 * tail / tail.sum()]) * 50_000
    few, clear = (bins_of_counts(counts, sigma) for sigma in (60.0, 10.0))
    assert few.count <= 4
    assert clear.count >= 7
    assert bins_of_counts(counts, 10.0, outside=False).count <= 4
    smooth = np.full(61, 50_000 / 61)
    assert bins_of_counts(smooth, 10.0).count == bins_of_counts(smooth, 55.0).count


def bins_of_counts(counts: np.ndarray, sigma: float, *, outside: bool = True) -> MergedBins:
    size = len(counts)
    leaves = AdaptiveCells(
        np.arange(size, dtype=np.uint16),
        size,
        counts,
        np.ones(size),
        np.zeros(size, dtype=bool),
        np.ones(size),
    )
    return merge(leaves, total=float(counts.sum()), sigma=sigma, maximum=16, outside=outside)


def lost(leaf_of: np.ndarray, rows: np.ndarray, body: np.ndarray, count: float) -> float:
    """Return the share of the rows that stand in leaves of tail codes alone, which are dropped."""
    held = np.unique(leaf_of[body])
    return float(1 - rows[held].sum() / count)


@pytest.mark.parametrize("place", [3, 130, 638])
def test_codes_of_tails_get_no_rows_of_the_body(place: int) -> None:
    """Bounds are far wider than what occurs: all rows stand in a code or two of one cell."""
    fine = np.full(640, -np.inf)
    body = np.zeros(640, dtype=bool)
    body[place : place + 2] = True
    fine[body] = 2500.0
    levels = [
        np.where(
            np.isfinite(cells).any(axis=1), np.where(np.isfinite(cells), cells, 0).sum(1), -np.inf
        )
        for cells in (fine.reshape(-1, width) for width in (64, 8, 1))
    ]
    leaf_of, rows, _ = cut_tree(
        levels, (64, 8, 1), np.ones(640), minimum=100, most=500, sigma=SIGMA, alike=True
    )
    assert lost(leaf_of, rows, body, 5000.0) == pytest.approx(0, abs=1e-9)
    held = np.bincount(leaf_of[body], weights=None, minlength=len(rows)) > 0
    assert rows[leaf_of[body]].tolist() == pytest.approx([2500.0, 2500.0])
    assert rows[~held].max(initial=0) == 0
    # the broken version: the rows of a cell are spread over all its codes, tails included
    spread = np.where(np.arange(640) // 64 == place // 64, 5000.0 / 64, 0.0)
    assert lost(np.arange(640), spread, body, 5000.0) > 0.9
