"""The two models by which usefulness is tried: gradient boosting and a linear one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.core import DesignMatrix, TableView, ordinal
from dpsynth.eval.utility.regression import Logistic, least_squares
from dpsynth.eval.utility.task import Task

Floats = npt.NDArray[np.float64]

MODELS = ("boosting", "linear")
RIDGE = 1.0
TREES = 100


class Learner(Protocol):
    """A fitted model."""

    def features(self, view: TableView) -> Floats:
        """Return the matrix that the model reads of a table."""

    def predict(self, features: Floats) -> Floats:
        """Return the probability of the class, or the number, for each row."""


@dataclass(frozen=True, eq=False)
class Constant:
    """What a table teaches in which all rows have the same target: to say that always."""

    value: float

    def features(self, view: TableView) -> Floats:
        """Return nothing for each row."""
        return np.zeros((view.rows, 0))

    def predict(self, features: Floats) -> Floats:
        """Return the one value."""
        return np.full(len(features), self.value)


@dataclass(frozen=True, eq=False)
class Boosting:
    """Histogram gradient boosting: scikit-learn's defaults without early stopping."""

    codec: Codec
    skip: frozenset[str]
    model: Any

    @classmethod
    def fit(cls, task: Task, view: TableView, codec: Codec, seed: int) -> Boosting:
        """Learn a task from rows whose target is known."""
        from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

        matrix, categorical = ordinal(view, codec, task.skip)
        matrix[:, np.isnan(matrix).all(axis=0)] = 0.0  # scikit-learn cannot cut a column of none
        kind = (
            HistGradientBoostingRegressor if task.level is None else HistGradientBoostingClassifier
        )
        model = kind(
            max_iter=TREES,
            categorical_features=categorical,
            early_stopping=False,
            random_state=seed,
        )
        return cls(codec, task.skip, model.fit(matrix, task.truth(view)))

    def features(self, view: TableView) -> Floats:
        """Return numbers and codes, NaN where missing."""
        return ordinal(view, self.codec, self.skip)[0]

    def predict(self, features: Floats) -> Floats:
        """Return the probability of the class, or the number, for each row."""
        if hasattr(self.model, "predict_proba"):
            return np.asarray(self.model.predict_proba(features)[:, 1])
        return np.asarray(self.model.predict(features))


@dataclass(frozen=True, eq=False)
class LinearModel:
    """Ridge regression, logistic for classes, on standardised numbers and indicators."""

    design: DesignMatrix
    logistic: bool
    coefficients: Floats

    @classmethod
    def fit(cls, task: Task, view: TableView, codec: Codec) -> LinearModel:
        """Learn a task from rows whose target is known."""
        design = DesignMatrix.of(view, codec, task.skip)
        matrix, truth = design.matrix(view), task.truth(view)
        if task.level is None:
            return cls(design, False, least_squares(matrix, truth, RIDGE))
        return cls(design, True, Logistic.fit(matrix, truth, RIDGE).coefficients)

    def features(self, view: TableView) -> Floats:
        """Return standardised numbers and indicators."""
        return self.design.matrix(view)

    def predict(self, features: Floats) -> Floats:
        """Return the probability of the class, or the number, for each row."""
        scores = features @ self.coefficients[1:] + self.coefficients[0]
        return np.asarray(0.5 * (1 + np.tanh(scores / 2)) if self.logistic else scores)


def learn(
    model: str, task: Task, view: TableView, codec: Codec, rng: np.random.Generator
) -> Learner:
    """Fit one of `MODELS` to rows whose target is known; at least one row."""
    truth = task.truth(view)
    if (truth == truth[0]).all():
        return Constant(float(truth[0]))
    if model == "boosting":
        return Boosting.fit(task, view, codec, int(rng.integers(2**31)))
    return LinearModel.fit(task, view, codec)
