"""One-way distributions on the finest cells that the noise lets one tell apart.

A column of up to 256 ordered codes is counted code by code. A wider one is counted three times: by
groups of 64 codes, of 8, and code by code. A row enters one cell of each count, so all counts of
all columns are joint histograms of one event. Afterwards, free of charge, the three are made
consistent (Hay, Rastogi, Miklau and Suciu 2010, arXiv 0904.0942, section 4), and the tree is cut
where a cell no longer stands out of the noise: below that, the points of a leaf share alike.
So an income that is always 0 or 50 000 keeps its heaps, and the tail between stays smooth.
Both ends of a column, where noise hides the cells one by one, are fitted instead, see `tails`. Each
of their codes is a leaf with the rows of the fit; the codes beyond the end share the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort
from dpsynth.models import Codes, Domain, Feature
from dpsynth.models.marginals.projection import project
from dpsynth.models.marginals.tails import LEAST, Level, Tails, tails_of

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SIGMAS = 5  # a cell is split if it holds so many standard deviations of the noise,
PART = 1 / 400  # and more than this part of all rows
MISFIT = 3.0  # times the variance of a tail's fit: its true shape is none of those tried
NOTHING = 1e-9  # of the rows: tails that leave less take all


@dataclass(frozen=True)
class AdaptiveCells:
    """A column's distribution.

    Attributes:
        leaf_of: the leaf of each code, ``[size]``; ordered leaves come first.
        ordered: how many leaves are ordered.
        counts: estimated rows in each leaf, ``[leaves]``; may be negative.
        within: share of each code in its leaf, ``[size]``; 0 for codes beyond the end of a tail.
        is_tail: whether a leaf is a tail, whose count is a fit and not below 0, ``[leaves]``.
        variances: of the noise in each count, in units of that of one cell, ``[leaves]``.
    """

    leaf_of: npt.NDArray[np.uint16]
    ordered: int
    counts: Floats
    within: Floats
    is_tail: npt.NDArray[np.bool_]
    variances: Floats

    @classmethod
    def of(
        cls,
        feature: Feature,
        levels: Sequence[Ints],
        *,
        total: float,
        sigma: float,
        bins: Level | None = None,
    ) -> AdaptiveCells:
        """Cut a column into leaves.

        Args:
            feature: the column.
            levels: its noisy counts, by the coarsest level first.
            total: the noisy number of rows.
            sigma: standard deviation of the noise of one count.
            bins: noisy counts of bins, of a later event, for the fit of the tails.
        """
        widths, cuts = feature.levels, [cells_at(feature, width) for width in feature.levels]
        ordered = [level[:cut].astype(np.float64) for level, cut in zip(levels, cuts, strict=True)]
        loose = np.stack([level[cut:] for level, cut in zip(levels, cuts, strict=True)]).mean(0)
        present, points = total - float(loose.sum()), feature.points
        tails = tails_of(ordered, widths, rows=present, sigma=sigma, points=points, bins=bins)
        if len(widths) == 1:
            leaf_of, counts = np.arange(feature.cells), ordered[0]
            mass = np.ones(feature.cells)
        else:
            consistent(ordered, widths)
            for level, width in zip(ordered, widths, strict=True):
                _take_out(tails, level, width)
            minimum = max(SIGMAS * sigma, PART * total)
            leaf_of, counts = _cut(ordered, widths, feature.cells, minimum=minimum)
            mass = np.asarray(points, dtype=np.float64)
        return cls._with_tails(leaf_of, counts, mass, loose, tails)

    @classmethod
    def _with_tails(
        cls, leaf_of: Ints, counts: Floats, mass: Floats, loose: Floats, tails: Tails
    ) -> AdaptiveCells:
        """Make the codes of each tail leaves, before and after the leaves of the body.

        The variance of a tail is `MISFIT` times that of its fit as a whole, and its codes share it
        as they do the rows. `LEAST` rows more, spread evenly, keep it above 0 for a code without.

        Args:
            leaf_of: the leaf of each ordered code as if there were no tails, ``[cells]``.
            counts: of these leaves.
            mass: by which the codes of a leaf share its rows, ``[cells]``.
            loose: counts of the unordered codes; each is a leaf.
            tails: what was found of them.
        """
        lower, upper = tails.rows[: tails.first], tails.rows[tails.last :]
        begin, end = _populated(lower[::-1]), _populated(upper)
        places = [np.maximum(np.arange(len(lower)) - len(lower) + begin, 0)]
        places += [leaf_of[tails.first : tails.last] + begin]
        places += [np.minimum(np.arange(len(upper)), end - 1) + begin + len(counts)]
        used, leaf_of = np.unique(np.concatenate(places), return_inverse=True)
        low, high = lower[len(lower) - begin :], upper[:end]
        own = np.concatenate([low, counts, high])[used]
        parts = [
            (rows + LEAST / max(len(rows), 1)) / (rows.sum() + LEAST) * MISFIT * noise
            for noise, rows in zip(tails.variances, (low, high), strict=True)
        ]
        noise = np.concatenate([parts[0], np.ones(len(counts)), parts[1]])[used]
        is_tail = (used < begin) | (used >= begin + len(counts))
        mass = np.where(is_tail[leaf_of], tails.rows, mass)
        whole = np.bincount(leaf_of, weights=mass)[leaf_of]
        within = np.divide(mass, whole, out=np.zeros_like(mass), where=whole > 0)
        last, ones = len(own) + np.arange(len(loose)), np.ones(len(loose))
        return cls(
            np.concatenate([leaf_of, last]).astype(np.uint16),
            len(own),
            np.concatenate([own, loose]),
            np.concatenate([within, ones]),
            np.concatenate([is_tail, ones == 0]),
            np.concatenate([noise, ones]),
        )

    @property
    def places(self) -> Floats:
        """Mean code of the rows of each ordered leaf, ``[ordered]``."""
        leaf_of = self.leaf_of[self.leaf_of < self.ordered]
        weights = self.within[: len(leaf_of)] + NOTHING
        sums = np.bincount(leaf_of, weights=weights * np.arange(len(leaf_of)))
        return np.asarray(sums / np.bincount(leaf_of, weights=weights), dtype=np.float64)

    def shares(self, total: float) -> Floats:
        """Return the share of each leaf: non-negative, and sums to 1.

        Tails keep the rows that were fitted; the projection moves the other counts only, since it
        would take most from cells of few rows.
        """
        shares = np.where(self.is_tail, self.counts / total, 0.0)
        left = 1.0 - float(shares.sum())
        if left > NOTHING and not self.is_tail.all():
            shares[~self.is_tail] = left * project(self.counts[~self.is_tail], total * left)
        return np.asarray(shares / shares.sum())

    def code_shares(self, total: float) -> Floats:
        """Return the share of each code in the column: non-negative, sums to 1."""
        return self.shares(total)[self.leaf_of] * self.within


def _populated(rows: Floats) -> int:
    """Return up to which code of a tail there are rows; at least 1 of a tail that has codes."""
    return int(np.flatnonzero(rows)[-1]) + 1 if rows.any() else min(1, len(rows))


def _take_out(tails: Tails, level: Floats, width: int) -> None:
    """Take the rows of the tails out of the counts of a level, in place.

    A cell that lies in a tail as a whole gets no share of what its parent holds.
    """
    starts = np.arange(0, len(tails.rows), width)
    level -= np.add.reduceat(tails.rows, starts)
    level[(starts + width <= tails.first) | (starts >= tails.last)] = -np.inf


def sizes_of(domain: Domain) -> tuple[int, ...]:
    """Return the number of cells of every count of every column."""
    return tuple(
        cells_at(feature, width) + feature.size - feature.cells
        for feature in domain.features
        for width in feature.levels
    )


def levelled(cohort: Cohort, domain: Domain) -> Cohort:
    """Give every count of every column a column of its own: ``[units, rows, counts]``."""
    if all(len(feature.levels) == 1 for feature in domain.features):
        return cohort
    return Cohort(np.stack(list(_coarse(cohort.codes, domain)), axis=-1), cohort.mask)


def leaves_of(
    domain: Domain,
    counts: Sequence[Ints],
    *,
    total: float,
    sigma: float,
    bins: Sequence[Level | None] | None = None,
) -> tuple[AdaptiveCells, ...]:
    """Cut every column of a domain into leaves, from the counts of `levelled` codes.

    ``bins`` are noisy counts of each column's bins, of a later event, for the fit of the tails.
    """
    rest = iter(counts)
    return tuple(
        AdaptiveCells.of(
            feature, [next(rest) for _ in feature.levels], total=total, sigma=sigma, bins=level
        )
        for feature, level in zip(
            domain.features, bins or [None] * len(domain.features), strict=True
        )
    )


def _coarse(codes: Codes, domain: Domain) -> Iterator[Codes]:
    for j, feature in enumerate(domain.features):
        column = codes[..., j]
        for width in feature.levels:
            loose = column >= feature.cells
            moved = column.astype(np.int64) - feature.cells + cells_at(feature, width)
            yield np.where(loose, moved, column // width).astype(np.uint16)


def cells_at(feature: Feature, width: int) -> int:
    """Return how many cells of so many codes the ordered codes of a column make."""
    return -(-feature.cells // width)


def consistent(levels: Sequence[Floats], widths: Sequence[int]) -> None:
    """Make noisy counts of a tree add up, in place.

    Upwards, a node becomes the average of its own count and the sum of its children, weighed by
    their precision; downwards, what a parent has more than its children is spread over them.

    Args:
        levels: counts of each level, the coarsest first, all with noise of one variance.
        widths: leaves that a cell of each level spans; each a multiple of the next.
    """
    parents = [
        np.arange(len(fine)) // (coarse // narrow)
        for fine, coarse, narrow in zip(levels[1:], widths[:-1], widths[1:], strict=True)
    ]
    variances = np.ones(len(levels[-1]))
    for level in range(len(parents) - 1, -1, -1):
        below = np.bincount(parents[level], weights=levels[level + 1])
        spread = np.bincount(parents[level], weights=variances)
        levels[level][:] = (spread * levels[level] + below) / (spread + 1.0)
        variances = spread / (spread + 1.0)
    for level, parent in enumerate(parents):
        spare = levels[level] - np.bincount(parent, weights=levels[level + 1])
        levels[level + 1][:] += (spare / np.bincount(parent))[parent]


def _cut(
    levels: Sequence[Floats], widths: Sequence[int], codes: int, *, minimum: float
) -> tuple[Ints, Floats]:
    """Split cells above ``least`` into their children; returns the leaf of each code, and counts.

    Children share their parent's count after projection, so that noise does not add to it.
    """
    leaf_of = np.empty(codes, dtype=np.int64)
    counts: list[float] = []

    def visit(level: int, cell: int, count: float) -> None:
        finer = np.empty(0)
        if level < len(levels) - 1:
            first = cell * widths[level] // widths[level + 1]
            finer = levels[level + 1][first : first + widths[level] // widths[level + 1]]
        if count <= minimum or not np.isfinite(finer).any():  # also a cell in a tail
            leaf_of[cell * widths[level] : (cell + 1) * widths[level]] = len(counts)
            counts.append(count)
            return
        for child, share in enumerate(project(finer, count)):
            visit(level + 1, first + child, float(share) * count)

    for cell, count in enumerate(levels[0]):
        visit(0, cell, float(count))
    return leaf_of, np.array(counts)
