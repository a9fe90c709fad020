"""Mean values of rows by declared group of patients: the first table that an analyst makes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import JackknifeEstimate, Measure, PartResult
from dpsynth.eval.longitudinal.cohort import Cohort, SeriesView
from dpsynth.eval.longitudinal.compared import Compared, Floats, Statistic, ratio
from dpsynth.eval.longitudinal.facts import Group

Bools = npt.NDArray[np.bool_]

MIN_PATIENTS = 50  # of train with a row, in a level
MAX_FIELDS = 8  # of a series

MEANS = (
    "Mean absolute difference of the mean value of rows within each declared group of patients, in "
    "standard deviations of the value: 0.1 is small, 0.5 is large. Each patient weighs one. It "
    "shows whether groups of patients still differ as they do."
)


def group_means(compared: Compared) -> PartResult:
    """Measure means by group; of categories, shares of the one that is commonest in train."""
    figures: list[JackknifeEstimate] = []
    measures: list[Measure] = []
    spoken: list[dict[str, Any]] = []
    for group in compared.facts.groups:
        own: list[JackknifeEstimate] = []
        for value in _measured(compared):
            member = group.of_code[compared.train.codes(group.place)]
            for level, name in enumerate(group.names):
                if (value.seen & (member == level)).sum() < MIN_PATIENTS:
                    continue
                mean = partial(_mean, value=value, group=group, level=level)
                own.append(_apart(compared, mean, value.spread))
                title = f"{group.title} = {name}: {value.title}"
                said = compared.spoken(title, value.unit, mean)
                spoken.append(said | {"apart": own[-1].value})
        figures += own
        measures += compared.measure(
            f"row_means_by_group:{group.title}", f"Mean values by {group.title}", own, MEANS
        )
    leading = compared.measure("row_means_by_group", "Mean values by group", figures, MEANS)
    return PartResult((*leading, *measures), {"means": spoken} if spoken else {})


@dataclass(frozen=True, eq=False, repr=False)
class _Value:
    """A value of rows whose means are compared.

    Attributes:
        number, place: of the series, and of the column in it.
        common: the category that counts, where it has categories.
        title, unit: for people.
        spread: its standard deviation over rows of train.
        seen: which patients of train have one.
    """

    number: int
    place: int
    common: int
    title: str
    unit: str
    spread: float
    seen: Bools

    def of(self, series: SeriesView) -> Floats:
        """Return numbers, NaN where missing; of a category, whether it is the one that counts."""
        field = series.facts.fields[self.place]
        if field.ordered:
            return series.numbers(self.place)
        codes = series.values[:, self.place]
        return np.where(codes == field.missing, np.nan, codes == self.common)


def _measured(compared: Compared) -> Iterator[_Value]:
    """Yield the values that vary in train."""
    for number, view in enumerate(compared.train.series):
        fields = view.facts.fields
        for place, field in enumerate(fields[:MAX_FIELDS]):
            common = 0 if field.ordered else view.common(place)
            title = view.facts.title if len(fields) == 1 else field.title
            title = title if field.ordered else f"{title}: {field.labels[common]}"
            unit = field.unit if field.ordered else "share"
            value = _Value(number, place, common, title, unit, 0.0, view.counts > 0)
            numbers = value.of(view)
            known = np.isfinite(numbers)
            if known.any() and (spread := float(numbers[known].std())):
                seen = np.bincount(view.patients[known], minlength=view.size) > 0
                yield replace(value, spread=spread, seen=seen)


def _mean(cohort: Cohort, value: _Value, group: Group, level: int) -> Floats:
    """Return the mean of a value in a level of a group ``[variants]``; each patient weighs one."""
    series = cohort.series[value.number]
    member = group.of_code[cohort.codes(group.place)] == level
    numbers = value.of(series)
    rows = np.isfinite(numbers) & member[series.patients]
    who, weights = series.patients[rows], series.weights[rows]
    return ratio(cohort.sums(weights * numbers[rows], who), cohort.sums(weights, who))


def _apart(compared: Compared, mean: Statistic, spread: float) -> JackknifeEstimate:
    """Return a difference in standard deviations; 1 where no synthetic patient is in the level."""

    def distance(a: Floats, b: Floats) -> Floats:
        return np.abs(a - b).reshape(-1) / spread

    found = JackknifeEstimate.of(distance, compared.each(mean))
    if found is not None:
        return found
    sides = (compared.train.groups, compared.synthetic.groups)
    first, second = (np.ones(groups) for groups in sides)
    return JackknifeEstimate(1.0, None, None, (first, second))
