"""P22: per-unit gradient norms are exact, and layers that mix units are refused."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from dpsynth.errors import InputError
from dpsynth.models.dpsgd import Activations, DpSgd, Linear, MaskedLinear, clipping_norm_from
from dpsynth.models.dpsgd.layers import Embedding
from dpsynth.models.dpsgd.unit_gradients import Pack, UnitGradients

from ..support.private_steps import private

GROUPS = np.repeat([0, 1, 2], [3, 2, 4])  # three columns of 3, 2 and 4 codes
Batch = tuple[Tensor, Tensor]


class Net(nn.Module):
    """Every kind of layer on rows of codes and one number; the loss of a row is its own."""

    def __init__(self, seed: int = 0) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(seed)
        self.table = Embedding(9, 4, generator=generator)
        self.first = Linear(13, 6, generator=generator)
        self.second = Linear(6, 9, generator=generator)
        self.hidden = MaskedLinear(GROUPS, [0, 2, 1, 2, 1], generator=generator)
        self.masked = MaskedLinear([0, 2, 1, 2, 1], GROUPS + 1, generator=generator)
        self.skip = MaskedLinear(GROUPS, GROUPS, generator=generator)

    def forward(self, batch: Batch, activations: Activations | None = None) -> Tensor:
        codes, numbers = batch
        units, k, columns = codes.shape
        flat = codes.reshape(units * k, columns)
        looked_up = self.table(flat, activations).flatten(1)
        both = torch.cat([looked_up, numbers.reshape(-1, 1)], dim=1)
        hot = torch.zeros(len(flat), 9, dtype=numbers.dtype).scatter_(1, flat, 1.0)
        hot = hot + 0.3 * numbers.reshape(-1, 1)  # not only zeros and ones
        logits = self.second(torch.tanh(self.first(both, activations)), activations)
        logits = logits + self.masked(torch.tanh(self.hidden(hot, activations)), activations)
        logits = logits + self.skip(hot, activations)
        return (logits.logsumexp(1) - (logits * hot).sum(1)).reshape(units, k)


def rows(units: int, k: int, *, equal: bool, seed: int = 1) -> Batch:
    """Random rows; ``equal``: all rows of a unit are the same."""
    rng = np.random.default_rng(seed)
    codes = rng.integers([0, 3, 5], [3, 5, 9], (units, 1 if equal else k, 3))
    numbers = rng.normal(size=codes.shape[:2]).astype(np.float32)
    shape = (units, k)
    return (
        torch.from_numpy(np.broadcast_to(codes, (*shape, 3)).copy()),
        torch.from_numpy(np.broadcast_to(numbers, shape).copy()),
    )


def one_by_one(net: nn.Module, batch: Batch, mask: Tensor) -> list[Tensor]:
    """The gradient of each unit, flat: one ordinary backward pass per unit, in float64."""
    net = copy.deepcopy(net).double().requires_grad_(True)
    parameters = list(net.parameters())
    found = []
    for unit in range(len(mask)):
        codes, numbers = (part[unit : unit + 1] for part in batch)
        loss = (net((codes, numbers.double())) * mask[unit]).sum()
        grads = torch.autograd.grad(loss, parameters)
        found.append(torch.cat([grad.flatten() for grad in grads]))
    return found


def unit_norms(
    activations: Activations, output_grads: Sequence[Tensor], units: int, rows: int
) -> Tensor:
    """Return the norm of each unit's gradient, ``[units]``, summed over its rows.

    Args:
        activations: a forward pass over ``units * rows`` rows, unit after unit.
        output_grads: the gradient of the summed loss at each recorded output, in their order.
        units: number of units.
        rows: rows of each unit; the gradient of a padded row is zero.
    """
    layers = [record.layer for record in activations.records]
    count = units * rows
    inputs = [
        layer.rows(r.inputs, count) for layer, r in zip(layers, activations.records, strict=True)
    ]
    grads = [layer.rows(b, count) for layer, b in zip(layers, output_grads, strict=True)]
    weights = torch.ones(units, rows)
    pack = Pack(None, weights, ((units, rows),), torch.arange(units))
    return UnitGradients(layers, inputs, grads, pack).norms()


def engine_norms(net: Net, batch: Batch, mask: Tensor) -> Tensor:
    """Norms by `unit_norms`, padding left in: its loss weighs nothing."""
    activations = Activations()
    losses = net(batch, activations)
    outputs = [record.output for record in activations.records]
    grads = torch.autograd.grad((losses * mask).sum(), outputs)
    return unit_norms(activations, grads, *mask.shape)


def padding(units: int, k: int) -> Tensor:
    """A mask under which units have 1 to k rows, in no order."""
    counts = torch.arange(units) % k + 1
    return (torch.arange(k) < counts[:, None]).float()


@pytest.mark.smoke
@pytest.mark.parametrize("k", [1, 3, 5, 8])
@pytest.mark.parametrize("equal", [False, True])
@pytest.mark.parametrize("padded", [False, True])
def test_norms_equal_single_unit_backward_passes(k: int, equal: bool, padded: bool) -> None:
    net = Net()
    batch = rows(8, k, equal=equal)
    mask = padding(8, k) if padded else torch.ones(8, k)
    expected = torch.stack([grad.norm() for grad in one_by_one(net, batch, mask)]).float()
    torch.testing.assert_close(engine_norms(net, batch, mask), expected, rtol=1e-5, atol=0)


def test_row_norms_would_be_wrong() -> None:
    """The broken twin adds squared norms of rows: 1 / sqrt(6) of the truth for 6 equal visits."""
    net = Net()
    batch = rows(8, 6, equal=True)
    mask = torch.ones(8, 6)
    truth = torch.stack([grad.norm() for grad in one_by_one(net, batch, mask)])
    by_row = torch.stack(
        [
            torch.stack(one_by_one(net, tuple(p[:, r : r + 1] for p in batch), mask[:, :1]))
            .norm(dim=1)
            .square()
            for r in range(6)
        ]
    )
    twin = by_row.sum(dim=0).sqrt()
    torch.testing.assert_close(twin / truth, torch.full((8,), 6**-0.5).double(), rtol=1e-6, atol=0)
    torch.testing.assert_close(engine_norms(net, batch, mask), truth.float(), rtol=1e-5, atol=0)


@pytest.mark.parametrize("k", [1, 4, 7])
def test_masked_layers_need_the_cumulative_gram(k: int) -> None:
    generator = torch.Generator().manual_seed(3)
    layer = MaskedLinear(GROUPS, GROUPS, generator=generator)
    a = torch.randn(5, k, 9, generator=generator)
    b = torch.randn(5, k, 9, generator=generator)
    weights = torch.einsum("uko,uki->uoi", b, a) * layer.mask
    truth = weights.square().sum((1, 2)) + b.sum(1).square().sum(1)
    torch.testing.assert_close(layer.gram(a, b).sum((1, 2)), truth, rtol=1e-5, atol=0)
    twin = Linear.gram(layer, a, b).sum((1, 2))
    assert (twin > 1.2 * truth).all()  # counts weights that the mask removed: clips too much


def test_mask_by_hand() -> None:
    """Two columns of one code: the second sees the first, nothing else is seen."""
    layer = MaskedLinear([0, 1], [0, 1], generator=torch.Generator())
    assert layer.mask.tolist() == [[0, 0], [1, 0]]
    a, b = torch.tensor([[[2.0, 5.0]]]), torch.tensor([[[3.0, 7.0]]])
    # weight (7 * 2)^2, biases 3^2 + 7^2
    assert layer.gram(a, b).item() == 14**2 + 3**2 + 7**2


def trainer(net: nn.Module, clipping_norm: float = 1.0) -> DpSgd:
    return private(net, clipping_norm=clipping_norm, population=16)


class Around(nn.Module):
    """A layer of ours beside a module that is not."""

    def __init__(self, other: nn.Module) -> None:
        super().__init__()
        self.ours = Linear(4, 4, generator=torch.Generator())
        self.other = other


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (nn.BatchNorm1d(4), "other .BatchNorm1d. mixes the units of a batch"),
        (nn.BatchNorm1d(4, affine=False, track_running_stats=False), "mixes the units"),
        (nn.SyncBatchNorm(4), "mixes the units"),
        (nn.InstanceNorm1d(4, track_running_stats=True), "other .InstanceNorm1d. has a buffer"),
        (nn.InstanceNorm1d(4, affine=True), "has parameters of its own"),
        (nn.LayerNorm(4), "other .LayerNorm. has parameters of its own"),
        (nn.Linear(4, 4), "other .Linear. has parameters of its own"),
        (nn.GRU(4, 4), "has parameters of its own"),
    ],
)
def test_modules_without_exact_norms_are_refused(other: nn.Module, words: str) -> None:
    with pytest.raises(InputError, match=words):
        trainer(Around(other))


@pytest.mark.parametrize("other", [nn.ReLU(), nn.LayerNorm(4, elementwise_affine=False)])
def test_modules_without_state_are_fine(other: nn.Module) -> None:
    assert trainer(Around(other)).flat.values.numel() == 20


def test_a_loss_that_mixes_units_is_refused() -> None:
    """Batch statistics by hand have no module to recognise; the gradient shows them."""
    net = Net()
    batch, mask = rows(8, 3, equal=False), padding(8, 3)

    def centred(batch: Any, activations: Activations | None = None) -> Tensor:
        losses = net(batch, activations)
        return losses - losses.mean()

    with pytest.raises(InputError, match="mixes units of a batch"):
        clipping_norm_from(net, centred, batch, mask)
    assert clipping_norm_from(net, net, batch, mask) > 0


@pytest.mark.parametrize(
    ("one", "other"), [(0, 1), (1, 0), (0, 2), (0, 4), (4, 0), (5, 3), (6, 7), (7, 0)]
)
def test_a_loss_that_mixes_two_units_is_refused(one: int, other: int) -> None:
    """One unit that reaches one other is enough, whichever they are."""
    net = Net()
    batch, mask = rows(8, 3, equal=False), torch.ones(8, 3)

    def paired(batch: Any, activations: Activations | None = None) -> Tensor:
        losses = net(batch, activations)
        return torch.cat([losses[:other], losses[other, None] + losses[one], losses[other + 1 :]])

    with pytest.raises(InputError, match="mixes units of a batch"):
        clipping_norm_from(net, paired, batch, mask)


def test_rounding_does_not_hide_a_large_gradient() -> None:
    """Two huge rows that nearly cancel: float32 loses their difference, which exceeds C.

    The broken twin trusts the rounded norm and lets some such units through at many times C.
    """
    generator = torch.Generator().manual_seed(0)
    layer = Linear(64, 64, generator=generator)
    a = torch.randn(500, 1, 64, generator=generator).repeat(1, 2, 1)
    a[:, 1] += 1e-4 * torch.randn(500, 64, generator=generator)
    b = 1e4 * torch.randn(500, 1, 64, generator=generator).repeat(1, 2, 1)
    b[:, 1] *= -1

    def loss(batch: Batch, activations: Activations | None = None) -> Tensor:
        inputs, pull = batch
        return (layer(inputs, activations) * pull).sum(-1)

    exact = torch.einsum("uko,uki->uoi", b.double(), a.double())
    truth = (exact.square().sum((1, 2)) + b.double().sum(1).square().sum(1)).sqrt()
    assert truth.min() > 10  # all of them need clipping to 1

    rounded = layer.gram(a, b).sum((1, 2)).clamp(min=0).sqrt()
    twin = truth * (1.0 / rounded).clamp(max=1.0)
    assert twin.max() > 10

    engine = trainer(layer)
    sums = [
        engine.clipped_sum(loss, (a[u : u + 1], b[u : u + 1]), torch.ones(1, 2)) for u in range(500)
    ]
    assert torch.stack(sums).norm(dim=1).max() <= 1.0 + 1e-3


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
@pytest.mark.parametrize("k", [1, 3])
def test_opacus_agrees(k: int) -> None:
    """Norms by Opacus hooks and by its ghost clipping, on a copy of the same weights."""
    from opacus import GradSampleModule
    from opacus.grad_sample import GradSampleModuleFastGradientClipping

    generator = torch.Generator().manual_seed(0)
    ours = nn.ModuleList([Linear(5, 7, generator=generator), Linear(7, 2, generator=generator)])
    x = torch.randn(6, k, 5, generator=generator)

    def theirs() -> nn.Module:
        net = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 2))
        with torch.no_grad():
            for copied, layer in zip((net[0], net[2]), ours, strict=True):
                copied.weight.copy_(layer.weight)
                copied.bias.copy_(layer.bias)
        return net

    def value(output: Tensor) -> Tensor:
        return output.square().sum(-1)

    activations = Activations()
    first, second = ours
    losses = value(second(torch.tanh(first(x, activations)), activations))
    grads = torch.autograd.grad(losses.sum(), [record.output for record in activations.records])
    norms = unit_norms(activations, grads, 6, k)

    hooked = GradSampleModule(theirs(), loss_reduction="sum")
    value(hooked(x)).sum().backward()
    samples = torch.cat([p.grad_sample.flatten(1) for p in hooked.parameters()], dim=1)
    torch.testing.assert_close(norms, samples.norm(dim=1), rtol=1e-5, atol=0)

    ghost = GradSampleModuleFastGradientClipping(
        theirs(), loss_reduction="sum", max_grad_norm=1.0, use_ghost_clipping=True
    )
    value(ghost(x)).sum().backward()
    torch.testing.assert_close(norms, ghost.get_norm_sample().detach(), rtol=1e-5, atol=0)
