"""What is measured before anything is fitted: noisy one-way histograms, then noisy pairs of bins.

Two events of the plan, or three where columns are many, or four where units are few (`contrasts`).
The first gives every column's distribution
on its fine public grid, from which bins are merged; the others give joint histograms of pairs of
binned columns (`pairs`), which also tell more of the columns' tails (`pairs.margins`). Which pairs
are measured, and with what noise each, follows from earlier releases and from public facts; each
event bounds all its pairs together, whatever is chosen.

**Units of several rows.** Each of a unit's r rows counts 1/r, so a unit moves every histogram by at
most 1 and not by max_rows: the histograms estimate the distribution of a random row of a random
unit. A hidden column, the number of rows (1 .. max_rows), comes first, and its pairs are the first
to be measured; weighing rows by it at sampling (a unit of r rows counts r times) gives back the
distribution of rows without further noise, but for the codes within a bin, which keep the shares
that they have among units.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import AnyRows, Cells, Lookup, Rows, UnitRows, in_memory
from dpsynth.models import Domain, runs_again
from dpsynth.models.marginals.adaptive_cells import AdaptiveCells, leaves_of, levelled, sizes_of
from dpsynth.models.marginals.binning import Binning
from dpsynth.models.marginals.contrasts import Margins, relate, target_with
from dpsynth.models.marginals.exact_counts import exact_chosen_histograms, exact_joint_histograms
from dpsynth.models.marginals.grains import GrainCounts, followed, measure_grains, points_of
from dpsynth.models.marginals.histograms import MergedBins, merge, noisy_total
from dpsynth.models.marginals.pairs import (
    Pair,
    Pairs,
    bins_with_margins,
    bins_with_tails,
    choose_pairs,
    margins_of,
    pair_noise,
    trends_of,
)
from dpsynth.models.marginals.product_mixture import Target
from dpsynth.models.marginals.released import Released
from dpsynth.models.presets import AGAIN, ONE_WAY, PAIRS
from dpsynth.privacy import (
    AnyPlan,
    ChosenHistograms,
    Event,
    JointHistograms,
    NonPrivatePlan,
    ObservedPlan,
    chosen_histograms,
    joint_histograms,
)
from dpsynth.privacy.pair_statistics import PRODUCTS

if TYPE_CHECKING:
    from dpsynth.privacy import Entropy

Floats = npt.NDArray[np.float64]


def cohort_with_visits(rows: Rows, order: Sequence[int] = ()) -> Rows:
    """Add each unit's number of rows to its rows, as a code from 0.

    Args:
        rows: with the columns of a table.
        order: of a domain: the table's columns in the order in which a generator takes them.
    """
    if rows.rows_per_unit == 1 and not order:
        return rows
    cells: list[Cells] = [Lookup(place) for place in order or range(rows.columns)]
    return rows.recoded([UnitRows(), *cells] if rows.rows_per_unit > 1 else cells)


@dataclass(frozen=True)
class Measured:
    """All that the events released, ready to be fitted to.

    Attributes:
        binning: the bins of each column of the domain, the hidden one included.
        target: shares and standard errors of columns and pairs.
        total: the noisy mass of the cohort, in units.
        released: what was counted, as it was counted.
    """

    binning: Binning
    target: Target
    total: float
    released: Released


@dataclass(frozen=True)
class Counted:
    """What the first event released.

    Attributes:
        binning: the bins of each column of the domain, the hidden one included.
        counts: of the columns, with noise, as they were released.
        leaves: the columns' distributions before bins were merged.
        total: the noisy sum of what all units add to a histogram.
        mass: what one unit adds to a histogram, at most.
        sigma: scale of the noise of a count.
        grains: of the numbers, if they were counted, in an event before.
    """

    binning: Binning
    counts: tuple[npt.NDArray[np.int64], ...]
    leaves: tuple[AdaptiveCells, ...]
    total: float
    mass: float
    sigma: float
    grains: GrainCounts | None = None

    @property
    def bins(self) -> tuple[MergedBins, ...]:
        """The bins of each column."""
        return self.binning.columns

    @property
    def of_codes(self) -> list[Floats]:
        """The noisy counts of the ordered codes of each column, one by one."""
        rest, features = iter(self.counts), self.binning.domain.features
        finest = [[next(rest) for _ in one.levels][-1] for one in features]
        columns = zip(finest, features, strict=True)
        return [counts[: one.cells].astype(np.float64) for counts, one in columns]


def count_columns(
    cohort: AnyRows,
    domain: Domain,
    plan: AnyPlan,
    entropy: Entropy,
    *,
    most_bins: int,
    of: str | None = None,
    importance: Callable[[int, Floats], Floats | None] | None = None,
) -> Counted:
    """Run the event of the one-way histograms, and merge their cells into bins.

    Args: as `measure`.
    """
    grains = measure_grains(cohort, domain, plan, entropy) if of is None else None
    points = points_of(domain, grains)
    one_way = plan.event(_named(ONE_WAY, of))
    assert isinstance(one_way, JointHistograms)
    release = exact_joint_histograms if isinstance(plan, NonPrivatePlan) else joint_histograms
    noisy = release(levelled(cohort, domain), sizes_of(domain), one_way, entropy)
    if isinstance(plan, ObservedPlan):
        plan.observer.counted(
            noisy, [one_way.sigma] * len(noisy), one_way, lambda others: levelled(others, domain)
        )
    total = noisy_total(noisy)
    sigma = one_way.sigma
    leaves = leaves_of(domain, noisy, total=total, sigma=sigma, alike=of is None, points=points)
    bins = tuple(
        merge(
            column,
            total=total,
            sigma=one_way.sigma,
            maximum=most_bins,
            outside=of is None,
            importance=None
            if importance is None
            else importance(place, column.shares(total)[column.leaf_of] * column.within),
            landmarks=domain.features[place].landmarks,
        )
        for place, column in enumerate(leaves)
    )
    binning = Binning(domain, bins, grains=None if grains is None else grains.weights(domain))
    return Counted(binning, tuple(noisy), leaves, total, float(one_way.mass), sigma, grains)


def measure(
    cohort: AnyRows,
    domain: Domain,
    plan: AnyPlan,
    entropy: Entropy,
    *,
    most_bins: int,
    of: str | None = None,
    weight: Callable[[Pair], float] | None = None,
    importance: Callable[[int, Floats], Floats | None] | None = None,
    trends: bool = False,
    kept: Callable[[Pair], bool] | None = None,
) -> Measured:
    """Run the events of the plan on a cohort and gather what they released.

    Args:
        cohort: codes ``[units, rows, columns]`` of the domain's columns, the hidden one included.
        domain: its public facts.
        plan: calibrated; has the events of the one-way histograms and of the pairs. Without
            privacy, all are run without noise; watched, all are told to the observer.
        entropy: source of noise.
        most_bins: bins that a smooth numeric column is cut into, about.
        of: which of several tables of the plan this is; events are named ``of: event``.
        weight: by which a pair is measured more precisely than others; a public fact.
        importance: of a row with each ordered code of a column, given the released shares of its
            codes, as `merge` takes it; None where rows are alike.
        trends: whether pairs with a clear trend are measured again too, as `Pairs.related` says.
        kept: pairs that are measured again whatever they show; a public fact.
    """
    exact = isinstance(plan, NonPrivatePlan)
    release_chosen = exact_chosen_histograms if exact else chosen_histograms
    counted = count_columns(
        cohort, domain, plan, entropy, most_bins=most_bins, of=of, importance=importance
    )
    binning, bins, leaves, total = counted.binning, counted.bins, counted.leaves, counted.total
    mass = counted.mass
    binned = binning.binned(cohort)

    def released(event: Event, places: Sequence[Pair]) -> Pairs:
        assert isinstance(event, ChosenHistograms)
        weights = None if weight is None else [weight(pair) for pair in places]
        sigmas = pair_noise(binning.sizes, places, event, weights)
        tables = release_chosen(binned, binning.sizes, places, sigmas, event, entropy)
        if isinstance(plan, ObservedPlan):
            plan.observer.paired(tables, places, sigmas, event, binning)
        counts = tuple(table.astype(np.float64) for table in tables)
        return Pairs(tuple(places), counts, tuple(sigmas))

    first = plan.event(_named(PAIRS, of))
    assert isinstance(first, ChosenHistograms)
    variances = [
        variances_of(column, cells, counted.sigma)
        for column, cells in zip(bins, leaves, strict=True)
    ]

    def with_pairs(known: Pairs) -> tuple[tuple[MergedBins, ...], tuple[Floats, ...]]:
        return bins_with_margins(bins, variances, margins_of(bins, known), total=total)

    if plan.has(PRODUCTS):
        one_way = Margins(variances, total, mass)
        related = relate(in_memory(binned), binning, one_way, plan, first, entropy)
        known = released(first, [related.pairs[place] for place in related.worth])
        columns, spreads = with_pairs(known)
        target = target_with(related, columns, Margins(spreads, total, mass), known)
    else:
        hidden = bool(domain.hidden)
        pairs = released(first, choose_pairs(bins, total / mass, first, hidden=hidden))
        known = pairs
        columns, spreads = with_pairs(known)
        if runs_again(domain):
            lines = [
                trends_of(column, feature.cells)
                for column, feature in zip(columns, domain.features, strict=True)
            ]
            related_places = known.related(
                columns, total, hidden=hidden, trends=lines if trends else None, kept=kept
            )
            finer = released(
                plan.event(_named(AGAIN, of)), [known.places[place] for place in related_places]
            )
            known = known.sharpened(related_places, finer)
            columns, spreads = with_pairs(known)
            pairs = known.others_independent(related_places, columns, total)
        target = target_of(columns, spreads, pairs, total)
    columns = bins_with_tails(
        domain,
        columns,
        counted.counts,
        margins_of(bins, known),
        total=total,
        sigma=counted.sigma,
        alike=of is None,
        points=points_of(domain, counted.grains),
    )
    columns = followed(columns, domain, counted.grains, counted.of_codes, counted.sigma)
    units = total / mass
    counts = Released(target.sizes, target.one, known.over(total), units, target.one_sd)
    return Measured(replace(binning, columns=columns), target, total / mass, counts)


def _named(event: str, of: str | None) -> str:
    return event if of is None else f"{of}: {event}"


def target_of(
    bins: Sequence[MergedBins], variances: Sequence[Floats], pairs: Pairs, total: float
) -> Target:
    """Turn counts into shares of the total, with standard errors.

    Args:
        bins: of each column, with their shares.
        variances: of the noise in the rows of each bin, in rows squared, by column.
        pairs: counts of pairs.
        total: the noisy number of rows.
    """
    sizes = tuple(column.count for column in bins)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    joint = np.zeros((offsets[-1], offsets[-1]))
    sd = np.full_like(joint, np.inf)
    for (i, j), table, sigma in pairs.each():
        block = np.s_[offsets[i] : offsets[i + 1], offsets[j] : offsets[j + 1]]
        joint[block] = table / total
        sd[block] = sigma / total
    one_way = np.concatenate([column.bin_shares for column in bins])
    one_sd = np.sqrt(np.concatenate(variances)) / total
    return Target(sizes, one_way, one_sd, joint, sd)


def variances_of(bins: MergedBins, leaves: AdaptiveCells, sigma: float) -> Floats:
    """Return the variance of the noise in each bin, in rows squared.

    Args:
        bins: of a column.
        leaves: that they were merged from.
        sigma: standard deviation of the noise of one count.
    """
    first = np.unique(leaves.leaf_of, return_index=True)[1]
    found = np.bincount(bins.bin_of[first], weights=leaves.variances, minlength=bins.count)
    return np.asarray(found * sigma**2, dtype=np.float64)
