"""A network of steps is moved to the pairs wanted; values lie near the one before within a bin."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories.conditional import correlation, refined_after
from dpsynth.models.histories.networks.calibrated import Drawn, calibrate
from dpsynth.models.marginals import MergedBins, Products

SIZES = (4, 3, 4, 3)  # two conditions, two columns that are drawn


def mixture(components: int, seed: int) -> Products:
    rng = np.random.default_rng(seed)
    parts = [rng.dirichlet(np.full(size, 0.3), components) for size in SIZES]
    tables = np.concatenate(parts, axis=1).astype(np.float32)
    return Products(SIZES, np.full(components, 1 / components), tables)


def apart(bins: np.ndarray, products: Products) -> float:
    """Mean total variation distance of pairs with a column that is drawn."""
    joint = (products.tables * products.weights[:, None]).T @ products.tables
    starts, found = products.offsets, []
    for i, j in ((0, 2), (1, 2), (0, 3), (1, 3), (2, 3)):
        wanted = joint[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        counts = np.zeros_like(wanted)
        np.add.at(counts, (bins[:, i], bins[:, j]), 1 / len(bins))
        found.append(0.5 * np.abs(counts - wanted).sum())
    return float(np.mean(found))


def test_draws_take_on_the_pairs_of_the_mixture() -> None:
    products, rng = mixture(6, seed=1), np.random.default_rng(2)
    network = Network(Shape(SIZES, 8), generator=torch.Generator().manual_seed(3))
    conditions = products.draw(20_000, rng)[:, :2]

    def draw() -> Drawn:
        bins = np.hstack([conditions, network.draw_after(conditions, rng)])
        return Drawn(bins, np.ones(len(bins)))

    before = apart(draw().bins, products)
    calibrate(network, products, 2, draw)
    after = apart(draw().bins, products)
    assert before > 0.2
    assert after < 0.03


def test_nobody_with_a_step_leaves_the_network_as_it_is() -> None:
    products = mixture(2, seed=1)
    network = Network(Shape(SIZES, 0), generator=torch.Generator().manual_seed(3))
    start = network.skip.weight.detach().clone()
    calibrate(network, products, 2, lambda: Drawn.of([]))
    assert torch.equal(network.skip.weight, start)


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
