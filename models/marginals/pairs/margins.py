"""What the counts of pairs say of each single column: shares of its bins, and its tails.

A pair of columns counts the bins of both. Its sums over the other column are noisy counts of this
column's bins: a table of standard deviation s and k bins of the other column gives each bin with
standard deviation s sqrt(k). The noise of different pairs is independent, so the sums of all pairs
are averaged with weights 1 / (s^2 k), and the average has variance 1 / sum of the weights. A column
of a table of 39 columns is counted 38 times in this way: at epsilon 3, all of them together know a
bin better than its one-way count does, and a bin of 80 thin cells many times better.

**Shares of bins.** One-way counts and sums of pairs are independent looks at the same rows, so they
are averaged by their precision too, and projected to shares that sum to 1. These shares take the
place of the one-way ones: in what the generator is fitted to, and in the products of columns that
replace the pairs without relation. (Those products would otherwise repeat the one-way noise of a
column many times over, and outweigh its pairs.) The sums of a pair then enter the fit twice, once
by the column and once by the pair itself. That gives them somewhat more weight beside the one-way
counts than their precision: little is lost, since they are the more precise. A one-way share that
the sums of pairs contradict, by more than `SEEN` standard deviations of both, is as uncertain as
that difference says: the bin is in a tail whose shape is none of those that were fitted.

**Tails.** The fit of a tail takes the sums of the bins as one more level (`tails`). This changes
only the shares of the codes within each bin.

**Privacy.** All this is a function of released counts and of the public scale of their noise, so it
is post-processing (Dwork and Roth 2014, proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpsynth.models import Domain
from dpsynth.models.marginals.adaptive_cells import leaves_of
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.models.marginals.pairs.selection import Pairs
from dpsynth.models.marginals.projection import SEEN, project
from dpsynth.models.marginals.tails import Level

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

EXACT = 1e-12  # rows squared: variances below are none
NOTHING = 1e-9  # share of a bin without rows; its codes keep their shares of it


@dataclass(frozen=True)
class Margin:
    """What all pairs of a column say of its bins.

    Attributes:
        counts: noisy rows of each bin, ``[bins]``.
        variance: of the noise in each of them; infinite if the column is in no pair.
    """

    counts: Floats
    variance: float


def margins_of(bins: Sequence[MergedBins], pairs: Pairs) -> tuple[Margin, ...]:
    """Average the sums of all pairs by column.

    Args:
        bins: of each column.
        pairs: released counts of pairs; none that was computed from one-way counts.
    """
    sums = [np.zeros(column.count) for column in bins]
    weights = [0.0] * len(bins)
    for where, table, sigma in pairs.each():
        for axis, place in enumerate(where):
            weight = 1.0 / max(sigma**2 * table.shape[1 - axis], EXACT)
            sums[place] += weight * table.sum(axis=1 - axis)
            weights[place] += weight
    return tuple(
        Margin(column / weight, 1.0 / weight) if weight else Margin(column, np.inf)
        for column, weight in zip(sums, weights, strict=True)
    )


def bins_with_margins(
    bins: Sequence[MergedBins],
    variances: Sequence[Floats],
    margins: Sequence[Margin],
    *,
    total: float,
) -> tuple[tuple[MergedBins, ...], tuple[Floats, ...]]:
    """Average the shares of bins with what the pairs say; codes keep their shares of their bin.

    Args:
        bins: of each column, with their one-way shares.
        variances: of the noise in the one-way count of each bin, in rows squared, by column.
        margins: of each column.
        total: the noisy number of rows.

    Returns:
        The bins with their new shares, and the variances of these, in rows squared.
    """
    columns, spreads = [], []
    for column, own, margin in zip(bins, variances, margins, strict=True):
        if not np.isfinite(margin.variance):
            columns.append(column)
            spreads.append(own)
            continue
        counts = column.bin_shares * total
        squares = (margin.counts - counts) ** 2
        against = squares > SEEN**2 * (own + margin.variance)
        own = np.where(against, squares - margin.variance, own)
        weight = own / (own + margin.variance) if margin.variance > EXACT else np.ones_like(own)
        counts = weight * margin.counts + (1.0 - weight) * counts
        shares = np.maximum(project(counts, total), NOTHING)
        columns.append(_shared(column, shares / shares.sum(), column.shares))
        spreads.append(weight * margin.variance)
    return tuple(columns), tuple(spreads)


def bins_with_tails(
    domain: Domain,
    bins: Sequence[MergedBins],
    counts: Sequence[Ints],
    margins: Sequence[Margin],
    *,
    total: float,
    sigma: float,
    alike: bool = False,
    points: Sequence[Floats | None] | None = None,
) -> tuple[MergedBins, ...]:
    """Fit the tails to one-way counts and pairs; bins keep their codes and their shares.

    Args:
        domain: the columns.
        bins: of each column.
        counts: released one-way counts, as `leaves_of` takes them.
        margins: of each column.
        total: the noisy number of rows.
        sigma: standard deviation of the noise of a one-way count.
        alike: as the leaves were cut that bins were merged from.
        points: the same.
    """
    levels = [
        _level(feature.cells, column, margin)
        for feature, column, margin in zip(domain.features, bins, margins, strict=True)
    ]
    leaves = leaves_of(
        domain, counts, total=total, sigma=sigma, bins=levels, alike=alike, points=points
    )
    return tuple(
        column if level is None else _shared(column, column.bin_shares, found.code_shares(total))
        for column, level, found in zip(bins, levels, leaves, strict=True)
    )


def _level(cells: int, column: MergedBins, margin: Margin) -> Level | None:
    """Return the counts of the ordered bins; None if there are none."""
    if cells == 0 or not EXACT < margin.variance < np.inf:
        return None
    edges = np.flatnonzero(np.diff(column.bin_of[:cells].astype(np.int64), prepend=-1))
    whole = np.append(edges, cells).astype(np.int64)
    return Level(margin.counts[: len(edges)], whole, margin.variance**0.5)


def _shared(column: MergedBins, of_bins: Floats, of_codes: Floats) -> MergedBins:
    """Give bins new shares, and their codes shares of them; a bin without keeps those it had."""
    held = np.bincount(column.bin_of, weights=of_codes, minlength=column.count)
    whole = np.where(held > 0, held, column.bin_shares)[column.bin_of]
    within = np.where(held[column.bin_of] > 0, of_codes, column.shares)
    within = np.divide(within, whole, out=np.zeros_like(within), where=whole > 0)
    return replace(column, shares=of_bins[column.bin_of] * within)
