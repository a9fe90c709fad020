"""Columns of numbers: mean and reach, tails, heaping, and columns that follow from others.

**Mean and reach** show what bins of equal mass cannot. A distance of decile bins sees that a tenth
of the rows lies above a cut, and not how far. A column of which the upper tail is lost keeps nearly
all of its bins and loses its mean. So two figures are computed from the values themselves:

- the mean's error, in standard deviations of the source. Where a few extreme values make the
  standard deviation, the 90 % range over 3.29 stands for it; they are equal of a normal
  distribution. This is the standardised difference of Austin (Statistics in Medicine 28, 2009).
- the reach: how far the mean of the lowest, or highest, twentieth of the values lies from the
  source's median, at the end that differs more, as the logarithm to base 2 of the quotient. 1 is
  twice or half as far. One twentieth of the source's whole reach is added to both, so that a short
  side does not count more than the whole. The mean of a tail (expected shortfall: Acerbi and
  Tasche, J. Banking and Finance 26, 2002) varies less from sample to sample than a percentile.

**Columns that follow from modelled ones**: derived columns, dates of intervals, and the calendar.
A generator models weight and height, and the published table also has the body mass index: inputs
that look right one by one can give one that does not. A gap is modelled, and a date is published;
a date is modelled, and its readers count Mondays. All of that is read off the published table.

**Heaping**: numbers that people round, such as blood pressures at 120 or incomes at 50 000.

**Tails**: how many rows lie beyond the source's first and last percentile.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    PartResult,
    Variants,
    absolute,
    decile_edges,
    numbers,
    plain,
    published_numbers,
)
from dpsynth.eval.core.scores import order_of, spearman
from dpsynth.eval.fidelity.columns import spans
from dpsynth.eval.fidelity.relations import half_l1
from dpsynth.schema import Column, Lattice, Schema, lattice_of, unit_of
from dpsynth.schema.relations import converted
from dpsynth.schema.types import TYPES

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class NumericColumn:
    """One column of numbers in each table of a comparison.

    Attributes:
        name: of the column.
        title: for people.
        unit: of the numbers; empty where there is none.
        kind: the type that the schema declares, such as ``date``.
        step: smallest difference of two values, in the unit of ``values``.
        values: of each table in the order of `PairedTables.every`, NaN where missing; days or
            seconds for times.
    """

    name: str
    title: str
    unit: str
    kind: str
    step: float
    values: tuple[Floats, ...]

    def __repr__(self) -> str:
        """Show no value."""
        return f"NumericColumn({self.name!r})"


def numeric_columns(sides: PairedTables) -> Iterator[NumericColumn]:
    """Yield the numeric columns that are modelled, one at a time, then those that follow from them.

    The last are derived columns, and those whose modelled column is a gap: dates of intervals, and
    columns that an order keeps above others.
    """
    for column in sides.tables.schema.modelled:
        if column.is_categorical:
            continue
        values = tuple(numbers(side.view, column) for side in sides.every)
        yield _of(column, column.name, column.title or column.name, values)
    for column in following(sides.tables.codec.published):
        values = tuple(published_numbers(side.view, column) for side in sides.every)
        title = f"{column.title or column.name} ({mark_of(column)})"
        yield _of(column, followed_name(column), title, values)


def following(schema: Schema) -> list[Column]:
    """Return the numeric columns of the published table that are computed from modelled ones."""
    return [c for c in schema.modelled if c.derived or c.interval or c.floor]


def followed_name(column: Column) -> str:
    """Name a column that follows from others; a gap has its column's name."""
    is_gap = column.interval or column.floor
    return f"{column.name} ({mark_of(column)})" if is_gap else column.name


def mark_of(column: Column) -> str:
    """Say how a column follows from others, in one word."""
    return "derived" if column.derived else column.type


def _of(column: Column, name: str, title: str, values: tuple[Floats, ...]) -> NumericColumn:
    lattice = lattice_of(column)
    step = lattice.stride / 10**lattice.decimals
    return NumericColumn(name, title, unit_of(column) or "", column.type, step, values)


FEW = 100  # values in every table, below which a column is left out
MEAN, DEVIATION, MEDIAN, P01, P05, P95, P99, LOWEST, HIGHEST = range(9)  # of a table's statistics
SHARES = (0.5, 0.01, 0.05, 0.95, 0.99)  # of MEDIAN to P99
OUTER = 0.05  # of the values, at each end: LOWEST and HIGHEST are their means
NORMAL = 3.2897  # standard deviations between percentiles 5 and 95 of a normal distribution
SLACK = 0.05  # of the reach, added to each side
CEILING = 1e6  # of a mean's error; a finite number, whatever a column holds
OF_MEAN = (
    "Difference of this column's means, in standard deviations of the source; of values that are "
    "present. 0.1 is small; from 0.25 an average of the table misleads."
)
OF_REACH = (
    "How far the mean of the lowest or highest twentieth of the values lies from the source's "
    "median, in doublings: 1 is twice or half as far as in the source, at the end that differs "
    "more. A high value means that a tail of this column is lost or exaggerated."
)
WORST_MEAN = (
    "The same difference in the column where it is farthest beyond its reference. A high value "
    "means that averages of this column mislead, even where its shares look right."
)
WORST_REACH = (
    "The same in the column where it is farthest beyond its reference. A high value means that "
    "this column's high or low values are lost or exaggerated."
)


def location(sides: PairedTables) -> PartResult:
    """Compare mean and reach of each numeric column; intervals by jackknife over units.

    A column with fewer than 100 values in some table is left out.
    """
    means: dict[str, JackknifeEstimate] = {}
    reaches: dict[str, JackknifeEstimate] = {}
    details: list[dict[str, Any]] = []
    titles: dict[str, str] = {}
    for column in numeric_columns(sides):
        counts = [int((~np.isnan(values)).sum()) for values in column.values]
        if min(counts) < FEW:
            continue
        moments = [
            _statistics(side, values)
            for side, values in zip(sides.every, column.values, strict=True)
        ]
        variants = sides.variants(moments)
        titles[column.name] = column.title
        mean = JackknifeEstimate.of(partial(_shift, step=column.step), variants)
        reach = JackknifeEstimate.of(partial(_reach, step=column.step), variants)
        if mean is None or reach is None:
            continue
        means[column.name], reaches[column.name] = mean, reach
        details.append(_detail(column, variants, mean, reach, sides.n))
    if not details:
        note = f"no numeric column has {FEW} values in each table, so no mean was compared"
        return PartResult((), {"location": []}, (note,))
    measures = [
        *_measures("mean", "Mean", means, OF_MEAN, WORST_MEAN, titles, sides.n),
        *_measures("reach", "Reach of the values", reaches, OF_REACH, WORST_REACH, titles, sides.n),
    ]
    return PartResult(tuple(measures), {"location": details})


def _measures(
    key: str,
    title: str,
    figures: dict[str, JackknifeEstimate],
    meaning: str,
    of_worst: str,
    titles: dict[str, str],
    n: int,
) -> list[Measure]:
    """Return the figure of the column that is clearly worst, then that of each."""
    estimates = {name: figure.estimate(n, maximum=CEILING) for name, figure in figures.items()}

    def beyond(name: str) -> float:
        one = estimates[name]
        references = [x for x in (one.reference, one.chance) if x is not None]
        return (one.value if one.low is None else one.low) - max(references, default=0.0)

    worst = max(estimates, key=beyond)
    return [
        Measure(f"{key}_worst", f"{title}, worst column", estimates[worst], 0.0, of_worst),
        *(
            Measure(f"{key}:{name}", f"{title} of {titles[name]}", one, 0.0, meaning)
            for name, one in estimates.items()
        ),
    ]


def _statistics(side: PairedTable, values: Floats) -> Floats:
    """Return mean, deviation and percentiles ``[variants, 9]``, whole and without each group."""
    known = np.flatnonzero(~np.isnan(values))
    known = known[np.argsort(values[known], kind="stable")]
    ordered, seats = values[known], side.seats[known]
    rows = [_location_of(ordered)]
    rows += [_location_of(ordered[seats != group]) for group in range(side.groups)]
    return np.stack(rows)


def _location_of(ordered: Floats) -> Floats:
    if not len(ordered):
        return np.full(9, np.nan)
    places = np.ceil(np.array(SHARES) * len(ordered)).astype(int) - 1
    outer = max(1, round(OUTER * len(ordered)))
    ends = ordered[:outer].mean(), ordered[-outer:].mean()
    return np.array([ordered.mean(), ordered.std(), *ordered[np.maximum(places, 0)], *ends])


def _shift(source: Floats, other: Floats, step: float) -> Floats:
    """Return the difference of means in standard deviations of the source, robustly."""
    deviation, middle = source[..., DEVIATION], (source[..., P95] - source[..., P05]) / NORMAL
    scale = np.where(middle > 0, np.minimum(deviation, middle), deviation)
    away = np.abs(other[..., MEAN] - source[..., MEAN])
    return np.minimum(away / np.maximum(scale, step), CEILING)


def _reach(source: Floats, other: Floats, step: float) -> Floats:
    """Return the larger difference of the two ends' reach, in doublings."""
    slack = np.maximum(step, SLACK * (source[..., HIGHEST] - source[..., LOWEST]))
    ends = []
    for end, sign in ((LOWEST, -1), (HIGHEST, 1)):
        apart = [
            np.maximum(sign * (moments[..., end] - source[..., MEDIAN]), 0.0) + slack
            for moments in (other, source)
        ]
        ends.append(np.abs(np.log2(apart[0] / apart[1])))
    return np.asarray(np.maximum(*ends))


def _detail(
    column: NumericColumn,
    variants: Variants,
    mean: JackknifeEstimate,
    reach: JackknifeEstimate,
    n: int,
) -> dict[str, Any]:
    def told(found: Floats | None) -> dict[str, Any] | None:
        if found is None:
            return None
        places = {"mean": MEAN, "deviation": DEVIATION, "median": MEDIAN, "p01": P01, "p99": P99}
        places |= {"lowest": LOWEST, "highest": HIGHEST}
        return {name: plain(found[0][place]) for name, place in places.items()}

    return {
        "column": column.name,
        "title": column.title,
        "unit": column.unit or None,
        "type": column.kind,
        "step": column.step,
        "source": told(variants.source),
        "synthetic": told(variants.synthetic),
        "holdout": told(variants.holdout),
        "mean": mean.estimate(n, maximum=CEILING).to_dict(),
        "reach": reach.estimate(n, maximum=CEILING).to_dict(),
    }


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
        if not column.kind.calendar:
            continue
        values = [published_numbers(side.view, column) for side in sides.every]
        seconds = [converted(one, column.kind, TYPES["datetime"]) for one in values]
        for part, labels in PARTS.items():
            if part not in column.kind.calendar:
                continue
            bins = [_part(one, part) for one in seconds]
            key = f"{column.name} ({part})"
            facts = _facts(column, part, "category")
            both = ([*labels, "missing"], labels)
            yield key, f"Distance of {key}", CALENDAR, both, (bins, bins), facts


def _part(seconds: Floats, part: str) -> Ints:
    """Return the hour, weekday or month of each value, from 0; the last number is missing."""
    gap = np.isnan(seconds)
    whole = np.where(gap, 0.0, seconds).astype(np.int64)
    days = whole // DAY
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


COMMONEST = "most common value"
FACTORS = (5, 10, 50, 100, 500, 1000, 5000, 10_000)  # of the last digit that a column has
MAX_SHARE = 5  # a base divides the source's range at least so many times
HEAP_EXCESS = 0.05  # of the share of multiples over that of an even spread
HEAP_RATIO = 1.5  # of the two shares
SPIKE = 0.1  # share of the most common value from which it is compared
MIN_HEAP_ROWS = 100  # with a value in the source
MIN_DISTINCT = 10  # values of a column, for its most common one to be called a heap
HEAPING_MEANING = (
    "Mean over the heaps of the source (multiples of a round number that are commoner than an even "
    "spread makes them, and very common single values) of the absolute difference of the share of "
    "values on the heap. A high value means that rounding habits are lost or exaggerated."
)


def heaping(sides: PairedTables) -> PartResult:
    """Compare the share of present values that lie on heaps; intervals by jackknife over units.

    Of each numeric column that is no time, at most one base and the most common value enter.
    """
    lattices = sides.tables.codec.lattice
    figures: list[JackknifeEstimate] = []
    details: list[dict[str, Any]] = []
    for column in sides.tables.schema.modelled:
        lattice = lattices(column.name)
        if lattice is None or not column.kind.is_plain:
            continue
        for name, base, target in _heaps(_ticks(sides.source, column, lattice), lattice):
            heap = partial(_on_heap, column=column, lattice=lattice, base=base, target=target)
            shares = sides.each(heap)
            figure = JackknifeEstimate.of(absolute, shares)
            if figure is not None:
                figures.append(figure)
            details.append({"column": column.name, "base": name, **shares.whole()})
    if not figures:
        return PartResult((), {"heaping": details}, ("no numeric column of the source is heaped",))
    estimate = JackknifeEstimate.mean(figures).estimate(sides.n)
    measure = Measure("heaping", "Difference of heaps", estimate, 0.0, HEAPING_MEANING)
    return PartResult((measure,), {"heaping": details})


def _ticks(side: PairedTable, column: Column, lattice: Lattice) -> Floats:
    """Return the values as whole multiples of the column's last digit; NaN where missing."""
    return np.rint(numbers(side.view, column) * 10.0**lattice.decimals)


def _heaps(ticks: Floats, lattice: Lattice) -> list[tuple[float | str, int, int]]:
    """Find the heaps of a column: name of the base, the base, and a tick on the heap."""
    present = ticks[~np.isnan(ticks)].astype(np.int64)
    if len(present) < MIN_HEAP_ROWS:
        return []
    values, counts = np.unique(present, return_counts=True)
    mode = int(values[counts.argmax()])
    heaps: list[tuple[float | str, int, int]] = []
    base = _heap_base(values, counts, mode, lattice)
    if base is not None:
        unit = base / 10**lattice.decimals
        heaps.append((int(unit) if unit == int(unit) else unit, base, 0))
    if len(values) > MIN_DISTINCT and counts.max() >= SPIKE * len(present):
        heaps.append((COMMONEST, 0, mode))
    return heaps


def _heap_base(values: Ints, counts: Ints, mode: int, lattice: Lattice) -> int | None:
    """Return the base, in ticks, whose multiples exceed an even spread most; None if none does.

    The most common value and the declared bounds are left out of this search: one spike is no
    rounding, and what is out of bounds is read as the bound.
    """
    ends = (lattice.first, lattice.first + (lattice.points - 1) * lattice.stride)
    inner = ~np.isin(values, (mode, *ends))
    values, counts = values[inner], counts[inner]
    if not len(values):
        return None
    best, maximum = None, HEAP_EXCESS
    for base in FACTORS:
        if base % lattice.stride or base <= lattice.stride:
            continue
        if int(values[-1]) - int(values[0]) < MAX_SHARE * base:
            continue
        share = counts[values % base == 0].sum() / counts.sum()
        even = lattice.stride / base
        if share >= HEAP_RATIO * even and share - even > maximum + 1e-12:
            best, maximum = base, share - even
    return best


def _on_heap(side: PairedTable, column: Column, lattice: Lattice, base: int, target: int) -> Floats:
    ticks = _ticks(side, column, lattice)
    present = ~np.isnan(ticks)
    whole = np.where(present, ticks, 0).astype(np.int64)
    return side.shares(whole % base == 0 if base else whole == target, present)


TAILS = (("low", 0.01), ("high", 0.99))
MIN_TAIL_ROWS = 100  # with a value in the source: a percentile of fewer is the smallest value
TAILS_MEANING = (
    "Mean over numeric columns and both ends of the absolute difference of the share of rows "
    "beyond the source's percentile 1 or 99. A high value means that extreme values are lost or "
    "exaggerated."
)


def tails(sides: PairedTables) -> PartResult:
    """Compare the share of present values beyond the source's quantiles; jackknife over units.

    A tail is left out where hardly any row of the source can be beyond: the quantile lies on the
    column's smallest or largest value.
    """
    figures: list[JackknifeEstimate] = []
    details: list[dict[str, Any]] = []
    for column in sides.tables.schema.modelled:
        if column.is_categorical:
            continue
        values = numbers(sides.source.view, column)
        present = values[~np.isnan(values)]
        if len(present) < MIN_TAIL_ROWS:
            continue
        for tail, quantile in TAILS:
            cut = float(np.quantile(present, quantile, method="inverted_cdf"))
            if cut in (present.min(), present.max()):
                continue
            shares = sides.each(partial(_beyond_cut, column=column, tail=tail, cut=cut))
            figure = JackknifeEstimate.of(absolute, shares)
            if figure is not None:
                figures.append(figure)
            detail = {"column": column.name, "tail": tail, "quantile": quantile}
            details.append(detail | shares.whole())
    if not figures:
        return PartResult(
            (), {"tails": details}, ("no numeric column has tails that can be compared",)
        )
    estimate = JackknifeEstimate.mean(figures).estimate(sides.n)
    measure = Measure("tails", "Difference of tails", estimate, 0.0, TAILS_MEANING)
    return PartResult((measure,), {"tails": details})


def _beyond_cut(side: PairedTable, column: Column, tail: str, cut: float) -> Floats:
    values = numbers(side.view, column)
    beyond = values < cut if tail == "low" else values > cut
    return side.shares(beyond, ~np.isnan(values))
