"""P23: the sum is divided by a public number, and a unit that is no number counts as zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import pytest
import torch
from torch import Tensor

from dpsynth.models.dpsgd import (
    Activations,
    DpSgd,
    Linear,
    MaskedLinear,
    UnitGradients,
    clipping_norm_from,
)
from dpsynth.models.dpsgd.layers import Embedding, Layer
from dpsynth.privacy import PoissonSgd

from ..support.private_steps import Quiet, private

RATE, POPULATION, C = 0.25, 80, 1.0
EXPECTED = RATE * POPULATION
Update = Callable[[Tensor], Tensor]


def engine(layer: torch.nn.Module) -> DpSgd:
    event = PoissonSgd("steps", RATE, 10, 1.0)
    return private(
        layer,
        event=event,
        clipping_norm=C,
        population=POPULATION,
        learning_rate=1.0,
        entropy=Quiet(0),
    )


def pull(signs: Tensor, activations: Activations, layer: Linear) -> Tensor:
    """A loss whose gradient is the unit's sign times (1, 1) for the weight and the bias."""
    return layer(torch.ones_like(signs), activations)[..., 0] * signs[..., 0]


def by_engine(signs: Tensor) -> Tensor:
    """The step that the engine takes on units of these signs, times the expected batch."""
    layer = Linear(1, 1, generator=torch.Generator().manual_seed(0))
    trainer = engine(layer)
    before = trainer.flat.values.clone()
    trainer.sample_batch(len(signs))
    trainer.step(
        lambda x, activations: pull(x, activations, layer), signs, torch.ones(signs.shape[:2])
    )
    return EXPECTED * (before - trainer.flat.values)


def by_mean(signs: Tensor) -> Tensor:
    """The broken twin: the clipped sum is divided by the batch that was drawn."""
    return by_engine(signs) / max(1, len(signs)) * EXPECTED


def shift(update: Update, signs: Tensor) -> float:
    """How far the update moves when the last unit leaves."""
    return float((update(signs) - update(signs[:-1])).norm())


def test_the_divisor_is_public() -> None:
    """All units pull one way but the last: without it, a mean moves by two units' worth."""
    signs = torch.ones(int(EXPECTED), 1, 1)
    signs[-1] = -1.0
    assert shift(by_engine, signs) == pytest.approx(C, rel=1e-4)
    assert shift(by_mean, signs) > 1.9 * C


@pytest.mark.parametrize("units", [0, 1, 7, 40])
def test_the_step_by_hand(units: int) -> None:
    """Gradient (1, 1), clipped to norm 1, from each of the units drawn."""
    expected = units * torch.tensor([0.5, 0.5]).sqrt()
    torch.testing.assert_close(by_engine(torch.ones(units, 1, 1)), expected, rtol=1e-4, atol=1e-6)


def multiplied_by_zero(
    self: UnitGradients, into: Mapping[Layer, Sequence[Tensor]], factors: Tensor, block: slice
) -> None:
    """The broken twin of `UnitGradients.add_to`: what is lost gets factor 0, and 0 * nan is nan."""
    rows = self.pack.per_row(factors)
    for layer, a, b in zip(self.layers, self.inputs, self.grads, strict=True):
        layer.accumulate(a[block], (b * rows)[block], into[layer])


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), 3e38])
@pytest.mark.parametrize("at", ["input", "loss"])
def test_a_unit_that_is_no_number_counts_as_zero(
    value: float, at: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It neither poisons the sum nor makes the others' step go away."""
    generator = torch.Generator().manual_seed(0)
    net = torch.nn.ModuleList(
        [Linear(3, 4, generator=generator), Linear(4, 2, generator=generator)]
    )
    trainer = engine(net)
    x = torch.randn(9, 2, 3, generator=generator)
    weight = torch.ones(9, 2)
    (x if at == "input" else weight)[4, 1] = value

    def loss(batch: tuple[Tensor, Tensor], activations: Activations) -> Tensor:
        x, weight = batch
        return net[1](torch.relu(net[0](x, activations)), activations).square().sum(-1) * weight

    mask = torch.ones(9, 2)
    rest = torch.arange(9) != 4
    without = trainer.clipped_sum(loss, (x[rest], weight[rest]), mask[rest])
    total = trainer.clipped_sum(loss, (x, weight), mask)
    torch.testing.assert_close(total, without, rtol=1e-5, atol=1e-6)
    assert float(without.norm()) > C  # a trainer that drops the step would lose all of this
    monkeypatch.setattr(UnitGradients, "add_to", multiplied_by_zero)
    twin = trainer.clipped_sum(loss, (x, weight), mask)
    assert bool(torch.isfinite(twin).all()) == math.isfinite(value)  # a huge one only overflows


def test_a_code_with_a_spoiled_gradient_counts_as_zero() -> None:
    """Codes are integers: only their gradient can be no number."""
    table = Embedding(4, 3, generator=torch.Generator().manual_seed(0))
    trainer = engine(table)
    codes = torch.tensor([[[0], [1]], [[2], [2]], [[3], [3]]])
    weight = torch.tensor([[1.0, 1.0], [torch.inf, 1.0], [1.0, 1.0]])

    def loss(batch: tuple[Tensor, Tensor], activations: Activations) -> Tensor:
        codes, weight = batch
        flat = table(codes.flatten(), activations).square().sum(-1)
        return flat.reshape(weight.shape) * weight

    found = trainer.clipped_sum(loss, (codes, weight), torch.ones(3, 2)).reshape(4, 3)
    assert bool((found[2] == 0).all())
    assert found[3].norm() == pytest.approx(C, rel=1e-4)
    assert found[:2].norm() == pytest.approx(C, rel=1e-4)


def test_an_unseen_input_that_is_no_number() -> None:
    """The last column of an autoregressive layer is seen by nobody; its nan must not spread."""
    layer = MaskedLinear([0, 1], [0, 1], generator=torch.Generator().manual_seed(0))
    x = torch.tensor([[[1.0, torch.nan], [1.0, 0.0]], [[2.0, 1.0], [1.0, 1.0]]])
    into = (torch.zeros(2, 2), torch.zeros(2))
    layer.accumulate(x.reshape(4, 2), torch.ones(4, 2), into)
    assert into[0].tolist() == [[0.0, 0.0], [5.0, 0.0]]


def test_the_clipping_norm_ignores_what_is_no_number() -> None:
    layer = Linear(1, 1, generator=torch.Generator().manual_seed(0))
    signs = torch.tensor([1.0, 2.0, 3.0, torch.nan]).reshape(4, 1, 1)
    norm = clipping_norm_from(
        layer,
        lambda x, activations: pull(x, activations, layer),
        signs,
        torch.ones(4, 1),
        quantile=0.5,
    )
    assert norm == pytest.approx(2.0 * 2**0.5)
