"""What is learned of the steps of a table: for each series bins, and a mixture over them.

Five events of the plan read the steps: the tables that lines are fitted to, days between rows,
one-way counts, pairs, and again the pairs that stand out. All else is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpsynth.models import Progress
from dpsynth.models.histories.domain import HistoryDomain, HistoryTable
from dpsynth.models.histories.steps.distilled import distilled
from dpsynth.models.histories.steps.events import (
    AGAIN,
    GAPS,
    LINES,
    MIN_MASS,
    ONE_WAY,
    PAIRS,
    StepSettings,
    event_name,
)
from dpsynth.models.histories.steps.gap_factors import GapCounts, GapFactors
from dpsynth.models.histories.steps.lines import GROUPS, Line
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.models.histories.steps.pairs import StepPlaces, step_pairs
from dpsynth.models.histories.steps.rows import TableRows
from dpsynth.models.histories.steps.stack import Stack, Watched
from dpsynth.models.histories.steps.table import MASS, Coarse, StepTable
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
    trends_of,
    variances_of,
)
from dpsynth.privacy import (
    ChosenHistograms,
    Entropy,
    JointHistograms,
    ObservedPlan,
    PrivacyPlan,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

HOLD = 5
"""Standard deviations of the noise of a count. Where a series' patients with a step weigh less,
noise outweighs what their steps show: changes drawn from it would run to the bounds."""


def fit_steps(
    patients: TableRows,
    watched: Sequence[TableRows],
    domain: HistoryDomain,
    conditions: Sequence[Sequence[Coarse]],
    cuts: Sequence[Sequence[Ints]],
    plan: PrivacyPlan | ObservedPlan,
    entropy: Entropy,
    settings: StepSettings,
    progress: Progress,
) -> list[StepModel]:
    """Run the events of a table's steps and learn from what they release.

    Args:
        patients: the rows of the table.
        watched: those of the canaries and of everybody else, in an audit; empty otherwise.
        domain: of the histories.
        conditions: columns of the person table that each series' steps depend on.
        cuts: codes at which groups of each value begin, by series, as released.
        plan: has the events of the table.
        entropy: where the noise comes from.
        settings: public.
        progress: of the stage ``steps``.
    """
    table = patients.table
    lines = _lines(patients, watched, cuts, plan, entropy)
    tables = [
        StepTable(domain, table, series, tuple(columns), tuple(of_series))
        for series, columns, of_series in zip(table.series, conditions, lines, strict=True)
    ]
    features = tuple(one.features for one in tables)
    stack = _stacked([one.stack(one.coded(tables), features) for one in (patients, *watched)], plan)
    gaps = _gaps(patients, watched, plan, entropy)
    return _fitted(tables, stack, gaps, plan, entropy, settings, progress)


def _stacked(stacks: Sequence[Stack], plan: PrivacyPlan | ObservedPlan) -> Stack:
    """Return the first stack; an observer knows the others."""
    if not isinstance(plan, ObservedPlan):
        return stacks[0]
    own, canaries, others = stacks
    return replace(own, watched=Watched(plan.observer, canaries, others))


def _lines(
    patients: TableRows,
    watched: Sequence[TableRows],
    cuts: Sequence[Sequence[Ints]],
    plan: PrivacyPlan | ObservedPlan,
    entropy: Entropy,
) -> list[list[Line | None]]:
    """Release the tables of (level, value) of what is drawn as changes; fit lines to them."""
    table = patients.table
    lines: list[list[Line | None]] = [[None] * len(table.changes) for _ in table.series]
    places = [place for place, change in enumerate(table.changes) if change]
    if not places:
        return lines
    event = plan.event(event_name(table, LINES))
    assert isinstance(event, JointHistograms)
    stack = _stacked(
        [one.stack(one.line_cells(places, cuts)) for one in (patients, *watched)], plan
    )
    noisy = stack.histograms(GROUPS * GROUPS + 1, event, entropy)
    for place, by_series in zip(places, noisy, strict=True):
        parts = zip(lines, by_series, table.series, cuts, strict=True)
        for of_series, counts, series, points in parts:
            if table.changes_of(series)[place]:
                square = counts[:-1].reshape(GROUPS, GROUPS).astype(np.float64)
                of_series[place] = Line.of(square, event.sigma, points[place])
    return lines


def _gaps(
    patients: TableRows,
    watched: Sequence[TableRows],
    plan: PrivacyPlan | ObservedPlan,
    entropy: Entropy,
) -> list[GapCounts] | None:
    """Release histograms of the days between rows, by series; None in an untimed table."""
    if not patients.table.timed:
        return None
    event = plan.event(event_name(patients.table, GAPS))
    assert isinstance(event, JointHistograms)
    stack = _stacked([one.stack(one.gap_cells()) for one in (patients, *watched)], plan)
    (noisy,) = stack.histograms(patients.table.days.cells, event, entropy)
    return [GapCounts(counts.astype(np.float64), event.sigma) for counts in noisy]


def _fitted(
    tables: Sequence[StepTable],
    stack: Stack,
    gaps: Sequence[GapCounts] | None,
    plan: PrivacyPlan | ObservedPlan,
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
        if total < HOLD * one_way.sigma:
            table = replace(table, lines=tuple(line and line.held() for line in table.lines))
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
            network = distilled(
                products, entropy.generator(), masked=settings.masked, given=table.drawn
            )
        released = None
        if gaps is not None and total >= HOLD * gaps[place].sigma:
            released = replace(gaps[place], total=total)
        even = GapFactors.even(table.table.days)
        models.append(StepModel(table, tuple(bins[place]), products, even, network, released))
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
    plan: PrivacyPlan | ObservedPlan,
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

    def released(event: ChosenHistograms, chosen: Sequence[tuple[int, int]]) -> list[Pairs]:
        sigmas = pair_noise(widest, chosen, event, weights=[weights[pair] for pair in chosen])
        counts = stack.pairs(bins, chosen, sigmas, event, entropy)
        return [
            Pairs(
                tuple(chosen),
                tuple(by_series[place].astype(np.float64) for by_series in counts),
                tuple(sigmas),
            )
            for place in range(len(bins))
        ]

    rough = released(first, wanted)
    related: set[int] = set()
    parts = zip(rough, bins, stack.features, totals, strict=True)
    for pairs, of_series, features, total in parts:
        columns = zip(of_series, features, strict=True)
        trends = [trends_of(column, feature.cells) for column, feature in columns]
        related |= {*pairs.related(of_series, total, hidden=False, trends=trends)}
    known = sorted(related)
    finer = released(again, [wanted[place] for place in known])
    return [
        one.sharpened(known, other).others_independent(known, of_series, total)
        for one, other, of_series, total in zip(rough, finer, bins, totals, strict=True)
    ]
