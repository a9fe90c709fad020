"""A small network of the exact engine, rows for it, and a trainer without noise."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor, nn

from dpsynth.models.dpsgd import Activations, DpSgd, Linear, MaskedLinear
from dpsynth.privacy import PoissonSgd

from . import private_steps
from .private_steps import Quiet

RATE, POPULATION = 0.5, 40


class Net(nn.Module):
    """Two layers and a masked one on rows ``[units, k, 4]``."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.inner = Linear(4, 5, generator=generator)
        self.outer = Linear(5, 4, generator=generator)
        self.skip = MaskedLinear([0, 0, 1, 2], [0, 0, 1, 2], generator=generator)

    def forward(self, x: Tensor, activations: Activations | None = None) -> Tensor:
        hidden = torch.tanh(self.inner(x, activations))
        return (self.outer(hidden, activations) + self.skip(x, activations) - x).square().sum(-1)


def private(net: nn.Module, **changes: Any) -> DpSgd:
    event = PoissonSgd("steps", RATE, 50, 1.0)
    settings = {"event": event, "population": POPULATION, "entropy": Quiet(0)}
    return private_steps.private(net, **settings | changes)


def data(units: int, k: int) -> Tensor:
    return torch.randn(units, k, 4, generator=torch.Generator().manual_seed(k))


def ragged(units: int, k: int) -> Tensor:
    """Units of 0 to k rows, the rows in any of the k places."""
    generator = torch.Generator().manual_seed(1)
    return torch.rand(units, k, generator=generator) < 0.5


def unit_gradients(net: nn.Module, x: Tensor, mask: Tensor) -> Tensor:
    """One ordinary backward pass per unit, ``[units, parameters]``."""
    net = copy.deepcopy(net).requires_grad_(True)
    parameters = list(net.parameters())
    rows = []
    for unit in range(len(x)):
        loss = (net(x[unit : unit + 1]) * mask[unit]).sum()
        rows.append(torch.cat([g.flatten() for g in torch.autograd.grad(loss, parameters)]))
    return torch.stack(rows)
