"""What a researcher would predict from histories: the next row, and how a patient fares."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER
from dpsynth.eval.longitudinal.cohort import Cohort, SeriesView
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
