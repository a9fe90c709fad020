"""What pages show of synthetic histories alone: sample patients, courses, counts, gaps and curves.

Nothing here reads a real row: which patients, series and bins are shown follows from the schema,
the synthetic histories and the seed, so that it may be shown to anybody.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from dpsynth.encoding import NEVER, Histories, HistoryCodec
from dpsynth.eval.longitudinal.cohort import (
    COUNT_EDGES,
    GAP_EDGES,
    Cohort,
    Floats,
    HistoryFacts,
    Ints,
    SeriesFacts,
    checked,
    count_bins,
    gap_bins,
)
from dpsynth.eval.longitudinal.survival import outcome_names, survival_by_day

PATIENTS = 12  # whose follow-up is drawn line by line
LINES = 30  # patients in a picture of courses
COURSES = 6  # pictures of courses
POINTS = 61
BANDS = 14  # of time, in which courses of many patients are summed up
MIN_PATIENTS = 30  # in a band
QUANTILES = (0.1, 0.5, 0.9)


def synthetic_pictures(codec: HistoryCodec, synthetic: Histories, seed: int = 0) -> dict[str, Any]:
    """Return what may be shown of synthetic histories to anybody, in JSON types.

    Args:
        codec: of their schema.
        synthetic: drawn from a run; no real histories take part.
        seed: chooses the patients who are shown.

    Raises:
        InputError: the histories do not fit the schema.
    """
    facts = HistoryFacts.of(codec)
    cohort = Cohort.of(facts, checked(synthetic, facts, "synthetic"))
    rng = np.random.default_rng(seed)
    return {
        "schema": {"name": facts.name, "title": facts.title, "sha256": facts.sha256},
        "patients": len(cohort),
        "seed": seed,
        "timed": facts.timed,
        "first": facts.first,
        "last": facts.last,
        "samples": _samples(cohort, rng),
        "courses": _courses(cohort, rng),
        "values": len(ordered_values(facts.series)),
        "counts": _counts(cohort),
        "curves": _curves(cohort),
    }


def _samples(cohort: Cohort, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return a few patients: who they are, when they have rows, and what happened to them."""
    facts = cohort.facts
    size = min(PATIENTS, len(cohort))
    found = []
    for who in np.sort(rng.choice(len(cohort), size, replace=False)).tolist():
        rows = []
        for series in cohort.series:
            at = slice(series.starts[who], series.starts[who] + series.counts[who])
            places = series.days[at] if series.facts.timed else 1 + series.index[at]
            table = facts.tables[series.facts.place[0]]
            rows.append(
                {"series": series.facts.name, "table": table, "title": series.facts.title,
                 "at": places.tolist()}
            )  # fmt: skip
        onsets = cohort.histories.onsets[who]
        events = [
            {"event": name, "day": int(day)}
            for name, day in zip(facts.events, onsets, strict=True)
            if day != NEVER
        ]
        ended = facts.ending is not None and cohort.codes(facts.ending[1])[who] == facts.ending[2]
        end = int(cohort.histories.ends[who])
        if ended and facts.ending is not None:
            events.append({"event": facts.ending[0], "day": end})
        found.append(
            {"label": _label(cohort, who), "end": end if facts.timed else None, "rows": rows,
             "events": events}
        )  # fmt: skip
    return found


def _label(cohort: Cohort, who: int) -> str:
    """Say who a synthetic patient is, by the declared groups."""
    words = []
    for group in cohort.facts.groups[:3]:
        field = cohort.facts.baseline[group.place]
        code = int(cohort.codes(group.place)[who])
        if field.ordered and np.isfinite(field.numbers[code]):
            words.append(f"{field.numbers[code]:g} {field.unit}".strip())
        elif not field.ordered and code < len(field.labels):
            label = field.labels[code]
            answer = {"true": "yes", "false": "no"}.get(label, label)
            told = label == answer and not label.isdigit()  # its label tells what it is about
            words.append(label if told else f"{field.name}: {answer}")
    return ", ".join(words) or f"patient {who + 1}"


def shown_courses(series: tuple[SeriesFacts, ...]) -> list[tuple[int, int]]:
    """Return which numbers have a picture of courses: series and place, by the schema alone.

    The first number of each table comes first, then the second.
    """
    every = ordered_values(series)
    seen = Counter[int]()
    turns = []
    for number, place in every:
        table = series[number].place[0]
        turns.append((seen[table], number, place))
        seen[table] += 1
    return sorted((number, place) for _, number, place in sorted(turns)[:COURSES])


def ordered_values(series: tuple[SeriesFacts, ...]) -> list[tuple[int, int]]:
    """Return all values that are numbers: series and place."""
    return [
        (number, place)
        for number, one in enumerate(series)
        for place, field in enumerate(one.fields)
        if field.ordered
    ]


def _courses(cohort: Cohort, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Return the values of a few patients with at least two rows, as lines over time."""
    found = []
    for number, place in shown_courses(cohort.facts.series):
        series = cohort.series[number]
        repeated = np.flatnonzero(series.counts > 1)
        who = rng.choice(repeated, min(LINES, len(repeated)), replace=False)
        values = series.numbers(place)
        places = series.days if series.facts.timed else series.index + 1
        lines = []
        for patient in np.sort(who).tolist():
            at = slice(series.starts[patient], series.starts[patient] + series.counts[patient])
            numbers = [round(float(v), 4) if np.isfinite(v) else None for v in values[at]]
            lines.append({"x": places[at].tolist(), "y": numbers})
        field, facts = series.facts.fields[place], series.facts
        title = facts.title if len(facts.fields) == 1 else f"{facts.title}, {field.title}"
        found.append(
            {"series": facts.name, "column": field.name, "title": title, "unit": field.unit,
             "timed": facts.timed, "lines": lines, "band": band(cohort, number, place)}
        )  # fmt: skip
    return found


def band(cohort: Cohort, number: int, place: int) -> dict[str, list[float]] | None:
    """Return quantiles of a value by time, where enough patients have one; each weighs one.

    Time is cut into equal parts of the window, or is the number of the row.
    """
    series = cohort.series[number]
    values = series.numbers(place)
    facts = cohort.facts
    if series.facts.timed:
        width = max(1, facts.last - facts.first) / BANDS
        parts = np.minimum(((series.days - facts.first) / width).astype(int), BANDS - 1)
        middle = facts.first + width * (np.arange(BANDS) + 0.5)
    else:
        parts, middle = np.minimum(series.index, BANDS), np.arange(1.0, BANDS + 1)
    found: dict[str, list[float]] = {"x": [], "low": [], "middle": [], "high": []}
    for part in range(BANDS):
        rows = np.flatnonzero((parts == part) & np.isfinite(values))
        if len(np.unique(series.patients[rows])) < MIN_PATIENTS:
            continue
        low, mid, high = _quantiles(values[rows], series.patients[rows])
        for name, value in zip(found, (middle[part], low, mid, high), strict=True):
            found[name].append(round(float(value), 4))
    return found if len(found["x"]) > 1 else None


def _quantiles(values: Floats, who: Ints) -> Floats:
    """Return quantiles of values in which each patient weighs one."""
    weights = 1.0 / np.bincount(who)[who]
    order = np.argsort(values, kind="stable")
    shares = np.cumsum(weights[order]) / weights.sum()
    places = np.minimum(np.searchsorted(shares, QUANTILES), len(values) - 1)
    return values[order][places]


def _counts(cohort: Cohort) -> list[dict[str, Any]]:
    """Return shares of patients by number of rows, and of steps by their days, for each series."""
    found = []
    for series in cohort.series:
        rows = cohort.shares(count_bins(series.counts), len(COUNT_EDGES))[0][:-1]
        entry: dict[str, Any] = {"series": series.facts.name, "title": series.facts.title}
        entry["rows"] = {"synthetic": rows.round(6).tolist()}
        if series.facts.timed:
            who = series.patients[series.later]
            keys = gap_bins(series.gaps)
            gaps = cohort.shares(keys, len(GAP_EDGES), who, series.step_weights)[0][:-1]
            entry["gaps"] = {"synthetic": gaps.round(6).tolist()}
        found.append(entry)
    return found


def _curves(cohort: Cohort) -> list[dict[str, Any]]:
    """Return the Kaplan-Meier curve of each event for all synthetic patients."""
    if not cohort.facts.timed:
        return []
    at = np.unique(np.linspace(0, cohort.facts.last, POINTS).astype(int))
    return [
        {"event": name, "group": None, "level": "all patients", "times": at.tolist(),
         "synthetic": survival_by_day(cohort, name)[0, at].round(5).tolist()}
        for name in outcome_names(cohort.facts)
    ]  # fmt: skip
