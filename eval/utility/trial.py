"""One model of one task, trained on each side and tested on the same real rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import Estimate, TableView, about
from dpsynth.eval.utility.learners import Learner
from dpsynth.eval.utility.scores import auc, bootstrap, r2, ranks, spread
from dpsynth.eval.utility.task import Task

Floats = npt.NDArray[np.float64]

SIDES = ("synthetic", "source", "chance")
MIN_ROWS = 5  # of each class in the test; twice as many where a number is asked for


@dataclass(frozen=True, eq=False)
class Trial:
    """One model of one task, trained on each side, tested on the same real rows.

    Attributes:
        task: what is foretold.
        model: one of `MODELS`.
        test: real rows with a known target that no model was trained on.
        truth: of those rows.
        learners: the fitted model by side: synthetic, source, chance (a bootstrap of the source).
        scores: what each said of the test rows.
    """

    task: Task
    model: str
    test: TableView
    truth: Floats
    learners: dict[str, Learner]
    scores: dict[str, Floats]

    @property
    def predictors(self) -> list[str]:
        """The columns that the models read, in the schema's order."""
        return [name for name in self.test.frame.columns if name not in self.task.skip]

    def quality(self, rows: npt.NDArray[np.int64] | None = None) -> TrialQuality:
        """Return AUC or R2 of each side on some test rows, or on all."""
        return TrialQuality(self, np.arange(len(self.truth)) if rows is None else rows)


class TrialQuality:
    """AUC (classes) or R2 (numbers) of the sides of a trial on some rows of the test."""

    def __init__(self, trial: Trial, rows: npt.NDArray[np.int64]) -> None:
        """Take rows of the trial's test."""
        self.classes = trial.task.level is not None
        self.truth = trial.truth[rows]
        self.units = trial.test.units[rows]
        predictions = [trial.scores[side][rows] for side in SIDES]
        self._predictions = predictions
        self._places = [ranks(scores) for scores in predictions] if self.classes else []

    @property
    def possible(self) -> bool:
        """Whether there is enough to tell a good model from a bad one."""
        if not self.classes:
            return len(self.truth) >= 2 * MIN_ROWS and float(np.ptp(self.truth)) > 0
        return bool(MIN_ROWS <= self.truth.sum() <= len(self.truth) - MIN_ROWS)

    def of(self, weights: Floats | None = None) -> list[float]:
        """Return the figure of synthetic, source and chance, in this order."""
        if self.classes:
            return [auc(places, self.truth, weights) for places in self._places]
        return [r2(prediction, self.truth, weights) for prediction in self._predictions]

    def estimates(self, rng: np.random.Generator) -> dict[str, Estimate]:
        """Return ``tstr``, ``trtr`` and ``gap`` with intervals.

        Normal, by the standard error of a bootstrap of the test's units (`scores.bootstrap`); that
        of the gap is paired. They hold for these models: training again is not part of them.
        """
        values = self.of()
        draws = bootstrap(self.of, self.units, rng)
        rows, minimum = len(self.truth), 0.0 if self.classes else -np.inf
        tstr = about(
            values[0], spread(draws[:, 0]), rows,
            reference=values[1], chance=values[2], minimum=minimum, maximum=1.0,
        )  # fmt: skip
        trtr = about(values[1], spread(draws[:, 1]), rows, minimum=minimum, maximum=1.0)
        error = spread(draws[:, 1] - draws[:, 0])
        gap = about(values[1] - values[0], error, rows, chance=values[1] - values[2])
        return {"tstr": tstr, "trtr": trtr, "gap": gap}
