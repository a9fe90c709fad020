"""The two models by which usefulness is tried: gradient boosting and a linear one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.core import DesignMatrix, Ints, TableView, ordinal
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


CHUNK = 8192  # rows at a time, so that no weighted copy of the whole matrix is made
STEPS = 40
TINY = 1e-6  # ridge that keeps the equations solvable and moves no estimate that can be told


@dataclass(frozen=True, eq=False)
class Logistic:
    """A fitted logistic regression.

    Attributes:
        coefficients: log odds, ``[1 + terms]``; the intercept first.
        information: observed information plus the ridge ``[1 + terms, 1 + terms]``.
    """

    coefficients: Floats
    information: Floats

    @classmethod
    def fit(cls, matrix: Floats, truth: Floats, ridge: float = TINY) -> Logistic:
        """Maximise the likelihood less ``ridge / 2`` times the squared length of the slopes.

        Newton's method with halved steps; the intercept is not penalised.

        Args:
            matrix: ``[rows, terms]``, without the intercept.
            truth: 0 or 1 for each row; both occur.
            ridge: 0 or more; 1 is what scikit-learn calls C = 1.
        """
        terms = matrix.shape[1] + 1
        penalty = np.full(terms, ridge)
        penalty[0] = TINY
        share = np.clip(truth.mean(), 1e-9, 1 - 1e-9)
        at = np.zeros(terms)
        at[0] = np.log(share / (1 - share))
        loss = _loss(matrix, truth, at, penalty)
        for _ in range(STEPS):
            gradient, information = _slopes(matrix, truth, at, penalty)
            step = np.linalg.solve(information, gradient)
            size = 1.0
            while (tried := _loss(matrix, truth, at + size * step, penalty)) > loss and size > 1e-6:
                size /= 2
            if tried > loss:
                break
            at, gained, loss = at + size * step, loss - tried, tried
            if gained < 1e-9 * (1 + abs(loss)):
                break
        return cls(at, _slopes(matrix, truth, at, penalty)[1])

    def predict(self, matrix: Floats) -> Floats:
        """Return the probability of the class for each row."""
        return _probability(matrix @ self.coefficients[1:] + self.coefficients[0])

    def scores(self, matrix: Floats, truth: Floats, groups: Ints) -> Floats:
        """Return the gradient of the log likelihood of each group of rows ``[groups, terms]``."""
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.diff(groups[order], prepend=groups[order][0] - 1))
        residuals = truth - self.predict(matrix)
        sums = [np.add.reduceat(residuals[order], starts)[:, None]]
        for first in range(0, matrix.shape[1], 32):
            block = matrix[:, first : first + 32] * residuals[:, None]
            sums.append(np.add.reduceat(block[order], starts, axis=0))
        return np.hstack(sums)

    def errors(self, matrix: Floats, truth: Floats, units: Ints | None = None) -> Floats:
        """Return the standard error of each coefficient ``[1 + terms]``.

        From the information; with ``units``, by the sandwich of scores summed over the rows of a
        unit, which holds when rows of a unit are alike (Liang and Zeger, Biometrika 73, 1986).
        """
        inverse = np.linalg.inv(self.information)
        if units is not None:
            scores = self.scores(matrix, truth, units)
            inverse = inverse @ (scores.T @ scores) @ inverse
        return np.sqrt(np.maximum(np.diag(inverse), 0.0))


def least_squares(matrix: Floats, truth: Floats, ridge: float) -> Floats:
    """Return intercept and slopes of a ridge regression ``[1 + terms]``."""
    middle = matrix.mean(axis=0)
    gram = np.zeros((matrix.shape[1], matrix.shape[1]))
    for first in range(0, len(matrix), CHUNK):
        block = matrix[first : first + CHUNK] - middle
        gram += block.T @ block
    gram[np.diag_indices_from(gram)] += ridge
    # the centred truth sums to 0, so that the matrix need not be centred here
    slopes = np.linalg.solve(gram, matrix.T @ (truth - truth.mean()))
    return np.concatenate([[truth.mean() - middle @ slopes], slopes])


def _probability(odds: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(odds / 2)))


def _loss(matrix: Floats, truth: Floats, at: Floats, penalty: Floats) -> float:
    """Return the penalised negative log likelihood."""
    odds = matrix @ at[1:] + at[0]
    return float((np.logaddexp(0, odds) - truth * odds).sum() + 0.5 * (penalty * at**2).sum())


def _slopes(matrix: Floats, truth: Floats, at: Floats, penalty: Floats) -> tuple[Floats, Floats]:
    """Return the gradient of the penalised log likelihood and its information."""
    gradient = -penalty * at
    information = np.diag(penalty)
    for first in range(0, len(matrix), CHUNK):
        block = matrix[first : first + CHUNK]
        block = np.hstack([np.ones((len(block), 1)), block])
        chance = _probability(block @ at)
        gradient += block.T @ (truth[first : first + CHUNK] - chance)
        block *= np.sqrt(chance * (1 - chance))[:, None]
        information += block.T @ block
    return gradient, information
