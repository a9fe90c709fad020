"""The analyst's view: would odds ratios from the synthetic table lead to the same conclusions?"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    DesignMatrix,
    Measure,
    Tables,
    TableView,
    about,
    groups,
    jackknife_error,
)
from dpsynth.eval.utility.interval_overlap import MIN_ROWS, Wald, estimable, overlap, term_by_term
from dpsynth.eval.utility.regression import Logistic
from dpsynth.eval.utility.task import Task

Floats = npt.NDArray[np.float64]
Flags = npt.NDArray[np.bool_]

MAX_ROWS = 30_000
FOLDS = 20


def odds_ratios(
    tables: Tables, task: Task, rng: np.random.Generator
) -> tuple[Measure | None, dict[str, Any] | None, list[str]]:
    """Compare the odds ratios of a logistic regression of one target on all other columns.

    Each table gives as many rows. Terms are those of `DesignMatrix.of` the source: the odds ratio
    of a number is for one standard deviation of the source. Intervals are Wald's, from the
    information; of real rows they are robust to units with several rows, where a unit is declared.
    The interval of the mean overlap is by a delete-a-group jackknife in one Newton step; it holds
    for the terms.

    Returns:
        The measure, the entry of ``odds_ratios`` in the details, and notes.
    """
    rows = min(tables.size, tables.source.rows, MAX_ROWS)
    real = task.known(tables.source.sample(rows, rng))
    design = DesignMatrix.of(real, tables.codec, task.skip)
    chosen = _terms(design, real, task)
    if chosen is None or not chosen.any():
        note = f"{task.name}: too few rows of the source for odds ratios; left out"
        return None, None, [note]
    units = tables.schema.unit.column is not None
    source = _wald(design, chosen, real, task, rng, robust=units)
    synthetic_rows = task.known(tables.synthetic.sample(rows, rng))
    synthetic = _wald(design, chosen, synthetic_rows, task, rng)
    chance = _wald(design, chosen, task.known(tables.source.bootstrap(rows, rng)), task, rng)
    reference = None
    if tables.holdout is not None:
        holdout_rows = task.known(tables.holdout.sample(rows, rng))
        reference = _mean(source, _wald(design, chosen, holdout_rows, task, rng, robust=units))
    spared = [float(overlap(source, synthetic, fold).mean()) for fold in range(FOLDS)]
    estimate = about(
        _mean(source, synthetic), jackknife_error(spared), real.rows,
        reference=reference, chance=_mean(source, chance), minimum=0.0, maximum=1.0,
    )  # fmt: skip
    measure = Measure(
        f"odds:{task.name}",
        f"Overlap of the intervals of odds ratios, {task.title}: {task.label}",
        estimate,
        1.0,
        "Mean share by which the 95 % intervals of a logistic regression's odds ratios overlap "
        "between synthetic rows and as many of the source; near 0, an analyst would draw other "
        "conclusions.",
    )
    notes = _notes(task, chosen, synthetic)
    if rows == MAX_ROWS:
        notes.append(f"{task.name}: odds ratios are of {rows} rows of each table, drawn at random")
    return measure, _details(task, design, chosen, source, synthetic), notes


def _mean(a: Wald, b: Wald) -> float:
    return float(overlap(a, b).mean())


def _terms(design: DesignMatrix, view: TableView, task: Task) -> Flags | None:
    """Return the terms that the source has rows enough for; None where it has none at all."""
    truth = task.truth(view)
    if not MIN_ROWS <= truth.sum() <= len(truth) - MIN_ROWS:
        return None
    return estimable(design.matrix(view), truth)


def _wald(
    design: DesignMatrix,
    chosen: Flags,
    view: TableView,
    task: Task,
    rng: np.random.Generator,
    *,
    robust: bool = False,
) -> Wald:
    """Fit one table; terms that it has too few rows for are NaN, and not in its regression."""
    truth = task.truth(view)
    terms = int(chosen.sum())
    none = Wald(np.full(terms, np.nan), np.full(terms, np.nan), np.full((FOLDS, terms), np.nan))
    if not MIN_ROWS <= truth.sum() <= len(truth) - MIN_ROWS:
        return none
    matrix = design.matrix(view)[:, chosen]
    estimated = estimable(matrix, truth)
    if not estimated.any():
        return none
    matrix = matrix if estimated.all() else matrix[:, estimated]
    fit = Logistic.fit(matrix, truth)
    errors = fit.errors(matrix, truth, view.units if robust else None)
    none.values[estimated], none.errors[estimated] = fit.coefficients[1:], errors[1:]
    none.shifts[:, estimated] = _shifts(fit, matrix, truth, groups(view.units, FOLDS, rng))
    return none


def _shifts(fit: Logistic, matrix: Floats, truth: Floats, dealt: npt.NDArray[np.int64]) -> Floats:
    """Return slopes without each group: one Newton step from those of all rows."""
    scores = np.zeros((FOLDS, matrix.shape[1] + 1))
    scores[np.unique(dealt)] = fit.scores(matrix, truth, dealt)
    steps = np.linalg.solve(fit.information * (1 - 1 / FOLDS), scores.T).T
    return np.asarray((fit.coefficients - steps)[:, 1:])


def _details(
    task: Task, design: DesignMatrix, chosen: Flags, source: Wald, synthetic: Wald
) -> dict[str, Any]:
    shares = overlap(source, synthetic)
    names = [name for name, keep in zip(design.terms, chosen, strict=True) if keep]
    mean, listed = round(float(shares.mean()), 6), term_by_term(names, source, synthetic)
    return {"target": task.name, "class": task.label, "terms": listed, "overlap": mean}


def _notes(task: Task, chosen: Flags, synthetic: Wald) -> list[str]:
    notes = []
    if not chosen.all():
        notes.append(
            f"{task.name}: {int((~chosen).sum())} of {len(chosen)} terms have too few rows of the "
            "source for an odds ratio, or repeat others; left out"
        )
    lost = int(np.isnan(synthetic.values).sum())
    if lost:
        notes.append(
            f"{task.name}: {lost} terms that the source can tell have too few synthetic rows; "
            "their intervals count as apart"
        )
    return notes
