"""Settling moves the decoder of `tvae` to a mixture's columns and pairs, and nothing else.

All randomness is seeded: a test that passes once passes always.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from dpsynth.eval.fidelity.summary import tvd
from dpsynth.models.generators import tvae
from dpsynth.models.generators.tvae import Network, PairDistance, Shape, settle
from dpsynth.models.marginals import Products

SIZES = (2, 3, 2)
MIXTURE = Products(
    SIZES,
    np.array([0.7, 0.3]),
    np.array(
        [[0.9, 0.1, 0.8, 0.1, 0.1, 0.5, 0.5], [0.2, 0.8, 0.1, 0.1, 0.8, 0.1, 0.9]], np.float32
    ),
)


def network_of() -> Network:
    return Network(Shape(SIZES, 16, 2), generator=torch.Generator().manual_seed(1))


def laws_of_mixture(rows: int, seed: int) -> torch.Tensor:
    component = np.random.default_rng(seed).choice(2, rows, p=MIXTURE.weights)
    return torch.from_numpy(MIXTURE.tables[component])


def test_the_laws_of_a_decoder_are_distributions_of_each_column() -> None:
    laws = network_of().laws(torch.randn(5, 2, generator=torch.Generator().manual_seed(2)))
    for block in torch.split(laws, list(SIZES), 1):
        np.testing.assert_allclose(block.sum(dim=1), 1.0, atol=1e-6)


def test_the_distance_of_the_mixture_to_itself_has_mean_zero() -> None:
    """The square of one estimate, in the place of a product of two, would be positive."""
    distance = PairDistance(MIXTURE)
    found = [float(distance.of(laws_of_mixture(40, seed))) for seed in range(2000)]
    assert abs(np.mean(found)) < 4 * np.std(found) / np.sqrt(2000)
    squared = [float(distance.of(laws_of_mixture(20, seed).repeat(2, 1))) for seed in range(200)]
    assert min(squared) >= 0 and np.mean(squared) > 0.05


def test_the_distance_by_hand() -> None:
    """Uniform laws against the mixture: each pair of columns once, each column once."""
    uniform = torch.cat([torch.full((4, size), 1 / size) for size in SIZES], 1)
    weighted = MIXTURE.tables * MIXTURE.weights[:, None]
    columns, pairs = weighted.sum(axis=0), weighted.T @ MIXTURE.tables
    starts = MIXTURE.offsets
    expected = sum(
        (1 / size - columns[cell]) ** 2 / (columns[cell] + tvae.RARE)
        for j, size in enumerate(SIZES)
        for cell in range(starts[j], starts[j + 1])
    )
    for i, j in ((0, 1), (0, 2), (1, 2)):
        block = pairs[starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
        share = 1 / (SIZES[i] * SIZES[j])
        expected += ((share - block) ** 2 / (block + tvae.RARE)).sum()
    assert float(PairDistance(MIXTURE).of(uniform)) == pytest.approx(float(expected), rel=1e-4)


@pytest.mark.long
def test_a_settled_decoder_draws_the_columns_and_pairs_of_the_mixture() -> None:
    network, rows = network_of(), 50_000
    rng = np.random.default_rng(3)
    source = MIXTURE.draw(rows, rng)

    def apart(columns: tuple[int, ...]) -> float:
        drawn = network.draw(rows, np.random.default_rng(4), leaders=((), (), ()))
        return tvd(source, drawn, columns)

    before = apart((0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tvae, "DRAWS", 500)
        patch.setattr(tvae, "LEARNING_RATE", 0.02)
        settle(network, MIXTURE, 400, rng)
    assert before > 0.2
    assert max(apart(columns) for columns in ((0, 1), (0, 2), (1, 2))) < 0.03
    assert max(apart((j,)) for j in range(3)) < 0.015


def test_settling_leaves_the_encoder_and_asks_for_no_gradient_afterwards() -> None:
    network, told = network_of(), []
    before = {name: value.clone() for name, value in network.named_parameters()}
    settle(network, MIXTURE, 3, np.random.default_rng(5), lambda *words: told.append(words))
    for name, value in network.named_parameters():
        assert torch.equal(value, before[name]) == name.startswith("encode"), name
        assert not value.requires_grad and value.grad is None
    assert told == [("settling", 1 / 3), ("settling", 2 / 3), ("settling", 1.0)]


def test_without_steps_nothing_moves() -> None:
    network = network_of()
    before = {name: value.clone() for name, value in network.named_parameters()}
    settle(network, MIXTURE, 0, np.random.default_rng(6))
    assert all(torch.equal(value, before[name]) for name, value in network.named_parameters())
