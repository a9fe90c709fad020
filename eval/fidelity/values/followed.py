"""Columns that follow from modelled ones: derived columns, dates of intervals, and the calendar.

A generator models weight and height, and the published table also has the body mass index: inputs
that look right one by one can give one that does not. A gap is modelled, and a date is published;
a date is modelled, and its readers count Mondays. All of that is read off the published table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTables,
    PartResult,
    decile_edges,
    numbers,
    plain,
    published_numbers,
)
from dpsynth.eval.fidelity.columns import spans
from dpsynth.eval.fidelity.correlation import order_of, spearman
from dpsynth.eval.fidelity.total_variation import half_l1
from dpsynth.eval.fidelity.values.numeric_values import followed_name, following, mark_of
from dpsynth.schema import Column, lattice_of, unit_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

DAY = 86_400  # seconds
PARTS = {
    "hour": [f"{hour:02d}" for hour in range(24)],
    "weekday": ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"],
    "month": [f"{month:02d}" for month in range(1, 13)],
}
ALONE = (
    "Total variation distance of this column alone, which follows from modelled ones; numbers are "
    "cut at the source's deciles, and missing is a value."
)
CALENDAR = "Total variation distance of this part of the calendar; missing is a value."
WORST = (
    "The largest of these distances beyond its reference, of derived columns, dates of intervals "
    "and parts of the calendar. A high value means that a column that is computed from others is "
    "wrong although these look right."
)
RELATED = (
    "Mean absolute difference of Spearman's correlation of derived columns with all other numeric "
    "columns. A high value means that what a derived column goes with was lost."
)


def followed(sides: PairedTables) -> PartResult:
    """Compare what follows from modelled columns; intervals by jackknife over units."""
    entries: list[dict[str, Any]] = []
    figures: list[JackknifeEstimate] = []
    measures: list[Measure] = []
    for key, title, meaning, labels, bins, facts in (*_columns(sides), *_calendar(sides)):
        shares = sides.histograms(bins[0], len(labels[0]))
        figure = JackknifeEstimate.of(half_l1, shares)
        if figure is None:
            continue
        figures.append(figure)
        estimate = figure.estimate(sides.n)
        measures.append(Measure(f"followed:{key}", title, estimate, 0.0, meaning))
        shown = _shown(sides, bins[1], labels[1])
        entries.append({**facts, "name": key, **shown, "tvd": estimate.to_dict()})
    if figures:
        worst = max(figures, key=_beyond).estimate(sides.n)
        title = "Distance of a derived column or a part of the calendar, worst"
        measures.insert(0, Measure("followed_worst", title, worst, 0.0, WORST))
    related, details = _related(sides)
    return PartResult((*measures, *related), {"followed": entries, "followed_pairs": details})


def _beyond(figure: JackknifeEstimate) -> float:
    expected = figure.chance if figure.reference is None else figure.reference
    return figure.value - (expected or 0.0)


Compared = tuple[
    str, str, str, tuple[list[str], list[str]], tuple[list[Ints], list[Ints]], dict[str, Any]
]


def _columns(sides: PairedTables) -> Iterator[Compared]:
    """Yield derived columns and dates: bins at the source's deciles, and bins to be shown."""
    for column in following(sides.tables.codec.published):
        lattice = lattice_of(column)
        values = [published_numbers(side.view, column) for side in sides.every]
        gaps = [np.isnan(one) for one in values]
        places = [lattice.positions(np.nan_to_num(one)) for one in values]
        cells = [np.where(gap, lattice.points, one) for gap, one in zip(gaps, places, strict=True)]
        [cuts] = decile_edges(cells[0][:, None], [lattice.points])
        size = lattice.points + 1 if cuts is None else len(cuts) + 1
        cut = [cell if cuts is None else np.searchsorted(cuts, cell, side="left") for cell in cells]
        known = np.concatenate([one[~gap] for one, gap in zip(places, gaps, strict=True)])
        edges, labels = spans(known, lattice, column)
        shown = [
            np.where(gap, len(labels), np.searchsorted(edges, one, side="right"))
            for one, gap in zip(places, gaps, strict=True)
        ]
        facts = _facts(column, mark_of(column), "numeric")
        name = followed_name(column)
        yield (
            name,
            f"Distance of {name}",
            ALONE,
            ([str(k) for k in range(size)], labels),
            (cut, shown),
            facts,
        )


def _calendar(sides: PairedTables) -> Iterator[Compared]:
    """Yield hour, weekday and month of each date and time of the published table."""
    for column in sides.tables.codec.published.modelled:
        if not column.kind.is_time or column.kind.is_clock:
            continue
        values = [published_numbers(side.view, column) for side in sides.every]
        for part, labels in PARTS.items():
            if part == "hour" and column.kind.in_days:
                continue
            bins = [_part(one, part, in_days=column.kind.in_days) for one in values]
            key = f"{column.name} ({part})"
            facts = _facts(column, part, "category")
            both = ([*labels, "missing"], labels)
            yield key, f"Distance of {key}", CALENDAR, both, (bins, bins), facts


def _part(values: Floats, part: str, *, in_days: bool) -> Ints:
    """Return the hour, weekday or month of each value, from 0; the last number is missing."""
    gap = np.isnan(values)
    whole = np.where(gap, 0.0, values).astype(np.int64)
    days = whole if in_days else whole // DAY
    if part == "hour":
        parts = whole % DAY // 3_600
    elif part == "weekday":
        parts = (days + 3) % 7  # 1970 began on a Thursday
    else:
        parts = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64) % 12
    return np.where(gap, len(PARTS[part]), parts)


def _facts(column: Column, mark: str, kind: str) -> dict[str, Any]:
    title = f"{column.title or column.name} ({mark})"
    unit = unit_of(column) or None
    return {"title": title, "type": column.type, "unit": unit, "kind": kind, "mark": mark}


def _shown(sides: PairedTables, bins: Sequence[Ints], labels: list[str]) -> dict[str, Any]:
    """Return the shares of each table, as those of modelled columns are kept."""
    detail: dict[str, Any] = {"bins": labels, "holdout": None, "missing": {"holdout": None}}
    names = ["source", "synthetic", *(["holdout"] if sides.holdout is not None else [])]
    for name, one in zip(names, bins, strict=False):
        counts = np.bincount(one, minlength=len(labels) + 1)
        known = counts[:-1].sum()
        detail[name] = plain(counts[:-1] / known) if known else None
        detail["missing"][name] = plain(counts[-1] / max(1, counts.sum()))
    return detail


def _related(sides: PairedTables) -> tuple[list[Measure], list[dict[str, Any]]]:
    """Compare the correlations of derived columns with all other numeric columns."""
    schema = sides.tables.codec.published
    derived = [column for column in following(schema) if column.derived]
    others = [column for column in sides.tables.schema.modelled if not column.is_categorical]
    if not derived or not others:
        return [], []
    names = [column.name for column in (*derived, *others)]
    matrices = []
    for side in sides.every:
        values = [published_numbers(side.view, column) for column in derived]
        values += [numbers(side.view, column) for column in others]
        matrices.append(spearman(np.stack([order_of(one) for one in values])))
    entries, apart = [], []
    for i in range(len(derived)):
        for j in range(len(names)):
            correlations = [matrix[i, j] for matrix in matrices]
            if j <= i or not np.isfinite(correlations[0]):
                continue
            known = np.nan_to_num(np.array(correlations))
            apart.append(np.abs(known[1:] - known[0]))
            pair = {"column": names[i], "with": names[j]}
            entries.append({**pair, "source": plain(known[0]), "synthetic": plain(known[1])})
    if not apart:
        return [], []
    means = np.mean(apart, axis=0)
    figure = JackknifeEstimate(
        float(means[0]),
        float(means[1]) if sides.holdout is not None else None,
        float(means[-1]),
        (np.zeros(0), np.zeros(0)),
    )
    title = "Difference of correlations of derived columns"
    estimate = figure.estimate(sides.n)
    return [Measure("followed_correlation", title, estimate, 0.0, RELATED)], entries
