"""Who the patients are: the baseline, alone and in pairs, and how it belongs to the rows.

Mean values of rows by declared group of patients, and how groups differ from each other.

The first table that an analyst makes has means by group; the first question is whether groups
differ. A mean that is off alike in all groups leaves their differences as they are, and means that
are nearly right may hide that a difference is gone. So differences are measured on their own: of
the mean value of rows, and of the rate of events, between the patients of a level and all others of
the group. Those count that are clear in train: beyond three standard errors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER
from dpsynth.eval.core import JackknifeEstimate, Measure, PartResult, jackknife_error
from dpsynth.eval.longitudinal.cohort import (
    COUNT_EDGES,
    Cohort,
    Compared,
    Floats,
    HistoryFacts,
    Ints,
    PatientGroup,
    SeriesView,
    Statistic,
    count_bins,
    ratio,
)
from dpsynth.eval.longitudinal.survival import outcome, outcome_names

MAX_PAIRS = 400
DAY_BINS = 8  # of an event, before day 0 and after it

ALONE = "Total variation distance of each column of the table of patients, on average."
PAIRS = (
    "Mean total variation distance of two facts about a patient together: columns of the table of "
    "patients, and the day of each event."
)
LINKS = (
    "Mean total variation distance of a fact about the patient and a value in her rows together: "
    "columns of the table of patients, and her number of rows. Comparisons of groups of patients "
    "by their later values depend on it."
)
EVENTS = (
    "Mean total variation distance of a value and whether the patient had had an event by that day."
)


def persons(compared: Compared, rng: np.random.Generator) -> PartResult:
    """Measure the baseline, and how it belongs to rows."""
    facts = compared.facts
    notes: list[str] = []
    columns = range(len(facts.baseline))
    alone = [compared.distance(partial(_column, place=place)) for place in columns]
    every = list(combinations(range(len(facts.baseline) + len(facts.events)), 2))
    if len(every) > MAX_PAIRS:
        drawn = rng.choice(len(every), MAX_PAIRS, replace=False)
        every = [every[place] for place in np.sort(drawn)]
        notes.append(f"patients: {MAX_PAIRS} of the pairs of columns and events, drawn at random")
    pairs = [compared.distance(partial(_pair, first=a, second=b)) for a, b in every]
    links: list[JackknifeEstimate] = []
    events: list[JackknifeEstimate] = []
    by_column: dict[int, list[JackknifeEstimate]] = {}
    for number, series in enumerate(facts.series):
        if not len(compared.train.series[number].patients):
            continue
        places = [(c, p) for c in range(len(columns) + 1) for p in range(len(series.fields))]
        if len(places) > MAX_PAIRS:
            drawn = rng.choice(len(places), MAX_PAIRS, replace=False)
            places = [places[place] for place in np.sort(drawn)]
            notes.append(f"{series.name}: {MAX_PAIRS} of its pairs with columns of patients")
        for c, p in places:
            links.append(compared.distance(partial(_link, number=number, column=c, place=p)))
            by_column.setdefault(c, []).append(links[-1])
        if series.timed:
            events += [
                compared.distance(partial(_had, number=number, event=event))
                for event in range(len(facts.events))
            ]
    titles = [
        ("baseline1", "Columns of patients", alone, ALONE),
        ("baseline2", "Pairs of facts about a patient", pairs, PAIRS),
        ("baseline_rows", "Patient and values of her rows together", links, LINKS),
        ("event_rows", "Events and values of rows together", events, EVENTS),
    ]
    measures = [one for part in titles for one in compared.measure(*part)]
    for place, figure in enumerate(alone):
        field = facts.baseline[place]
        measures += compared.measure(f"baseline1:{field.name}", field.title, [figure], ALONE)
    for place, figures in sorted(by_column.items()):
        known = place < len(facts.baseline)
        name = facts.baseline[place].name if known else "rows"
        title = facts.baseline[place].title if known else "Number of rows"
        key, title = f"baseline_rows:{name}", f"{title}, with values of rows"
        measures += compared.measure(key, title, figures, LINKS)
    return PartResult(tuple(measures), {}, tuple(notes))


def _column(cohort: Cohort, place: int) -> Floats:
    bins = cohort.facts.baseline[place].bins
    return cohort.shares(bins[cohort.codes(place)], int(bins.max()) + 1)


def _pair(cohort: Cohort, first: int, second: int) -> Floats:
    a, width = fact_bins(cohort, first)
    b, other = fact_bins(cohort, second)
    return cohort.shares(a * other + b, width * other)


def fact_bins(cohort: Cohort, place: int) -> tuple[Ints, int]:
    """Return the bins of a column of patients, or of the day of an event after those."""
    facts: HistoryFacts = cohort.facts
    if place < len(facts.baseline):
        bins = facts.baseline[place].pair_bins
        return bins[cohort.codes(place)], int(bins.max()) + 1
    days = cohort.histories.onsets[:, place - len(facts.baseline)]
    never = days == NEVER
    bins = facts.day_bins(np.where(never, 0, days), DAY_BINS)
    return np.where(never, 2 * DAY_BINS + 1, bins), 2 * DAY_BINS + 2


def _link(cohort: Cohort, number: int, column: int, place: int) -> Floats:
    """Return the shares of a fact with a value; the fact after the last column is the number."""
    series = cohort.series[number]
    if column == len(cohort.facts.baseline):
        own, width = count_bins(series.counts), len(COUNT_EDGES)
    else:
        own, width = fact_bins(cohort, column)
    bins = series.facts.fields[place].pair_bins
    cells = int(bins.max()) + 1
    keys = own[series.patients] * cells + bins[series.values[:, place]]
    return cohort.shares(keys, width * cells, series.patients, series.weights)


def _had(cohort: Cohort, number: int, event: int) -> Floats:
    series = cohort.series[number]
    onset = cohort.histories.onsets[:, event][series.patients]
    had = (onset != NEVER) & (onset <= series.days)
    bins = series.facts.fields[0].pair_bins
    cells = int(bins.max()) + 1
    keys = had * cells + bins[series.values[:, 0]]
    return cohort.shares(keys, 2 * cells, series.patients, series.weights)


Bools = npt.NDArray[np.bool_]

MIN_PATIENTS = 50  # of train with a row, in a level
MAX_FIELDS = 8  # of a series

MEANS = (
    "Mean absolute difference of the mean value of rows within each declared group of patients, in "
    "standard deviations of the value: 0.1 is small, 0.5 is large. Each patient weighs one. It "
    "shows whether groups of patients still differ as they do."
)

DIFFERENCES = (
    "Differences between declared groups of patients that are wrong, as a share of all that are "
    "clear in train: 0 is that each has its size and sign, 1 that groups do not differ at all, and "
    "more that they differ the other way round."
)
CLEAR = 3.0  # standard errors in train, from which on a difference counts
SIGNIFICANT = 3.0  # standard errors, from which on two differences are not the same
MIN_EVENTS = 10  # of train, on both sides
NAMED = 60  # differences in the document


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
    differences, entries = _differences(compared)
    details = {"means": spoken, "differences": entries[:NAMED]} if spoken or entries else {}
    return PartResult((*leading, *measures, *differences), details)


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


def _mean(cohort: Cohort, value: _Value, group: PatientGroup, level: int) -> Floats:
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


@dataclass(frozen=True, eq=False, repr=False)
class _Contrast:
    """What may differ between the patients of a level and all others of a group.

    Attributes:
        title: for people.
        group: whose levels are told apart.
        level: the one that is held against the others.
        statistic: the difference ``[variants]``; 0 where it cannot be computed.
        is_rate: whether it is of the logarithm of a rate of events, and not of a value.
        seen: whether enough patients, or events, are on both sides.
    """

    title: str
    group: PatientGroup
    level: int
    statistic: Statistic
    is_rate: bool
    seen: bool


def _differences(compared: Compared) -> tuple[list[Measure], list[dict[str, Any]]]:
    """Measure the differences between groups that are clear in train, and say each of them."""
    measures: list[Measure] = []
    entries: list[dict[str, Any]] = []
    for is_rate, key, title in (
        (False, "group_differences", "Differences of values between groups"),
        (True, "group_rate_differences", "Differences of event rates between groups"),
    ):
        clear: list[_Contrast] = []
        for one in _contrasts(compared):
            if one.is_rate == is_rate and one.seen:
                own = one.statistic(compared.train)
                if abs(own[0]) > CLEAR * jackknife_error(own[1:]):
                    clear.append(one)
                    entries.append(_said(compared, one))
        groups = dict.fromkeys(one.group.title for one in clear)
        parts = {name: [one for one in clear if one.group.title == name] for name in groups}
        if clear:
            measures += compared.measure(key, title, [_wrong(compared, clear)], DIFFERENCES)
        for name, ones in parts.items():
            words = f"{title}: {name}"
            figure = [_wrong(compared, ones)]
            measures += compared.measure(f"{key}:{name}", words, figure, DIFFERENCES)
    return measures, sorted(entries, key=lambda entry: -entry["apart"])


def _wrong(compared: Compared, contrasts: list[_Contrast]) -> JackknifeEstimate:
    """Return by how much differences are wrong together, as a share of their size in train."""

    def all_of(cohort: Cohort) -> Floats:
        return np.column_stack([one.statistic(cohort) for one in contrasts])

    variants = compared.each(all_of)
    size = np.abs(variants.source[0]).sum()
    found = JackknifeEstimate.of(lambda a, b: np.abs(a - b).sum(axis=1) / size, variants)
    assert found is not None  # differences are finite
    return found


def _said(compared: Compared, one: _Contrast) -> dict[str, Any]:
    """Return a difference of each cohort, with a word on sign and size beyond chance."""
    said = compared.spoken(one.title, "log" if one.is_rate else "SD", one.statistic)
    real, drawn = (one.statistic(side) for side in (compared.train, compared.synthetic))
    error = np.hypot(jackknife_error(real[1:]), jackknife_error(drawn[1:]))
    apart = float(abs(drawn[0] - real[0]))
    kept = float(drawn[0] / real[0])
    if apart <= SIGNIFICANT * error:
        verdict = "kept" if abs(kept - 1) <= 0.5 else "uncertain"
    elif abs(drawn[0]) <= SIGNIFICANT * jackknife_error(drawn[1:]):
        verdict = "lost"
    elif kept < 0:
        verdict = "turned round"
    else:
        verdict = "kept" if abs(kept - 1) <= 0.25 else "too small" if kept < 1 else "too large"
    return said | {"kept": round(kept, 3), "verdict": verdict, "apart": round(apart, 5)}


def _contrasts(compared: Compared) -> Iterator[_Contrast]:
    """Yield every difference; of two levels that of the first one alone, as they mirror."""
    facts, train = compared.facts, compared.train
    for group in facts.groups:
        member = group.of_code[train.codes(group.place)]
        sizes = np.bincount(member[member >= 0], minlength=len(group.names))
        levels = np.flatnonzero(sizes >= MIN_PATIENTS).tolist()
        for level in levels[:1] if len(levels) == 2 else levels:
            here, there = member == level, (member >= 0) & (member != level)
            whom = f"{group.title}, {group.names[level]} and others"
            for value in _measured(compared):
                seen = min((value.seen & here).sum(), (value.seen & there).sum()) >= MIN_PATIENTS
                apart = partial(_value_apart, value=value, group=group, level=level)
                yield _Contrast(f"{value.title}: {whom}", group, level, apart, False, bool(seen))
            for event in outcome_names(facts) if facts.timed else ():
                follow = outcome(train, event)
                came = follow.happened & follow.at_risk
                seen = min((came & here).sum(), (came & there).sum()) >= MIN_EVENTS
                apart = partial(_rate_apart, event=event, group=group, level=level)
                yield _Contrast(f"rate of {event}: {whom}", group, level, apart, True, bool(seen))


def _value_apart(cohort: Cohort, value: _Value, group: PatientGroup, level: int) -> Floats:
    """Return how far the mean of a level lies from that of all others, in standard deviations."""
    series = cohort.series[value.number]
    side = _side(cohort, group, level)
    numbers = value.of(series)
    rows = np.isfinite(numbers) & (side[series.patients] >= 0)
    who, weights = series.patients[rows], series.weights[rows]
    above = cohort.sums(weights * numbers[rows], who, side[who], 2)
    means = ratio(above, cohort.sums(weights, who, side[who], 2))
    return np.asarray(np.nan_to_num((means[:, 1] - means[:, 0]) / value.spread))


def _rate_apart(cohort: Cohort, event: str, group: PatientGroup, level: int) -> Floats:
    """Return the logarithm of the ratio of two rates, by half an event more on both sides."""
    follow = outcome(cohort, event)
    side = _side(cohort, group, level)
    who = np.flatnonzero(follow.at_risk & (side >= 0))
    came = cohort.sums(follow.happened[who], who, side[who], 2)
    days = cohort.sums(np.maximum(follow.days[who], 0).astype(float), who, side[who], 2)
    rates = np.log(ratio(np.maximum(came, 0) + 0.5, days))
    return np.asarray(np.nan_to_num(rates[:, 1] - rates[:, 0]))


def _side(cohort: Cohort, group: PatientGroup, level: int) -> Ints:
    """Return 1 for patients of a level, 0 for those of the others, -1 for those of none."""
    member = group.of_code[cohort.codes(group.place)]
    return np.where(member < 0, -1, member == level).astype(np.int64)
