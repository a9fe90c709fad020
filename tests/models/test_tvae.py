"""`tvae` has a latent vector that carries relations, and its loss and draws are what it says.

All randomness is seeded: a test that passes once passes always.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import Tensor

from dpsynth.eval.fidelity.summary import tvd
from dpsynth.models.dpsgd import Activations, UnitGradients, packs
from dpsynth.models.generators.tvae import Network, Shape

from ..support.toy_generators import assert_drawn_by, randomised

SMALL = Shape(bins=(2, 3, 2), hidden=8, latent=1)
ROWS = list(itertools.product(*(range(count) for count in SMALL.bins)))
NO_LEADERS: tuple[tuple[int, ...], ...] = ((), (), ())
LEADERS = ((), (0,), (1, 0))


def network_of(shape: Shape = SMALL, seed: int = 1) -> Network:
    """A network with weights far from zero in every layer."""
    network = Network(shape, generator=torch.Generator().manual_seed(seed))
    randomised(network, seed + 1)
    return network


def law_of(network: Network, factors: tuple[float, ...] = (1.0, 1.0)) -> dict[Any, float]:
    """Probability of every row: the integral over the latent vector on a grid, in NumPy."""
    grid = np.linspace(-8, 8, 4001)
    density = np.exp(-0.5 * grid**2)
    density /= density.sum()
    arrays = {name: p.detach().double().numpy() for name, p in network.named_parameters()}
    hidden = np.tanh(grid[:, None] @ arrays["decode_in.weight"].T + arrays["decode_in.bias"])
    logits = hidden @ arrays["decode_out.weight"].T + arrays["decode_out.bias"]
    starts = np.concatenate([[0], np.cumsum(SMALL.bins)])
    blocks = [np.exp(logits[:, a:b]) for a, b in itertools.pairwise(starts)]
    laws = [block / block.sum(axis=1, keepdims=True) for block in blocks]
    law = {
        row: factors[row[0]]
        * float((density * np.prod([laws[j][:, c] for j, c in enumerate(row)], axis=0)).sum())
        for row in ROWS
    }
    return {row: share / sum(law.values()) for row, share in law.items()}


@pytest.mark.parametrize("even", [False, True])
@pytest.mark.parametrize("factors", [None, (1.0, 3.0)])
def test_the_law_of_draws_by_integration(even: bool, factors: tuple[float, ...] | None) -> None:
    """All 12 rows, also with the first column weighed: it pulls the latent vector along."""
    network, rows = network_of(), 100_000
    first = None if factors is None else np.array(factors)
    leaders = LEADERS if even else NO_LEADERS
    drawn = network.draw(rows, np.random.default_rng(2), leaders=leaders, first=first, even=even)
    law = law_of(network) if factors is None else law_of(network, factors)
    assert drawn.shape == (rows, 3) and sum(law.values()) == pytest.approx(1.0)
    assert_drawn_by(law, drawn)


def test_the_latent_vector_relates_columns() -> None:
    network = network_of()
    with torch.no_grad():
        network.decode_out.weight.mul_(3)
    drawn = network.draw(50_000, np.random.default_rng(3), leaders=NO_LEADERS, even=False)
    rng = np.random.default_rng(4)
    shuffled = np.column_stack([rng.permutation(drawn[:, j]) for j in range(3)])
    assert tvd(drawn, shuffled, (1, 2)) > 0.05


@pytest.mark.long
def test_the_likelihood_bound_reaches_the_law() -> None:
    """With many draws the importance-weighted bound is the log-probability of the row."""
    network = network_of()
    with torch.no_grad():  # an encoder whose draws cover the latent space
        network.encode_out.weight.zero_()
        network.encode_out.bias.zero_()
    bounds = network.log_likelihood(torch.tensor(ROWS), np.random.default_rng(5), 20_000)
    expected = [math.log(share) for share in law_of(network).values()]
    np.testing.assert_allclose(bounds.numpy(), expected, atol=0.1)


def test_few_draws_bound_the_likelihood_from_below() -> None:
    network, rng = network_of(), np.random.default_rng(6)
    rows = torch.tensor(ROWS)
    one = np.mean([network.log_likelihood(rows, rng, 1).numpy() for _ in range(300)], axis=0)
    expected = np.log(list(law_of(network).values()))
    assert (one < expected + 0.05).all() and (one < expected - 0.05).any()


def test_the_loss_is_the_evidence_lower_bound_by_hand() -> None:
    """A decoder that ignores the latent vector: -log p(row) of independent columns, plus KL."""
    network = network_of(replace(SMALL, latent=3))
    with torch.no_grad():
        network.decode_out.weight.zero_()
        network.encode_out.weight.zero_()
        network.encode_out.bias.copy_(torch.tensor([0.5, -1.0, 0.0, 0.2, -0.3, 0.0]))
    mean, log_variance = np.array([0.5, -1.0, 0.0]), np.array([0.2, -0.3, 0.0])
    divergence = 0.5 * (mean**2 + np.exp(log_variance) - 1 - log_variance).sum()
    logits = network.decode_out.bias.detach().double().numpy()
    starts = np.concatenate([[0], np.cumsum(SMALL.bins)])
    for row in ROWS:
        own = [logits[a:b] for a, b in itertools.pairwise(starts)]
        logs = [part[c] - np.log(np.exp(part).sum()) for part, c in zip(own, row, strict=True)]
        loss = network.loss(torch.tensor([[row]]), None)
        assert loss.shape == (1, 1)
        assert float(loss) == pytest.approx(divergence - sum(logs), abs=1e-4), row


def test_the_start_is_near_the_product_of_the_columns() -> None:
    network = Network(SMALL, generator=torch.Generator().manual_seed(1))
    shares = [np.array([0.9, 0.1]), np.array([0.2, 0.5, 0.3]), np.array([0.5, 0.5])]
    network.start_at(shares)
    drawn = network.draw(100_000, np.random.default_rng(5), leaders=NO_LEADERS, even=False)
    for row in ROWS:
        by_hand = np.prod([column[code] for column, code in zip(shares, row, strict=True)])
        assert abs((drawn == row).all(axis=1).mean() - by_hand) < 0.03, row


def test_the_loss_of_a_row_does_not_depend_on_the_other_rows() -> None:
    """Neither those of the unit nor those of other units: the condition of per-unit clipping."""
    network = network_of()
    rng = np.random.default_rng(6)
    batch = torch.from_numpy(rng.integers(0, 2, (5, 3, 3)))
    other = torch.from_numpy(rng.integers(0, 2, (5, 3, 3)))
    other[2, 1] = batch[2, 1]
    losses = []
    for rows in (batch, other):
        network.noise = np.random.default_rng(7)  # the same latent noise for the same place
        losses.append(network.loss(rows, None))
    assert losses[0].shape == (5, 3)
    assert float(losses[0][2, 1]) == pytest.approx(float(losses[1][2, 1]), abs=1e-6)
    assert not torch.allclose(losses[0], losses[1])


@pytest.mark.parametrize("k", [1, 3])
def test_the_norms_of_units_are_those_of_their_own_gradients(k: int) -> None:
    """Through encoder, noise and decoder: against automatic differentiation, unit by unit."""
    network = network_of(replace(SMALL, latent=2))
    rows = torch.from_numpy(np.random.default_rng(8).integers(0, 2, (4, k, 3)))
    rows[1] = rows[1, :1]  # a unit of equal rows, whose gradients add up
    noise = np.random.default_rng(9).standard_normal((4 * k, 2)).astype(np.float32)

    class Given:
        """The same noise for a row wherever it is laid out."""

        def __init__(self, values: npt.NDArray[np.float32]) -> None:
            self.values = values

        def standard_normal(self, shape: tuple[int, ...], dtype: Any) -> npt.NDArray[np.float32]:
            assert self.values.shape == shape
            return self.values

    network.noise = Given(noise)  # type: ignore[assignment]
    (pack,) = packs(rows, torch.ones(4, k), 1024)
    found = UnitGradients.of(network.loss, pack).norms()
    for unit in range(4):
        own = slice(unit * k, (unit + 1) * k)
        network.noise = Given(noise[own])  # type: ignore[assignment]
        assert float(found[unit]) == pytest.approx(gradient_norm(network, rows[unit]), rel=1e-4)


def gradient_norm(network: Network, rows: Tensor) -> float:
    """The norm of one unit's gradient by automatic differentiation."""
    parameters = list(network.parameters())
    for parameter in parameters:
        parameter.requires_grad_(True)
    try:
        total = network.loss(rows[None], None).sum()
        grads = torch.autograd.grad(total, parameters)
    finally:
        for parameter in parameters:
            parameter.requires_grad_(False)
    return math.sqrt(sum(float(grad.double().square().sum()) for grad in grads))


def test_a_tape_sees_every_layer_once() -> None:
    activations = Activations()
    network = network_of()
    network.loss(torch.tensor([ROWS[:2]]), activations)
    assert (
        len(activations.records) == 4 == len({id(record.layer) for record in activations.records})
    )
