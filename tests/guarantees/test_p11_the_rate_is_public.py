"""P11: the rate at which units enter a step is the declared one, however many there are.

The check: cohorts smaller and larger than the declared population are sampled at the same rate,
and what a step divides by is the same for both.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest
import torch

from dpsynth.models.dpsgd import DpSgd, Linear
from dpsynth.privacy import PoissonSgd, SeededEntropy

RATE, DECLARED = 0.1, 20_000


class FromTheCohort(DpSgd):
    """Broken twin: as many units a step as expected, whatever the cohort has."""

    def sample_batch(self, units: int) -> npt.NDArray[np.int64]:
        rate = self.expected_units / units
        return np.flatnonzero(self.entropy.uniform(units) < rate)


def keeps_the_rate(kind: type[DpSgd], units: int) -> bool:
    """Whether the number of units drawn is one of Binomial(units, rate), to 6 deviations."""
    trainer = kind(
        Linear(2, 2, generator=torch.Generator()),
        event=PoissonSgd("steps", RATE, 1, 1.0),
        clipping_norm=1.0,
        population=DECLARED,
        learning_rate=0.1,
        entropy=SeededEntropy(units),
        schedule="constant",
        optimizer="sgd",
    )
    assert trainer.expected_units == RATE * DECLARED
    drawn = len(trainer.sample_batch(units))
    return abs(drawn - RATE * units) < 6 * math.sqrt(RATE * (1 - RATE) * units)


@pytest.mark.parametrize("units", [4_000, DECLARED, 60_000])
def test_units_enter_at_the_declared_rate(units: int) -> None:
    assert keeps_the_rate(DpSgd, units)


@pytest.mark.parametrize("units", [4_000, 60_000])
def test_a_rate_from_the_cohort_is_caught(units: int) -> None:
    assert keeps_the_rate(FromTheCohort, DECLARED)
    assert not keeps_the_rate(FromTheCohort, units)
