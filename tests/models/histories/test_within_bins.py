"""Within a bin, a value is drawn near the one before, and stays in its bin."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models.histories.conditional import correlation, refined_after
from dpsynth.models.marginals import MergedBins, Products


def bins_of(counts: list[int], shares: np.ndarray) -> MergedBins:
    return MergedBins(np.repeat(np.arange(len(counts)), counts).astype(np.uint16), shares)


def test_the_correlation_of_a_normal_pair_is_found_through_coarse_bins() -> None:
    rng = np.random.default_rng(0)
    normal = rng.multivariate_normal([0, 0], [[1, 0.6], [0.6, 1]], 100_000)
    cut = (normal[:, :, None] > np.array([0.3, 1.2])).sum(axis=2)
    joint = np.zeros((3, 3))
    np.add.at(joint, tuple(cut.T), 1 / len(cut))
    eye = np.eye(3)
    rows = [np.concatenate([eye[i], eye[j]]) for i in range(3) for j in range(3)]
    products = Products((3, 3), joint.ravel(), np.array(rows, dtype=np.float32))
    bins = [bins_of([1, 1, 1], joint.sum(axis=axis)) for axis in (1, 0)]
    assert correlation(products, (0, 1), bins) == pytest.approx(0.6, abs=0.1)


def test_codes_stay_within_their_bin_and_follow_the_one_before() -> None:
    rng = np.random.default_rng(1)
    bins = bins_of([1, 9, 1], np.array([0.5, *[0.05] * 9, 0.05]))  # the last code has no order
    drawn = rng.integers(0, 3, 30_000)
    before = rng.integers(0, 11, 30_000)
    codes = refined_after(bins, drawn, before, 10, 0.8, rng)
    assert np.array_equal(bins.coarsen(codes), drawn)
    inside = (drawn == 1) & (before < 10)
    assert np.corrcoef(codes[inside], before[inside])[0, 1] > 0.4
    none = (drawn == 1) & (before == 10)
    shares = np.bincount(codes[none], minlength=10)[1:10] / none.sum()
    assert shares == pytest.approx(1 / 9, abs=0.03)
