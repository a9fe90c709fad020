"""The optimizer on a flat buffer, against torch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

from dpsynth.models.dpsgd.parameter_buffer import FlatOptimizer


@pytest.mark.parametrize("schedule", ["constant", "cosine"])
@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_optimizer_equals_torch(kind: Any, schedule: Any) -> None:
    start = torch.randn(30, generator=torch.Generator().manual_seed(0))
    ours, theirs = start.clone(), nn.Parameter(start.clone())
    mine = FlatOptimizer(ours, kind=kind, learning_rate=0.03, schedule=schedule, steps=12)
    make: dict[str, Callable[..., torch.optim.Optimizer]] = {
        "adam": torch.optim.Adam,
        "sgd": torch.optim.SGD,
    }
    other = make[kind]([theirs], lr=0.03)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(other, 12)
    for step in range(12):
        gradient = torch.randn(30, generator=torch.Generator().manual_seed(step + 1))
        mine.step(gradient)
        theirs.grad = gradient.clone()
        other.step()
        if schedule == "cosine":
            cosine.step()
    torch.testing.assert_close(ours, theirs.data, rtol=1e-5, atol=1e-6)
