"""Factors of the gaps of a series, with which drawn gaps are those that were released."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.beginnings import Beginnings
from dpsynth.models.histories.chain import draw_series
from dpsynth.models.histories.steps.gap_factors import GapFactors, calibrated
from dpsynth.models.histories.steps.model import StepModel

Ints = npt.NDArray[np.int64]


def factors_of(
    model: StepModel, start: Beginnings, weights: Ints, rng: np.random.Generator
) -> GapFactors:
    """Find factors of the gaps of one series; those it has, where nothing was released.

    Args:
        model: of its steps.
        start: the first rows of drawn patients.
        weights: of a step of each of them.
        rng: of the draws.
    """

    def drawn(factors: GapFactors) -> tuple[Ints, Ints]:
        rows = draw_series(replace(model, factors=factors), start, rng)
        later = np.flatnonzero(rows.patients[1:] == rows.patients[:-1])
        return np.diff(rows.days)[later], weights[rows.patients[later]]

    if model.released is None:
        return model.factors
    return calibrated(model.released, model.table.table.days, drawn)
