"""A toy table in which one column depends on another, and quick fits of networks to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from dpsynth.encoding import Cohort
from dpsynth.models import Domain, Feature, presets
from dpsynth.models.generators import Autoregressive, Ctgan, Tvae, ctgan, training, tvae
from dpsynth.models.generators import ctgan as adversarial_trainer
from dpsynth.privacy import PrivacyBudget, PrivacyPlan

UNITS = 2000
TOY = Domain(
    (Feature("group", 4, 0), Feature("value", 41, 40), Feature("flag", 2, 0)),
    population=UNITS,
    max_rows=1,
)
BUDGET = PrivacyBudget(epsilon=10.0, delta=1e-6)
TRAINING: dict[type[Any], str] = {
    Autoregressive: "autoregressive_training",
    Tvae: "variational_training",
    Ctgan: "adversarial_training",
}
FEW_STEPS: dict[type[Any], dict[str, int]] = {
    Autoregressive: {"masked": 4, "warm_steps": 3, "steps": 7},
    Tvae: {"hidden": 8, "latent": 2, "warm_steps": 3, "steps": 7, "settling_steps": 2},
    Ctgan: {"hidden": 8, "latent": 2, "warm_steps": 3, "steps": 7, "rounds": 2},
}


def toy_cohort(seed: int) -> Cohort:
    """2000 units; ``value`` lies within a few cells of 10 group + 5, or is missing; ``flag`` is
    a fair coin."""
    rng = np.random.default_rng(seed)
    group = rng.choice(4, UNITS, p=[0.4, 0.3, 0.2, 0.1])
    value = np.clip(np.rint(10 * group + 5 + rng.normal(0, 1.5, UNITS)), 0, 39)
    value[rng.random(UNITS) < 0.05] = 40
    codes = np.stack([group, value, rng.integers(0, 2, UNITS)], axis=-1)
    return Cohort(codes.astype(np.uint16)[:, None, :], np.ones((UNITS, 1), dtype=bool))


def plan_for(model: type[Any], domain: Domain = TOY) -> PrivacyPlan:
    return PrivacyPlan.calibrate(BUDGET, model(domain).shares(BUDGET))


def make_batches_small(patch: pytest.MonkeyPatch, rows: int) -> None:
    """Train on few free rows at a time."""
    patch.setattr(training, "WARM_BATCH", rows)
    patch.setattr(ctgan, "WARM_BATCH", rows)
    patch.setattr(ctgan, "FAKES", rows)
    patch.setattr(adversarial_trainer, "BATCH", rows)
    patch.setattr(tvae, "DRAWS", rows)


def settle_for(patch: pytest.MonkeyPatch, model: type[Any], **settings: int) -> None:
    """Replace settings of a network and its training, and make batches of free rows small."""
    shipped = getattr(presets, TRAINING[model])
    patch.setattr(presets, TRAINING[model], lambda *size: shipped(*size) | settings)
    make_batches_small(patch, 80 if model is Ctgan else 50)


def randomised(network: torch.nn.Module, seed: int = 2) -> None:
    """Draw weights far from zero in every layer."""
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=rng))


def coarse(codes: npt.NDArray[np.uint16]) -> npt.NDArray[np.int64]:
    """Cut ``value`` into runs of four cells; missing keeps its own."""
    cut = codes.astype(np.int64)
    cut[:, 1] //= 4
    return cut


def assert_drawn_by(law: Mapping[Any, float], drawn: npt.NDArray[Any]) -> None:
    """Each row is as frequent as its law says; five standard errors of independent draws."""
    for row, share in law.items():
        frequency = (drawn == row).all(axis=1).mean()
        error = np.sqrt(share * (1 - share) / len(drawn))
        assert abs(frequency - share) < 5 * error + 1e-5, row
