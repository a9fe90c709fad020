"""Training through Opacus: the same sums as the exact engine, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from opacus.layers import DPGRU, DPLSTM, DPMultiheadAttention
from torch import Tensor, nn

from dpsynth.errors import InputError
from dpsynth.models.dpsgd import (
    Activations,
    DpSgd,
    Linear,
    OpacusSgd,
    check_rows_apart,
    opacus_clipping_norm,
)
from dpsynth.models.dpsgd.opacus_engine import SampledFlat
from dpsynth.models.dpsgd.trainer import is_known
from dpsynth.privacy import OsEntropy, PoissonSgd

EVENT = PoissonSgd("steps", sampling_rate=0.5, steps=3, noise_multiplier=1.0)


def trainer(engine: type[DpSgd], network: nn.Module, norm: float = 0.2) -> DpSgd:
    return engine(
        network,
        event=EVENT,
        clipping_norm=norm,
        population=100,
        learning_rate=0.1,
        entropy=OsEntropy(),
        schedule="constant",
        optimizer="sgd",
    )


def test_linear_layers_give_the_sums_of_the_exact_engine() -> None:
    source = torch.Generator().manual_seed(1)
    first, last = Linear(4, 6, generator=source), Linear(6, 1, generator=source)
    ours = nn.Sequential(first, nn.Tanh(), last)
    theirs = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 1))
    theirs.load_state_dict(ours.state_dict())

    def exact_loss(batch: Tensor, activations: Activations) -> Tensor:
        return last(torch.tanh(first(batch, activations)), activations)[..., 0].square()

    def opacus_loss(batch: Tensor, _: Any) -> Tensor:
        out: Tensor = theirs(batch[:, 0]).square()
        return out

    batch = torch.randn(40, 3, 4, generator=source)
    mask = (torch.rand(40, 3, generator=source) < 0.7) / 3
    for norm in (0.05, 1.0, 100.0):
        exact = trainer(DpSgd, ours, norm).clipped_sum(exact_loss, batch, mask)
        total = trainer(OpacusSgd, theirs, norm).clipped_sum(opacus_loss, batch, mask)
        torch.testing.assert_close(total, exact, rtol=1e-4, atol=1e-6)
    assert is_known(ours) and not is_known(theirs)


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inside = DPMultiheadAttention(4, 2, batch_first=True)
        self.last = nn.Linear(4, 1)

    def forward(self, rows: Tensor) -> Tensor:
        out: Tensor = self.last(self.inside(rows, rows, rows)[0])
        return out.sum(dim=1)


class Recurrent(nn.Module):
    def __init__(self, kind: Any) -> None:
        super().__init__()
        self.inside, self.last = kind(4, 3, batch_first=True), nn.Linear(3, 1)

    def forward(self, rows: Tensor) -> Tensor:
        out: Tensor = self.last(self.inside(rows)[0][:, -1])
        return out


def loss_of(network: nn.Module) -> Any:
    return lambda batch, _: network(batch[:, 0]).square()


@pytest.mark.parametrize("kind", [lambda: Recurrent(DPGRU), lambda: Recurrent(DPLSTM), Attention])
def test_gradients_of_rows_are_those_of_each_row_alone(kind: Any) -> None:
    torch.manual_seed(0)
    network = kind()
    check_rows_apart(network, loss_of(network), torch.randn(8, 1, 5, 4))


class Mixing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.last = nn.Linear(4, 1)

    def forward(self, rows: Tensor) -> Tensor:
        out: Tensor = self.last(rows - rows.mean(dim=0))
        return out


class Elsewhere(Mixing):
    def forward(self, rows: Tensor) -> Tensor:
        out: Tensor = self.last(rows) + rows @ self.last.weight.T
        return out


@pytest.mark.parametrize("kind", [Mixing, Elsewhere])
def test_a_network_that_mixes_rows_or_hides_a_weight_is_refused(kind: Any) -> None:
    network = kind()
    with pytest.raises(InputError, match="mixes rows"):
        check_rows_apart(network, loss_of(network), torch.randn(8, 1, 4))


@pytest.mark.parametrize(
    "network",
    [
        nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)),
        nn.LSTM(4, 4),
        nn.Tanh(),
        nn.Linear(4, 1).double(),
    ],
)
def test_what_cannot_be_clipped_by_unit_is_refused(network: nn.Module) -> None:
    with pytest.raises(InputError):
        SampledFlat(network)


def test_one_layer_in_two_places_is_refused() -> None:
    one, other = nn.Linear(4, 4), nn.Linear(4, 4)
    other.weight = one.weight
    with pytest.raises(InputError, match="each of one layer"):
        SampledFlat(nn.Sequential(one, other))


def test_the_clipping_norm_is_a_quantile_of_norms() -> None:
    network = nn.Linear(2, 1, bias=False)
    rows = torch.tensor([[[3.0, 4.0]], [[6.0, 8.0]], [[0.0, 0.0]]])
    norm = opacus_clipping_norm(network, lambda batch, _: network(batch[:, 0]), rows, 0.5)
    assert norm == pytest.approx(5.0)
