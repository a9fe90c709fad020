"""What one batch adds to a private step, after clipping."""

from __future__ import annotations

from typing import Any

from dpsynth.models.dpsgd import DpSgd
from dpsynth.privacy import PoissonSgd, SeededEntropy


def one_private_step(networks: Any, clipping_norm: float) -> DpSgd:
    """Return a trainer of one step of plain gradient descent, with everybody in it."""
    return DpSgd(
        networks,
        event=PoissonSgd("steps", 1.0, 1, 1.0),
        clipping_norm=clipping_norm,
        population=10,
        learning_rate=1.0,
        entropy=SeededEntropy(1),
        schedule="constant",
        optimizer="sgd",
    )
