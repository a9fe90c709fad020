"""Pairs of a step table's columns: released twice, and what they say of single columns.

All pairs are counted, then again those that stand out in some series. The sums of a column's pairs
are noisy counts of its bins (`marginals.pairs`). In a table of wide rows there are so many
of them that they are far more precise than its one-way counts: shares are averaged of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.domain import HistoryTable
from dpsynth.models.histories.steps.events import AGAIN, PAIRS, event_name
from dpsynth.models.histories.steps.pairs import Pair, StepPlaces, step_pairs
from dpsynth.models.histories.steps.stack import Stack
from dpsynth.models.marginals import (
    MergedBins,
    Pairs,
    Target,
    bins_with_margins,
    margins_of,
    pair_noise,
    target_of,
    trends_of,
)
from dpsynth.privacy import ChosenHistograms, Entropy, ObservedPlan, PrivacyPlan

Floats = npt.NDArray[np.float64]
Columns = Sequence[MergedBins]


@dataclass(frozen=True)
class StepPairs:
    """Pairs of a series' step table.

    Attributes:
        bins: of each column, with the shares that all counts say.
        variances: of the noise in the mass of each bin, by column.
        released: as they were released.
        used: with the product of their columns in the place of those that do not stand out.
    """

    bins: Columns
    variances: Sequence[Floats]
    released: Pairs
    used: Pairs

    def target(self, pairs: Pairs, total: float) -> Target:
        """Return what a model is fitted to: shares of the total mass, and their noise."""
        return target_of(self.bins, self.variances, pairs, total)


def release_pairs(
    table: HistoryTable,
    stack: Stack,
    bins: Sequence[Columns],
    variances: Sequence[Sequence[Floats]],
    totals: Sequence[float],
    places: StepPlaces,
    plan: PrivacyPlan | ObservedPlan,
    entropy: Entropy,
) -> list[StepPairs]:
    """Run both events of a table's pairs; return them by series.

    Args:
        table: of the steps.
        stack: coded steps.
        bins: of each column, by series.
        variances: of the noise in the one-way mass of each bin, by series and column.
        totals: mass of each series, as released.
        places: of the columns.
        plan: has both events.
        entropy: where the noise comes from.
    """
    first, again = (plan.event(event_name(table, kind)) for kind in (PAIRS, AGAIN))
    assert isinstance(first, ChosenHistograms)
    assert isinstance(again, ChosenHistograms)
    weights = step_pairs(places, table.changes)
    wanted = sorted(weights)
    sizes = [[column.count for column in of_series] for of_series in bins]
    widest = tuple(max(column) for column in zip(*sizes, strict=True))

    def released(event: ChosenHistograms, chosen: Sequence[Pair]) -> list[Pairs]:
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

    def with_margins(pairs: Sequence[Pairs]) -> list[tuple[Columns, Sequence[Floats]]]:
        if not table.is_wide:
            return [*zip(bins, variances, strict=True)]
        parts = zip(bins, variances, pairs, totals, strict=True)
        return [
            bins_with_margins(columns, own, margins_of(columns, one), total=total)
            for columns, own, one, total in parts
        ]

    rough = released(first, wanted)
    related: set[int] = set()
    known = zip(rough, with_margins(rough), stack.features, totals, strict=True)
    for pairs, (columns, _), features, total in known:
        trends = [
            trends_of(column, feature.cells)
            for column, feature in zip(columns, features, strict=True)
        ]
        related |= {*pairs.related(columns, total, hidden=False, trends=trends)}
    chosen = sorted(related)
    finer = released(again, [wanted[place] for place in chosen])
    sharp = [one.sharpened(chosen, other) for one, other in zip(rough, finer, strict=True)]
    return [
        StepPairs(columns, own, one, one.others_independent(chosen, columns, total))
        for one, (columns, own), total in zip(sharp, with_margins(sharp), totals, strict=True)
    ]
