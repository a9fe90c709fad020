"""How values of a patient follow each other: transitions, and how alike her own values are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from dpsynth.eval.core import JackknifeEstimate, Measure, PartResult
from dpsynth.eval.longitudinal.cohort import Cohort, SeriesView, pair_keys
from dpsynth.eval.longitudinal.compared import (
    MIN_REPEATED,
    Compared,
    Floats,
    Ints,
    ratio,
)
from dpsynth.eval.longitudinal.facts import Field

STEPS = (
    "Total variation distance of a value and the next value of the same patient together. Models "
    "of change from visit to visit learn from these pairs."
)
ICC = (
    "Absolute difference of the intraclass correlation: which part of the variation of a value "
    "lies between patients, and not within them. 0 is no likeness of a patient's values, 1 is that "
    "they are all the same. Sample sizes of studies with repeated values depend on it."
)
LAG = (
    "Absolute difference of the correlation of consecutive values of a patient; of categories, of "
    "Cohen's kappa of consecutive rows."
)


def courses(compared: Compared) -> PartResult:
    """Measure transitions, intraclass correlations and correlations of consecutive rows."""
    moves: list[JackknifeEstimate] = []
    icc: list[JackknifeEstimate] = []
    lag: list[JackknifeEstimate] = []
    alone: list[Measure] = []
    spoken: list[dict[str, Any]] = []
    notes: list[str] = []
    constant: list[str] = []
    few: list[str] = []
    for number, series in enumerate(compared.facts.series):
        if not compared.repeated(number):
            few.append(series.name)
            continue
        for place, field in enumerate(series.fields):
            name = series.name if len(series.fields) == 1 else f"{series.name} {field.name}"
            title = series.title if len(series.fields) == 1 else f"{series.title}, {field.title}"
            moved = compared.distance(partial(_moves, number=number, place=place))
            moves.append(moved)
            alone += compared.measure(f"transitions:{name}", title, [moved], STEPS)
            if _varied(compared.train.series[number], place) < MIN_REPEATED:
                constant.append(title)
                continue
            entry: dict[str, Any] = {"name": name, "title": title, "transition": moved.value}
            kinds = (("icc", icc, likeness, ICC), ("lag", lag, following, LAG))
            for kind, figures, statistic, meaning in kinds:

                def of(one: Cohort, n: int = number, p: int = place, s: Any = statistic) -> Floats:
                    return np.asarray(s(one, one.series[n], p))

                entry[kind] = compared.spoken(kind, "", of)
                if (figure := compared.difference(of)) is not None:
                    figures.append(figure)
                elif entry[kind]["source"]["value"] is not None:
                    figures.append(_lost(compared, abs(entry[kind]["source"]["value"])))
                else:
                    continue
                alone += compared.measure(f"within_{kind}:{name}", title, figures[-1:], meaning)
            spoken.append(entry)
    if few:
        notes.append(
            f"fewer than {MIN_REPEATED} patients of train have several rows of {_some(few)}, so "
            "that how they follow each other is not compared"
        )
    if constant:
        notes.append(
            f"fewer than {MIN_REPEATED} patients of train with several rows have more than the "
            f"commonest value of {_some(constant)}: no likeness of their values is compared"
        )
    measures = [
        *compared.measure("transitions", "From one row to the next", moves, STEPS),
        *compared.measure("within_icc", "Likeness of a patient's values (ICC)", icc, ICC),
        *compared.measure("within_lag", "Correlation of consecutive values", lag, LAG),
    ]
    return PartResult((*measures, *alone), {"columns": spoken}, tuple(notes))


def _some(names: Sequence[str]) -> str:
    """Name up to five, and count the others."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return "; ".join(names[:5]) + more


def _lost(compared: Compared, value: float) -> JackknifeEstimate:
    """Return the figure of a synthetic cohort that has no repeated rows: all of it is lost."""
    sides = (compared.train.groups, compared.synthetic.groups)
    first, second = (np.full(groups, value) for groups in sides)
    return JackknifeEstimate(value, None, None, (first, second))


def _varied(series: SeriesView, place: int) -> int:
    """Count patients with several rows who have another value than the commonest one."""
    codes = series.values[:, place]
    rows = np.flatnonzero(series.counts[series.patients] > 1)
    common = np.bincount(codes[rows]).argmax()
    return len(np.unique(series.patients[rows[codes[rows] != common]]))


def _moves(cohort: Cohort, number: int, place: int) -> Floats:
    series = cohort.series[number]
    field = series.facts.fields[place]
    codes = series.values[:, place].astype(np.int64)
    keys, cells = pair_keys(codes[series.later - 1], field, codes[series.later], field)
    return cohort.shares(keys, cells, series.patients[series.later], series.step_weights)


def likeness(cohort: Cohort, series: SeriesView, place: int) -> Floats:
    """Return the intraclass correlation ``[variants]`` by one-way analysis of variance.

    Fleiss, The Design and Analysis of Clinical Experiments, 1986, chapter 1, of the patients who
    have at least two known values: those with one say nothing on likeness, and may be other
    people. A category counts as one indicator for each level, whose variances add up. NaN where
    nobody has two values, or all values are the same.
    """
    field = series.facts.fields[place]
    codes = series.values[:, place].astype(np.int64)
    values = series.numbers(place)
    rows = np.isfinite(values) if field.ordered else np.ones(len(codes), dtype=bool)
    repeated = np.bincount(series.patients[rows], minlength=series.size) > 1
    rows &= repeated[series.patients]
    who = series.patients[rows]
    counts = np.bincount(who, minlength=series.size).astype(float)
    size = np.maximum(counts, 1.0)
    if field.ordered:
        own = values[rows] - (values[rows].mean() if rows.any() else 0.0)
        sums = np.bincount(who, weights=own, minlength=series.size).astype(float)
        squares = np.bincount(who, weights=own**2, minlength=series.size)
        between = sums**2 / size
        total = cohort.sums(sums) ** 2
    else:
        same, amount = np.unique(who * field.size + codes[rows], return_counts=True)
        between = np.bincount(same // field.size, weights=amount**2.0, minlength=series.size) / size
        squares = counts
        levels = cohort.sums(np.ones(len(who)), who, codes[rows], field.size)
        total = (levels**2).sum(axis=1, keepdims=True)
    n, people = cohort.sums(counts), cohort.sums(counts > 0)
    inside = cohort.sums(squares - between)
    with np.errstate(divide="ignore", invalid="ignore"):
        inside = inside / (n - people)
        outside = (cohort.sums(between) - total / n) / (people - 1)
        typical = (n - cohort.sums(counts**2) / n) / (people - 1)
        found = (outside - inside) / (outside + (typical - 1) * inside)
    varied = (n > people) & (people > 1) & (outside + (typical - 1) * inside > 1e-12)
    return np.asarray(np.where(varied, found, np.nan).reshape(-1))


def following(cohort: Cohort, series: SeriesView, place: int) -> Floats:
    """Return the correlation of consecutive values ``[variants]``, kappa for categories."""
    field: Field = series.facts.fields[place]
    later = series.later
    if field.ordered:
        values = series.numbers(place)
        x, y = values[later - 1], values[later]
        rows = np.isfinite(x) & np.isfinite(y)
        x, y = x[rows], y[rows]
    else:
        codes: Ints = series.values[:, place].astype(np.int64)
        rows = np.ones(len(later), dtype=bool)
    who, weights = series.patients[later][rows], series.step_weights[rows]
    n = cohort.sums(weights, who)
    if not field.ordered:
        first, second = codes[later - 1], codes[later]
        agreed = ratio(cohort.sums(weights * (first == second), who), n)
        shares = [ratio(cohort.sums(weights, who, c, field.size), n) for c in (first, second)]
        expected = (shares[0] * shares[1]).sum(axis=1, keepdims=True)
        return ratio(agreed - expected, 1 - expected).reshape(-1)
    if len(x):
        x, y = x - x.mean(), y - y.mean()
    parts = (x, y, x * x, y * y, x * y)
    mx, my, xx, yy, xy = (ratio(cohort.sums(weights * part, who), n) for part in parts)
    spread = np.sqrt(np.maximum((xx - mx**2) * (yy - my**2), 0.0))
    return ratio(xy - mx * my, spread).reshape(-1)
