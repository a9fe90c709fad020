"""Steps of all series of a table, counted together: a histogram names the series in its cells.

A patient's steps in all series weigh `MASS` together at most, so one histogram over all series
costs what that of one series would (`privacy.mechanisms`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.models import Feature
from dpsynth.models.marginals import cells_at
from dpsynth.privacy import (
    ChosenHistograms,
    Entropy,
    JointHistograms,
    WeightedRows,
    weighted_histograms,
)

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]


@dataclass(frozen=True, eq=False)
class Stack:
    """Coded steps of every series of a table.

    Attributes:
        features: the columns of each series; the same kinds of columns in all.
        codes: ``[steps, columns]`` of each series.
        patients: of each step, by series.
        weights: of each step, by series.
    """

    features: tuple[tuple[Feature, ...], ...]
    codes: tuple[Ints, ...]
    patients: tuple[Ints, ...]
    weights: tuple[Ints, ...]

    def one_way(self, event: JointHistograms, entropy: Entropy) -> list[list[list[Ints]]]:
        """Release counts of every column at every level, ``[series][column][level]``."""
        cells, sizes, owners = [], [], []
        for j in range(len(self.features[0])):
            for level in range(max(len(features[j].levels) for features in self.features)):
                parts = [
                    _levelled(codes[:, j], features[j], level)
                    for features, codes in zip(self.features, self.codes, strict=True)
                ]
                cells.append([part for part, _ in parts])
                sizes.append([size for _, size in parts])
                owners.append((j, level))
        noisy = self._released(cells, sizes, [event.sigma] * len(sizes), event, entropy)
        counts: list[list[list[Ints]]] = [[[] for _ in features] for features in self.features]
        for (j, level), by_series in zip(owners, noisy, strict=True):
            for series, part in enumerate(by_series):
                if level < len(self.features[series][j].levels):
                    counts[series][j].append(part)
        return counts

    def pairs(
        self,
        bins: Sequence[Ints],
        counts: Sequence[Sequence[int]],
        places: Sequence[Pair],
        sigmas: Sequence[float],
        event: ChosenHistograms,
        entropy: Entropy,
    ) -> list[list[Ints]]:
        """Release joint counts of pairs of binned columns, ``[pair][series]``.

        Args:
            bins: binned codes ``[steps, columns]`` of each series.
            counts: number of bins of each column, by series.
            places: columns of each pair.
            sigmas: scale of each pair's noise.
            event: what the plan paid for.
            entropy: where the noise comes from.
        """
        cells = [
            [part[:, i] * sizes[j] + part[:, j] for part, sizes in zip(bins, counts, strict=True)]
            for i, j in places
        ]
        shapes = [[sizes[i] * sizes[j] for sizes in counts] for i, j in places]
        noisy = self._released(cells, shapes, sigmas, event, entropy)
        return [
            [
                part.reshape(sizes[i], sizes[j])
                for part, sizes in zip(by_series, counts, strict=True)
            ]
            for (i, j), by_series in zip(places, noisy, strict=True)
        ]

    def histograms(
        self, cells: Sequence[Sequence[Ints]], size: int, event: JointHistograms, entropy: Entropy
    ) -> list[list[Ints]]:
        """Release histograms of given cells, of one size, ``[histogram][series]``."""
        sizes = [[size] * len(by_series) for by_series in cells]
        return self._released(cells, sizes, [event.sigma] * len(cells), event, entropy)

    def _released(
        self,
        cells: Sequence[Sequence[Ints]],
        sizes: Sequence[Sequence[int]],
        sigmas: Sequence[float],
        event: JointHistograms | ChosenHistograms,
        entropy: Entropy,
    ) -> list[list[Ints]]:
        """Lay the cells of all series end to end, count, and cut the counts up again."""
        together = []
        for parts, widths in zip(cells, sizes, strict=True):
            starts = np.cumsum([0, *widths[:-1]])
            together.append(
                np.concatenate([part + start for part, start in zip(parts, starts, strict=True)])
            )
        rows = WeightedRows(
            tuple(together), np.concatenate(self.patients), np.concatenate(self.weights)
        )
        noisy = weighted_histograms(rows, [sum(widths) for widths in sizes], sigmas, event, entropy)
        return [
            np.split(counts, np.cumsum(widths)[:-1])
            for counts, widths in zip(noisy, sizes, strict=True)
        ]


def levels_of(features: Sequence[Sequence[Feature]]) -> int:
    """Return the number of one-way histograms of a stack: a public fact."""
    return sum(max(len(one.levels) for one in column) for column in zip(*features, strict=True))


def _levelled(codes: Ints, feature: Feature, level: int) -> tuple[Ints, int]:
    """Return the cells of a column at a level, and how many; one cell for levels it lacks."""
    missing = level - len(feature.levels)
    if missing >= 0:
        return np.zeros(len(codes), dtype=np.int64), 1
    width = feature.levels[level]
    cells = cells_at(feature, width)
    return (
        np.where(codes >= feature.cells, codes - feature.cells + cells, codes // width),
        cells + feature.size - feature.cells,
    )
