"""Train on synthetic, test on real: what a model loses when it learns from the synthetic table.

Esteban, Hyland and Raetsch, Real-valued (Medical) Time Series Generation with Recurrent Conditional
GANs, 2017, section 4 (TSTR). Beside it stand the same model trained on as many rows of the source
(TRTR), and on a bootstrap of the source.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import Measure, Tables, TableView, groups
from dpsynth.eval.utility.calibration import reliability
from dpsynth.eval.utility.learners import MODELS, learn
from dpsynth.eval.utility.scores import roc
from dpsynth.eval.utility.task import Task, tasks
from dpsynth.eval.utility.trial import MIN_ROWS, SIDES, Trial

Floats = npt.NDArray[np.float64]

MAX_ROWS = 50_000  # of a training table, and of the test
FOLDS = 5  # one of which is the test where there is no holdout


def trials(tables: Tables, rng: np.random.Generator) -> tuple[tuple[Trial, ...], tuple[str, ...]]:
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
    result: list[Trial] = []
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


def measures(trial: Trial, rng: np.random.Generator) -> tuple[list[Measure], dict[str, Any]]:
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


def _by_side(trial: Trial, curve: Any) -> dict[str, Any]:
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


def _missing(task: Task, known: dict[str, TableView], test: TableView) -> str | None:
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
    task: Task,
    model: str,
    known: dict[str, TableView],
    test: TableView,
    tables: Tables,
    rng: np.random.Generator,
) -> Trial:
    """Train a model on each side, and let it say what it makes of the test."""
    learners = {side: learn(model, task, known[side], tables.codec, rng) for side in SIDES}
    scores = {side: learner.predict(learner.features(test)) for side, learner in learners.items()}
    return Trial(task, model, test, task.truth(test), learners, scores)
