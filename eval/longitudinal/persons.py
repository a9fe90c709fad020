"""Who the patients are: the baseline, alone and in pairs, and how it belongs to the rows."""

from __future__ import annotations

from functools import partial
from itertools import combinations

import numpy as np

from dpsynth.encoding import NEVER
from dpsynth.eval.core import JackknifeEstimate, PartResult
from dpsynth.eval.longitudinal.cohort import Cohort
from dpsynth.eval.longitudinal.compared import Compared, Floats, Ints
from dpsynth.eval.longitudinal.facts import COUNT_EDGES, HistoryFacts, count_bins

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
