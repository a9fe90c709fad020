"""The values of rows: each column alone, and pairs of columns within a row, each patient once."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from dpsynth.eval.core import Measure, PartResult
from dpsynth.eval.longitudinal.cohort import Cohort, pair_keys
from dpsynth.eval.longitudinal.compared import Compared, Floats, ratio
from dpsynth.eval.longitudinal.facts import Field

MAX_PAIRS = 250  # of a series; of more, so many are drawn
DAY_BINS = 8  # before day 0 and after it, beside a value

VALUES = (
    "Total variation distance of the values of a column over rows, in bins of the declared range. "
    "Each patient weighs one, however many rows she has."
)
PAIRS = (
    "Mean total variation distance of two columns of the same row together, the day among them: "
    "how values of one visit belong together, and how they depend on time."
)


def row_values(compared: Compared, rng: np.random.Generator) -> PartResult:
    """Measure single columns and pairs of columns of rows."""
    alone, pairs = [], []
    measures: list[Measure] = []
    spoken: list[dict[str, Any]] = []
    notes: list[str] = []
    for number, series in enumerate(compared.facts.series):
        if not len(compared.train.series[number].patients):
            notes.append(f"{series.name} has no rows in train: only their number is compared")
            continue
        for place, field in enumerate(series.fields):
            figure = compared.distance(partial(_alone, number=number, place=place))
            alone.append(figure)
            name = series.name if len(series.fields) == 1 else f"{series.name} {field.name}"
            title = series.title if len(series.fields) == 1 else f"{series.title}, {field.title}"
            measures += compared.measure(f"row_values:{name}", title, [figure], VALUES)
            spoken.append(_spoken(compared, number, place, title))
        count = len(series.fields) + series.timed
        every = list(combinations(range(count), 2))
        if len(every) > MAX_PAIRS:
            drawn = rng.choice(len(every), MAX_PAIRS, replace=False)
            every = [every[place] for place in np.sort(drawn)]
            notes.append(f"{series.name}: {MAX_PAIRS} of its pairs of columns, drawn at random")
        pairs += [
            compared.distance(partial(_pair, number=number, first=a, second=b)) for a, b in every
        ]
    leading = [
        *compared.measure("row_values", "Values of rows", alone, VALUES),
        *compared.measure("row_pairs", "Pairs of values in a row", pairs, PAIRS),
    ]
    return PartResult((*leading, *measures), {"means": spoken}, tuple(notes))


def _alone(cohort: Cohort, number: int, place: int) -> Floats:
    series = cohort.series[number]
    field = series.facts.fields[place]
    keys = field.bins[series.values[:, place]]
    return cohort.shares(keys, int(field.bins.max()) + 1, series.patients, series.weights)


def _pair(cohort: Cohort, number: int, first: int, second: int) -> Floats:
    """Return the shares of two columns; the place after the last column is the day."""
    series = cohort.series[number]
    fields = series.facts.fields
    a = series.values[:, first].astype(np.int64)
    if second == len(fields):
        cells = 2 * DAY_BINS + 1
        bins = fields[first].pair_bins
        keys = bins[a] * cells + cohort.facts.day_bins(series.days, DAY_BINS)
        cells *= int(bins.max()) + 1
    else:
        b = series.values[:, second].astype(np.int64)
        keys, cells = pair_keys(a, fields[first], b, fields[second])
    return cohort.shares(keys, cells, series.patients, series.weights)


def _spoken(compared: Compared, number: int, place: int, title: str) -> dict[str, Any]:
    """Return the mean of a number, or the share of the category that is commonest in train."""
    field: Field = compared.facts.series[number].fields[place]
    common = 0 if field.ordered else compared.train.series[number].common(place)

    def mean(one: Cohort) -> Floats:
        series = one.series[number]
        values = series.numbers(place)
        rows = np.isfinite(values)
        who, weights = series.patients[rows], series.weights[rows]
        return ratio(one.sums(weights * values[rows], who), one.sums(weights, who))

    def share(one: Cohort) -> Floats:
        series = one.series[number]
        hit = series.values[:, place] == common
        who, weights = series.patients, series.weights
        return ratio(one.sums(weights * hit, who), one.sums(weights, who))

    if field.ordered:
        return compared.spoken(f"{title}, mean", field.unit, mean)
    return compared.spoken(f"{title}: {field.labels[common]}", "share", share)
