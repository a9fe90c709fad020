"""Steps that drawn patients take, by what steps of patients weigh in a score."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.beginnings import Beginnings
from dpsynth.models.histories.drawn_steps import by_weight, drawn_steps
from dpsynth.models.histories.networks.patient_units import KEPT
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.models.histories.steps.table import MASS

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class ScoredSteps:
    """Steps that drawn patients take, as many of each kind as weigh in a private step.

    Attributes:
        model: of the steps of one series; draws them as its network is by then.
        start: how the series of the patients begin.
        codes: of the patients in the person table.
        rng: of the draws.
    """

    model: StepModel
    start: Beginnings
    codes: Ints
    rng: np.random.Generator

    @property
    def mass(self) -> float:
        """What the steps of a patient weigh together, on average; 0 where nobody has one."""
        return float(np.sqrt(np.clip(self.start.counts - 1, 0, KEPT)).mean())

    def rows(self) -> Ints:
        """Draw all steps, of which there are some; return binned ones by their weights.

        Returns:
            ``[rows, columns]``.
        """
        steps, counted = drawn_steps(self.model, self.start, self.codes, self.rng)
        number = MASS / np.maximum(counted, 1)
        return by_weight(steps, np.sqrt(np.minimum(number, KEPT)) / number, self.rng)
