"""The tables of a comparison at equal sizes, cut into the same bins, dealt into groups of units.

Bins are the codes of the schema; wide columns are cut at the source.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.eval.core.estimate import Variants
from dpsynth.eval.core.features import MISSING, OTHERS, numbers
from dpsynth.eval.core.tables import Tables, TableView, groups
from dpsynth.schema import Column

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

GROUPS = 20  # of units, for the jackknife
DENSE = 30_000  # cells; a joint distribution of more is counted by the cells that occur


@dataclass(frozen=True, eq=False)
class PairedTable:
    """One table of a comparison.

    Attributes:
        view: its rows.
        bins: their bins ``[columns, rows]``.
        seats: the group of each row ``[rows]``; zeros where there are no groups.
        groups: how many there are; 0 for a table that only serves as a reference.
    """

    view: TableView
    bins: npt.NDArray[np.uint16]
    seats: Ints
    groups: int

    def counts(self, keys: Ints, cells: int) -> Ints:
        """Count rows by cell: ``[variants, cells]``, of the table, and without each group."""
        rows = np.bincount(self.seats * cells + keys, minlength=max(1, self.groups) * cells)
        by_group = rows.reshape(-1, cells)
        total = by_group.sum(axis=0, keepdims=True)
        return np.concatenate([total, total - by_group]) if self.groups else total

    def shares(self, hits: Bools, among: Bools | None = None) -> Floats:
        """Return the share of rows that are hit ``[variants]``, among some rows; NaN of none."""
        if among is None:
            among = np.ones(len(self.seats), dtype=bool)
        hit, present = self.sizes(np.flatnonzero(hits & among)), self.sizes(np.flatnonzero(among))
        return np.where(present > 0, hit / np.maximum(present, 1), np.nan)

    def sizes(self, rows: Ints | None = None) -> Ints:
        """Count some rows, or all: ``[variants]``, in the table, and without each group."""
        seats = self.seats if rows is None else self.seats[rows]
        total = np.array([len(seats)])
        if not self.groups:
            return total
        return np.concatenate([total, total - np.bincount(seats, minlength=self.groups)])


@dataclass(frozen=True, eq=False)
class PairedTables:
    """What is compared: each of three tables of ``n`` rows with all rows of the source.

    Attributes:
        tables: where they are from.
        bins: the cuts.
        source: all real rows.
        synthetic: a sample.
        holdout: a sample of other people's rows; None if there are none.
        chance: a bootstrap of the source, by unit.
    """

    tables: Tables
    bins: Bins
    source: PairedTable
    synthetic: PairedTable
    holdout: PairedTable | None
    chance: PairedTable

    @classmethod
    def of(cls, tables: Tables, rng: np.random.Generator) -> PairedTables:
        """Sample, cut and deal."""
        n = tables.size
        bins = Bins.of(tables.source.codes, tables.codec)

        def side(view: TableView, dealt: bool) -> PairedTable:
            count = min(GROUPS, len(np.unique(view.units))) if dealt else 0
            count = count if count > 1 else 0
            zeros = np.zeros(view.rows, dtype=np.int64)
            seats = groups(view.units, count, rng) if count else zeros
            return PairedTable(view, bins.cut(view.codes), seats, count)

        holdout = tables.holdout
        return cls(
            tables,
            bins,
            side(tables.source, True),
            side(tables.synthetic.sample(n, rng), True),
            None if holdout is None else side(holdout.sample(n, rng), False),
            side(tables.source.bootstrap(n, rng), False),
        )

    @property
    def n(self) -> int:
        """Rows of the tables that are compared with the source."""
        return self.synthetic.view.rows

    @property
    def every(self) -> tuple[PairedTable, ...]:
        """All of them, but for a holdout that is not there."""
        sides = (self.source, self.synthetic, self.holdout, self.chance)
        return tuple(side for side in sides if side is not None)

    def each(self, statistic: Callable[[PairedTable], Floats]) -> Variants:
        """Compute a statistic of each table."""
        return self.variants([statistic(side) for side in self.every])

    def joint(self, columns: Sequence[int]) -> Variants:
        """Return the shares of the cells that some columns span ``[variants, cells]``."""
        sizes = [self.bins.sizes[j] for j in columns]
        keys = [_keys(side, columns, sizes) for side in self.every]
        return self.histograms(keys, math.prod(sizes))

    def histograms(self, keys: Sequence[Ints], cells: int) -> Variants:
        """Return the shares of cells ``0 .. cells - 1``, from the cell of each row of each table.

        Of many cells, only those that occur are kept.
        """
        if cells > DENSE:
            codes, uniques = pd.factorize(np.concatenate(keys))
            ends = np.cumsum([len(part) for part in keys])
            keys, cells = np.split(codes.astype(np.int64), ends[:-1]), len(uniques)
        counts = [side.counts(part, cells) for side, part in zip(self.every, keys, strict=True)]
        return self.variants([part / part.sum(axis=1, keepdims=True) for part in counts])

    def variants(self, values: Sequence[Floats]) -> Variants:
        """Name the statistics of the tables, which come in the order of `every`."""
        holdout = None if self.holdout is None else values[2]
        return Variants(values[0], values[1], holdout, values[-1])


def _keys(side: PairedTable, columns: Sequence[int], sizes: Sequence[int]) -> Ints:
    """Number the cell of each row."""
    keys: Ints = side.bins[columns[0]].astype(np.int64)
    for j, size in zip(columns[1:], sizes[1:], strict=True):
        keys *= size
        keys += side.bins[j]
    return keys


Codes = npt.NDArray[np.integer]

BINS = 10
MAX_CATEGORIES = 100  # rarer categories of the source share one bin


def coarse(codes: Codes, edges: Sequence[npt.NDArray[np.integer] | None]) -> npt.NDArray[np.int64]:
    """Cut ordered columns at the given codes; leave columns without edges as they are."""
    columns = [
        codes[:, j] if cuts is None else np.searchsorted(cuts, codes[:, j], side="left")
        for j, cuts in enumerate(edges)
    ]
    return np.stack(columns, axis=1).astype(np.int64)


def decile_edges(
    codes: Codes, cells: Sequence[int], bins: int = BINS
) -> list[npt.NDArray[np.integer] | None]:
    """Cut ordered columns of more than ``bins`` cells at the deciles of a reference table.

    Codes at or past ``cells`` (missing) keep a bin of their own, the last one.
    """
    edges: list[npt.NDArray[np.integer] | None] = []
    for j, count in enumerate(cells):
        present = codes[codes[:, j] < count, j]
        if count <= bins or len(present) == 0:
            edges.append(None)
            continue
        cuts = np.unique(np.quantile(present, np.linspace(0, 1, bins + 1)[1:-1]).astype(int))
        edges.append(np.append(cuts[cuts < count - 1], count - 1))
    return edges


@dataclass(frozen=True, eq=False)
class Bins:
    """One set of bins for all tables of a comparison.

    A numeric column of at most 10 codes keeps them, a wider one is cut at the deciles of the
    reference; a categorical column keeps its codes, but for those beyond the 99 commonest of the
    reference, which share a bin. What is missing has a bin of its own.

    Attributes:
        of_code: by column, the bin of each code.
        sizes: how many bins each column has.
    """

    of_code: tuple[Ints, ...]
    sizes: tuple[int, ...]

    @classmethod
    def of(cls, reference: Codes, codec: Codec) -> Bins:
        """Cut by the codes ``[rows, columns]`` of a reference table."""
        of_code = []
        edges = decile_edges(reference, codec.cells)
        for j, (cuts, cells, size) in enumerate(zip(edges, codec.cells, codec.sizes, strict=True)):
            every = np.arange(size)
            if cells > BINS and cuts is None:  # the reference has no value: present or missing
                cuts = np.array([cells - 1])
            if cuts is not None:
                of_code.append(np.searchsorted(cuts, every, side="left").astype(np.int64))
            elif cells == 0 and size > MAX_CATEGORIES:
                missing = size - 1 if codec.schema.modelled[j].nullable else -1
                of_code.append(_pooled(np.bincount(reference[:, j], minlength=size), missing))
            else:
                of_code.append(every.astype(np.int64))
        return cls(tuple(of_code), tuple(int(bins.max()) + 1 for bins in of_code))

    def cut(self, codes: Codes) -> npt.NDArray[np.uint16]:
        """Return the bins ``[columns, rows]`` of codes ``[rows, columns]``."""
        bins = np.empty(codes.shape[::-1], dtype=np.uint16)
        for j, of_code in enumerate(self.of_code):
            bins[j] = of_code[codes[:, j]]
        return bins


def _pooled(counts: Ints, missing: int) -> Ints:
    """Number categories by how common they are; the rare ones share a bin, missing has its own."""
    if missing >= 0:
        counts = counts.copy()
        counts[missing] = counts.sum() + 1  # the first rank: never pooled
    rank = np.empty(len(counts), dtype=np.int64)
    rank[np.argsort(-counts, kind="stable")] = np.arange(len(counts))
    return np.minimum(rank, MAX_CATEGORIES - 1)


def bin_label(sides: PairedTables, place: int, number: int) -> str:
    """Name a bin of a column: a category, or the span of the source's values."""
    column = sides.tables.schema.modelled[place]
    codes = np.flatnonzero(sides.bins.of_code[place] == number)
    if column.is_categorical:
        names = list(_level_names(column, codes))
        return names[0] if len(names) == 1 else OTHERS
    values = numbers(sides.source.view, column)[sides.source.bins[place] == number]
    values = values[~np.isnan(values)]
    if not len(values):
        return MISSING
    write = column.kind.write or "{:.6g}".format
    ends = [write(end) for end in (values.min(), values.max())]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _level_names(column: Column, codes: Ints) -> Iterator[str]:
    for code in codes:
        if code >= len(column.levels):
            yield MISSING
            continue
        level = column.levels[code]
        yield str(column.labels.get(level, level))
