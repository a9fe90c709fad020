"""P01: the private optimizer, and it alone, moves every parameter that private rows reach."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from dpsynth.errors import InputError
from dpsynth.models.dpsgd import Activations, DpSgd, Linear

from ..support.private_steps import private

UNITS, ROWS, WIDTH = 24, 3, 5
C = 0.5
Sum = Callable[[Tensor, Tensor], Tensor]


class AutoEncoder(nn.Module):
    """An encoder and a decoder, trained together."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.encoder = Linear(WIDTH, 3, generator=generator)
        self.decoder = Linear(3, WIDTH, generator=generator)

    def forward(self, x: Tensor, activations: Activations | None = None) -> Tensor:
        return (
            (self.decoder(torch.tanh(self.encoder(x, activations)), activations) - x)
            .square()
            .sum(-1)
        )


def trainer(net: nn.Module) -> DpSgd:
    return private(net, clipping_norm=C, population=UNITS, learning_rate=0.05, optimizer="adam")


def cohort() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(UNITS, ROWS, WIDTH, generator=generator)
    x[3] = 10.0  # an unusual unit with equal rows
    mask = torch.rand(UNITS, ROWS, generator=generator) < 0.8
    return x, mask


def largest_shift(sum_of: Sum) -> float:
    """How far the sum moves, at most, when one unit is removed."""
    x, mask = cohort()
    whole = sum_of(x, mask)
    shifts = []
    for unit in range(UNITS):
        rest = torch.arange(UNITS) != unit
        shifts.append(float((whole - sum_of(x[rest], mask[rest])).norm()))
    return max(shifts)


def partly_private(net: AutoEncoder) -> Sum:
    """The broken twin: the decoder's gradients are clipped by unit, the encoder's are not."""
    parameters = [net.encoder.weight, net.encoder.bias, net.decoder.weight, net.decoder.bias]

    def sum_of(x: Tensor, mask: Tensor) -> Tensor:
        encoder, decoder = 0.0, 0.0
        for unit in range(len(x)):
            for parameter in parameters:
                parameter.requires_grad_(True)
            loss = (net(x[unit : unit + 1]) * mask[unit]).sum()
            grads = [g.flatten() for g in torch.autograd.grad(loss, parameters)]
            for parameter in parameters:
                parameter.requires_grad_(False)
            encoder = encoder + torch.cat(grads[:2])
            mine = torch.cat(grads[2:])
            decoder = decoder + mine * min(1.0, C / float(mine.norm()))
        return torch.cat([encoder, decoder])

    return sum_of


@pytest.mark.parametrize("steps_before", [0, 5])
def test_one_unit_moves_the_sum_by_at_most_c(steps_before: int) -> None:
    """At the first step, and at a later one from the same state."""
    net = AutoEncoder()
    engine = trainer(net)
    x, mask = cohort()
    for _ in range(steps_before):
        drawn = engine.sample_batch(UNITS)
        engine.step(net, x[drawn], mask[drawn])
    shift = largest_shift(lambda x, mask: engine.clipped_sum(net, x, mask))
    assert 0.9 * C < shift <= C * (1 + 1e-5)
    assert largest_shift(partly_private(net)) > 2 * C


def test_the_buffer_is_the_network() -> None:
    net = AutoEncoder()
    engine = trainer(net)
    assert sum(p.numel() for p in net.parameters()) == engine.flat.values.numel()
    assert not any(p.requires_grad for p in net.parameters())
    engine.flat.values.fill_(7.0)
    assert all(bool((p == 7.0).all()) for p in net.parameters())


def test_a_step_moves_every_parameter() -> None:
    """With a zero gradient, too: the noise reaches all of them."""
    net = AutoEncoder()
    engine = trainer(net)
    x, mask = cohort()
    before = engine.flat.values.clone()
    drawn = engine.sample_batch(UNITS)
    engine.step(lambda x, activations: 0.0 * net(x, activations), x[drawn], mask[drawn])
    assert bool((engine.flat.values != before).all())


def test_a_parameter_of_another_optimizer_is_refused() -> None:
    net = AutoEncoder()
    net.encoder.weight.requires_grad_(True)
    with pytest.raises(InputError, match=r"encoder\.weight requires a gradient"):
        trainer(net)


def test_a_parameter_that_leaves_later_is_refused() -> None:
    x, mask = cohort()
    for change in (
        lambda net: net.encoder.weight.requires_grad_(True),
        lambda net: setattr(net.encoder.weight, "data", torch.zeros(3, WIDTH)),
        trainer,  # another trainer takes the network over
    ):
        net = AutoEncoder()
        engine = trainer(net)
        drawn = engine.sample_batch(UNITS)
        change(net)
        with pytest.raises(InputError, match="replaced, moved or made trainable"):
            engine.step(net, x[drawn], mask[drawn])


def test_a_layer_of_another_network_is_refused() -> None:
    net, other = AutoEncoder(), AutoEncoder()
    engine = trainer(net)
    x, mask = cohort()
    with pytest.raises(InputError, match="not part of the network"):
        engine.clipped_sum(
            lambda x, activations: net(x, activations) + other(x, activations), x, mask
        )


def test_a_layer_without_tape_is_refused() -> None:
    net = AutoEncoder()
    engine = trainer(net)
    x, mask = cohort()

    def forgets(x: Tensor, activations: Activations) -> Tensor:
        return (net.decoder(torch.tanh(net.encoder(x)), activations) - x).square().sum(-1)

    with pytest.raises(InputError, match="layer encoder did not record"):
        engine.clipped_sum(forgets, x, mask)


def test_shared_parameters_are_refused() -> None:
    net = AutoEncoder()
    net.decoder = Linear(3, WIDTH, generator=torch.Generator())
    net.decoder.register_parameter("weight", nn.Parameter(net.encoder.weight.data.T, False))
    with pytest.raises(InputError, match=r"encoder\.weight and decoder\.weight share memory"):
        trainer(net)
