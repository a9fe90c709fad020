"""Can a classifier tell synthetic histories from real ones? By what sums up each patient.

Lopez-Paz and Oquab, Revisiting Classifier Two-Sample Tests, ICLR 2017 (arXiv 1610.06545). A patient
is one line, so nothing of hers stands in two folds, and the interval is over patients.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpsynth.eval.core import Measure, PartResult, about, plain
from dpsynth.eval.fidelity.records import FOLDS, SHARED, auc_by_folds
from dpsynth.eval.longitudinal.cohort import Cohort, Compared, Floats
from dpsynth.eval.longitudinal.features import summaries

MAX_PATIENTS = 5_000  # of each side
MIN_PATIENTS = 50
MAX_TELLING = 8
TELLING_PATIENTS = 800
SETTINGS = {"max_iter": 60, "learning_rate": 0.15, "early_stopping": False, "random_state": 0}

MEANING = (
    "How well a classifier tells synthetic from real patients by what sums up their histories, as "
    "the area under its ROC curve on patients whom it was not trained on: 0.5 is chance, 1 is "
    "always. One trait that differs is enough for a high value."
)


@dataclass(frozen=True)
class Verdict:
    """What a classifier reached.

    Attributes:
        auc: mean over folds of the area under the curve.
        error: its standard error over patients.
        telling: by feature, how much the area shrinks when it is shuffled.
    """

    auc: float
    error: float
    telling: dict[str, float]


def told_apart(compared: Compared, rng: np.random.Generator) -> PartResult:
    """Tell synthetic patients from held-out ones, or from those of train without a holdout.

    Reference: train against the holdout. Chance: two halves of train; a bootstrap would have the
    same patient in several folds.
    """
    real = compared.holdout or compared.train
    train = compared.train
    size = min(MAX_PATIENTS, len(real), len(compared.synthetic))
    half = min(size, len(train) // 2)
    if min(size, half) < MIN_PATIENTS:
        note = f"trajectory_c2st needs {2 * MIN_PATIENTS} patients of each cohort: left out"
        return PartResult(notes=(note,))
    found = tell(_sample(compared.synthetic, size, rng), _sample(real, size, rng), rng, some=True)
    shuffled = rng.permutation(len(train))
    halves = [train.take(np.sort(shuffled[at : at + half])) for at in (0, half)]
    chance = tell(halves[0], halves[1], rng).auc
    reference = None
    if compared.holdout is not None:
        reference = tell(_sample(train, size, rng), _sample(compared.holdout, size, rng), rng).auc
    estimate = about(
        found.auc, found.error, 2 * size, reference=reference, chance=chance, minimum=0.0,
        maximum=1.0,
    )  # fmt: skip
    measure = Measure("trajectory_c2st", "Telling histories apart", estimate, 0.5, MEANING)
    ranked = sorted(found.telling.items(), key=lambda item: (-item[1], item[0]))
    telling = [
        {"feature": name, "importance": plain(drop)} for name, drop in ranked if drop > 0.001
    ]
    note = f"trajectory_c2st: {size} synthetic patients against as many real ones"
    return PartResult((measure,), {"telling": telling[:MAX_TELLING]}, (note,))


def tell(first: Cohort, second: Cohort, rng: np.random.Generator, *, some: bool = False) -> Verdict:
    """Train on four fifths of both cohorts' patients, score the rest, five times.

    Args:
        first: scored high.
        second: scored low.
        rng: deals patients into folds.
        some: whether to say which features tell, from the first fold.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    tables = [summaries(cohort) for cohort in (first, second)]
    matrix = np.concatenate([table.matrix for table in tables])
    truth = np.repeat([1, 0], [len(first), len(second)])
    fold = np.concatenate([rng.permutation(len(one)) % FOLDS for one in (first, second)])
    units = np.concatenate([np.arange(len(first)), np.arange(len(second))])
    scores = np.empty(len(truth))
    telling: dict[str, float] = {}
    for k in range(FOLDS):
        test = np.flatnonzero(fold == k)
        matrix[:, np.isnan(matrix[fold != k]).all(axis=0)] = 0.0  # boosting refuses empty columns
        model = HistGradientBoostingClassifier(categorical_features=tables[0].mask, **SETTINGS)
        model.fit(matrix[fold != k], truth[fold != k])
        scores[test] = model.decision_function(matrix[test])
        if some and k == 0:
            few = test if len(test) <= TELLING_PATIENTS else rng.choice(test, TELLING_PATIENTS)
            drops = _drops(model, matrix[few], truth[few], rng)
            telling = dict(zip(tables[0].columns, drops.tolist(), strict=True))
    auc, error = auc_by_folds(scores, truth, fold, units)
    return Verdict(auc, error * SHARED, telling)


def _drops(model: object, matrix: Floats, truth: Floats, rng: np.random.Generator) -> Floats:
    """Return by how much the area shrinks when each feature is shuffled on its own."""
    from sklearn.metrics import roc_auc_score

    def area(values: Floats) -> float:
        return float(roc_auc_score(truth, model.decision_function(values)))  # type: ignore[attr-defined]

    whole = area(matrix)
    drops = np.empty(matrix.shape[1])
    for j in range(matrix.shape[1]):
        shuffled = matrix.copy()
        shuffled[:, j] = rng.permutation(shuffled[:, j])
        drops[j] = whole - area(shuffled)
    return drops


def _sample(cohort: Cohort, size: int, rng: np.random.Generator) -> Cohort:
    if size == len(cohort):
        return cohort
    return cohort.take(np.sort(rng.choice(len(cohort), size, replace=False)))
