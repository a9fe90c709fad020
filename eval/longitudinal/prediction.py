"""Train on synthetic histories, test on real ones: the next row, and outcomes of patients.

Esteban, Hyland and Raetsch, Real-valued (Medical) Time Series Generation with Recurrent Conditional
GANs, 2017, section 4. The test patients are the same for every model; standard errors are by a
bootstrap of test patients, which all models and tasks share, so that differences are paired.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER
from dpsynth.eval.core import Estimate, Measure, PartResult, about
from dpsynth.eval.core.scores import auc, ranks
from dpsynth.eval.longitudinal.cohort import Cohort, Compared, SeriesView
from dpsynth.eval.longitudinal.facts import Field
from dpsynth.eval.longitudinal.features import (
    Floats,
    Ints,
    Table,
    baseline,
    row_features,
    values_of,
)
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

    table: Table
    truth: Bools
    patients: Ints


@dataclass(frozen=True, eq=False)
class Task:
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


def tasks(train: Cohort) -> list[Task]:
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
        found.append(Task(f"{name} another", title, True, partial(_more, number=number)))
        if not train.facts.events and not train.facts.ending:
            found += _last_value(series, number, order[0])
    if train.facts.timed:
        days = max(1, train.facts.last // HORIZON)
        for event in outcome_names(train.facts):
            title = f"{event} within {days:,} days"
            found.append(Task(event, title, False, partial(_within, event=event, days=days)))
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


def _next_value(series: SeriesView, number: int, place: int) -> list[Task]:
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
    return [Task(f"{series.facts.name} {field.name}", title, True, examples)]


def _last_value(series: SeriesView, number: int, place: int) -> list[Task]:
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
    return [Task(f"{series.facts.name} last {field.name}", title, False, examples)]


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
) -> Table:
    """Put the baseline beside columns, but for what is known only at the end of follow-up."""
    ending = cohort.facts.ending
    skip = {cohort.facts.end} | (set() if ending is None else {ending[1]})
    own = baseline(cohort, frozenset(skip))
    patient = {f"patient: {name}": values[who] for name, values in own.columns.items()}
    codes = {f"patient: {name}" for name in own.categorical}
    return Table({**patient, **columns}, frozenset(codes | categorical))
