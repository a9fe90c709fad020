"""After training, columns are drawn as often as the released counts say, and pairs stay learned.

All randomness is seeded: a test that passes once passes always.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories.steps.distilled import settle
from dpsynth.models.marginals import Products

from ..support.toy_generators import randomised

SHAPE = Shape(bins=(2, 3, 2), masked=5)
LEADERS = ((), (0,), (1, 0))
SHARES = [np.array([0.3, 0.7]), np.array([0.6, 0.1, 0.3]), np.array([0.9, 0.1])]
ROWS = 50_000


def network_of(shape: Shape = SHAPE) -> Network:
    """A network whose columns are far from the shares above."""
    network = Network(shape, generator=torch.Generator().manual_seed(1))
    randomised(network, 2)
    return network


def shares_of(network: Network) -> list[np.ndarray]:
    """The shares of all columns in rows that are drawn independently."""
    rng = np.random.default_rng(3)
    drawn = network.draw(ROWS, rng, leaders=((), (), ()), even=False)
    columns = zip(drawn.T, SHAPE.bins, strict=True)
    return [np.bincount(bins, minlength=size) / ROWS for bins, size in columns]


@pytest.mark.parametrize("masked", [0, 5])
def test_columns_are_drawn_as_often_as_they_should_be(masked: int) -> None:
    network = network_of(replace(SHAPE, masked=masked))
    assert max(abs(a - b).max() for a, b in zip(shares_of(network), SHARES, strict=True)) > 0.1
    nothing = np.empty((ROWS, 0), dtype=np.int64)
    network.settle(nothing, SHARES, np.random.default_rng(4), leaders=LEADERS)
    for found, aim in zip(shares_of(network), SHARES, strict=True):
        assert np.abs(found - aim).max() < 0.01


def test_how_columns_go_together_stays_as_it_was_learned() -> None:
    """Biases move alone: the odds ratio of a column, given those before, is what it was."""
    before, after = network_of(), network_of()
    nothing = np.empty((ROWS, 0), dtype=np.int64)
    after.settle(nothing, SHARES, np.random.default_rng(6), leaders=LEADERS)
    for name, array in before.named_parameters():
        same = torch.equal(array, after.get_parameter(name))
        assert same == (name != "skip.bias"), name


def test_given_columns_are_taken_as_they_are() -> None:
    shape = replace(SHAPE, given=1)
    weights = np.array([0.25, 0.75])
    tables = np.array([[0.9, 0.1, 0.2, 0.5, 0.3, 0.6, 0.4], [0.2, 0.8, 0.7, 0.2, 0.1, 0.1, 0.9]])
    products, network = Products(SHAPE.bins, weights, tables.astype(np.float32)), network_of(shape)
    settle(network, products, np.random.default_rng(7))
    rng = np.random.default_rng(8)
    given = products.draw(ROWS, rng)[:, :1]
    drawn = network.draw_after(given, rng)
    for bins, aim in zip(drawn.T, np.split(weights @ tables, [2, 5])[1:], strict=True):
        assert np.abs(np.bincount(bins) / ROWS - aim).max() < 0.01
