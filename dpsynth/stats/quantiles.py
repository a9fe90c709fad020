"""Quantiles of a column, by cells of a table, from a tree of counts.

**What is asked.** The codes of the column are counted in blocks of 1, 2, 4, ... codes: a tree of L
levels, in which a row enters one block of each level. The number of rows below a code is the sum of
at most L blocks, so its noise has a variance of at most L sigma^2, whatever the code (Chan, Shi,
Song, Private and Continual Release of Statistics, ICALP 2010).

**The interval.** Let F(x) be the number of rows below code x, and x the true quantile at q: then
F(x) < q N <= F(x + 1). The interval goes from the first code whose F(x + 1) is not below q N by
more than its noise permits, to the last one whose F(x) is not above it by more. So it holds the
true code whenever the noise at that one code is within bounds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.privacy import Entropy, Event, RowSums, row_sums
from dpsynth.privacy.answers import NOWHERE
from dpsynth.stats.answer_request import Numbers
from dpsynth.stats.counts import counting
from dpsynth.stats.statistic import Asked, Events, Ints, Rows, Statistic, sure

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Quantiles(Statistic):
    """Values below which given shares of the rows lie.

    Attributes:
        column: its name.
        place: of the column among the coded ones.
        values: what its ordered codes stand for, ``[codes]``, as they are written in the table.
        shares: of the rows, between 0 and 1.
    """

    column: str
    place: int
    values: tuple[Any, ...]
    shares: tuple[float, ...]

    @property
    def reads(self) -> Asked:
        """Its axes, and every code of the column that has a value; the last class has none."""
        return dict(super().reads) | {self.place: np.arange(len(self.values) + 1)}

    @property
    def levels(self) -> int:
        """How many levels the tree has; one block of the last holds all codes."""
        return (len(self.values) - 1).bit_length() + 1

    def blocks(self) -> list[int]:
        """Return how many blocks each level has, the finest first."""
        return [-(-len(self.values) // 2**level) for level in range(self.levels)]

    def events(self) -> tuple[tuple[Event, float], ...]:
        """One tree of counts."""
        return ((counting(self.name, self, self.levels), 1.0),)

    def sizes(self) -> dict[str, list[int]]:
        """A part for each level."""
        return {self.name: [self.size * size for size in self.blocks()]}

    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Count rows in the blocks of each level."""
        event = events[self.name]
        assert isinstance(event, RowSums)
        codes, cells, blocks = rows.codes[:, self.place], self.cells(rows), self.blocks()
        places = np.stack(
            [cells * size + codes // 2**level for level, size in enumerate(blocks)], axis=1
        )
        known = codes < len(self.values)
        places = np.where(known[:, None], places, NOWHERE).astype(np.int64)
        weights = None
        if self.per_unit:
            weights = np.broadcast_to(rows.weights(known)[:, None], places.shape)
        added = rows.adding(places, weights)
        return {self.name: row_sums(added, self.sizes()[self.name], event, entropy)}

    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
        """List a quantile of each cell and share, with the least and largest value it may have."""
        from sklearn.isotonic import isotonic_regression  # verification of tables does without

        event = events[self.name]
        assert isinstance(event, RowSums)
        trees = [
            np.asarray(level, dtype=np.float64).reshape(self.size, -1)
            for level in answers[self.name]
        ]
        cells = self.frame()
        found = []
        for cell in range(self.size):
            below, variance = _below([level[cell] for level in trees], len(self.values))
            total = trees[-1][cell, 0]
            for share in self.shares:
                off = z * event.sigma * np.sqrt(variance + share**2)
                gap = below - share * total
                estimate = _first(isotonic_regression(gap)[1:] >= 0)
                lower = min(_first(gap[1:] + off[1:] >= 0), estimate)
                upper = max(_last(gap[:-1] - off[:-1] <= 0), estimate)
                values = [self.values[code] for code in (estimate, lower, upper)]
                found.append([*cells.iloc[cell], share, *values])
        names = [axis.column for axis in self.axes]
        return pd.DataFrame(found, columns=[*names, "share", "value", "lower", "upper"])

    def expected(self, events: Events, z: float) -> str:
        """Say by how many rows the place of a quantile may be off."""
        event = events[self.name]
        assert isinstance(event, RowSums)
        off = z * event.sigma / event.largest * self.levels**0.5
        return f"a quantile to within {figure(off)} {self.counted} of its place, or less, {sure(z)}"


def _below(levels: list[Floats], codes: int) -> tuple[Floats, Floats]:
    """Return noisy rows below each code and above all, ``[codes + 1]``, and the number of blocks.

    Blocks are those of the binary digits of the code: the fewest that make up what lies below it.
    """
    ends = np.arange(codes + 1)
    total, blocks = np.zeros(codes + 1), np.zeros(codes + 1)
    for level, counts in enumerate(levels):
        taken = (ends >> level) & 1 == 1
        place = (ends >> level) - 1
        total[taken] += counts[place[taken]]
        blocks += taken
    return total, blocks


def _first(holds: npt.NDArray[np.bool_]) -> int:
    return int(np.argmax(holds)) if holds.any() else len(holds) - 1


def _last(holds: npt.NDArray[np.bool_]) -> int:
    return len(holds) - 1 - int(np.argmax(holds[::-1])) if holds.any() else 0
