"""What is learned of the steps of a table: for each series bins, and a mixture over them.

Four events of the plan read the steps: the tables that lines are fitted to, one-way counts, pairs,
and again the pairs that stand out. All else is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import SeriesRows
from dpsynth.models import Progress
from dpsynth.models.histories.distilled import distilled
from dpsynth.models.histories.domain import HistoryDomain, HistoryTable, Series
from dpsynth.models.histories.lines import CELLS, Line, line_cells
from dpsynth.models.histories.stack import Stack
from dpsynth.models.histories.step_events import (
    AGAIN,
    LINES,
    MIN_MASS,
    ONE_WAY,
    PAIRS,
    StepSettings,
    event_name,
)
from dpsynth.models.histories.step_model import StepModel
from dpsynth.models.histories.step_pairs import StepPlaces, step_pairs
from dpsynth.models.histories.step_table import MASS, Coarse, Known, Steps, StepTable, weights_of
from dpsynth.models.marginals import (
    AdaptiveCells,
    MergedBins,
    Pairs,
    Products,
    fit_products,
    merge,
    noisy_total,
    pair_noise,
    target_of,
    variances_of,
)
from dpsynth.privacy import ChosenHistograms, Entropy, JointHistograms, PrivacyPlan

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def fit_steps(
    rows: Sequence[SeriesRows],
    person_codes: npt.NDArray[np.integer],
    ends: Ints,
    domain: HistoryDomain,
    table: HistoryTable,
    conditions: Sequence[Sequence[Coarse]],
    plan: PrivacyPlan,
    entropy: Entropy,
    settings: StepSettings,
    progress: Progress,
) -> list[StepModel]:
    """Run the events of a table's steps and learn from what they release.

    Args:
        rows: of every series of the table.
        person_codes: of the person table, ``[patients, columns]``.
        ends: last day of each patient's follow-up.
        domain: of the histories.
        table: the table.
        conditions: columns of the person table that each series' steps depend on.
        plan: has the events of the table.
        entropy: where the noise comes from.
        settings: public.
        progress: of the stage ``steps``.
    """
    patients = len(ends)
    steps = [
        Steps.of(part, series.values, patients)
        for part, series in zip(rows, table.series, strict=True)
    ]
    weights = weights_of(steps, patients)
    owners = tuple(part.patients for part in steps)
    lines = _lines(steps, rows, weights, owners, table, plan, entropy)
    tables = [
        StepTable(domain, table, series, tuple(columns), tuple(of_series))
        for series, columns, of_series in zip(table.series, conditions, lines, strict=True)
    ]
    codes = tuple(
        _coded(step_table, part, one, person_codes, ends)
        for step_table, part, one in zip(tables, steps, rows, strict=True)
    )
    stack = Stack(tuple(one.features for one in tables), codes, owners, tuple(weights))
    return _fitted(tables, stack, plan, entropy, settings, progress)


def _lines(
    steps: Sequence[Steps],
    rows: Sequence[SeriesRows],
    weights: Sequence[Ints],
    owners: tuple[Ints, ...],
    table: HistoryTable,
    plan: PrivacyPlan,
    entropy: Entropy,
) -> list[list[Line | None]]:
    """Release the tables of (level, value) of what is drawn as changes; fit lines to them."""
    lines: list[list[Line | None]] = [[None] * len(table.changes) for _ in steps]
    places = [place for place, change in enumerate(table.changes) if change]
    if not places:
        return lines
    event = plan.event(event_name(table, LINES))
    assert isinstance(event, JointHistograms)
    cells = [
        [
            _line_cells(part, one, table, series, place)
            for part, one, series in zip(steps, rows, table.series, strict=True)
        ]
        for place in places
    ]
    stack = Stack((), (), owners, tuple(weights))
    noisy = stack.histograms(cells, CELLS * CELLS + 1, event, entropy)
    for place, by_series in zip(places, noisy, strict=True):
        for of_series, counts, series in zip(lines, by_series, table.series, strict=True):
            if table.changes_of(series)[place]:
                square = counts[:-1].reshape(CELLS, CELLS).astype(np.float64)
                of_series[place] = Line.of(square, event.sigma, MASS, series.values[place])
    return lines


def _line_cells(
    steps: Steps, rows: SeriesRows, table: HistoryTable, series: Series, place: int
) -> Ints:
    """Return the cell of each step in the table of one value; the last one where it has no line."""
    if not table.changes_of(series)[place]:
        return np.full(len(steps.place), CELLS * CELLS)
    codes = rows.values[steps.place, place]
    return line_cells(steps.levels[:, place], codes, series.values[place])


def _coded(
    table: StepTable,
    steps: Steps,
    rows: SeriesRows,
    person_codes: npt.NDArray[np.integer],
    ends: Ints,
) -> Ints:
    """Return the codes of the steps of one series, ``[steps, columns]``."""
    who, before = steps.patients, steps.place - 1
    known = Known(
        baseline=table.baseline_of(person_codes[who]),
        counts=steps.counts,
        index=steps.index,
        days=rows.days[before],
        ends=ends[who],
        paces=mean_days_left(steps, rows),
        gaps=days_before(steps),
        before=rows.values[before].astype(np.int64),
        levels=steps.levels,
    )
    drawn = table.drawn_codes(known, steps.gaps, rows.values[steps.place].astype(np.int64))
    return np.column_stack([table.known_codes(known), drawn])


def mean_days_left(steps: Steps, rows: SeriesRows) -> Floats:
    """Return the mean gap of what is left of the patient's rows at each step."""
    last = steps.place - steps.index + steps.counts - 1
    spans = rows.days[last] - rows.days[steps.place - 1]
    return np.asarray(spans / np.maximum(steps.counts - steps.index, 1))


def days_before(steps: Steps) -> Ints:
    """Return the gap before the row before; -1 for a patient's first step."""
    earlier = np.concatenate([steps.gaps[:1], steps.gaps[:-1]])
    return np.where(steps.index > 1, earlier, -1)


def _fitted(
    tables: Sequence[StepTable],
    stack: Stack,
    plan: PrivacyPlan,
    entropy: Entropy,
    settings: StepSettings,
    progress: Progress,
) -> list[StepModel]:
    places = StepPlaces.of(tables[0])
    wanted = places.bins(settings.bins)
    one_way = plan.event(event_name(tables[0].table, ONE_WAY))
    assert isinstance(one_way, JointHistograms)
    counts = stack.one_way(one_way, entropy)
    totals = [noisy_total([levels[-1] for levels in of_series]) for of_series in counts]
    leaves = [
        [
            AdaptiveCells.of(feature, levels, total=total, sigma=one_way.sigma)
            for feature, levels in zip(table.features, of_series, strict=True)
        ]
        for table, of_series, total in zip(tables, counts, totals, strict=True)
    ]
    bins = [
        [
            merge(
                column,
                total=total,
                sigma=one_way.sigma,
                maximum=maximum,
                importance=_importance(table, place, places),
            )
            for place, (column, maximum) in enumerate(zip(of_series, wanted, strict=True))
        ]
        for table, of_series, total in zip(tables, leaves, totals, strict=True)
    ]
    pairs = _pairs(tables[0].table, stack, bins, totals, places, plan, entropy)
    models = []
    for place, (table, total) in enumerate(zip(tables, totals, strict=True)):
        progress("steps", place / len(tables))
        variances = [
            variances_of(column, cells, one_way.sigma)
            for column, cells in zip(bins[place], leaves[place], strict=True)
        ]
        target = target_of(bins[place], variances, pairs[place], total)
        if total < MIN_MASS * MASS:
            products = Products(target.sizes, np.ones(1), target.one[None].astype(np.float32))
        else:
            products = fit_products(
                target,
                components=settings.components,
                steps=settings.steps,
                tie=settings.tie,
                rng=entropy.generator(),
            )
        network = None
        if table.table.is_wide and len(products.weights) > 1:
            network = distilled(products, entropy.generator(), masked=settings.masked)
        models.append(StepModel(table, tuple(bins[place]), products, network))
    progress("steps", 1.0)
    return models


def _importance(table: StepTable, place: int, places: StepPlaces) -> Floats | None:
    """Say how much a step with each code of a column counts among rows: a public fact.

    Histograms weigh all patients alike, and a patient with more rows, or closer ones, is seen in
    more of them. None where codes are alike.
    """
    if place in places.numbers:
        return 1.0 + table.series.counts.middles
    if place in places.times[1:2]:
        return np.asarray(1.0 / np.maximum(table.table.paces.middles, 1.0))
    return None


def _pairs(
    table: HistoryTable,
    stack: Stack,
    bins: Sequence[Sequence[MergedBins]],
    totals: Sequence[float],
    places: StepPlaces,
    plan: PrivacyPlan,
    entropy: Entropy,
) -> list[Pairs]:
    """Release all pairs, then again those that stand out in some series; return them by series."""
    first, again = (plan.event(event_name(table, kind)) for kind in (PAIRS, AGAIN))
    assert isinstance(first, ChosenHistograms)
    assert isinstance(again, ChosenHistograms)
    weights = step_pairs(places, table.changes)
    wanted = sorted(weights)
    sizes = [[column.count for column in of_series] for of_series in bins]
    widest = tuple(max(column) for column in zip(*sizes, strict=True))
    binned = [
        np.column_stack([column.coarsen(codes[:, j]) for j, column in enumerate(of_series)]).astype(
            np.int64
        )
        for codes, of_series in zip(stack.codes, bins, strict=True)
    ]

    def released(event: ChosenHistograms, chosen: Sequence[tuple[int, int]]) -> list[Pairs]:
        sigmas = pair_noise(widest, chosen, event, weights=[weights[pair] for pair in chosen])
        counts = stack.pairs(binned, sizes, chosen, sigmas, event, entropy)
        return [
            Pairs(
                tuple(chosen),
                tuple(by_series[place].astype(np.float64) for by_series in counts),
                tuple(sigmas),
            )
            for place in range(len(sizes))
        ]

    rough = released(first, wanted)
    related = sorted(
        {
            place
            for pairs, of_series, total in zip(rough, bins, totals, strict=True)
            for place in pairs.related(of_series, total, hidden=False)
        }
    )
    finer = released(again, [wanted[place] for place in related])
    return [
        one.sharpened(related, other).others_independent(related, of_series, total)
        for one, other, of_series, total in zip(rough, finer, bins, totals, strict=True)
    ]
