"""Networks of steps: conditions are inputs alone, and networks of earlier runs still draw."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpsynth.models.dpsgd import arrays_of
from dpsynth.models.generators.autoregressive_network import Network, Shape
from dpsynth.models.histories.steps.distilled import restored_network

SIZES = (3, 4, 2, 5)
GIVEN = np.array([[0, 1], [2, 3], [1, 1]])


def network_of(given: int, masked: int) -> Network:
    network = Network(Shape(SIZES, masked, given), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        for layer in (network.skip, *([network.masked_out] if masked else [])):
            layer.weight.normal_(generator=torch.Generator().manual_seed(2))
            layer.bias.normal_(generator=torch.Generator().manual_seed(3))
    return network


@pytest.mark.parametrize("masked", [0, 6])
@pytest.mark.parametrize("given", [0, 2])
def test_a_network_is_rebuilt_with_or_without_logits_of_what_is_known(
    given: int, masked: int
) -> None:
    network = network_of(given, masked)
    rebuilt = restored_network(SIZES, 2, arrays_of(network, "x"), "x")
    assert rebuilt is not None and rebuilt.shape.given == given
    one, other = (each.draw_after(GIVEN, np.random.default_rng(4)) for each in (network, rebuilt))
    assert np.array_equal(one, other) and one.shape == (3, 2)
    assert restored_network(SIZES, 2, {}, "x") is None


@pytest.mark.parametrize("masked", [0, 6])
def test_the_loss_is_that_of_the_columns_that_are_drawn(masked: int) -> None:
    """Over all that can be drawn after each condition, probabilities add up to one."""
    network = network_of(2, masked)
    drawn = np.stack(np.meshgrid(np.arange(2), np.arange(5), indexing="ij"), -1).reshape(-1, 2)
    for known in GIVEN:
        rows = np.column_stack([np.tile(known, (10, 1)), drawn])
        cost = network.loss(torch.from_numpy(rows)[:, None], None)
        assert float(torch.exp(-cost).sum()) == pytest.approx(1.0, rel=1e-5)


def test_draws_have_the_law_of_the_loss() -> None:
    network = network_of(2, 6)
    known = np.tile(GIVEN[:1], (20_000, 1))
    drawn = network.draw_after(known, np.random.default_rng(5))
    rows = np.array([[0, 1, j, k] for j in range(2) for k in range(5)])
    law = torch.exp(-network.loss(torch.from_numpy(rows)[:, None], None))[:, 0].numpy()
    shares = np.bincount(5 * drawn[:, 0] + drawn[:, 1], minlength=10) / len(drawn)
    assert np.abs(shares - law).max() < 0.02
