"""How often patients are seen: rows per patient, and gaps between rows."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from dpsynth.eval.core import JackknifeEstimate, Measure, PartResult
from dpsynth.eval.longitudinal.cohort import (
    COUNT_EDGES,
    GAP_EDGES,
    Cohort,
    Compared,
    Floats,
    SeriesFacts,
    Statistic,
    count_bins,
    gap_bins,
    ratio,
)

ROWS = (
    "Total variation distance of the number of rows of a patient, rows of a test in a long table: "
    "0.05 means that 5 of 100 patients would need another number of rows. Analyses of how often "
    "patients are seen, and all that weighs patients by their rows, depend on it."
)
GAPS = (
    "Total variation distance of the days between two consecutive rows of a patient. Each patient "
    "weighs one."
)


def timing(compared: Compared) -> PartResult:
    """Measure rows per patient and gaps, by series and on average."""
    counts, gaps = [], []
    alone: list[Measure] = []
    spoken: list[dict[str, Any]] = []
    notes: list[str] = []
    for number, series in enumerate(compared.facts.series):
        counts.append(compared.distance(partial(_counts, places=[number])))
        alone += compared.measure(
            f"rows_per_patient:{series.name}",
            f"Rows per patient, {series.title}",
            counts[-1:],
            ROWS,
        )
        if series.timed and compared.repeated(number):
            gaps.append(compared.distance(partial(_gaps, number=number)))
            alone += compared.measure(
                f"gaps:{series.name}", f"Days between rows, {series.title}", gaps[-1:], GAPS
            )
        spoken.append(_spoken(compared, number, series))
    for number, name in enumerate(compared.facts.tables):
        places = [n for n, s in enumerate(compared.facts.series) if s.place[0] == number]
        if len(places) > 1:
            figure = compared.distance(partial(_counts, places=places))
            alone += compared.measure(
                f"rows_per_patient:{name}", f"Rows per patient, all of {name}", [figure], ROWS
            )
            counts.append(figure)
    parts: tuple[tuple[str, str, list[JackknifeEstimate], str], ...] = (
        ("rows_per_patient", "Rows per patient", counts, ROWS),
        ("gaps", "Days between two rows", gaps, GAPS),
    )
    measures = [one for part in parts for one in compared.measure(*part)]
    if compared.facts.series and not any(series.timed for series in compared.facts.series):
        notes.append("rows have an order and no day: no figures on days and gaps")
    details = {"spoken": spoken, "counts": _histograms(compared)}
    return PartResult((*measures, *alone), details, tuple(notes))


def _counts(cohort: Cohort, places: list[int]) -> Floats:
    """Return the shares of patients by their number of rows in some series together."""
    counts = np.sum([cohort.series[place].counts for place in places], axis=0)
    return cohort.shares(count_bins(counts), len(COUNT_EDGES))


def _gaps(cohort: Cohort, number: int) -> Floats:
    """Return the shares of gaps; each patient weighs one."""
    series = cohort.series[number]
    who = series.patients[series.later]
    return cohort.shares(gap_bins(series.gaps), len(GAP_EDGES), who, series.step_weights)


def _spoken(compared: Compared, number: int, series: SeriesFacts) -> dict[str, Any]:
    """Return plain figures of a series."""

    def rows(one: Cohort) -> Floats:
        return ratio(one.sums(one.series[number].counts.astype(float)), one.sums(np.ones(len(one))))

    def some(one: Cohort) -> Floats:
        return ratio(one.sums(one.series[number].counts > 0), one.sums(np.ones(len(one))))

    def first(one: Cohort) -> Floats:
        view = one.series[number]
        begin = np.flatnonzero(view.counts > 0)
        days = view.days[view.starts[begin]].astype(float)
        return ratio(one.sums(days, begin), one.sums(np.ones(len(begin)), begin))

    def gap(one: Cohort) -> Floats:
        view = one.series[number]
        who, weights = view.patients[view.later], view.step_weights
        return ratio(one.sums(weights * view.gaps, who), one.sums(weights, who))

    def same(one: Cohort) -> Floats:
        view = one.series[number]
        who = view.patients[view.later]
        return ratio(one.sums(view.gaps == 0, who), one.sums(np.ones(len(who)), who))

    def last(one: Cohort) -> Floats:
        view = one.series[number]
        hit = view.days == one.histories.ends[view.patients]
        return ratio(one.sums(hit, view.patients), one.sums(np.ones(len(hit)), view.patients))

    figures = [
        compared.spoken("rows per patient", "", rows),
        compared.spoken("patients with a row", "share", some),
    ]
    if series.timed:
        figures += [
            compared.spoken("day of the first row, mean", "d", first),
            compared.spoken("rows on the last day of follow-up", "share", last),
        ]
    if series.timed and compared.repeated(number):
        figures += [
            compared.spoken("days between two rows, mean over patients", "d", gap),
            compared.spoken("rows on the same day as the one before", "share", same),
        ]
    return {"series": series.name, "title": series.title, "figures": figures}


def _histograms(compared: Compared) -> list[dict[str, Any]]:
    """Return shares of patients by number of rows, and of steps by their days."""
    found = []
    for number, series in enumerate(compared.facts.series):
        entry: dict[str, Any] = {"series": series.name, "title": series.title}
        entry["rows"] = _sides(compared, partial(_counts, places=[number]))
        if series.timed and compared.repeated(number):
            entry["gaps"] = _sides(compared, partial(_gaps, number=number))
        found.append(entry)
    return found


def _sides(compared: Compared, statistic: Statistic) -> dict[str, Any]:
    sides = {
        "source": compared.train, "synthetic": compared.synthetic, "holdout": compared.holdout
    }  # fmt: skip
    return {
        name: None if one is None else [round(float(x), 6) for x in statistic(one)[0][:-1]]
        for name, one in sides.items()
    }


def count_labels() -> list[str]:
    """Name the bins of numbers of rows.

    >>> count_labels()[:3], count_labels()[7], count_labels()[-1]
    (['0', '1', '2'], '8–10', '1001 and more')
    """
    ends = [after - 1 for after in COUNT_EDGES[1:]]
    pairs = zip(COUNT_EDGES, ends, strict=False)
    names = [str(low) if low == high else f"{low}–{high}" for low, high in pairs]
    return [*names, f"{COUNT_EDGES[-1]} and more"]


def gap_labels() -> list[str]:
    """Name the bins of days between two rows.

    >>> gap_labels()[:4], gap_labels()[-1]
    (['same day', '1 d', '2–7 d', '8–14 d'], '40 y and more')
    """
    named = {15: "15–30 d", 8: "8–14 d", 0: "same day", 1: "1 d", 2: "2–7 d"}
    found = []
    for low, after in zip(GAP_EDGES, GAP_EDGES[1:], strict=False):
        if low in named:
            found.append(named[low])
        else:
            per, unit = (30.5, "mo") if after <= 733 else (365.25, "y")
            found.append(f"{low / per:.0f}–{after / per:.0f} {unit}")
    return [*found, f"{GAP_EDGES[-1] / 365.25:.0f} y and more"]
