"""P20: clipping bounds what a unit does, however many rows it has; not what a row does."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from dpsynth.models.dpsgd import Activations, DpSgd, Linear, MaskedLinear

from ..support.private_steps import private

C = 0.25
WIDTH = 6
GROUPS = np.arange(WIDTH)


class Model(torch.nn.Module):
    """A layer, and a masked one beside it."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.plain = Linear(WIDTH, WIDTH, generator=generator)
        self.masked = MaskedLinear(GROUPS, GROUPS, generator=generator)

    def forward(self, x: Tensor, activations: Activations | None = None) -> Tensor:
        return (
            (torch.tanh(self.plain(x, activations)) + self.masked(x, activations) - x)
            .square()
            .sum(-1)
        )


def engine(model: Model) -> DpSgd:
    return private(model, clipping_norm=C, population=20, optimizer="adam")


def units(k: int) -> Tensor:
    """Nine units with rows of their own, and one whose k rows are equal."""
    x = torch.randn(10, k, WIDTH, generator=torch.Generator().manual_seed(1))
    x[0] = x[0, :1]
    return x


def shift_by_unit_clipping(x: Tensor, mask: Tensor) -> float:
    """How far the engine's sum moves when the first unit joins."""
    model = Model()
    trainer = engine(model)
    joined = trainer.clipped_sum(model, x, mask)
    return float((joined - trainer.clipped_sum(model, x[1:], mask[1:])).norm())


def shift_by_row_clipping(x: Tensor, mask: Tensor) -> float:
    """The broken twin: each row is a unit of its own, as in a trainer that knows rows only."""
    model = Model()
    trainer = engine(model)

    def row_sum(x: Tensor, mask: Tensor) -> Tensor:
        return trainer.clipped_sum(model, x.reshape(-1, 1, WIDTH), mask.reshape(-1, 1))

    return float((row_sum(x, mask) - row_sum(x[1:], mask[1:])).norm())


def shift_by_clipping_the_sum(x: Tensor, mask: Tensor) -> float:
    """The other broken twin: the batch's sum is clipped, so every unit's share changes at once."""
    model = Model()
    trainer = engine(model)
    trainer.clipping_norm = 1e9

    def clipped(x: Tensor, mask: Tensor) -> Tensor:
        total = trainer.clipped_sum(model, x, mask)
        return total * min(1.0, C / float(total.norm()))

    return float((clipped(x, mask) - clipped(x[1:], mask[1:])).norm())


@pytest.mark.parametrize("k", [1, 2, 6, 10])
def test_a_unit_of_equal_rows_moves_the_sum_by_c(k: int) -> None:
    x, mask = units(k), torch.ones(10, k)
    assert shift_by_unit_clipping(x, mask) == pytest.approx(C, rel=1e-4)
    assert shift_by_row_clipping(x, mask) == pytest.approx(k * C, rel=1e-4)


@pytest.mark.parametrize("k", [2, 6])
def test_padding_makes_no_room(k: int) -> None:
    """Units of all sizes, and what lies in the padding has no effect at all."""
    x = units(k)
    mask = torch.arange(k) < (torch.arange(10) % k + 1)[:, None]
    mask[0] = True
    model = Model()
    trainer = engine(model)
    expected = trainer.clipped_sum(model, x, mask)
    x[~mask] = 1e6
    assert torch.equal(trainer.clipped_sum(model, x, mask), expected)
    x[~mask] = torch.nan
    assert torch.equal(trainer.clipped_sum(model, x, mask), expected)
    assert shift_by_unit_clipping(x, mask) <= C * (1 + 1e-4)


def test_clipping_the_sum_is_no_bound() -> None:
    """A unit that outweighs the others turns the clipped sum around: it moves by 2 C."""
    x, mask = torch.ones(2, 1, WIDTH), torch.tensor([[3.0], [-1.0]])
    assert shift_by_clipping_the_sum(x, mask) > 1.9 * C
    assert shift_by_unit_clipping(x, mask) <= C * (1 + 1e-4)


def test_weights_of_rows_count_before_clipping() -> None:
    """A mask that weighs rows scales their loss; the bound on the unit stays."""
    x = units(3)
    mask = torch.full((10, 3), 100.0)
    assert shift_by_unit_clipping(x, mask) <= C * (1 + 1e-4)
    assert shift_by_unit_clipping(x, torch.full((10, 3), 1e-4)) < 0.1 * C


def test_nothing_leaks_past_the_mask_of_a_layer() -> None:
    """What a masked weight would get is in no norm, so it must be in no sum and no update."""
    model = Model()
    trainer = engine(model)
    x, mask = units(2), torch.ones(10, 2)
    hidden = model.masked.mask == 0
    total = trainer.clipped_sum(model, x, mask)
    masked_part = trainer.flat.views(total)[model.masked][0]
    assert bool((masked_part[hidden] == 0).all())
    assert bool((masked_part[~hidden] != 0).all())
    drawn = trainer.sample_batch(10)
    trainer.step(model, x[drawn], mask[drawn])
    assert bool((model.masked.weight[hidden] == 0).all())
