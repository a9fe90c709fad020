"""P11: a declared size is wrong, and the privacy was reckoned from it.

Population and rows are public and may be wrong by any factor. What bounds a unit (clipping, margin,
counts, codes) must not use them: understated and overstated by 100, the same bounds hold.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from dpsynth.models.dpsgd import Linear
from dpsynth.models.dpsgd.optimizer import MARGIN
from dpsynth.models.registry import NAMES
from dpsynth.privacy import (
    JointHistograms,
    PoissonSgd,
    PrivacyPlan,
    SeededEntropy,
    joint_histograms,
)
from dpsynth.schema import Declared, Schema
from dpsynth.synthesis import prepare

from ..support.private_steps import private

DEMO = Schema.load("demo")
FACTORS = [0.01, 1, 100]


def declared(factor: float) -> Schema:
    """The demo cohort under another declared population and number of rows."""
    sizes = {
        name: Declared(max(1, round(getattr(DEMO, name).value * factor)), "wrong on purpose")
        for name in ("population", "rows")
    }
    return replace(DEMO, **sizes)


@pytest.mark.parametrize("model", [name for name in NAMES if name != "independent"])
@pytest.mark.parametrize("factor", FACTORS)
def test_a_plan_costs_no_more_than_its_budget_whatever_is_declared(
    factor: float, model: str
) -> None:
    plan = prepare(declared(factor), epsilon=2.0, delta=1e-9, model=model).plan
    assert plan.epsilon <= 2.0
    again = PrivacyPlan(plan.budget, plan.events, plan.epsilon)
    assert again.events == plan.events
    for event in plan.events:  # what a unit may add is the schema's cap, not its size
        rows = getattr(event, "rows_per_unit", DEMO.unit.max_rows)
        assert rows == DEMO.unit.max_rows


@pytest.mark.parametrize("population", [20, 2_000, 200_000])
def test_the_noise_of_a_step_does_not_shrink_with_the_population(population: int) -> None:
    event = PoissonSgd("steps", 0.1, 5, 1.5)
    layer = Linear(3, 3, generator=torch.Generator())
    entropy = SeededEntropy(3)
    trainer = private(layer, event=event, clipping_norm=2.0, population=population, entropy=entropy)
    noise = trainer._noise()
    unit = torch.from_numpy(SeededEntropy(3).normal(len(noise), np.float32))
    torch.testing.assert_close(noise, unit * (1.5 * 2.0 * (1 + MARGIN)))
    assert float((noise / unit).min()) >= 1.5 * 2.0  # never below what is accounted for


def test_counts_are_exact_far_beyond_what_any_schema_declares() -> None:
    """A cell of 3 million rows of weight 2520: more than 32 bits, exact in what counts them."""
    units, weight = 3_000_000, 2520

    class Bare(SeededEntropy):
        def discrete_gaussian(self, sigma: float, size: int) -> np.ndarray:
            return np.zeros(size, np.int64)

    class Rows:
        codes = np.zeros((units, 1, 1), dtype=np.uint16)
        mask = np.ones((units, 1), dtype=bool)

    event = JointHistograms("counts", 1, 10, 10.0 * weight, unit_mass=weight)
    (counts,) = joint_histograms(Rows(), (2,), event, Bare(0))
    assert counts.tolist() == [units * weight, 0]
    assert units * weight > 2**32
