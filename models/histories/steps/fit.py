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
from dpsynth.models.histories.domain import HistoryDomain
from dpsynth.models.histories.steps.events import (
    GAPS,
    LINES,
    MIN_MASS,
    ONE_WAY,
    StepSettings,
    event_name,
)
from dpsynth.models.histories.steps.first_rows import like_first_rows
from dpsynth.models.histories.steps.gap_factors import GapCounts, GapFactors
from dpsynth.models.histories.steps.lines import GROUPS, Line
from dpsynth.models.histories.steps.model import StepModel
from dpsynth.models.histories.steps.pairs import StepPlaces
from dpsynth.models.histories.steps.released_pairs import release_pairs
from dpsynth.models.histories.steps.rows import TableRows
from dpsynth.models.histories.steps.stack import Stack, Watched
from dpsynth.models.histories.steps.table import MASS, Coarse, StepTable
from dpsynth.models.marginals import (
    AdaptiveCells,
    Products,
    fit_products,
    merge,
    noisy_total,
    variances_of,
)
from dpsynth.privacy import (
    Entropy,
    JointHistograms,
    ObservedPlan,
    PrivacyPlan,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FEW = 3
"""Ordered codes of a value up to which each has a bin."""

HOLD = 5
"""Standard deviations of the noise of a count. Where a series' patients with a step weigh less,
noise outweighs what their steps show: changes drawn from it would run to the bounds."""


def fit_steps(
    patients: TableRows,
    watched: Sequence[TableRows],
    domain: HistoryDomain,
    conditions: Sequence[Sequence[Coarse]],
    cuts: Sequence[Sequence[Ints]],
    firsts: Sequence[Sequence[Floats]],
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
        firsts: shares of the codes of each value in first rows, by series, as released.
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
    return _fitted(tables, stack, gaps, firsts, plan, entropy, settings, progress)


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
    firsts: Sequence[Sequence[Floats]],
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
                landmarks=_apart(table, place, places),
            )
            for place, (column, maximum) in enumerate(zip(of_series, wanted, strict=True))
        ]
        for table, of_series, total in zip(tables, leaves, totals, strict=True)
    ]
    variances = [
        [
            variances_of(column, cells, one_way.sigma)
            for column, cells in zip(of_series, own, strict=True)
        ]
        for of_series, own in zip(bins, leaves, strict=True)
    ]
    pairs = release_pairs(tables[0].table, stack, bins, variances, totals, places, plan, entropy)
    models = []
    for place, (table, total) in enumerate(zip(tables, totals, strict=True)):
        progress("steps", place / len(tables))
        known = pairs[place]
        target = known.target(known.used, total)
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
        has_network = table.table.is_wide and len(products.weights) > 1
        shares = known.target(known.released, total) if has_network else None
        released = None
        if gaps is not None and total >= HOLD * gaps[place].sigma:
            released = replace(gaps[place], total=total)
        even = GapFactors.even(table.table.days)
        columns = tuple(known.bins)
        if table.table.is_wide:
            columns = like_first_rows(
                table, columns, firsts[place], one_way.sigma / max(total, 1.0)
            )
        models.append(StepModel(table, columns, products, even, released=released, shares=shares))
    progress("steps", 1.0)
    return models


def _apart(table: StepTable, place: int, places: StepPlaces) -> Sequence[int]:
    """Keep two or three ordered codes of a value apart: one bin of all would say nothing of them.

    What a row says of the next one is in pairs, which know a code better than one-way counts do.
    """
    cells = table.features[place].cells
    return range(1, cells) if place in (*places.before, *places.values) and cells <= FEW else ()


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
