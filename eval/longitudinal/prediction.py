"""Train on synthetic histories, test on real ones: the next row, and outcomes of patients.

Esteban, Hyland and Raetsch, Real-valued (Medical) Time Series Generation with Recurrent Conditional
GANs, 2017, section 4. The test patients are the same for every model; standard errors are by a
bootstrap of test patients, which all models and tasks share, so that differences are paired.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.eval.core import Estimate, Measure, PartResult, about
from dpsynth.eval.longitudinal.cohort import Cohort
from dpsynth.eval.longitudinal.compared import Compared
from dpsynth.eval.longitudinal.features import Floats, Ints
from dpsynth.eval.longitudinal.tasks import Examples, Task, tasks
from dpsynth.eval.utility.scores import auc, ranks

MAX_ROWS = 20_000  # that a model learns from, and that it is tested on
MAX_PATIENTS = 20_000  # of a training cohort
MIN_ROWS = 20  # of each answer, in train and test
TEST_PART = 5  # one patient in so many is tested where there is no holdout
DRAWS = 100
SETTINGS = {"max_iter": 60, "learning_rate": 0.15, "max_leaf_nodes": 15, "early_stopping": False}
SIDES = ("synthetic", "source", "chance")

NEXT = (
    "Mean area under the ROC curve, on real patients, of models that predict a patient's next row "
    "and learned from synthetic histories; beside models that learned from as many real patients. "
    "0.5 is guessing."
)
OUTCOME = (
    "Mean area under the ROC curve, on real patients, of models that predict how a patient fares "
    "from the baseline and the first rows and learned from synthetic histories; beside models that "
    "learned from as many real patients. 0.5 is guessing."
)


@dataclass(frozen=True, eq=False, repr=False)
class Tried:
    """One task, tried.

    Attributes:
        task: what is predicted.
        areas: under the curve, of models of each of `SIDES`.
        draws: the same for bootstraps of test patients ``[draws, sides]``.
        n: test patients.
    """

    task: Task
    areas: Floats
    draws: Floats
    n: int


def prediction(compared: Compared, rng: np.random.Generator) -> PartResult:
    """Train models of each task on synthetic, real and bootstrapped patients, and test them."""
    notes: list[str] = []
    train, test = compared.train, compared.holdout
    if test is None:
        dealt = rng.permutation(len(train)) % TEST_PART
        test, train = train.take(np.flatnonzero(dealt == 0)), train.take(np.flatnonzero(dealt > 0))
        notes.append(
            "there is no holdout: a fifth of the patients of train is the test of the models, "
            "which those of train are not trained on; the generator has seen them"
        )
    size = min(len(train), len(compared.synthetic), MAX_PATIENTS)
    sides = {
        "synthetic": _some(compared.synthetic, size, rng),
        "source": _some(train, size, rng),
        "chance": train.take(rng.integers(len(train), size=size)),
    }
    chosen = rng.integers(len(test), size=(DRAWS, len(test)))
    weights = np.stack([np.bincount(one, minlength=len(test)) for one in chosen]).astype(float)
    tried = []
    for task in tasks(compared.train):
        one, why = _tried(task, sides, test, weights, rng)
        if one is None:
            notes.append(f"{task.title}: {why}")
        else:
            tried.append(one)
    measures: list[Measure] = []
    for key, title, is_next, meaning in (
        ("tstr_next", "Predicting the next row", True, NEXT),
        ("tstr_outcome", "Predicting outcomes", False, OUTCOME),
    ):
        group = [one for one in tried if one.task.next is is_next]
        if group:
            measures.append(Measure(key, title, _estimate(group), 1.0, meaning))
            notes.append(f"models of {key} learn from {size} patients of each cohort")
    entries = [
        {"task": one.task.title, "next": one.task.next, "auc": _estimate([one]).to_dict()}
        for one in tried
    ]
    return PartResult(tuple(measures), {"tasks": entries}, tuple(notes))


def _some(cohort: Cohort, size: int, rng: np.random.Generator) -> Cohort:
    if size == len(cohort):
        return cohort
    return cohort.take(np.sort(rng.choice(len(cohort), size, replace=False)))


def _estimate(tried: list[Tried]) -> Estimate:
    """Return the mean area of models of synthetic histories, beside the others."""
    areas = np.mean([one.areas for one in tried], axis=0)
    draws = np.mean([one.draws[:, 0] for one in tried], axis=0)
    error = float(np.nanstd(draws, ddof=1)) if np.isfinite(draws).sum() > 1 else 0.0
    return about(
        float(areas[0]), error, max(one.n for one in tried), reference=float(areas[1]),
        chance=float(areas[2]), minimum=0.0, maximum=1.0,
    )  # fmt: skip


def _tried(
    task: Task, sides: dict[str, Cohort], test: Cohort, weights: Floats, rng: np.random.Generator
) -> tuple[Tried | None, str]:
    """Train and test one task; say why it cannot be."""
    examples = {side: _few(task.examples(cohort), rng) for side, cohort in sides.items()}
    asked = _few(task.examples(test), rng)
    for name, one in (("train", examples["source"]), ("the test", asked)):
        positive = int(one.truth.sum())
        if not MIN_ROWS <= positive <= len(one.truth) - MIN_ROWS:
            return None, f"fewer than {MIN_ROWS} rows of an answer in {name}; left out"
    own = weights[:, asked.patients]
    areas, draws = [], []
    for side in SIDES:
        places = ranks(scores(examples[side], asked, int(rng.integers(2**31))))
        truth = asked.truth.astype(float)
        areas.append(auc(places, truth))
        draws.append([auc(places, truth, weight) for weight in own])
    count = len(np.unique(asked.patients))
    return Tried(task, np.array(areas), np.array(draws).T, count), ""


def scores(learned: Examples, asked: Examples, seed: int) -> Floats:
    """Learn from some rows, and score others: boosted trees; a constant where truth does not vary.

    Args:
        learned: rows to learn from.
        asked: rows to score, with the same columns.
        seed: of the trees.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    if len(np.unique(learned.truth)) < 2:
        return np.zeros(len(asked.truth))
    matrix = learned.table.matrix
    matrix[:, np.isnan(matrix).all(axis=0)] = 0.0  # scikit-learn cannot cut a column of none
    model = HistGradientBoostingClassifier(
        categorical_features=learned.table.mask, random_state=seed, **SETTINGS
    )
    return np.asarray(model.fit(matrix, learned.truth).decision_function(asked.table.matrix))


def _few(examples: Examples, rng: np.random.Generator) -> Examples:
    """Keep at most `MAX_ROWS` rows, by chance."""
    count = len(examples.truth)
    if count <= MAX_ROWS:
        return examples
    rows: Ints = np.sort(rng.choice(count, MAX_ROWS, replace=False))
    columns: dict[str, Any] = {k: v[rows] for k, v in examples.table.columns.items()}
    table = type(examples.table)(columns, examples.table.categorical)
    return Examples(table, examples.truth[rows], examples.patients[rows])
