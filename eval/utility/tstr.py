"""Train on synthetic, test on real: what a model loses when it learns from the synthetic table.

Esteban, Hyland and Raetsch, Real-valued (Medical) Time Series Generation with Recurrent Conditional
GANs, 2017, section 4 (TSTR). Beside it stand the same model trained on as many rows of the source
(TRTR), and on a bootstrap of the source.

Models of both tables are also asked whether they rest on the same columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import Estimate, Measure, Tables, TableView, about, groups, jackknife_error
from dpsynth.eval.core.scores import auc, bootstrap, r2, rank_correlation, ranks, roc, spread
from dpsynth.eval.utility.learners import MODELS, Constant, Learner, PredictionTask, learn, tasks

Floats = npt.NDArray[np.float64]

MAX_ROWS = 50_000  # of a training table, and of the test
FOLDS = 5  # one of which is the test where there is no holdout


def trials(
    tables: Tables, rng: np.random.Generator
) -> tuple[tuple[ModelTrial, ...], tuple[str, ...]]:
    """Train and test both models on every target; say what was left out, and which rows were used.

    Training rows are as many of the source as of the synthetic table, at most 50 000; the test is
    the holdout, or else a fifth of the source's units, which no model of the source is trained on.
    """
    all_tasks, notes = tasks(tables)
    if not all_tasks:
        return (), tuple(notes)
    real, test, table_notes = _real(tables, rng)
    rows = min(real.rows, tables.synthetic.rows, MAX_ROWS)
    notes += [*table_notes, f"models are trained on {rows} rows of each table, drawn at random"]
    sides = {
        "synthetic": tables.synthetic.sample(rows, rng),
        "source": real.sample(rows, rng),
        "chance": real.bootstrap(rows, rng),
    }
    result: list[ModelTrial] = []
    for task in all_tasks:
        known = {side: task.known(view) for side, view in sides.items()}
        tested = task.known(test)
        missing = _missing(task, known, tested)
        if missing:
            notes.append(f"{task.name}: {missing}")
            continue
        if np.ptp(task.truth(known["synthetic"])) == 0:
            notes.append(
                f"{task.name}: its value is the same in all synthetic rows, from which a model "
                "learns nothing; its score is that of a constant"
            )
        result += [_trial(task, model, known, tested, tables, rng) for model in MODELS]
    return tuple(result), tuple(notes)


def measures(trial: ModelTrial, rng: np.random.Generator) -> tuple[list[Measure], dict[str, Any]]:
    """Return TSTR and its gap to TRTR, and what the pages show of the trial."""
    quality = trial.quality()
    estimates = quality.estimates(rng)
    task, linear = trial.task, "_linear" if trial.model == "linear" else ""
    figure = "AUC" if quality.classes else "R2"
    name = "a linear model" if linear else "gradient boosting"
    task_title = task.title if task.label is None else f"{task.title}: {task.label}"
    result = [
        Measure(
            f"tstr{linear}:{task.name}",
            f"{figure} of {name} trained on synthetic rows, {task_title}",
            estimates["tstr"],
            1.0,
            f"{figure} on real rows of {name} that learned from synthetic rows, beside the same "
            "model that learned from the source; far below it, the synthetic table does not hold "
            "what foretells this column.",
        ),
        Measure(
            f"tstr{linear}_gap:{task.name}",
            f"Loss of {figure} by training on synthetic rows, {task_title}",
            estimates["gap"],
            0.0,
            f"{figure} of {name} trained on the source less that of the one trained on synthetic "
            "rows, on the same real rows; what is lost for this task.",
        ),
    ]
    return result, {
        "model": trial.model,
        "tstr": estimates["tstr"].to_dict(),
        "trtr": estimates["trtr"].to_dict(),
        "roc": _by_side(trial, roc) if quality.classes else None,
        "calibration": _by_side(trial, reliability) if quality.classes else None,
    }


def _by_side(trial: ModelTrial, curve: Any) -> dict[str, Any]:
    return {side: curve(trial.scores[side], trial.truth) for side in ("synthetic", "source")}


def _real(tables: Tables, rng: np.random.Generator) -> tuple[TableView, TableView, list[str]]:
    """Return real rows for training, real rows for the test, and what is to be said of them."""
    if tables.holdout is not None:
        return tables.source, tables.holdout.sample(MAX_ROWS, rng), []
    dealt = groups(tables.source.units, FOLDS, rng)
    train, test = (tables.source.take(np.flatnonzero(rows)) for rows in (dealt > 0, dealt == 0))
    note = (
        "there is no holdout: a fifth of the source's units is the test of the models, which those "
        "of the source are not trained on; the generator has seen it"
    )
    return train, test.sample(MAX_ROWS, rng), [note]


def _missing(task: PredictionTask, known: dict[str, TableView], test: TableView) -> str | None:
    """Say what a task lacks, if anything."""
    for side, view in (*known.items(), ("test", test)):
        if view.rows < 2 * MIN_ROWS:
            table = {"chance": "source"}.get(side, side)
            return f"fewer than {2 * MIN_ROWS} rows of the {table} have a value; left out"
    for table, view in (("source", known["source"]), ("test", test)):
        truth = task.truth(view)
        if task.level is None and np.ptp(truth) == 0:
            return f"constant in the {table}; left out"
        if task.level is not None and not MIN_ROWS <= truth.sum() <= len(truth) - MIN_ROWS:
            return f"fewer than {MIN_ROWS} rows of a class in the {table}; left out"
    return None


def _trial(
    task: PredictionTask,
    model: str,
    known: dict[str, TableView],
    test: TableView,
    tables: Tables,
    rng: np.random.Generator,
) -> ModelTrial:
    """Train a model on each side, and let it say what it makes of the test."""
    learners = {side: learn(model, task, known[side], tables.codec, rng) for side in SIDES}
    scores = {side: learner.predict(learner.features(test)) for side, learner in learners.items()}
    return ModelTrial(task, model, test, task.truth(test), learners, scores)


SIDES = ("synthetic", "source", "chance")
MIN_ROWS = 5  # of each class in the test; twice as many where a number is asked for


@dataclass(frozen=True, eq=False)
class ModelTrial:
    """One model of one task, trained on each side, tested on the same real rows.

    Attributes:
        task: what is foretold.
        model: one of `MODELS`.
        test: real rows with a known target that no model was trained on.
        truth: of those rows.
        learners: the fitted model by side: synthetic, source, chance (a bootstrap of the source).
        scores: what each said of the test rows.
    """

    task: PredictionTask
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

    def __init__(self, trial: ModelTrial, rows: npt.NDArray[np.int64]) -> None:
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


Ints = npt.NDArray[np.int64]

BINS = 10


def equal_bins(scores: Floats, count: int = BINS) -> Ints:
    """Return the bin of each row: ``count`` bins of equally many rows by score, ties together."""
    cuts = np.unique(np.quantile(scores, np.linspace(0, 1, count + 1)[1:-1]))
    return np.searchsorted(cuts, scores, side="right").astype(np.int64)


def calibration_error(
    scores: Floats, positive: Floats, bins: Ints, weights: Floats | None = None
) -> float:
    """Return the expected calibration error: |mean score - share of the class|, by bin, averaged.

    Naeini, Cooper and Hauskrecht, Obtaining Well Calibrated Probabilities Using Bayesian Binning,
    AAAI 2015, section 4; here with bins of equally many rows. 0 is best, 1 is worst.
    """
    weight = np.ones(len(scores)) if weights is None else weights
    off = np.bincount(bins, weights=weight * (scores - positive))
    total = weight.sum()
    return float(np.abs(off).sum() / total) if total else float("nan")


def reliability(scores: Floats, positive: Floats) -> list[dict[str, Any]]:
    """Return mean score, share of the class and rows of each bin, by rising score."""
    bins = equal_bins(scores)
    rows = np.bincount(bins)
    sums = np.bincount(bins, weights=scores)
    true = np.bincount(bins, weights=positive)
    return [
        {"predicted": float(sums[b] / rows[b]), "observed": float(true[b] / rows[b]), "n": int(n)}
        for b, n in enumerate(rows)
        if n
    ]


def calibration(trial: ModelTrial, rng: np.random.Generator) -> Measure:
    """Measure the calibration error of a model that learned from synthetic rows.

    The interval is normal, by the standard error of a bootstrap of the test's units.
    """
    bins = {side: equal_bins(scores) for side, scores in trial.scores.items()}

    def errors(weights: Floats | None = None) -> list[float]:
        return [
            calibration_error(trial.scores[side], trial.truth, bins[side], weights) for side in bins
        ]

    values = dict(zip(bins, errors(), strict=True))
    error = spread(bootstrap(errors, trial.test.units, rng)[:, list(bins).index("synthetic")])
    estimate = about(
        values["synthetic"], error, len(trial.truth),
        reference=values["source"], chance=values["chance"], minimum=0.0, maximum=1.0,
    )  # fmt: skip
    return Measure(
        f"calibration:{trial.task.name}",
        f"Calibration error of boosting trained on synthetic rows, {trial.task.title}",
        estimate,
        0.0,
        "How far the risks that the model states are from the shares that real rows show, on "
        "average; a large value means risks that are too high or too low.",
    )


IMPORTANCE_ROWS = 3_000  # of the test, on which columns are permuted
MIN_LOSS = 0.002  # of AUC or R2: what falls by less is as chance has it, and counts as nothing
STACK = 16  # permuted matrices that a model reads at a time
IMPORTANCE_FOLDS = 10
MIN_COLUMNS = 3


def importance(
    trial: ModelTrial, rng: np.random.Generator
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
    if len(rows) > IMPORTANCE_ROWS:
        rows = np.sort(rng.choice(rows, size=IMPORTANCE_ROWS, replace=False))
    view, truth = trial.test.take(rows), trial.truth[rows]
    order = np.stack([rng.permutation(len(rows)) for _ in columns])
    predictions = {side: _permuted(trial.learners[side], view, order) for side in SIDES}
    dealt = groups(view.units, IMPORTANCE_FOLDS, rng)
    weights = [
        np.ones(len(rows)),
        *((dealt != fold).astype(float) for fold in range(IMPORTANCE_FOLDS)),
    ]
    falls = {
        side: np.stack([_falls(s, truth, trial.task.level is not None, w) for w in weights])
        for side, s in predictions.items()
    }
    losses = {side: np.where(fall < MIN_LOSS, 0.0, fall) for side, fall in falls.items()}
    agree = [
        rank_correlation(a, b) for a, b in zip(losses["synthetic"], losses["source"], strict=True)
    ]
    table = _importance_table(columns, falls["source"][0], falls["synthetic"][0])
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


def _importance_table(
    columns: list[str], source: Floats, synthetic: Floats
) -> list[dict[str, Any]]:
    if not (np.isfinite(source).all() and np.isfinite(synthetic).all()):
        return []
    return [
        {"column": columns[k], "source": float(source[k]), "synthetic": float(synthetic[k])}
        for k in np.argsort(-source, kind="stable")
    ]
