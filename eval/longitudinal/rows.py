"""The values of rows: each column alone, and pairs of columns within a row, each patient once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.draft import clinical_rules
from dpsynth.encoding import NEVER, HistoryCodec, decode_histories, with_keys
from dpsynth.eval.core import Estimate, JackknifeEstimate, Measure, PartResult, about, plain
from dpsynth.eval.longitudinal.cohort import (
    MIN_REPEATED,
    Cohort,
    Compared,
    Field,
    Floats,
    Ints,
    SeriesView,
    pair_keys,
    ratio,
)
from dpsynth.schema import PatientRows, TemporalRule

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


Bools = npt.NDArray[np.bool_]

BROKEN = (
    "Share of patients with a history that cannot be: a row or an event after the end of follow-up "
    "or outside the window, rows out of order, more rows than the schema keeps, a gap longer than "
    "declared, or what rules of the schema or public lists of clinical edits exclude."
)


def broken(compared: Compared) -> PartResult:
    """Count patients who break each rule of histories, and any."""
    sides = {
        "source": compared.train, "synthetic": compared.synthetic, "holdout": compared.holdout
    }  # fmt: skip
    found = {name: dict(broken_rules(one)) for name, one in sides.items() if one is not None}
    rules = [
        {"rule": rule, **{name: plain(who[rule].mean()) for name, who in found.items()}}
        for rule in found["synthetic"]
    ]
    if not rules:
        return PartResult()
    shares = {name: float(np.any(list(one.values()), axis=0).mean()) for name, one in found.items()}
    chance = float(np.any([who for _, who in broken_rules(compared.chance)], axis=0).mean())
    share, n = shares["synthetic"], compared.n
    estimate: Estimate = about(
        share, (share * (1 - share) / n) ** 0.5, n, reference=shares.get("holdout"),
        chance=chance, minimum=0.0, maximum=1.0,
    )  # fmt: skip
    measure = Measure("broken_histories", "Histories that cannot be", estimate, 0.0, BROKEN)
    details: dict[str, Any] = {"rules": rules}
    notes: tuple[str, ...] = ()
    if compared.facts.events:
        notes = (
            "a coded history has one day for each event, so none can happen twice; rules within a "
            "row, and those of the tables, are checked where tables are written",
        )
    return PartResult((measure,), details, notes)


def broken_rules(cohort: Cohort) -> Iterator[tuple[str, Bools]]:
    """Yield each rule that the schema makes possible, and which patients break it."""
    facts, ends = cohort.facts, cohort.histories.ends
    timed = [one for one in cohort.series if one.facts.timed]
    size = len(cohort)

    def patients(hits: list[tuple[npt.NDArray[np.int64], Bools]]) -> Bools:
        found = np.zeros(size, dtype=bool)
        for who, hit in hits:
            found[who[hit]] = True
        return found

    if timed:
        yield (
            "a row after the end of follow-up",
            patients([(s.patients, s.days > ends[s.patients]) for s in timed]),
        )
        outside = [(s.patients, (s.days < facts.first) | (s.days > facts.last)) for s in timed]
        yield "a row outside the window", patients(outside)
        steps = [(s.patients[s.later], s.gaps) for s in timed]
        yield "rows out of order", patients([(who, gaps < 0) for who, gaps in steps])
        yield (
            "a gap longer than declared",
            patients(
                [(who, gaps > s.facts.longest) for s, (who, gaps) in zip(timed, steps, strict=True)]
            ),
        )
    if cohort.series:
        many = [one.counts > one.facts.max_rows for one in cohort.series]
        yield "more rows than the schema keeps", np.any(many, axis=0)
    if facts.events:
        onsets = cohort.histories.onsets
        late = ((onsets != NEVER) & (onsets > ends[:, None])).any(axis=1)
        yield "an event after the end of follow-up", late
    yield from _rules_of_patients(cohort)


def _rules_of_patients(cohort: Cohort) -> Iterator[tuple[str, Bools]]:
    """Yield temporal rules, declared ones and those of public clinical edits, and who breaks them.

    They are about written cells, so histories are decoded: a code of days or numbers stands for
    one of its cells.
    """
    schema = cohort.facts.schema
    edits = [TemporalRule.parse(one.text) for one in clinical_rules(schema)]
    if not (schema.rules or edits):
        return
    codec, rng = HistoryCodec(schema), np.random.default_rng(0)
    keys = np.arange(1, len(cohort) + 1)
    frames = with_keys(decode_histories(cohort.histories, codec, rng), schema, keys)
    rows = PatientRows(frames, schema)
    for rule in schema.rules:
        yield f"the rule {rule.text}", ~rule.holds_in(rows)
    for rule in edits:
        yield f"by public clinical edits: {rule.text}", ~rule.holds_in(rows)
