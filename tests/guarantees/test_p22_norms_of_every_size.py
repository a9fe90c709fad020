"""P22: clipping that rounding undoes: sums that round by more the more units there are, and squares
that vanish or overflow.

What must hold, whatever the units and however many there are beside those that were declared: one
unit more moves the clipped sum by at most C (1 + MARGIN), and the noise has that margin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpsynth.errors import InputError
from dpsynth.models.dpsgd import (
    Activations,
    DpSgd,
    Linear,
    MaskedLinear,
    UnitGradients,
    clipping_norm_from,
    layers,
    packs,
    rows_at_once,
)
from dpsynth.models.dpsgd.clipping_norm import BLOCK, MAX_NORM, MIN_NORM
from dpsynth.models.dpsgd.optimizer import MARGIN
from dpsynth.privacy import SeededEntropy

from ..support.private_steps import private

WIDTH = 6
Batch = tuple[Tensor, Tensor]


class Net(nn.Module):
    """A layer whose inputs a and output gradients b are what the batch says."""

    def __init__(self, masked: bool = False) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        groups = np.arange(WIDTH)
        self.layer: Linear = (
            MaskedLinear(groups, groups, generator=generator)
            if masked
            else Linear(WIDTH, WIDTH, generator=generator)
        )

    def forward(self, batch: Batch, activations: Activations) -> Tensor:
        inputs, pull = batch
        return (self.layer(inputs, activations) * pull).sum(dim=-1)


def engine(clipping_norm: float = 1.0, population: int = 4000, net: Net | None = None) -> DpSgd:
    entropy = SeededEntropy(1)
    return private(
        net or Net(), clipping_norm=clipping_norm, population=population, entropy=entropy
    )


def single(trainer: DpSgd, loss: Any, batch: Batch, mask: Tensor) -> Tensor:
    """The broken twin: the same units with the same factors, added in single precision."""
    total = torch.zeros_like(trainer.flat.values)
    views = trainer.flat.views(total)
    for pack in packs(batch, mask, rows_at_once(trainer.flat.layers.values())):
        gradients = UnitGradients.of(loss, pack)
        factors = pack.per_row(gradients.factors(trainer.clipping_norm).float())
        for layer, a, b in zip(gradients.layers, gradients.inputs, gradients.grads, strict=True):
            layer.accumulate(a, b * factors, views[layer])
    return total


def equal_units(units: int, rows: int) -> tuple[Batch, Tensor]:
    """Equal units, whose rounding errors add up; rows of a unit nearly cancel."""
    a = torch.full((units, rows, WIDTH), 0.7)
    b = torch.full((units, rows, WIDTH), 0.9)
    b[:, 1::2] *= -0.8
    return (a, b), torch.ones(units, rows)


def less(batch: Batch) -> Batch:
    return batch[0][1:], batch[1][1:]


@pytest.mark.parametrize(("units", "rows"), [(400_000, 1), (60_000, 4)])
@pytest.mark.parametrize("understated", [100, 10_000])
def test_a_unit_moves_the_sum_by_c_however_many_there_are(
    units: int, rows: int, understated: int
) -> None:
    net = Net()
    trainer = engine(population=2 * units // understated, net=net)
    batch, mask = equal_units(units, rows)
    moved = trainer.clipped_sum(net, batch, mask) - trainer.clipped_sum(net, less(batch), mask[1:])
    assert moved.norm() <= 1 + MARGIN / 2
    if rows == 1:
        twin = single(trainer, net, batch, mask) - single(trainer, net, less(batch), mask[1:])
        assert twin.norm() > 1 + MARGIN  # and far beyond the margin of the declared population
        assert twin.norm() > 1 + 2.0**-22 * trainer.expected_units


def test_the_noise_has_the_margin_whatever_is_declared() -> None:
    for population in (2, 4000, 10**9):
        drawn = engine(population=population)._noise()
        bare = SeededEntropy(1).normal(len(drawn), np.float32)
        torch.testing.assert_close(drawn, torch.from_numpy(bare) * (1 + MARGIN))


HOSTILE = [
    (1e18, 1e-24),  # the square of b vanishes, and a is as large as its square may be
    (1e15, 3e-21),
    (3e19, 1e-20),  # the square of a overflows
    (1e-25, 1e25),
    (1e25, 1e25),
    (1e-30, 1e-30),
    (1e30, 1e-38),
    (1.0, 1e25),
    (1.0, float("inf")),
    (float("nan"), 0.0),
]


def unit(a: float, b: float, rows: int) -> tuple[Batch, Tensor]:
    inputs, pull = torch.full((1, rows, WIDTH), a), torch.full((1, rows, WIDTH), b)
    return (inputs, pull), torch.ones(1, rows)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("clipping_norm", [MIN_NORM, 1e-6, 1.0, MAX_NORM])
@pytest.mark.parametrize(("a", "b"), HOSTILE)
def test_no_gradient_is_too_small_or_too_large_to_be_clipped(
    a: float, b: float, clipping_norm: float, rows: int, masked: bool
) -> None:
    net = Net(masked)
    batch, mask = unit(a, b, rows)
    total = sum_of(net, clipping_norm, batch, mask)
    assert bool(torch.isfinite(total).all())
    assert total.norm() <= clipping_norm * (1 + MARGIN)


def sum_of(net: Net, clipping_norm: float, batch: Batch, mask: Tensor) -> Tensor:
    return engine(clipping_norm, net=net).clipped_sum(net, batch, mask)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("rows", [1, 2, 7])
def test_a_square_that_vanishes_is_seen_to_break_the_bound(
    rows: int, masked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: squares as single precision has them."""
    monkeypatch.setattr(layers, "TINY", 0.0)
    batch, mask = unit(1e18, 1e-24, rows)
    assert sum_of(Net(masked), 1e-8, batch, mask).norm() > 2e-8


def test_what_makes_up_for_vanished_squares_is_not_seen_in_ordinary_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    batch, mask = unit(30.0, 1e-6, 3)
    with_it = sum_of(Net(), 1e-5, batch, mask)
    monkeypatch.setattr(layers, "TINY", 0.0)
    assert torch.equal(with_it, sum_of(Net(), 1e-5, batch, mask))


@pytest.mark.parametrize("norm", [0.0, -1.0, 1e-22, MIN_NORM / 2, 2 * MAX_NORM, 1e20])
@pytest.mark.parametrize("sign", [1.0, float("nan"), float("inf")])
def test_a_norm_that_single_precision_cannot_square_is_refused(norm: float, sign: float) -> None:
    with pytest.raises(InputError, match="clipping norm must be from 9e-13 to 1e\\+12"):
        engine(norm * sign)


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [(1e-13, 1e-13, MIN_NORM), (1e8, 1e8, MAX_NORM), (0.0, 1e-30, MIN_NORM)],
)
def test_a_norm_that_is_read_off_rows_is_one_that_is_taken(
    a: float, b: float, wanted: float
) -> None:
    """Nothing of the rows is refused: the mixture's rows are what noisy counts made of them."""
    batch, mask = unit(a, b, 1)
    assert clipping_norm_from(Net(), Net(), batch, mask, otherwise=1e-30) == wanted
    engine(wanted)


def test_sums_are_let_out_in_single_precision() -> None:
    """Bits of the sum below those of the noise would be let out as they are."""
    net = Net()
    trainer = engine(population=20, net=net)
    batch, mask = equal_units(10, 1)
    assert trainer.clipped_sum(net, batch, mask).dtype == torch.float64
    assert trainer.noisy_sum(net, batch, mask).dtype == torch.float32
    assert BLOCK * 2.0**-53 * 2**31 * 2 <= MARGIN  # the docstring's bound
