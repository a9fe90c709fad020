"""Rows in shards on a disk, counted shard by shard.

Whoever counts, each piece of work is answered once (`dpsynth._util.engines`), and the number of
rows of each shard is compared with what was laid out. Only exact counts and numbers of rows come
back to the process that holds the plan; it adds the noise.

**Privacy.** A unit's rows are all in one shard, where at most ``max_rows`` of them are chosen by
its own rows and a fresh key, as in a `Cohort`. Counts of shards add up to those of a cohort of
all units. So a unit moves them by as much, and the same events pay for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from dpsynth._util.engines import Engine, InProcess, Take, each_once_or_here
from dpsynth._util.short_repr import short_repr
from dpsynth.encoding.cohort import Cohort
from dpsynth.encoding.shards.seating import Shard
from dpsynth.encoding.sources.recoding import Cells
from dpsynth.errors import DpsynthError
from dpsynth.privacy import Histogram, Histograms, UnitBound, exact_counts

Ints = npt.NDArray[np.int64]

PIECES = 4  # for each process that counts, at most: each gives back all counts


@dataclass(frozen=True)
class ShardedRows:
    """Rows of units in shards on a disk; a `RowSource`.

    Attributes:
        folder: where they are.
        shards: what is in it.
        columns: how many there are, of the cells that were asked for last.
        rows_per_unit: how many rows a unit has at most.
        engine: who counts.
        cells: what was asked for, one list after another.
    """

    folder: Path
    shards: tuple[Shard, ...]
    columns: int
    rows_per_unit: int
    engine: Engine = field(default_factory=InProcess)
    cells: tuple[tuple[Cells, ...], ...] = ()

    def __repr__(self) -> str:
        """Show no number: the rows may be real."""
        return short_repr(self, "coded rows of units")

    def recoded(self, cells: Sequence[Cells]) -> ShardedRows:
        """Return the same rows with other columns; codes are looked up when they are counted."""
        return replace(self, cells=(*self.cells, tuple(cells)), columns=len(cells))

    def counts(
        self, histograms: Sequence[Histogram], sizes: Sequence[int], event: Histograms
    ) -> list[Ints]:
        """Count histograms exactly, shard by shard, after all checks of each; private.

        Raises:
            InputError: a row is not what the event accounts for.
            DpsynthError: a shard is gone or was changed, or too many workers were lost.
        """
        work = _Counting(
            self.folder,
            self.shards,
            self.cells,
            tuple(histograms),
            tuple(sizes),
            UnitBound.of(event),
            min(len(self.shards), PIECES * self.engine.at_once),
        )
        sums: list[Ints] = []

        def begin() -> Take[_Counted]:
            sums[:] = [
                np.zeros(math.prod(sizes[column] for column in columns), dtype=np.int64)
                for columns in histograms
            ]
            return add

        def add(number: int, counted: _Counted) -> None:
            if counted.rows != [shard.rows for shard in work.shards_of(number)]:
                raise _lacking()
            for whole, part in zip(sums, counted.counts, strict=True):
                whole += part

        each_once_or_here(self.engine, work, work.pieces, begin)
        return sums

    def cohorts(self) -> Iterator[Cohort]:
        """Yield all units, some at a time, each with all of its rows; private.

        Raises:
            DpsynthError: a shard is gone or was changed.
        """
        for shard in self.shards:
            rows = 0
            for cohort in _cohorts(shard, self.folder, self.cells):
                rows += int(cohort.mask.sum())
                yield cohort
            if rows != shard.rows:
                raise _lacking()


@dataclass(frozen=True)
class _Counted:
    """Exact counts of some shards, and how many rows of each entered them."""

    rows: list[int]
    counts: list[Ints]

    def __repr__(self) -> str:
        return short_repr(self, "exact counts")


@dataclass(frozen=True)
class _Counting:
    """The work of counting every so many shards, from the one of a number on."""

    folder: Path
    shards: tuple[Shard, ...]
    cells: tuple[tuple[Cells, ...], ...]
    histograms: tuple[Histogram, ...]
    sizes: tuple[int, ...]
    bound: UnitBound
    pieces: int

    def __repr__(self) -> str:
        return short_repr(self, "shards of coded rows")

    def warm(self) -> None:
        """Nothing takes long but what is imported to unpickle this."""

    def shards_of(self, number: int) -> tuple[Shard, ...]:
        """Return the shards of a piece."""
        return self.shards[number :: self.pieces]

    def __call__(self, number: int) -> _Counted:
        rows, whole = [], [np.zeros(1, dtype=np.int64)] * len(self.histograms)
        for shard in self.shards_of(number):
            rows.append(0)
            for cohort in _cohorts(shard, self.folder, self.cells):
                counts = exact_counts(cohort, self.histograms, self.sizes, self.bound)
                whole = [sums + part for sums, part in zip(whole, counts, strict=True)]
                rows[-1] += int(cohort.mask.sum())
        return _Counted(rows, whole)


def _lacking() -> DpsynthError:
    return DpsynthError("a shard of the coded rows lacks rows; fit again")


def _cohorts(shard: Shard, folder: Path, asked: tuple[tuple[Cells, ...], ...]) -> Iterator[Cohort]:
    """Yield the units of a shard, some at a time, with the cells that were asked for."""
    for group in shard.groups:
        for cohort in group.cohorts(folder):
            for cells in asked:
                cohort = cohort.recoded(cells)
            yield cohort
