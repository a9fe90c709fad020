"""What a declared target asks of a model, and the models by which usefulness is tried.

A target is a class against the rest, or a number. The models are gradient boosting and a linear
one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.core import DesignMatrix, Ints, Tables, TableView, numbers, ordinal
from dpsynth.schema import Column

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
    def fit(cls, task: PredictionTask, view: TableView, codec: Codec, seed: int) -> Boosting:
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
    def fit(cls, task: PredictionTask, view: TableView, codec: Codec) -> LinearModel:
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
    model: str, task: PredictionTask, view: TableView, codec: Codec, rng: np.random.Generator
) -> Learner:
    """Fit one of `MODELS` to rows whose target is known; at least one row."""
    truth = task.truth(view)
    if (truth == truth[0]).all():
        return Constant(float(truth[0]))
    if model == "boosting":
        return Boosting.fit(task, view, codec, int(rng.integers(2**31)))
    return LinearModel.fit(task, view, codec)


WEIGHTED_ROWS = 8192  # rows at a time, so that no weighted copy of the whole matrix is made
NEWTON_STEPS = 40
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
        for _ in range(NEWTON_STEPS):
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
    for first in range(0, len(matrix), WEIGHTED_ROWS):
        block = matrix[first : first + WEIGHTED_ROWS] - middle
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
    for first in range(0, len(matrix), WEIGHTED_ROWS):
        block = matrix[first : first + WEIGHTED_ROWS]
        block = np.hstack([np.ones((len(block), 1)), block])
        chance = _probability(block @ at)
        gradient += block.T @ (truth[first : first + WEIGHTED_ROWS] - chance)
        block *= np.sqrt(chance * (1 - chance))[:, None]
        information += block.T @ block
    return gradient, information


MIN_SHARE = 0.01  # of the source's known rows, for a class that is asked for


@dataclass(frozen=True)
class PredictionTask:
    """One column that a model has to foretell from the columns that are no targets.

    Attributes:
        column: the target.
        place: where its codes stand.
        level: the code of the class that is told from all others; None for a numeric target.
        skip: columns that are no predictors: every column of role target.
    """

    column: Column
    place: int
    level: int | None
    skip: frozenset[str]

    @property
    def name(self) -> str:
        """The target's name."""
        return self.column.name

    @property
    def title(self) -> str:
        """The target's name for people."""
        return self.column.title or self.column.name

    @property
    def kind(self) -> str:
        """Whether a class or a number is asked for."""
        return "regression" if self.level is None else "classification"

    @property
    def label(self) -> str | None:
        """The declared label of the class; None for a numeric target."""
        if self.level is None:
            return None
        value = self.column.levels[self.level]
        return self.column.labels.get(value, value)

    def truth(self, view: TableView) -> Floats:
        """Return 1 for the class and 0 for the rest, or the numbers; NaN where missing."""
        if self.level is None:
            return numbers(view, self.column)
        codes = view.codes[:, self.place]
        known = codes < len(self.column.levels)
        return np.where(known, (codes == self.level).astype(float), np.nan)

    def known(self, view: TableView) -> TableView:
        """Return the rows whose target is not missing."""
        rows = np.flatnonzero(~np.isnan(self.truth(view)))
        return view if len(rows) == view.rows else view.take(rows)


def tasks(tables: Tables) -> tuple[list[PredictionTask], list[str]]:
    """Read what the schema's targets ask for, and say which of them cannot be asked.

    For a column of two declared categories (a boolean: true) the class is the last declared one,
    else the rarest that at least 1 % of the source's known rows have.
    """
    modelled = tables.schema.modelled
    skip = frozenset(column.name for column in modelled if "target" in column.roles)
    if not skip:
        return [], ["no column is declared as a target: give one the role target to see how models "
                    "that learn from the synthetic table do on real rows"]  # fmt: skip
    if len(skip) == len(modelled):
        return [], ["every column is a target: there is nothing to foretell them from"]
    result: list[PredictionTask] = []
    notes: list[str] = []
    for place, column in enumerate(modelled):
        if column.name not in skip:
            continue
        if column.is_categorical:
            level = _level(column, tables.source.codes[:, place])
            if level is None:
                notes.append(f"{column.name}: no row of the source has a value; left out")
            else:
                result.append(PredictionTask(column, place, level, skip))
        elif column.kind.is_number:
            result.append(PredictionTask(column, place, None, skip))
        else:
            notes.append(f"{column.name}: a target that is a {column.type} is left out")
    return result, notes


def _level(column: Column, codes: npt.NDArray[np.uint16]) -> int | None:
    """Choose the class of a categorical target."""
    counts = np.bincount(codes, minlength=len(column.levels))[: len(column.levels)]
    if counts.sum() == 0:
        return None
    if column.categories is not None and len(column.categories) == 2:
        return 1
    often = np.flatnonzero(counts >= MIN_SHARE * counts.sum())
    return int(often[counts[often].argmin()])
