"""The event of the grains: how many rows of each numeric column are whole, half, tenth, ...

A lattice is often finer than the values on it. Heart rates may be whole in every record, on a
lattice of tenths, and no noisy count of one code shows that: a code has fewer rows than the noise.
All codes of a grain together show it at a glance. So each row enters one cell of a small histogram
for each column, the grain of its own value (`dpsynth.encoding.grain`), or a last cell if its code
has none: missing, zero, a bound, or points of several grains.

**Privacy.** The cell of a row is a fixed function of its own code, so G columns are G histograms of
one `JointHistograms`: every row enters each histogram once, in one cell, and a unit moves their
joint vector by at most M sqrt(G) in L2, where M is what it adds to one histogram. That is the
sensitivity of the one-way event, with G in the place of its histograms, and the same discrete
Gaussian mechanism pays for it (`accounting`). The counts must not be taken as they are: a single
patient with 77.25 in a table of whole numbers would show. What follows from the noisy counts is
post-processing (Dwork and Roth 2014, "The Algorithmic Foundations of Differential Privacy",
proposition 2.1).

**What the counts say.** Grains are gone through from the finest. Of the rows with a grain as fine
as k or coarser, n_k have grain k; on an even spread a public share q0 of them would. If n_k is
within `APART` standard deviations of that, of noise and of chance, nothing was seen and q0 stays.
If it is below `SEEN` standard deviations of the noise alone, no row has the grain: an all-whole
column gives whole numbers only. Otherwise n_k tells the share. So what noise hides stays as a
smooth column would have it.

Shares of codes that follow the grains, with the rows of each bin kept.

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

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import AnyRows, Cells, Derived, Lookup, Rows
from dpsynth.models import Codes, Domain, Feature
from dpsynth.models.grain_settings import GRAINS, measured
from dpsynth.models.marginals.exact_counts import exact_joint_histograms
from dpsynth.models.marginals.heaps import heaps_among
from dpsynth.models.marginals.histograms import MergedBins
from dpsynth.models.marginals.projection import SEEN
from dpsynth.privacy import AnyPlan, JointHistograms, NonPrivatePlan, ObservedPlan, joint_histograms

if TYPE_CHECKING:
    from dpsynth.privacy import Entropy


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

APART = 2.0  # standard deviations that a share lies from that of an even spread, to be seen
UNITS = 8  # of a column at most, as arrays of a run hold them


@dataclass(frozen=True)
class GrainCounts:
    """What the event released.

    Attributes:
        counts: rows of each grain of each column of the domain; empty for those without.
        sigma: standard deviation of the noise in each of them.
        mass: what one unit adds to a histogram, at most.
    """

    counts: tuple[Floats, ...]
    sigma: float
    mass: float

    def share(self, place: int, grain: int, even: float) -> float | None:
        """Return the share of a grain among the rows of it and all coarser ones.

        Args:
            place: of the column.
            grain: from 0, the coarsest.
            even: the share that there would be without any habit.

        Returns:
            None if the counts do not say that the share is another one.
        """
        own, coarser = self.counts[place][grain], self.counts[place][:grain]
        whole = max(float(own + coarser.sum()), 0.0)
        noise = self.sigma * math.sqrt((1 - even) ** 2 + len(coarser) * even**2)
        chance = math.sqrt(whole * self.mass * even * (1 - even))
        if whole <= SEEN * self.sigma * math.sqrt(grain + 1):
            return None
        if abs(own - even * whole) <= APART * math.hypot(noise, chance):
            return None
        return 0.0 if own <= SEEN * self.sigma else min(float(own) / whole, 1.0)

    def weights(self, domain: Domain) -> Floats:
        """Return how much commoner the values of each unit are than an even spread makes them.

        Returns:
            Of each column of the domain, ``[columns, UNITS]``; 1 where nothing was seen.
        """
        found = np.ones((len(domain.features), UNITS))
        for place in measured(domain):
            own, seen = points_by_grain(domain.features[place]), self.seen(domain, place)
            left = 1.0
            for grain in range(len(own) - 1, -1, -1):
                if own[grain] == 0:
                    continue
                share = seen.get(grain, own[grain] / own[: grain + 1].sum())
                found[place, grain] = left * share * own.sum() / own[grain]
                left *= 1.0 - share
        return found

    def seen(self, domain: Domain, place: int) -> dict[int, float]:
        """Return the shares that differ from those of an even spread, as `share`, by grain."""
        own = points_by_grain(domain.features[place])
        found: dict[int, float] = {}
        for grain in range(len(own) - 1, 0, -1):
            whole = own[: grain + 1].sum()
            if 0 < own[grain] < whole:
                share = self.share(place, grain, own[grain] / whole)
                found |= {} if share is None else {grain: share}
        return found


def points_by_grain(feature: Feature) -> Floats:
    """Return how many values of each round unit a column has."""
    if feature.raised is not None:
        own = np.array(feature.raised.of_points)
        return np.bincount(own[own >= 0], minlength=feature.raised.units).astype(np.float64)
    return np.asarray(np.array(feature.grains, dtype=np.float64).sum(axis=0))


def measure_grains(
    cohort: AnyRows, domain: Domain, plan: AnyPlan, entropy: Entropy
) -> GrainCounts | None:
    """Run the event of the grains; None for a plan without it.

    Args:
        cohort: codes of the domain's columns.
        domain: its public facts.
        plan: calibrated; without privacy, counts are exact; watched, they are told.
        entropy: source of noise.
    """
    if not plan.has(GRAINS):
        return None
    event = plan.event(GRAINS)
    assert isinstance(event, JointHistograms)
    places = measured(domain)
    sizes = [domain.features[place].units + 1 for place in places]
    release = exact_joint_histograms if isinstance(plan, NonPrivatePlan) else joint_histograms
    noisy = release(grained(cohort, domain), sizes, event, entropy)
    if isinstance(plan, ObservedPlan):
        sigmas = [event.sigma] * len(noisy)
        plan.observer.counted(noisy, sigmas, event, lambda others: grained(others, domain))
    counts = [np.zeros(0)] * len(domain.features)
    for place, histogram in zip(places, noisy, strict=True):
        counts[place] = histogram[:-1].astype(np.float64)
    return GrainCounts(tuple(counts), event.sigma, float(event.mass))


def grained(rows: Rows, domain: Domain) -> Rows:
    """Give each row the cell of its grain in each measured column, ``[units, rows, columns]``."""
    return rows.recoded([_cells_of(domain.features, place) for place in measured(domain)])


def _cells_of(features: Sequence[Feature], place: int) -> Cells:
    if features[place].raised is None:
        return Lookup(place, cell_of(features[place]))
    places = sorted(_read(features, place))
    return Derived(tuple(places), _Grain(tuple(features[j] for j in places), places.index(place)))


def _read(features: Sequence[Feature], place: int) -> set[int]:
    """Return the columns that say the value of a row in one column, itself included."""
    raised, names = features[place].raised, [feature.name for feature in features]
    bases = [] if raised is None else [names.index(name) for name, _ in raised.bases]
    return {place}.union(*(_read(features, base) for base in bases))


@dataclass(frozen=True)
class _Grain:
    """The cell of each row in a column that is a gap above others."""

    features: tuple[Feature, ...]
    place: int

    def __call__(self, codes: npt.NDArray[np.integer]) -> Codes:
        return cells_in(codes, self.features, self.place)


def cells_in(codes: npt.NDArray[np.integer], features: Sequence[Feature], place: int) -> Codes:
    """Return the cell of each row in one column: of its own code, or of those it is above.

    Args:
        codes: of all columns, ``[..., columns]``.
        features: the columns.
        place: of the column.
    """
    feature = features[place]
    if feature.raised is None:
        return np.asarray(cell_of(feature)[codes[..., place]])
    grains = np.array([*feature.raised.of_points, -1])
    at = positions_of(codes, features, place)
    found = grains[np.minimum(at, len(grains) - 2)]
    none = (found < 0) | (codes[..., place] >= feature.cells)
    return np.where(none, feature.raised.units, found).astype(np.uint16)


def positions_of(codes: npt.NDArray[np.integer], features: Sequence[Feature], place: int) -> Ints:
    """Return the value of each row in one column, as a position on its lattice.

    It is the code, or the code above the least position that the columns below allow.
    """
    raised, own = features[place].raised, codes[..., place].astype(np.int64)
    if raised is None:
        return own
    least = np.zeros_like(own)
    names = [feature.name for feature in features]
    for name, allowed in raised.bases:
        below = names.index(name)
        at = positions_of(codes, features, below)
        missing = codes[..., below] >= features[below].cells
        known = np.array(allowed)[np.minimum(at, len(allowed) - 1)]
        least = np.maximum(least, np.where(missing, 0, known))
    return np.minimum(least, len(raised.of_points) - 1) + own


def cell_of(feature: Feature) -> Codes:
    """Return the cell of each code of a column, ``[size]``: its grain, or the last one."""
    if not feature.grains:
        return np.zeros(feature.size, dtype=np.uint16)
    by_code = np.array(feature.grains)
    units = by_code.shape[1]
    found = np.full(feature.size, units, dtype=np.uint16)
    one = ((by_code > 0).sum(axis=1) == 1) & (by_code.sum(axis=1) == feature.points)
    found[: feature.cells][one] = by_code[one].argmax(axis=1)
    return found


def points_of(domain: Domain, counts: GrainCounts | None) -> Sequence[Floats | None] | None:
    """Return by what the codes of each column share rows, in place of their lattice points.

    None for a column of which nothing was seen.
    """
    if counts is None:
        return None
    weights = counts.weights(domain)
    found: list[Floats | None] = [None] * len(domain.features)
    for place in measured(domain):
        feature, own = domain.features[place], weights[place]
        if not feature.grains:
            continue  # a gap: its own codes have no grains
        by_code = np.array(feature.grains)
        if (own[: by_code.shape[1]] != 1.0).any():
            without = np.array(feature.points) - by_code.sum(axis=1)
            found[place] = by_code @ own[: by_code.shape[1]] + without
    return found


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
