"""Do a model of the synthetic table and one of the source rest on the same columns?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import Measure, about, groups, jackknife_error
from dpsynth.eval.core.scores import auc, r2, rank_correlation, ranks
from dpsynth.eval.utility.learners import Constant, Learner
from dpsynth.eval.utility.tstr import SIDES, Trial

Floats = npt.NDArray[np.float64]

MAX_ROWS = 3_000  # of the test, on which columns are permuted
MIN_LOSS = 0.002  # of AUC or R2: what falls by less is as chance has it, and counts as nothing
STACK = 16  # permuted matrices that a model reads at a time
FOLDS = 10
MIN_COLUMNS = 3


def importance(
    trial: Trial, rng: np.random.Generator
) -> tuple[Measure | None, list[dict[str, Any]], str | None]:
    """Compare what each column adds to the AUC (or R2) of the models of a trial.

    Permutation importance (Breiman, Random Forests, Machine Learning 45, 2001, section 10): how
    much the figure falls on the same real rows when one column is permuted among them, in the same
    order for both models. Falls below 0.002 count as none, so that columns of no use share a rank
    and do not drown the others. The interval is by a delete-a-group jackknife over the units of the
    test.

    Returns:
        The measure, each predictor with both importances (the source's largest first), and a note.
    """
    name = trial.task.name
    columns = trial.predictors
    if len(columns) < MIN_COLUMNS:
        return None, [], f"{name}: importance needs {MIN_COLUMNS} predictors; left out"
    rows = np.arange(trial.test.rows)
    if len(rows) > MAX_ROWS:
        rows = np.sort(rng.choice(rows, size=MAX_ROWS, replace=False))
    view, truth = trial.test.take(rows), trial.truth[rows]
    order = np.stack([rng.permutation(len(rows)) for _ in columns])
    predictions = {side: _permuted(trial.learners[side], view, order) for side in SIDES}
    dealt = groups(view.units, FOLDS, rng)
    weights = [np.ones(len(rows)), *((dealt != fold).astype(float) for fold in range(FOLDS))]
    falls = {
        side: np.stack([_falls(s, truth, trial.task.level is not None, w) for w in weights])
        for side, s in predictions.items()
    }
    losses = {side: np.where(fall < MIN_LOSS, 0.0, fall) for side, fall in falls.items()}
    agree = [
        rank_correlation(a, b) for a, b in zip(losses["synthetic"], losses["source"], strict=True)
    ]
    table = _table(columns, falls["source"][0], falls["synthetic"][0])
    if not np.isfinite(agree[0]):
        return None, table, f"{name}: a model rests on no column, so importances do not compare"
    chance = rank_correlation(losses["chance"][0], losses["source"][0])
    spared = [value for value in agree[1:] if np.isfinite(value)]
    estimate = about(
        agree[0], jackknife_error(spared) if len(spared) > 1 else 0.0, len(rows),
        chance=chance if np.isfinite(chance) else None, minimum=-1.0, maximum=1.0,
    )  # fmt: skip
    measure = Measure(
        f"importance:{name}",
        f"Agreement of column importances, {trial.task.title}",
        estimate,
        1.0,
        "Rank correlation, over columns, of how much a model rests on each: boosting trained on "
        "synthetic rows against the same trained on the source; near 0, an analyst would be led "
        "to other columns.",
    )
    note = f"{name}: importances are of {len(rows)} rows of the test, drawn at random"
    return measure, table, note if len(rows) < trial.test.rows else None


def _permuted(learner: Learner, view: Any, order: npt.NDArray[np.int64]) -> list[Floats]:
    """Return the scores of the rows as they are, then with each column permuted."""
    matrix = learner.features(view)
    if isinstance(learner, Constant):
        return [learner.predict(matrix)] * (1 + len(order))
    predictions = [learner.predict(matrix)]
    for first in range(0, len(order), STACK):
        stack = np.tile(matrix, (len(order[first : first + STACK]), 1))
        for k, places in enumerate(order[first : first + STACK]):
            block = slice(k * len(matrix), (k + 1) * len(matrix))
            stack[block, first + k] = matrix[places, first + k]
        predictions += np.split(learner.predict(stack), len(stack) // len(matrix))
    return predictions


def _falls(predictions: list[Floats], truth: Floats, classes: bool, weights: Floats) -> Floats:
    """Return by how much the figure falls, by permuted column."""
    figures = [
        auc(ranks(scores), truth, weights) if classes else r2(scores, truth, weights)
        for scores in predictions
    ]
    return figures[0] - np.array(figures[1:])


def _table(columns: list[str], source: Floats, synthetic: Floats) -> list[dict[str, Any]]:
    if not (np.isfinite(source).all() and np.isfinite(synthetic).all()):
        return []
    return [
        {"column": columns[k], "source": float(source[k]), "synthetic": float(synthetic[k])}
        for k in np.argsort(-source, kind="stable")
    ]
