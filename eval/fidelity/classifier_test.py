"""Classifier two-sample test: how well a model tells synthetic rows from real ones.

Lopez-Paz and Oquab, Revisiting Classifier Two-Sample Tests, ICLR 2017 (arXiv 1610.06545). The
figure is the area under the ROC curve (AUC) of gradient boosting in 5-fold cross-validation: 0.5 if
rows cannot be told apart, 1 if each can.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.core import (
    Estimate,
    Measure,
    PartResult,
    Tables,
    TableView,
    about,
    groups,
    ordinal,
    plain,
)

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FOLDS = 5
SHARED = math.sqrt(1 + FOLDS / (FOLDS - 1))  # sqrt((1/J + n_test/n_train) / (1/J)), J = 5 folds
MAX_ROWS = 10_000  # of each side
MIN_ROWS = 50
MAX_TELLING = 10
TELLING_ROWS = 1000  # of each fold, for the importance of columns
SETTINGS = {"max_iter": 60, "learning_rate": 0.15, "early_stopping": False, "random_state": 0}
MEANING = (
    "How well a classifier tells synthetic from real rows, as the area under its ROC curve on rows "
    "that it was not trained on: 0.5 is chance, 1 is always. A high value means that rows look "
    "artificial; one column is enough for it."
)


@dataclass(frozen=True)
class Verdict:
    """What a classifier reached on rows that it did not see.

    Attributes:
        auc: mean over folds of the area under the ROC curve, weighted by rows.
        error: its standard error over units, for models that were trained on other rows, too.
        importance: by column, how much the area shrinks when the column is shuffled.
    """

    auc: float
    error: float
    importance: dict[str, float]


def c2st(tables: Tables, rng: np.random.Generator) -> PartResult:
    """Let a classifier tell synthetic rows from the holdout's, or the source's if there is none.

    Both sides have equally many rows, at most 10 000. The interval is that of DeLong (Biometrics
    44, 1988) with rows of a unit taken together (Obuchowski, Biometrics 53, 1997), widened as
    Nadeau and Bengio propose (Machine Learning 52, 2003), because the folds share most of the rows
    that their models learned from. Reference: source against holdout. Chance, where there is no
    holdout: two halves of the source.
    """
    real = tables.holdout or tables.source
    rows = min(MAX_ROWS, real.rows, tables.synthetic.rows)
    if rows < MIN_ROWS or len(np.unique(real.units)) < FOLDS:
        return PartResult(notes=(f"c2st needs {MIN_ROWS} rows of each table: left out",))
    verdict = told_apart(
        tables.synthetic.sample(rows, rng), real.sample(rows, rng), tables.codec, rng, telling=True
    )
    estimate = about(verdict.auc, verdict.error, 2 * rows, minimum=0.0, maximum=1.0)
    other = _between_real(tables, rows, rng)
    name = "chance" if tables.holdout is None else "reference"
    estimate = Estimate(**{**vars(estimate), name: other})
    ranked = sorted(verdict.importance.items(), key=lambda item: -item[1])
    details: dict[str, Any] = {
        "auc": estimate.to_dict(),
        "telling": [
            {"column": column, "importance": plain(importance)}
            for column, importance in ranked[:MAX_TELLING]
            if importance > 0
        ],
    }
    against = "the source" if tables.holdout is None else "the holdout"
    note = f"c2st: {rows} rows of the synthetic table against {rows} of {against}"
    measure = Measure("c2st", "Classifier telling synthetic from real", estimate, 0.5, MEANING)
    return PartResult((measure,), {"c2st": details}, (note,))


def told_apart(
    first: TableView,
    second: TableView,
    codec: Codec,
    rng: np.random.Generator,
    *,
    telling: bool = False,
) -> Verdict:
    """Train on four fifths of both tables' units, score the rest, five times."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    tables = [ordinal(view, codec) for view in (first, second)]
    matrix = np.concatenate([table[0] for table in tables])
    truth = np.repeat([1, 0], [first.rows, second.rows])
    units = np.concatenate([np.unique(v.units, return_inverse=True)[1] for v in (first, second)])
    fold = np.concatenate([groups(view.units, FOLDS, rng) for view in (first, second)])
    scores = np.empty(len(truth))
    drops = np.zeros(matrix.shape[1])
    for k in range(FOLDS):
        test = np.flatnonzero(fold == k)
        matrix[:, np.isnan(matrix[fold != k]).all(axis=0)] = 0.0  # boosting refuses empty columns
        model = HistGradientBoostingClassifier(categorical_features=tables[0][1], **SETTINGS)
        model.fit(matrix[fold != k], truth[fold != k])
        scores[test] = model.decision_function(matrix[test])
        if telling:
            some = test if len(test) <= TELLING_ROWS else rng.choice(test, TELLING_ROWS, False)
            drops += _drops(model, matrix[some], truth[some], rng) / FOLDS
    names = dict(zip(codec.names, drops.tolist(), strict=True)) if telling else {}
    auc, error = auc_by_folds(scores, truth, fold, units)
    return Verdict(auc, error * SHARED, names)


def auc_by_folds(scores: Floats, truth: Ints, fold: Ints, units: Ints) -> tuple[float, float]:
    """Return the area under the ROC curve within folds, and its standard error over units.

    Args:
        scores: high for the first table ``[rows]``.
        truth: 1 for the first table, else 0.
        fold: scores are compared within one only; each holds rows of both tables.
        units: numbers of the units, within their table.
    """
    placed = np.empty(len(scores))
    for k in np.unique(fold):
        ones, zeros = (np.flatnonzero((fold == k) & (truth == t)) for t in (1, 0))
        placed[ones] = _placement(scores[ones], scores[zeros])
        placed[zeros] = 1 - _placement(scores[zeros], scores[ones])
    value, variance = float(placed[truth == 1].mean()), 0.0
    for side in (1, 0):
        rows = truth == side
        sums = np.bincount(units[rows], weights=placed[rows] - placed[rows].mean())
        count = len(np.unique(units[rows]))
        if count > 1:
            variance += count / (count - 1) * float((sums**2).sum()) / int(rows.sum()) ** 2
    return value, math.sqrt(variance)


def _placement(scores: Floats, others: Floats) -> Floats:
    """Return for each score the share of others below it; equal ones count half."""
    ordered = np.sort(others)
    below = np.searchsorted(ordered, scores, side="left")
    return np.asarray((below + np.searchsorted(ordered, scores, side="right")) / (2 * len(others)))


def _drops(model: Any, matrix: Floats, truth: Ints, rng: np.random.Generator) -> Floats:
    """Return by how much the area shrinks when each column is shuffled on its own."""

    def area(matrix: Floats) -> float:
        scores = model.decision_function(matrix)
        return float(_placement(scores[truth == 1], scores[truth == 0]).mean())

    whole = area(matrix)
    drops = np.empty(matrix.shape[1])
    for j in range(matrix.shape[1]):
        shuffled = matrix.copy()
        shuffled[:, j] = rng.permutation(shuffled[:, j])
        drops[j] = whole - area(shuffled)
    return drops


def _between_real(tables: Tables, rows: int, rng: np.random.Generator) -> float | None:
    """Return the area between source and holdout, or between two halves of the source."""
    source, holdout = tables.source, tables.holdout
    if holdout is None:
        half = groups(source.units, 2, rng)
        holdout = source.take(np.flatnonzero(half == 1))
        source = source.take(np.flatnonzero(half == 0))
    size = min(rows, source.rows, holdout.rows)
    enough = min(len(np.unique(view.units)) for view in (source, holdout)) >= FOLDS
    if size < MIN_ROWS or not enough:
        return None
    return told_apart(source.sample(size, rng), holdout.sample(size, rng), tables.codec, rng).auc
