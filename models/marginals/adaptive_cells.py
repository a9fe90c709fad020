"""One-way distributions on the finest cells that the noise lets one tell apart.

A column of up to 256 ordered codes is counted code by code. A wider one is counted three times: by
groups of 64 codes, of 8, and code by code. A row enters one cell of each count, so all counts of
all columns are joint histograms of one event. Afterwards, free of charge, the three are made
consistent (Hay, Rastogi, Miklau and Suciu 2010, arXiv 0904.0942, section 4), and the tree is cut
where a cell no longer stands out of the noise: below that, the points of a leaf share alike.
So an income that is always 0 or 50 000 keeps its heaps, and the tail between stays smooth.
Cells at the ends that do not stand out of the noise are emptied first, see `tails`: their codes
have no share, in their leaf or in the column.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Cohort
from dpsynth.models import Codes, Domain, Feature
from dpsynth.models.marginals.projection import project
from dpsynth.models.marginals.tails import empty_codes, empty_ends

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SIGMAS = 5  # a cell is split if it holds so many standard deviations of the noise,
PART = 1 / 400  # and more than this part of all rows


@dataclass(frozen=True)
class AdaptiveCells:
    """A column's distribution.

    Attributes:
        leaf_of: the leaf of each code, ``[size]``; ordered leaves come first.
        ordered: how many leaves are ordered.
        counts: estimated rows in each leaf, ``[leaves]``; may be negative.
        within: share of each code in its leaf, ``[size]``; 0 for codes in an empty end of the
            column, unless all codes of their leaf are.
        empty: whether a leaf lies in an empty end of the column, ``[leaves]``.
    """

    leaf_of: npt.NDArray[np.uint16]
    ordered: int
    counts: Floats
    within: Floats
    empty: npt.NDArray[np.bool_]

    @classmethod
    def of(
        cls, feature: Feature, levels: Sequence[Ints], *, total: float, sigma: float
    ) -> AdaptiveCells:
        """Cut a column into leaves.

        Args:
            feature: the column.
            levels: its noisy counts, by the coarsest level first.
            total: the noisy number of rows.
            sigma: standard deviation of the noise of one count.
        """
        if len(levels) == 1:
            codes = np.arange(feature.size, dtype=np.uint16)
            counts = np.asarray(levels[0], dtype=np.float64)
            empty = np.zeros(feature.size, dtype=bool)
            empty[: feature.cells] = empty_ends(counts[: feature.cells], sigma=sigma)
            return cls(codes, feature.cells, counts, np.ones(feature.size), empty)
        cuts = [cells_at(feature, width) for width in feature.levels]
        ordered = [level[:cut].astype(np.float64) for level, cut in zip(levels, cuts, strict=True)]
        beyond = empty_codes(ordered, feature.levels, sigma=sigma)
        consistent(ordered, feature.levels)
        for level, width in zip(ordered[1:], feature.levels[1:], strict=True):
            level[_whole_cells(beyond, width)] = -np.inf  # no share of what its parent holds
        minimum = max(SIGMAS * sigma, PART * total)
        leaf_of, counts = _cut(ordered, feature.levels, feature.cells, minimum=minimum)
        loose = np.stack([level[cut:] for level, cut in zip(levels, cuts, strict=True)]).mean(0)
        places = np.arange(len(counts), len(counts) + len(loose))
        points = np.asarray(feature.points, dtype=np.float64)
        populated = np.bincount(leaf_of, weights=~beyond) > 0
        points = np.where(beyond & populated[leaf_of], 0.0, points)
        within = points / np.bincount(leaf_of, weights=points)[leaf_of]
        return cls(
            np.concatenate([leaf_of, places]).astype(np.uint16),
            len(counts),
            np.concatenate([counts, loose]),
            np.concatenate([within, np.ones(len(loose))]),
            np.concatenate([~populated, np.zeros(len(loose), dtype=bool)]),
        )

    def shares(self, total: float) -> Floats:
        """Return the share of each leaf: non-negative, sums to 1, and 0 in an empty end."""
        shares = np.zeros(len(self.counts))
        shares[~self.empty] = project(self.counts[~self.empty], total)
        return shares

    def code_shares(self, total: float) -> Floats:
        """Return the share of each code in the column: non-negative, sums to 1."""
        return self.shares(total)[self.leaf_of] * self.within


def _whole_cells(empty: npt.NDArray[np.bool_], width: int) -> npt.NDArray[np.bool_]:
    """Say which cells of so many codes hold no code that is populated."""
    return np.logical_and.reduceat(empty, np.arange(0, len(empty), width))


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
    domain: Domain, counts: Sequence[Ints], *, total: float, sigma: float
) -> tuple[AdaptiveCells, ...]:
    """Cut every column of a domain into leaves, from the counts of `levelled` codes."""
    rest = iter(counts)
    return tuple(
        AdaptiveCells.of(feature, [next(rest) for _ in feature.levels], total=total, sigma=sigma)
        for feature in domain.features
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
        if count <= minimum or not np.isfinite(finer).any():  # also a cell in an empty end
            leaf_of[cell * widths[level] : (cell + 1) * widths[level]] = len(counts)
            counts.append(count)
            return
        for child, share in enumerate(project(finer, count)):
            visit(level + 1, first + child, float(share) * count)

    for cell, count in enumerate(levels[0]):
        visit(0, cell, float(count))
    return leaf_of, np.array(counts)
