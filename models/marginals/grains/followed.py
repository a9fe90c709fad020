"""Shares of codes that follow the grains, with the rows of each bin kept.

Where a column's own counts tell its codes apart, they have the last word on how many rows a bin
has, and its grains on how these rows are written: the shares of a bin's codes are moved until the
column's grains have the shares that were measured, and nothing else is asked of them. A code whose
own count stands out of its bin, such as a value that was filled in for others, is known better by
that count than by its grain, and keeps its rows as a bin does. That is the
distribution closest to the one before, in relative entropy, among those with the same bins and
grains; it is found by scaling grains and bins in turn (iterative proportional fitting: Csiszar
1975, "I-divergence geometry of probability distributions and minimization problems", theorem 3.2).

**Privacy.** Shares and counts were released: post-processing (Dwork and Roth 2014, proposition
2.1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from dpsynth.models import Domain
from dpsynth.models.grain_settings import measured
from dpsynth.models.marginals.grains.measurement import GrainCounts, cell_of
from dpsynth.models.marginals.heaps import heaps_among
from dpsynth.models.marginals.histograms import MergedBins

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

ROUNDS = 60
CLOSE = 1e-4  # of a share of rows


def followed(
    columns: Sequence[MergedBins],
    domain: Domain,
    counts: GrainCounts | None,
    of_codes: Sequence[Floats],
    sigma: float,
) -> tuple[MergedBins, ...]:
    """Move the shares of codes within their bins towards the grains that were measured, if any.

    Args:
        columns: their bins.
        domain: their public facts.
        counts: of grains.
        of_codes: released noisy counts of the ordered codes of each column.
        sigma: standard deviation of the noise of each of them.
    """
    found = list(columns)
    for place in [] if counts is None else measured(domain):
        assert counts is not None
        if not domain.features[place].grains:
            continue  # a gap: its own codes have no grains
        cells = cell_of(domain.features[place])
        column = found[place]
        groups = column.bin_of.astype(np.int64)
        clear = _clear(column, of_codes[place], np.array(domain.features[place].points), sigma)
        groups[clear] = column.count + np.arange(len(clear))
        wanted = counts.seen(domain, place) | _seen_beside(column.shares, cells, place, counts)
        shares = scaled(column.shares, groups, cells, wanted)
        found[place] = replace(column, shares=shares)
    return tuple(found)


def _clear(column: MergedBins, counts: Floats, points: Floats, sigma: float) -> Ints:
    """Return the codes whose counts stand out of those of their bins."""
    found = []
    for each in range(column.count):
        own = np.flatnonzero(column.bin_of[: len(counts)] == each)
        heaps = heaps_among(counts[own], points[own], float(counts[own].sum()), sigma)
        found.append(own[heaps & (column.shares[own] > 0)])
    return np.concatenate(found)


def _seen_beside(
    shares: Floats, cells: npt.NDArray[np.integer], place: int, counts: GrainCounts
) -> dict[int, float]:
    """Return the counted shares that differ from those that the column has."""
    found: dict[int, float] = {}
    for grain in range(1, len(counts.counts[place])):
        own = _among(shares, cells, grain)
        share = None if own is None else counts.share(place, grain, own)
        found |= {} if share is None else {grain: share}
    return found


def scaled(
    shares: Floats,
    groups: npt.NDArray[np.int64],
    cells: npt.NDArray[np.integer],
    wanted: Mapping[int, float],
) -> Floats:
    """Return shares of codes whose groups have the rows that they had, and grains as wanted.

    Args:
        shares: of the codes of a column.
        groups: the group of each code, whose share stays.
        cells: the grain of each code, or a last one for those without.
        wanted: of some grains, the share among the rows of it and all coarser ones.
    """
    whole = np.bincount(groups, weights=shares)
    found = shares.copy()
    for _ in range(ROUNDS):
        apart = 0.0
        for grain, share in wanted.items():
            own = _among(found, cells, grain)
            if own is None:
                continue
            apart = max(apart, abs(own - share))
            # the grain and all coarser ones together keep what they have: only their parts move
            factors = np.where(cells == grain, share / own, (1 - share) / (1 - own))
            moved = np.where(cells <= grain, found * factors, found)
            left = np.bincount(groups, weights=moved, minlength=len(whole))
            again = np.divide(whole, left, out=np.zeros_like(whole), where=left > 0)
            found = np.where(left[groups] > 0, moved * again[groups], found)
        if apart < CLOSE:
            break
    return found


def _among(shares: Floats, cells: npt.NDArray[np.integer], grain: int) -> float | None:
    """Return the share of a grain among it and all coarser ones; None if it is none or all."""
    own, coarser = float(shares[cells == grain].sum()), float(shares[cells < grain].sum())
    return own / (own + coarser) if own > 0 and coarser > 0 else None
