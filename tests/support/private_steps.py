"""The exact engine of DP-SGD with settings that a test can change."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from torch import nn

from dpsynth.models.dpsgd import DpSgd
from dpsynth.privacy import PoissonSgd, SeededEntropy
from dpsynth.privacy.entropy import Size

STEPS = PoissonSgd("steps", 0.5, 10, 1.0)


class Quiet(SeededEntropy):
    """Draws every unit, and no noise: what is left of a step can be computed by hand."""

    def uniform(self, size: Size) -> npt.NDArray[np.float64]:
        return np.zeros(size)

    def normal(self, size: Size, dtype: npt.DTypeLike = np.float64) -> npt.NDArray[Any]:
        return np.zeros(size, dtype)


def private(network: nn.Module, **changes: Any) -> DpSgd:
    """Ten steps of half the units, with seeded noise, unless a test changes it."""
    settings: dict[str, Any] = {
        "event": STEPS,
        "clipping_norm": 1.0,
        "population": 40,
        "learning_rate": 0.1,
        "entropy": SeededEntropy(0),
        "schedule": "constant",
        "optimizer": "sgd",
    }
    return DpSgd(network, **settings | changes)
