"""Models of histories: train on synthetic ones and test on real ones, and tell both apart.

**Prediction** is of the next row, and of outcomes of patients. Esteban, Hyland and Raetsch,
Real-valued (Medical) Time Series Generation with Recurrent Conditional GANs, 2017, section 4. The
test patients are the same for every model; standard errors are by a bootstrap of test patients,
which all models and tasks share, so that differences are paired.

**Telling apart** goes by what sums up each patient. Lopez-Paz and Oquab, Revisiting Classifier
Two-Sample Tests, ICLR 2017 (arXiv 1610.06545). A patient is one line, so nothing of theirs stands
in two folds, and the interval is over patients.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER
from dpsynth.eval.core import Estimate, Measure, PartResult, about, plain
from dpsynth.eval.core.scores import auc, ranks
from dpsynth.eval.fidelity.records import (
    FOLDS,
    ClassifierTest,
    cross_validated,
    permutation_drops,
)
from dpsynth.eval.longitudinal.cohort import Cohort, Compared, Field, SeriesView
from dpsynth.eval.longitudinal.survival import outcome, outcome_names

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

    task: HistoryTask
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
    task: HistoryTask,
    sides: dict[str, Cohort],
    test: Cohort,
    weights: Floats,
    rng: np.random.Generator,
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


Bools = npt.NDArray[np.bool_]

MAX_VALUES = 4  # columns of a series whose next value is predicted: targets, then numbers
MAX_SERIES = 8
HORIZON = 4  # an outcome counts within this part of the days that the window has after day 0


@dataclass(frozen=True, eq=False, repr=False)
class Examples:
    """Rows to learn from.

    Attributes:
        table: what is known.
        truth: what is to be predicted.
        patients: whose row each is.
    """

    table: FeatureTable
    truth: Bools
    patients: Ints


@dataclass(frozen=True, eq=False)
class HistoryTask:
    """Something to predict.

    Attributes:
        key: its name for scripts.
        title: its name for people.
        next: whether it is about the next row; else it is about the patient.
        examples: makes them from a cohort.
    """

    key: str
    title: str
    next: bool
    examples: Callable[[Cohort], Examples]


def tasks(train: Cohort) -> list[HistoryTask]:
    """Return what to predict; thresholds and commonest categories are those of real patients."""
    found = []
    for number, series in enumerate(train.series[:MAX_SERIES]):
        if not len(series.later):
            continue
        fields = series.facts.fields
        order = sorted(
            range(len(fields)), key=lambda p: (not fields[p].target, not fields[p].ordered)
        )
        for place in order[:MAX_VALUES]:
            found += _next_value(series, number, place)
        name, title = series.facts.name, f"{series.facts.title}: another row follows"
        found.append(HistoryTask(f"{name} another", title, True, partial(_more, number=number)))
        if not train.facts.events and not train.facts.ending:
            found += _last_value(series, number, order[0])
    if train.facts.timed:
        days = max(1, train.facts.last // HORIZON)
        for event in outcome_names(train.facts):
            title = f"{event} within {days:,} days"
            found.append(HistoryTask(event, title, False, partial(_within, event=event, days=days)))
    return found


def _question(field: Field, codes: npt.NDArray[np.uint16]) -> tuple[Callable[..., Bools], str]:
    """Return a question with two answers about a value, as even as it can be, and its words."""
    if not field.ordered:
        common = int(np.bincount(codes[codes != field.missing], minlength=field.size).argmax())
        return lambda own: own == common, f"is {field.labels[common]}"
    numbers = field.numbers[codes]
    known = np.sort(numbers[np.isfinite(numbers)])
    if not len(known):
        return lambda own: np.zeros(len(own), dtype=bool), "is known"
    middle = known[len(known) // 2]
    if (known < middle).sum() < (known > middle).sum():  # the median may be the lowest value
        middle = known[min(np.searchsorted(known, middle, side="right"), len(known) - 1)]
    return lambda own: field.numbers[own] >= middle, "is high"


def _next_value(series: SeriesView, number: int, place: int) -> list[HistoryTask]:
    field = series.facts.fields[place]
    ask, words = _question(field, series.values[series.later, place])

    def examples(one: Cohort) -> Examples:
        own = one.series[number]
        later = own.later[own.values[own.later, place] != field.missing]
        before = row_features(own, later - 1)
        columns = dict(before.columns)
        if own.facts.timed:
            columns["days to the next row"] = (own.days[later] - own.days[later - 1]).astype(float)
        table = _with_patient(one, own.patients[later], columns, before.categorical)
        return Examples(table, ask(own.values[later, place]), own.patients[later])

    stem = series.facts.title
    title = f"{stem}: next value {words}"
    if len(series.facts.fields) > 1:
        title = f"{stem}: next {field.title} {words}"
    return [HistoryTask(f"{series.facts.name} {field.name}", title, True, examples)]


def _last_value(series: SeriesView, number: int, place: int) -> list[HistoryTask]:
    """Return the last value of a patient, from the baseline and her first row."""
    field = series.facts.fields[place]
    ends = np.flatnonzero(series.counts > 1)
    last = series.starts[ends] + series.counts[ends] - 1
    ask, words = _question(field, series.values[last, place])

    def examples(one: Cohort) -> Examples:
        own = one.series[number]
        who = np.flatnonzero(own.counts > 1)
        rows = own.starts[who] + own.counts[who] - 1
        known = own.values[rows, place] != field.missing
        who, rows = who[known], rows[known]
        first = row_features(own, own.starts[who])
        table = _with_patient(one, who, first.columns, first.categorical)
        return Examples(table, ask(own.values[rows, place]), who)

    title = f"{series.facts.title}: last {field.title} {words}, from the first row"
    return [HistoryTask(f"{series.facts.name} last {field.name}", title, False, examples)]


def _more(cohort: Cohort, number: int) -> Examples:
    """Ask of each row whether the patient has another one after it."""
    series = cohort.series[number]
    rows = np.arange(len(series.patients))
    truth = series.index < series.counts[series.patients] - 1
    own = row_features(series, rows)
    columns = dict(own.columns)
    if series.facts.timed:
        columns["days left"] = (cohort.histories.ends[series.patients] - series.days).astype(float)
    table = _with_patient(cohort, series.patients, columns, own.categorical)
    return Examples(table, truth, series.patients)


def _within(cohort: Cohort, event: str, days: int) -> Examples:
    """Ask of each patient at risk whether an event comes, from what is known on day 0.

    Who was followed for fewer days without it is left out.
    """
    follow = outcome(cohort, event)
    truth = follow.happened & (follow.days <= days)
    who = np.flatnonzero(follow.at_risk & (truth | (follow.days >= days)))
    columns: dict[str, Floats] = {}
    categorical: set[str] = set()
    for place, name in enumerate(cohort.facts.events):
        onset = cohort.histories.onsets[who, place]
        columns[f"had {name}"] = ((onset != NEVER) & (onset <= 0)).astype(float)
    for series in cohort.series:
        if not series.facts.timed:
            continue
        past = np.flatnonzero(series.days <= 0)
        counts = np.bincount(series.patients[past], minlength=series.size)
        columns[f"{series.facts.title}: rows before"] = counts[who].astype(float)
        last = np.full(series.size, -1)
        last[series.patients[past]] = past  # of several, the last one stays
        for place, field in enumerate(series.facts.fields):
            values, is_code = values_of(field, series.values[:, place])
            name = f"{series.facts.title}: last {field.title}"
            values = np.append(values, np.nan)  # where there is none
            columns[name] = values[last[who]]
            categorical |= {name} if is_code else set()
    table = _with_patient(cohort, who, columns, frozenset(categorical))
    return Examples(table, truth[who], who)


def _with_patient(
    cohort: Cohort, who: Ints, columns: dict[str, Floats], categorical: frozenset[str]
) -> FeatureTable:
    """Put the baseline beside columns, but for what is known only at the end of follow-up."""
    ending = cohort.facts.ending
    skip = {cohort.facts.end} | (set() if ending is None else {ending[1]})
    own = baseline(cohort, frozenset(skip))
    patient = {f"patient: {name}": values[who] for name, values in own.columns.items()}
    codes = {f"patient: {name}" for name in own.categorical}
    return FeatureTable({**patient, **columns}, frozenset(codes | categorical))


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_CATEGORIES = 255  # that histogram boosting takes as such
YEAR = 365.25


@dataclass(frozen=True, eq=False, repr=False)
class FeatureTable:
    """Columns for a classifier.

    Attributes:
        columns: ``[rows]`` each, by name; NaN where there is nothing.
        categorical: names of those whose numbers are codes without an order.
    """

    columns: dict[str, Floats]
    categorical: frozenset[str]

    @property
    def matrix(self) -> Floats:
        """All columns side by side."""
        return np.column_stack(list(self.columns.values()))

    @property
    def mask(self) -> list[bool]:
        """Which columns are categorical."""
        return [name in self.categorical for name in self.columns]


def values_of(field: Field, codes: npt.NDArray[np.uint16]) -> tuple[Floats, bool]:
    """Return a column as a classifier takes it, and whether it is categorical."""
    if field.ordered:
        return field.numbers[codes], False
    found = codes.astype(float)
    if field.missing >= 0:
        found[codes == field.missing] = np.nan
    return found, field.size <= MAX_CATEGORIES


def baseline(cohort: Cohort, skip: frozenset[int] = frozenset()) -> FeatureTable:
    """Return the columns of patients, but for some places."""
    columns, categorical = {}, set()
    for place, field in enumerate(cohort.facts.baseline):
        if place in skip:
            continue
        columns[field.title], is_code = values_of(field, cohort.histories.baseline[:, place])
        categorical |= {field.title} if is_code else set()
    return FeatureTable(columns, frozenset(categorical))


def summaries(cohort: Cohort) -> FeatureTable:
    """Return what sums up each patient's history ``[patients]``.

    Baseline, days of events; of each series the number of rows, first and last day, gaps; of each
    number in it the mean, spread, first, last, mean change and slope; of each category the first,
    the last, and how often it changes.
    """
    whole = baseline(cohort)
    columns, categorical = dict(whole.columns), set(whole.categorical)
    for place, name in enumerate(cohort.facts.events):
        onset = cohort.histories.onsets[:, place]
        columns[f"day of {name}"] = np.where(onset == NEVER, np.nan, onset.astype(float))
    if cohort.facts.timed and cohort.facts.end < 0:
        columns["end of follow-up"] = cohort.histories.ends.astype(float)
    for series in cohort.series:
        title = series.facts.title
        columns[f"{title}: rows"] = series.counts.astype(float)
        if series.facts.timed:
            columns |= {f"{title}: {name}": x for name, x in _times(series).items()}
        for place, field in enumerate(series.facts.fields):
            stem = title if len(series.facts.fields) == 1 else f"{title}, {field.title}"
            made, codes = _courses(series, place)
            columns |= {f"{stem}: {name}": x for name, x in made.items()}
            categorical |= {f"{stem}: {name}" for name in codes}
    return FeatureTable(columns, frozenset(categorical))


def _times(series: SeriesView) -> dict[str, Floats]:
    """Return first and last day, and mean, spread, shortest and longest gap of each patient."""
    some = series.counts > 0
    first, last = np.full(series.size, np.nan), np.full(series.size, np.nan)
    begin = series.starts[some]
    first[some] = series.days[begin]
    last[some] = series.days[begin + series.counts[some] - 1]
    who, gaps = series.patients[series.later], np.log1p(np.maximum(series.gaps, 0))
    steps = series.counts - 1
    mean = _patient_mean(gaps, who, series.size)
    spread = np.sqrt(np.maximum(_patient_mean(gaps**2, who, series.size) - mean**2, 0))
    shortest, longest = (np.full(series.size, np.nan) for _ in range(2))
    repeated = steps > 0
    if repeated.any():
        starts = np.cumsum(np.where(repeated, steps, 0)) - np.where(repeated, steps, 0)
        shortest[repeated] = np.minimum.reduceat(gaps, starts[repeated])
        longest[repeated] = np.maximum.reduceat(gaps, starts[repeated])
    return {
        "first day": first, "last day": last, "gaps, mean": mean, "gaps, spread": spread,
        "shortest gap": shortest, "longest gap": longest,
    }  # fmt: skip


def _courses(series: SeriesView, place: int) -> tuple[dict[str, Floats], set[str]]:
    """Return summaries of a value, and which of them are categories."""
    field = series.facts.fields[place]
    values, is_code = values_of(field, series.values[:, place])
    some = series.counts > 0
    first, last = np.full(series.size, np.nan), np.full(series.size, np.nan)
    begin = series.starts[some]
    first[some], last[some] = values[begin], values[begin + series.counts[some] - 1]
    after, before = values[series.later], values[series.later - 1]
    who = series.patients[series.later]
    if not field.ordered:
        changed = _patient_mean((after != before).astype(float), who, series.size)
        found = {"first": first, "last": last, "share of changes": changed}
        return found, {"first", "last"} if is_code else set()
    mean = _patient_mean(values, series.patients, series.size)
    away = values - mean[series.patients]
    spread = np.sqrt(_patient_mean(away**2, series.patients, series.size))
    times = series.days / YEAR if series.facts.timed else series.index.astype(float)
    apart = times - _patient_mean(times, series.patients, series.size)[series.patients]
    known = np.isfinite(away)
    slope = np.bincount(
        series.patients[known], weights=(away * apart)[known], minlength=series.size
    ) / (np.bincount(series.patients, weights=apart**2, minlength=series.size) + 0.1)
    return {
        "mean": mean, "spread": np.where(series.counts > 1, spread, np.nan), "first": first,
        "last": last, "mean change": _patient_mean(np.abs(after - before), who, series.size),
        "slope": np.where(series.counts > 1, slope, np.nan),
    }, set()  # fmt: skip


def _patient_mean(values: Floats, who: Ints, size: int) -> Floats:
    """Return each patient's mean of known values; NaN without one."""
    known = np.isfinite(values)
    count = np.bincount(who[known], minlength=size)
    total = np.bincount(who[known], weights=values[known], minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def row_features(series: SeriesView, rows: Ints) -> FeatureTable:
    """Return what some rows say: values, number, day, and the patient's means so far."""
    columns: dict[str, Floats] = {"number of the row": series.index[rows].astype(float)}
    categorical = set()
    if series.facts.timed:
        columns["day"] = series.days[rows].astype(float)
        gaps = np.full(len(series.patients), np.nan)
        gaps[series.later] = series.gaps
        columns["days since the row before"] = gaps[rows]
    for place, field in enumerate(series.facts.fields):
        values, is_code = values_of(field, series.values[:, place])
        name = f"value of {field.title}"
        columns[name] = values[rows]
        categorical |= {name} if is_code else set()
        if field.ordered:
            columns[f"{name}, mean so far"] = _so_far(values, series)[rows]
    return FeatureTable(columns, frozenset(categorical))


def _so_far(values: Floats, series: SeriesView) -> Floats:
    """Return the mean of the patient's known values up to each row, itself among them."""
    known = np.isfinite(values)
    sums, counts = np.cumsum(np.where(known, values, 0.0)), np.cumsum(known)
    start = series.starts[series.patients]
    before = np.where(start > 0, sums[start - 1], 0.0), np.where(start > 0, counts[start - 1], 0)
    count = counts - before[1]
    return np.where(count > 0, (sums - before[0]) / np.maximum(count, 1), np.nan)


MAX_TOLD_PATIENTS = 5_000  # of each side
MIN_TOLD_PATIENTS = 50
MAX_TELLING = 8
TELLING_PATIENTS = 800

TOLD_APART = (
    "How well a classifier tells synthetic from real patients by what sums up their histories, as "
    "the area under its ROC curve on patients whom it was not trained on: 0.5 is chance, 1 is "
    "always. One trait that differs is enough for a high value."
)


def told_apart(compared: Compared, rng: np.random.Generator) -> PartResult:
    """Tell synthetic patients from held-out ones, or from those of train without a holdout.

    Reference: train against the holdout. Chance: two halves of train; a bootstrap would have the
    same patient in several folds.
    """
    real = compared.holdout or compared.train
    train = compared.train
    size = min(MAX_TOLD_PATIENTS, len(real), len(compared.synthetic))
    half = min(size, len(train) // 2)
    if min(size, half) < MIN_TOLD_PATIENTS:
        note = f"trajectory_c2st needs {2 * MIN_TOLD_PATIENTS} patients of each cohort: left out"
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
    measure = Measure("trajectory_c2st", "Telling histories apart", estimate, 0.5, TOLD_APART)
    ranked = sorted(found.importance.items(), key=lambda item: (-item[1], item[0]))
    telling = [
        {"feature": name, "importance": plain(drop)} for name, drop in ranked if drop > 0.001
    ]
    note = f"trajectory_c2st: {size} synthetic patients against as many real ones"
    return PartResult((measure,), {"telling": telling[:MAX_TELLING]}, (note,))


def tell(
    first: Cohort, second: Cohort, rng: np.random.Generator, *, some: bool = False
) -> ClassifierTest:
    """Train on four fifths of both cohorts' patients, score the rest, five times.

    Args:
        first: scored high.
        second: scored low.
        rng: deals patients into folds.
        some: whether to say which features tell, from the first fold.
    """
    tables = [summaries(cohort) for cohort in (first, second)]
    matrix = np.concatenate([table.matrix for table in tables])
    truth = np.repeat([1, 0], [len(first), len(second)])
    fold = np.concatenate([rng.permutation(len(one)) % FOLDS for one in (first, second)])
    units = np.concatenate([np.arange(len(first)), np.arange(len(second))])
    importance: dict[str, float] = {}

    def of_first_fold(model: Any, test: Ints) -> None:
        if not importance:
            few = test if len(test) <= TELLING_PATIENTS else rng.choice(test, TELLING_PATIENTS)
            drops = permutation_drops(model, matrix[few], truth[few], rng)
            importance.update(zip(tables[0].columns, drops.tolist(), strict=True))

    auc, error = cross_validated(
        matrix, tables[0].mask, truth, units, fold, of_first_fold if some else None
    )
    return ClassifierTest(auc, error, importance)


def _sample(cohort: Cohort, size: int, rng: np.random.Generator) -> Cohort:
    if size == len(cohort):
        return cohort
    return cohort.take(np.sort(rng.choice(len(cohort), size, replace=False)))
