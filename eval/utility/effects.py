"""Effects on a declared target: how much likelier it is in each group, and in which direction.

A risk ratio compares the risk of the target's class in a group with that of all other rows: in one
level of a column against the other levels, and in the upper half of a number against its lower
half. Each side gets one row more of the overall risk, so that every ratio is finite.

With log risk ratios x of the source and y of another table over all groups, and the variance v of
x (delta method; Rothman, Greenland and Lash, Modern Epidemiology, 2008, chapter 14):

- `effects` is the slope sum(x y / v) / sum(x^2 / v): 1 if effects are as strong as in the source,
  0 if they are lost;
- `signs` is the share of groups with the other sign, among those whose ratio in the source is
  clear: |x| > .2, and an interval of 95 % without 1.

Without clear effects in the source there is nothing to keep: the slope needs a mean of x^2 / v of
at least 4, so that at most a quarter of it is chance, and signs need 10 groups.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    DesignMatrix,
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    Tables,
    TableView,
    Variants,
    about,
    bin_label,
    groups,
    jackknife_error,
    plain,
)
from dpsynth.eval.core.estimate import Z
from dpsynth.eval.utility.learners import Logistic, PredictionTask

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

MIN_GROUP = 100  # rows of the source on each side of a ratio
CLEAR = 0.2  # least |log risk ratio| whose sign counts
MIN_SIGNAL = 4.0  # mean of x^2 / v over groups: below it, too much of the ratios is chance
MIN_CLEAR = 10  # groups with a clear ratio, from which a share of signs is told
SHOWN = 40  # groups that are listed, the clearest in the source first

SLOPE = (
    "Slope of the log risk ratios of the synthetic table on those of the source, over all groups "
    "of all other columns, each weighed by its precision: below 1, effects are too weak; above 1, "
    "too strong."
)
SIGNS = (
    "Of the groups with a clear risk ratio in the source: share in which the synthetic table says "
    "the opposite, that a risk is lower where it is higher."
)


class _Split(NamedTuple):
    """Two groups of rows of one column: bins of the one, and of the other."""

    column: int
    label: str
    group: Bools
    others: Bools


def effects(
    sides: PairedTables, task: PredictionTask
) -> tuple[list[Measure], dict[str, Any] | None, list[str]]:
    """Compare the risk ratios of one class of a target between the tables.

    Args:
        sides: what is compared.
        task: the class; columns that are targets themselves give no groups.

    Returns:
        The slope and the share of wrong signs, each with an interval by jackknife over units; the
        entry of ``effects`` in the details; and notes.
    """
    splits = _splits(sides, task)
    if not splits:
        note = f"{task.name}: no group of at least {MIN_GROUP} rows to compare risks in; left out"
        return [], None, [note]
    logs = [[_log_ratios(side, task, split) for split in splits] for side in sides.every]
    values = sides.variants([np.stack([log for log, _ in one], axis=1) for one in logs])
    errors = [np.sqrt([float(variance[0]) for _, variance in one]) for one in logs]
    weights, clear = errors[0] ** -2, _is_clear(values.source[0], errors[0])
    title = f"{task.title}: {task.label}"
    slope = JackknifeEstimate.of(
        lambda x, y: (weights * x * y).sum(axis=1) / (weights * x * x).sum(axis=1), values
    )
    measures, notes = list[Measure](), list[str]()
    if slope is not None and (weights * values.source[0] ** 2).mean() >= MIN_SIGNAL:
        estimate = slope.estimate(sides.n, minimum=-np.inf, maximum=np.inf)
        key, name = f"effects:{task.name}", f"Size of effects, {title}"
        measures.append(Measure(key, name, estimate, 1.0, SLOPE))
    else:
        notes.append(f"{task.name}: risk ratios of the source are mostly chance; no slope of them")
    if clear.sum() >= MIN_CLEAR:
        wrong = JackknifeEstimate.of(lambda x, y: (x * y < 0).mean(axis=1), _only(values, clear))
        assert wrong is not None  # of groups that exist
        key, name = f"signs:{task.name}", f"Effects with the wrong sign, {title}"
        measures.append(Measure(key, name, wrong.estimate(sides.n), 0.0, SIGNS))
    else:
        notes.append(
            f"{task.name}: fewer than {MIN_CLEAR} groups have a clear risk ratio in the source, so "
            "signs are not counted"
        )
    return measures, _details(sides, task, splits, values, errors), notes


def _only(values: Variants, places: Bools) -> Variants:
    """Keep some groups."""
    source, synthetic, holdout, chance = values
    rest = None if holdout is None else holdout[:, places]
    return Variants(source[:, places], synthetic[:, places], rest, chance[:, places])


def _is_clear(logs: Floats, errors: Floats) -> Bools:
    return np.asarray((np.abs(logs) > CLEAR) & (np.abs(logs) > Z * errors))


def _splits(sides: PairedTables, task: PredictionTask) -> list[_Split]:
    """Divide the rows with a known outcome, by each column, into a group and others."""
    known = task.truth(sides.source.view) >= 0  # NaN where the outcome is missing
    splits = []
    for j, column in enumerate(sides.tables.schema.modelled):
        if column.name in task.skip:
            continue
        size = sides.bins.sizes[j]
        counts = np.bincount(sides.source.bins[j][known], minlength=size)
        codes = np.arange(size)
        if column.is_categorical:
            levels = np.flatnonzero(counts)
            levels = levels[1:] if len(levels) == 2 else levels  # the other one is its mirror
            both = [(codes == code, codes != code) for code in levels]
            labels = [bin_label(sides, j, int(code)) for code in levels]
        else:
            present = codes < size - 1 if column.nullable else codes < size
            shares = counts[present].cumsum() / max(counts[present].sum(), 1)
            first = 1 + int(np.argmin(np.abs(shares - 0.5)))  # bin of the upper half
            both = [(present & (codes >= first), present & (codes < first))]
            labels = ["upper half"]
        for label, (group, others) in zip(labels, both, strict=True):
            if min(counts[group].sum(), counts[others].sum()) >= MIN_GROUP:
                splits.append(_Split(j, label, group, others))
    return splits


def _log_ratios(side: PairedTable, task: PredictionTask, split: _Split) -> tuple[Floats, Floats]:
    """Return the log risk ratio and its variance ``[variants]``."""
    truth = task.truth(side.view)
    where = split.group[side.bins[split.column]], split.others[side.bins[split.column]]
    rows = [side.sizes(np.flatnonzero(part & ~np.isnan(truth))) for part in where]
    hits = [side.sizes(np.flatnonzero(part & (truth == 1))) for part in where]
    overall = (sum(hits) + 0.5) / (sum(rows) + 1)
    risks = [(hit + overall) / (row + 1) for hit, row in zip(hits, rows, strict=True)]
    parts = [(1 - risk) / ((row + 1) * risk) for risk, row in zip(risks, rows, strict=True)]
    return np.asarray(np.log(risks[0] / risks[1])), np.asarray(sum(parts))


def _details(
    sides: PairedTables,
    task: PredictionTask,
    splits: list[_Split],
    values: Variants,
    errors: list[Floats],
) -> dict[str, Any]:
    """List the groups whose ratio is clearest in the source, with the interval of each table."""
    order = np.argsort(-np.abs(values.source[0]) / errors[0], kind="stable")[:SHOWN]
    tables = {"source": (values.source, errors[0]), "synthetic": (values.synthetic, errors[1])}
    if values.holdout is not None:
        tables["holdout"] = values.holdout, errors[2]
    groups = []
    for k in order.tolist():
        column = sides.tables.schema.modelled[splits[k].column]
        entry: dict[str, Any] = {"column": column.name, "group": splits[k].label}
        for name, (logs, sd) in tables.items():
            middle, half = logs[0, k], Z * sd[k]
            ends = np.exp([middle, middle - half, middle + half])
            entry[name] = dict(zip(("value", "low", "high"), plain(ends), strict=True))
        groups.append(entry)
    return {"target": task.name, "class": task.label, "groups": groups, "compared": len(splits)}


Flags = npt.NDArray[np.bool_]

MAX_ROWS = 30_000
FOLDS = 20


def odds_ratios(
    tables: Tables, task: PredictionTask, rng: np.random.Generator
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
    return measure, _odds_details(task, design, chosen, source, synthetic), notes


def _mean(a: Wald, b: Wald) -> float:
    return float(overlap(a, b).mean())


def _terms(design: DesignMatrix, view: TableView, task: PredictionTask) -> Flags | None:
    """Return the terms that the source has rows enough for; None where it has none at all."""
    truth = task.truth(view)
    if not MIN_ROWS <= truth.sum() <= len(truth) - MIN_ROWS:
        return None
    return estimable(design.matrix(view), truth)


def _wald(
    design: DesignMatrix,
    chosen: Flags,
    view: TableView,
    task: PredictionTask,
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


def _odds_details(
    task: PredictionTask, design: DesignMatrix, chosen: Flags, source: Wald, synthetic: Wald
) -> dict[str, Any]:
    shares = overlap(source, synthetic)
    names = [name for name, keep in zip(design.terms, chosen, strict=True) if keep]
    mean, listed = round(float(shares.mean()), 6), term_by_term(names, source, synthetic)
    return {"target": task.name, "class": task.label, "terms": listed, "overlap": mean}


def _notes(task: PredictionTask, chosen: Flags, synthetic: Wald) -> list[str]:
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


MIN_ROWS = 10  # with and without an indicator, with and without the outcome
FAR = 30.0  # log odds beyond this are shown as this


@dataclass(frozen=True, eq=False)
class Wald:
    """Coefficients of one table on a log scale, NaN where it has too few rows to tell.

    Attributes:
        values: one for each term.
        errors: their standard errors.
        shifts: what each coefficient would be without each group of units ``[groups, terms]``, to
            first order; for the interval of a mean overlap.
    """

    values: Floats
    errors: Floats
    shifts: Floats

    def interval(self, term: int) -> dict[str, float | None]:
        """Return the ratio, exp(coefficient), of a term, with its interval of 95 %."""
        if np.isnan(self.values[term]):
            return {"value": None, "low": None, "high": None}
        middle, half = self.values[term], Z * self.errors[term]
        ends = np.exp(np.clip([middle, middle - half, middle + half], -FAR, FAR))
        return dict(zip(("value", "low", "high"), map(_rounded, ends.tolist()), strict=True))


def overlap(a: Wald, b: Wald, without: int | None = None) -> Floats:
    """Return how much the intervals of each term overlap, between 0 (apart) and 1 (the same).

    The mean of two shares: of the common stretch in the one interval, and in the other (Karr et
    al., A Framework for Evaluating the Utility of Data Altered to Protect Confidentiality, American
    Statistician 60, 2006, section 3); intervals that are apart count 0, and so does a term that
    one table cannot tell.

    Args:
        a: of one table.
        b: of the other.
        without: the number of a group of units that is left out of both; None for none.
    """
    x, y = (w.values if without is None else w.shifts[without] for w in (a, b))
    common = np.minimum(x + Z * a.errors, y + Z * b.errors) - np.maximum(
        x - Z * a.errors, y - Z * b.errors
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        shares = common * (1 / a.errors + 1 / b.errors) / (4 * Z)
    return np.asarray(np.where(np.isfinite(shares) & (common > 0), shares, 0.0))


def estimable(matrix: Floats, outcome: Floats) -> Flags:
    """Return which terms a table has rows enough for, and that no terms before them repeat.

    An indicator needs ten rows with and ten without it, of those with the outcome and of those
    without; a number needs to vary.
    """
    sums = np.stack([outcome, 1 - outcome]) @ matrix
    rows = np.array([[outcome.sum()], [len(outcome) - outcome.sum()]])
    enough = (np.minimum(sums, rows - sums) >= MIN_ROWS).all(axis=0)
    indicator = ((matrix == 0) | (matrix == 1)).all(axis=0)
    usable = enough | (~indicator & (matrix.std(axis=0) > 1e-9))
    places = np.flatnonzero(usable)
    usable[places] = _independent(np.cov(matrix[:, places], rowvar=False, ddof=0).reshape(
        len(places), len(places)
    ))  # fmt: skip
    return np.asarray(usable)


def _independent(covariance: Floats) -> Flags:
    """Return which columns are no combination of those before them: elimination, in order."""
    residual = covariance.copy()
    independent = np.zeros(len(residual), dtype=bool)
    for place in range(len(residual)):
        independent[place] = residual[place, place] > 1e-6 * covariance[place, place]
        if independent[place]:
            residual -= np.outer(residual[:, place], residual[place]) / residual[place, place]
    return independent


def _rounded(number: float) -> float:
    return float(f"{number:.6g}")


def term_by_term(names: Sequence[str], source: Wald, synthetic: Wald) -> list[dict[str, Any]]:
    """List the intervals of each term by table, and how much they overlap."""
    shares = overlap(source, synthetic)
    return [
        {
            "term": name,
            "source": source.interval(k),
            "synthetic": synthetic.interval(k),
            "overlap": round(float(shares[k]), 6),
        }
        for k, name in enumerate(names)
    ]
