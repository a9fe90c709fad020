"""Mean values of rows by declared group of patients: the first table that an analyst makes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import JackknifeEstimate, Measure, PartResult
from dpsynth.eval.longitudinal.cohort import Cohort, SeriesView
from dpsynth.eval.longitudinal.compared import Compared, Floats, ratio

Bools = npt.NDArray[np.bool_]

MIN_PATIENTS = 50  # of train with a row, in a level
MAX_FIELDS = 8  # of a series

MEANS = (
    "Mean absolute difference of the mean value of rows within each declared group of patients, in "
    "standard deviations of the value: 0.1 is small, 0.5 is large. Each patient weighs one. It "
    "shows whether groups of patients still differ as they do."
)


def group_means(compared: Compared) -> PartResult:
    """Measure means by group; of categories, shares of the last one."""
    figures: list[JackknifeEstimate] = []
    measures: list[Measure] = []
    spoken: list[dict[str, Any]] = []
    for group in compared.facts.groups:
        own: list[JackknifeEstimate] = []
        for number, series in enumerate(compared.facts.series):
            for place, field in enumerate(series.fields[:MAX_FIELDS]):
                spread = _spread(compared.train.series[number], place)
                for level, name in enumerate(group.names):

                    def mean(
                        one: Cohort, n: int = number, p: int = place, v: int = level
                    ) -> Floats:
                        member = group.of_code[one.codes(group.place)] == v  # noqa: B023
                        return _mean(one, one.series[n], p, member)

                    view = compared.train.series[number]
                    codes = compared.train.codes(group.place)
                    member = (group.of_code[codes] == level) & (view.counts > 0)
                    if not spread or member.sum() < MIN_PATIENTS:
                        continue
                    own.append(_apart(compared, mean, spread))
                    whole = series.title if len(series.fields) == 1 else field.title
                    what = whole if field.ordered else f"{whole}: {field.labels[-1]}"
                    unit = field.unit if field.ordered else "share"
                    title = f"{group.title} = {name}: {what}"
                    spoken.append(compared.spoken(title, unit, mean) | {"apart": own[-1].value})
        figures += own
        measures += compared.measure(
            f"row_means_by_group:{group.title}", f"Mean values by {group.title}", own, MEANS
        )
    leading = compared.measure("row_means_by_group", "Mean values by group", figures, MEANS)
    return PartResult((*leading, *measures), {"means": spoken} if spoken else {})


def _values(series: SeriesView, place: int) -> Floats:
    """Return numbers, NaN where missing; of a category, whether it is the last one."""
    field = series.facts.fields[place]
    if field.ordered:
        return series.numbers(place)
    codes = series.values[:, place]
    return np.where(codes == field.missing, np.nan, codes == len(field.labels) - 1)


def _mean(cohort: Cohort, series: SeriesView, place: int, member: Bools) -> Floats:
    values = _values(series, place)
    rows = np.isfinite(values) & member[series.patients]
    who, weights = series.patients[rows], series.weights[rows]
    return ratio(cohort.sums(weights * values[rows], who), cohort.sums(weights, who))


def _spread(series: SeriesView, place: int) -> float:
    values = _values(series, place)
    known = values[np.isfinite(values)]
    return float(known.std()) if len(known) else 0.0


def _apart(compared: Compared, mean: Any, spread: float) -> JackknifeEstimate:
    """Return a difference in standard deviations; 1 where no synthetic patient is in the level."""

    def distance(a: Floats, b: Floats) -> Floats:
        return np.abs(a - b).reshape(-1) / spread

    found = JackknifeEstimate.of(distance, compared.each(mean))
    if found is not None:
        return found
    sides = (compared.train.groups, compared.synthetic.groups)
    first, second = (np.ones(groups) for groups in sides)
    return JackknifeEstimate(1.0, None, None, (first, second))
