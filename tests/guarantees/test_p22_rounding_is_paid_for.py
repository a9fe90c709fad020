"""P22: norms and sums in single precision, and who pays for what rounding does to them.

The proof says that a unit moves the clipped sum by at most C. Two places know that floats do not
keep this to the last digit: a unit's norm is taken at the upper end of its rounding error, and the
noise has a margin for the rounding of the sum. The checks look for gradients that make the most of
it, and hold what they reach against the noise that a step really adds; they know neither formula.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from dpsynth.models.dpsgd import (
    Activations,
    DpSgd,
    Linear,
    UnitGradients,
    clipping_norm,
    optimizer,
    packs,
    rows_at_once,
    unit_gradients,
)
from dpsynth.privacy import PoissonSgd, SeededEntropy

C, SIGMA = 0.5, 2.0
Batch = tuple[Tensor, Tensor]
Patch = pytest.MonkeyPatch


class Ones(SeededEntropy):
    """Noise of one standard deviation in every entry: it shows its scale."""

    def __init__(self) -> None:
        super().__init__(0)

    def normal(self, size: Any, dtype: Any = float) -> Any:
        return np.ones(size, dtype)


def trainer(layer: Linear, units: int, kind: type[DpSgd]) -> DpSgd:
    return kind(
        layer,
        event=PoissonSgd("steps", 1.0, 10, SIGMA),
        clipping_norm=C,
        population=units,
        learning_rate=0.1,
        entropy=Ones(),
        schedule="constant",
        optimizer="sgd",
    )


def layer_of(inputs: int, outputs: int, seed: int = 0) -> Linear:
    return Linear(inputs, outputs, generator=torch.Generator().manual_seed(seed))


# The sum ----------------------------------------------------------------------------------------

MANY = 20_000


def steep(layer: Linear) -> Callable[..., Tensor]:
    return lambda batch, activations=None: 100 * layer(batch, activations)[..., 0]


def shift_and_room(seed: int, kind: type[DpSgd] = DpSgd) -> tuple[float, float]:
    """How far one of many equal units moves the sum, and for how far the noise is, over C."""
    layer = layer_of(1, 1, seed)
    engine = trainer(layer, MANY, kind)
    row = 3 * np.random.default_rng(seed).standard_normal((1, 1, 1)).astype(np.float32)
    rows = torch.from_numpy(np.repeat(row, MANY + 1, axis=0))
    mask = torch.ones(MANY + 1, 1)
    without = engine.clipped_sum(steep(layer), rows[1:], mask[1:]).double()
    within = engine.clipped_sum(steep(layer), rows, mask).double()
    nobody = engine.noisy_sum(steep(layer), rows[:0], mask[:0]).double()
    return float((within - without).norm()) / C, float(nobody.min()) / SIGMA / C


class InTurn(DpSgd):
    """Broken twin: adds one unit after another in single precision; the noise is for C."""

    def clipped_sum(self, loss: Any, batch: Any, mask: Tensor) -> Tensor:
        if not len(mask):
            return torch.zeros_like(self.flat.values)
        one = super().clipped_sum(loss, batch[:1], mask[:1]).float().numpy()
        every = np.add.accumulate(np.repeat(one[None], len(mask), axis=0), axis=0)
        return torch.from_numpy(every[-1])

    def _noise(self) -> Tensor:
        size = self.flat.values.numel() if self.flat.free is None else len(self.flat.free)
        return torch.ones(size) * self.event.noise_multiplier * self.clipping_norm


def test_a_unit_moves_a_large_sum_by_no_more_than_the_noise_is_for() -> None:
    for seed in range(12):
        shift, room = shift_and_room(seed)
        assert shift <= room
        assert room > 1 + 1e-4, "sums of floats are never exact: the noise is for a little more"


def test_a_sum_whose_rounding_nobody_paid_for_is_caught() -> None:
    found = [shift_and_room(seed, InTurn) for seed in range(4)]
    assert any(shift > room for shift, room in found)
    assert all(room < 1 + 1e-4 for _, room in found)


def test_the_margin_is_what_the_proof_needs() -> None:
    """C (1 + 2 A (m + 3) u) <= C (1 + MARGIN): A units of one row in a step, m rows in a block."""
    unit = 2.0**-53
    assert 2 * 2**31 * (clipping_norm.BLOCK + 3) * unit <= optimizer.MARGIN
    assert 2 * 4e6 / math.sqrt(unit_gradients.ROUNDING) * (clipping_norm.BLOCK + 3) * unit <= (
        optimizer.MARGIN
    )
    assert rows_at_once([]) <= clipping_norm.BLOCK


# A unit's norm ----------------------------------------------------------------------------------

SIZES = (1e-2, 1e-3, 3e-4, 1e-4, 3e-5)  # of what is left where rows cancel
UNITS, WIDTH = 60, 48


def cancelling(rows: int, left: float) -> Batch:
    """Units whose rows are huge, alternate in sign, and leave little of each other."""
    generator = torch.Generator().manual_seed(rows)
    inputs = torch.randn(UNITS, 1, WIDTH, generator=generator).repeat(1, rows, 1)
    inputs += left * torch.randn(UNITS, rows, WIDTH, generator=generator)
    pull = 1e4 * torch.randn(UNITS, 1, WIDTH, generator=generator).repeat(1, rows, 1)
    pull[:, 1::2] *= -1
    return inputs, pull


def longest(rows: int, left: float) -> float:
    """Norm of the longest clipped unit, in clipping norms, by its exact gradient."""
    layer = layer_of(WIDTH, WIDTH)
    inputs, pull = batch = cancelling(rows, left)

    def loss(batch: Any, activations: Activations | None = None) -> Tensor:
        a, b = batch
        return (layer(a, activations) * b).sum(-1)

    exact = torch.einsum("uko,uki->uoi", pull.double(), inputs.double())
    truth = (exact.square().sum((1, 2)) + pull.double().sum(1).square().sum(1)).sqrt()
    assert truth.min() > 2 * C  # each of them needs clipping
    [pack] = packs(batch, torch.ones(UNITS, rows), 10**6)
    factors = UnitGradients.of(loss, pack).factors(C)
    return float((truth * factors.double()).max()) / C


def clips(rows: int) -> bool:
    return max(longest(rows, left) for left in SIZES) <= 1 + 1e-3


@pytest.mark.parametrize("rows", [2, 8])
def test_rows_that_cancel_do_not_hide_a_unit(rows: int) -> None:
    assert clips(rows)


def no_error(patch: Patch) -> None:
    patch.setattr(unit_gradients, "ROUNDING", 0.0)


def the_lower_end(patch: Patch) -> None:
    patch.setattr(unit_gradients, "ROUNDING", -unit_gradients.ROUNDING)


def a_hundredth(patch: Patch) -> None:
    patch.setattr(unit_gradients, "ROUNDING", unit_gradients.ROUNDING / 100)


def sum_of_squares(patch: Patch) -> None:
    """The squares of the rows' norms, added up, for the square of their sum."""
    squares = UnitGradients.squares

    def added(self: UnitGradients) -> tuple[Tensor, Tensor]:
        found, spreads = squares(self)
        return found, spreads / torch.cat([torch.full((u,), float(k)) for u, k in self.pack.groups])

    patch.setattr(UnitGradients, "squares", added)


@pytest.mark.parametrize("twin", [no_error, the_lower_end, a_hundredth])
def test_a_norm_that_trusts_its_digits_is_caught(
    twin: Callable[[Patch], None], monkeypatch: Patch
) -> None:
    twin(monkeypatch)
    assert not (clips(2) and clips(8))


def by_hand(rows: int) -> bool:
    """Norms of rows r_i, by a backward pass for each: (sum r_i)^2, and |sum g_i|^2."""
    layer = layer_of(3, 2)
    generator = torch.Generator().manual_seed(4)
    batch = torch.randn(4, rows, 3, generator=generator)
    weights = torch.rand(4, rows, generator=generator) + 0.1

    def loss(some: Any, activations: Activations | None = None) -> Tensor:
        return layer(some, activations).square().sum(-1)

    weight, bias = (part.detach().double() for part in (layer.weight, layer.bias))
    pull = 2 * (batch.double() @ weight.T + bias) * weights.double()[..., None]
    grads = torch.cat([pull[..., None] * batch.double()[:, :, None], pull[..., None]], dim=-1)
    [pack] = packs(batch, weights, 10**6)
    squares, spreads = UnitGradients.of(loss, pack).squares()
    norms = grads.square().sum((2, 3)).sqrt()
    return torch.allclose(
        squares.double(), grads.sum(1).square().sum((1, 2)), rtol=1e-5
    ) and torch.allclose(spreads.double(), norms.sum(1).square(), rtol=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_square_of_a_sum_is_no_sum_of_squares(rows: int, monkeypatch: Patch) -> None:
    assert by_hand(rows)
    sum_of_squares(monkeypatch)
    assert by_hand(rows) == (rows == 1)
