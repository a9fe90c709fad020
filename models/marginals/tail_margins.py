"""Tails of the columns, fitted once more when pairs of columns have been counted.

A pair of columns counts the bins of both. Its sums over the other column are noisy counts of this
column's bins: a table of standard deviation s and k bins of the other column gives each bin with
standard deviation s sqrt(k). The noise of different pairs is independent, so the estimates of all
pairs are averaged with weights 1 / (s^2 k), and the average has variance 1 / sum of the weights.

These counts and the one-way counts are independent looks at the same rows. So the fit of a tail
takes the bins as one more level (`tails`). Only the shares of the codes within each bin change. The
shares of the bins themselves stay as they were: the generator is fitted to the pairs anyway, and
would otherwise count them twice.

**Privacy.** All this is a function of released counts and of the public scale of their noise, so it
is post-processing (Dwork and Roth 2014, proposition 2.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpsynth.models import Domain
from dpsynth.models.marginals.adaptive_cells import leaves_of
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.models.marginals.pair_selection import Pairs
from dpsynth.models.marginals.tails import Level

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def bins_with_tails(
    domain: Domain,
    bins: Sequence[MergedBins],
    counts: Sequence[Ints],
    pairs: Pairs,
    *,
    total: float,
    sigma: float,
) -> tuple[MergedBins, ...]:
    """Fit the tails again, to one-way counts and pairs, and share the rows of bins by the fit.

    Args:
        domain: the columns.
        bins: of each column; they keep their codes and their shares.
        counts: released one-way counts, as `leaves_of` takes them.
        pairs: released counts of pairs; none that was computed from one-way counts.
        total: the noisy number of rows.
        sigma: standard deviation of the noise of a one-way count.
    """
    margins = [
        _margin(place, feature.cells, column, pairs)
        for place, (feature, column) in enumerate(zip(domain.features, bins, strict=True))
    ]
    leaves = leaves_of(domain, counts, total=total, sigma=sigma, bins=margins)
    return tuple(
        column if margin is None else _reshared(column, found.code_shares(total))
        for column, margin, found in zip(bins, margins, leaves, strict=True)
    )


def _margin(place: int, cells: int, column: MergedBins, pairs: Pairs) -> Level | None:
    """Average what the pairs of a column say of its ordered bins; None if nothing does."""
    sums, weights = np.zeros(column.count), 0.0
    for where, table, sigma in zip(pairs.places, pairs.tables, pairs.sigmas, strict=True):
        if place in where:
            other = 1 - where.index(place)
            weight = 1.0 / max(sigma**2 * table.shape[other], 1e-12)
            sums += weight * table.sum(axis=other)
            weights += weight
    if weights == 0 or cells == 0:
        return None
    edges = np.flatnonzero(np.diff(column.bin_of[:cells].astype(np.int64), prepend=-1))
    whole = np.append(edges, cells).astype(np.int64)
    return Level(sums[: len(edges)] / weights, whole, weights**-0.5)


def _reshared(column: MergedBins, shares: Floats) -> MergedBins:
    """Share the rows of each bin among its codes as other shares do, where these have rows."""
    held = np.bincount(column.bin_of, weights=shares, minlength=column.count)[column.bin_of]
    within = np.divide(shares, held, out=np.zeros_like(shares), where=held > 0)
    moved = np.where(held > 0, column.bin_shares[column.bin_of] * within, column.shares)
    return replace(column, shares=moved)
