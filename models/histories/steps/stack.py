"""Steps of all series of a table, counted together: a histogram names the series in its cells.

The series are parts of each histogram, and what a patient's steps weigh in them has an L2 norm of
`MASS` at most, so one histogram over all series costs what that of one series would
(`privacy.mechanisms`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.models import Feature
from dpsynth.models.base import BY_GROUP
from dpsynth.models.marginals import MergedBins, cells_at, loose_at
from dpsynth.privacy import (
    ChosenHistograms,
    Entropy,
    JointHistograms,
    Observer,
    WeightedRows,
    weighted_histograms,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]
Cells = Iterable[list[Ints]]  # of each histogram, the cells of the steps of each series


@dataclass(frozen=True, eq=False)
class Watched:
    """Who is shown each release, in an audit, beside steps that belong to no real person.

    Attributes:
        observer: is shown them.
        canaries: steps of all canaries, in the data or not.
        others: steps of everybody else in the data.
    """

    observer: Observer
    canaries: Stack
    others: Stack


@dataclass(frozen=True, eq=False)
class Stack:
    """Coded steps of every series of a table.

    Attributes:
        features: the columns of each series; the same kinds of columns in all.
        codes: ``[steps, columns]`` of each series.
        patients: of each step, by series.
        weights: of each step, by series.
        watched: an observer of the releases; None in a fit that is kept.
    """

    features: tuple[tuple[Feature, ...], ...]
    codes: tuple[Ints, ...]
    patients: tuple[Ints, ...]
    weights: tuple[Ints, ...]
    watched: Watched | None = None

    def one_way(self, event: JointHistograms, entropy: Entropy) -> list[list[list[Ints]]]:
        """Release counts of every column at every level, ``[series][column][level]``."""
        owners = [
            (j, level)
            for j, column in enumerate(zip(*self.features, strict=True))
            for level in range(max(len(feature.levels) for feature in column))
        ]
        sizes = [[_size(features[j], level) for features in self.features] for j, level in owners]

        def cells_of(stack: Stack) -> Cells:
            return (
                [
                    _levelled(codes[:, j], features[j], level)
                    for features, codes in zip(stack.features, stack.codes, strict=True)
                ]
                for j, level in owners
            )

        noisy = self._released(cells_of, sizes, [event.sigma] * len(sizes), event, entropy)
        counts: list[list[list[Ints]]] = [[[] for _ in features] for features in self.features]
        for (j, level), by_series in zip(owners, noisy, strict=True):
            for series, part in enumerate(by_series):
                if level < len(self.features[series][j].levels):
                    counts[series][j].append(part)
        return counts

    def pairs(
        self,
        bins: Sequence[Sequence[MergedBins]],
        places: Sequence[Pair],
        sigmas: Sequence[float],
        event: ChosenHistograms,
        entropy: Entropy,
    ) -> list[list[Ints]]:
        """Release joint counts of pairs of binned columns, ``[pair][series]``.

        Args:
            bins: of each column, by series.
            places: columns of each pair.
            sigmas: scale of each pair's noise.
            event: what the plan paid for.
            entropy: where the noise comes from.
        """
        counts = [[column.count for column in of_series] for of_series in bins]

        def cells_of(stack: Stack) -> Cells:
            binned = [
                [column.coarsen(codes[:, j]).astype(np.int64) for j, column in enumerate(of_series)]
                for codes, of_series in zip(stack.codes, bins, strict=True)
            ]
            return (
                [part[i] * sizes[j] + part[j] for part, sizes in zip(binned, counts, strict=True)]
                for i, j in places
            )

        shapes = [[sizes[i] * sizes[j] for sizes in counts] for i, j in places]
        noisy = self._released(cells_of, shapes, sigmas, event, entropy)
        return [
            [
                part.reshape(sizes[i], sizes[j])
                for part, sizes in zip(by_series, counts, strict=True)
            ]
            for (i, j), by_series in zip(places, noisy, strict=True)
        ]

    def histograms(self, size: int, event: JointHistograms, entropy: Entropy) -> list[list[Ints]]:
        """Release histograms of codes that are cells of one size, ``[column][series]``."""
        columns = range(self.codes[0].shape[1])

        def cells_of(stack: Stack) -> Cells:
            return ([codes[:, j] for codes in stack.codes] for j in columns)

        sizes = [[size] * len(self.codes) for _ in columns]
        return self._released(cells_of, sizes, [event.sigma] * len(sizes), event, entropy)

    def _released(
        self,
        cells_of: Callable[[Stack], Cells],
        sizes: Sequence[Sequence[int]],
        sigmas: Sequence[float],
        event: JointHistograms | ChosenHistograms,
        entropy: Entropy,
    ) -> list[list[Ints]]:
        """Lay the cells of all series end to end, count, and cut the counts up again."""
        rows = self._laid(cells_of(self), sizes)
        noisy = weighted_histograms(rows, sizes, sigmas, event, entropy)
        if self.watched is not None:
            known = (self.watched.canaries, self.watched.others)
            canaries, others = (stack._laid(cells_of(stack), sizes) for stack in known)
            self.watched.observer.weighed(noisy, sigmas, canaries, others)
        return [
            np.split(counts, np.cumsum(widths)[:-1])
            for counts, widths in zip(noisy, sizes, strict=True)
        ]

    def _laid(self, cells: Cells, sizes: Sequence[Sequence[int]]) -> WeightedRows:
        """Keep the cells of all histograms in as few bytes as their number takes."""
        together = []
        for parts, widths in zip(cells, sizes, strict=True):
            starts = np.cumsum([0, *widths[:-1]])
            rows = np.concatenate([part + start for part, start in zip(parts, starts, strict=True)])
            fits = sum(widths) <= np.iinfo(np.int32).max
            together.append(rows.astype(np.int32) if fits else rows)
        series = np.repeat(np.arange(len(self.patients)), [len(own) for own in self.patients])
        patients, weights = np.concatenate(self.patients), np.concatenate(self.weights)
        return WeightedRows(tuple(together), patients, weights, series)


def levels_of(features: Sequence[Sequence[Feature]]) -> int:
    """Return the number of one-way histograms of a stack: a public fact."""
    return sum(max(len(one.levels) for one in column) for column in zip(*features, strict=True))


def _levelled(codes: Ints, feature: Feature, level: int) -> Ints:
    """Return the cells of a column at a level; all in one cell for levels that it lacks."""
    if level >= len(feature.levels):
        return np.zeros(len(codes), dtype=np.int64)
    width = feature.levels[level]
    if width == BY_GROUP:
        return np.array(feature.parents, dtype=np.int64)[codes]
    cells = cells_at(feature, width)
    return np.where(codes >= feature.cells, codes - feature.cells + cells, codes // width)


def _size(feature: Feature, level: int) -> int:
    """Return how many cells a column has at a level; one for levels that it lacks."""
    if level >= len(feature.levels):
        return 1
    width = feature.levels[level]
    return cells_at(feature, width) + loose_at(feature, width)
