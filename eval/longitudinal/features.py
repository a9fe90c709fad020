"""Histories as matrices for classifiers: a line for each patient, or for each row."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER
from dpsynth.eval.longitudinal.cohort import Cohort, SeriesView
from dpsynth.eval.longitudinal.facts import Field

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_CATEGORIES = 255  # that histogram boosting takes as such
YEAR = 365.25


@dataclass(frozen=True, eq=False, repr=False)
class Table:
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


def baseline(cohort: Cohort, skip: frozenset[int] = frozenset()) -> Table:
    """Return the columns of patients, but for some places."""
    columns, categorical = {}, set()
    for place, field in enumerate(cohort.facts.baseline):
        if place in skip:
            continue
        columns[field.title], is_code = values_of(field, cohort.histories.baseline[:, place])
        categorical |= {field.title} if is_code else set()
    return Table(columns, frozenset(categorical))


def summaries(cohort: Cohort) -> Table:
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
    return Table(columns, frozenset(categorical))


def _times(series: SeriesView) -> dict[str, Floats]:
    """Return first and last day, and mean, spread, shortest and longest gap of each patient."""
    some = series.counts > 0
    first, last = np.full(series.size, np.nan), np.full(series.size, np.nan)
    begin = series.starts[some]
    first[some] = series.days[begin]
    last[some] = series.days[begin + series.counts[some] - 1]
    who, gaps = series.patients[series.later], np.log1p(np.maximum(series.gaps, 0))
    steps = series.counts - 1
    mean = _mean(gaps, who, series.size)
    spread = np.sqrt(np.maximum(_mean(gaps**2, who, series.size) - mean**2, 0))
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
        changed = _mean((after != before).astype(float), who, series.size)
        found = {"first": first, "last": last, "share of changes": changed}
        return found, {"first", "last"} if is_code else set()
    mean = _mean(values, series.patients, series.size)
    away = values - mean[series.patients]
    spread = np.sqrt(_mean(away**2, series.patients, series.size))
    times = series.days / YEAR if series.facts.timed else series.index.astype(float)
    apart = times - _mean(times, series.patients, series.size)[series.patients]
    known = np.isfinite(away)
    slope = np.bincount(
        series.patients[known], weights=(away * apart)[known], minlength=series.size
    ) / (np.bincount(series.patients, weights=apart**2, minlength=series.size) + 0.1)
    return {
        "mean": mean, "spread": np.where(series.counts > 1, spread, np.nan), "first": first,
        "last": last, "mean change": _mean(np.abs(after - before), who, series.size),
        "slope": np.where(series.counts > 1, slope, np.nan),
    }, set()  # fmt: skip


def _mean(values: Floats, who: Ints, size: int) -> Floats:
    """Return each patient's mean of known values; NaN without one."""
    known = np.isfinite(values)
    count = np.bincount(who[known], minlength=size)
    total = np.bincount(who[known], weights=values[known], minlength=size)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def row_features(series: SeriesView, rows: Ints) -> Table:
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
    return Table(columns, frozenset(categorical))


def _so_far(values: Floats, series: SeriesView) -> Floats:
    """Return the mean of the patient's known values up to each row, itself among them."""
    known = np.isfinite(values)
    sums, counts = np.cumsum(np.where(known, values, 0.0)), np.cumsum(known)
    start = series.starts[series.patients]
    before = np.where(start > 0, sums[start - 1], 0.0), np.where(start > 0, counts[start - 1], 0)
    count = counts - before[1]
    return np.where(count > 0, (sums - before[0]) / np.maximum(count, 1), np.nan)
