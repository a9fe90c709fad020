"""The profile of a synthetic table: what each column holds, in exact figures.

In a long table each test stands for a column, since its values have a kind and bounds of their own;
keys and places of rows are numbers that the sampler gives, and are no columns here. The table is
public, and so are its figures. They are computed from counts of distinct values, in
chunks, and do not depend on how the rows are divided into chunks.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.bundle.gates.histogram_bins import Bin, bins_of, value_text
from dpsynth.encoding import cell_values, exploded, level_values, published_lattice
from dpsynth.schema import Column, Lattice, Schema, SyntheticTable, synthetic_tables
from dpsynth.schema.lattice import EPOCH

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_CATEGORIES = 30
_MANY = 2**18  # distinct values of a column, kept from several chunks, before they are merged
_DAY_ONE = EPOCH.toordinal()


@dataclass(frozen=True)
class ColumnProfile:
    """What one column of a synthetic table holds.

    Attributes:
        column: its declaration.
        rows: of the table; of a test, those that name it.
        missing: cells without a value.
        strange: cells that the schema does not allow.
        bins: how the values are distributed: at most 30 ranges, in order; or the categories, in the
            declared order, or if there are more than 30, the 30 most frequent ones. Where a cell
            holds several codes, a bin counts the rows that have the code.
        others: rows in categories that are not among the bins.
        distinct: how many different values occur; missing is none.
        constant: all cells are equal, although the schema declares several values.
        mean: of a number, in the column's unit; None for anything else, or if no value occurs.
        five: smallest value, lower quartile, median, upper quartile and largest value as texts;
            each is a value of the table. Empty for categories, or if no value occurs.
    """

    column: Column
    rows: int
    missing: int
    strange: int
    bins: tuple[Bin, ...]
    others: int
    distinct: int
    constant: bool
    mean: float | None
    five: tuple[str, ...]


@dataclass(frozen=True)
class RuleCount:
    """A declared rule, and how many rows break it."""

    text: str
    broken: int


@dataclass(frozen=True)
class Profile:
    """A synthetic table by column, in the schema's order, and its rules.

    ``table`` is its name where a bundle has several; empty for a single one.
    """

    rows: int
    columns: tuple[ColumnProfile, ...]
    rules: tuple[RuleCount, ...]
    table: str = ""

    @classmethod
    def of(cls, table: Schema | SyntheticTable, frames: Iterable[pd.DataFrame]) -> Profile:
        """Count a table once, chunk by chunk.

        Args:
            table: its declaration.
            frames: typed, as `strict_table.typed_frames` reads them.
        """
        if isinstance(table, Schema):
            [table] = synthetic_tables(table).values()
        schema = table.schema
        tallies = [
            (_Tally(column, published_lattice(column)), test) for column, test in table.variables()
        ]
        broken, rows = [0] * len(schema.rules), 0
        for frame in frames:
            rows += len(frame)
            for tally, test in tallies:
                tally.add(_cells_of(frame, tally.column.name, test, table))
            for place, rule in enumerate(schema.rules):
                broken[place] += int((~rule.holds(frame)).sum())
        rules = zip(schema.rules, broken, strict=True)
        return cls(
            rows,
            tuple(tally.profile() for tally, _ in tallies),
            tuple(RuleCount(rule.text, count) for rule, count in rules),
            table.label,
        )

    def named(self, name: str) -> str:
        """Return the name of one of its columns as a reader of all tables needs it."""
        return f"{self.table}.{name}" if self.table else name


def _cells_of(
    frame: pd.DataFrame, name: str, test: str | None, table: SyntheticTable
) -> pd.Series[Any]:
    """Return the cells of a column; of a test, those of the rows that name it."""
    series = table.series
    if test is None or series is None:
        return frame[name]
    return frame[series.value][(frame[series.column] == test).to_numpy(dtype=bool)]


class _Tally:
    """How often each value of a column occurs, so far."""

    def __init__(self, column: Column, lattice: Lattice | None) -> None:
        self.column = column
        self.lattice = lattice
        self._rows = self._missing = self._unread = 0
        self._parts: list[tuple[Floats, Ints]] = []

    def add(self, cells: pd.Series[Any]) -> None:
        """Count the cells of one chunk."""
        if self.column.several is not None:
            self._add_sets(cells)
            return
        values = cell_values(cells, self.column)
        absent = cells.isna().to_numpy(dtype=bool)
        readable = values[~np.isnan(values)]
        self._rows += len(values)
        self._missing += int(absent.sum())
        self._unread += len(values) - len(readable) - int(absent.sum())
        self._parts.append(np.unique(readable, return_counts=True))
        if sum(len(values) for values, _ in self._parts[1:]) > _MANY:
            self._parts = [self._merged()]

    def _add_sets(self, cells: pd.Series[Any]) -> None:
        """Count the rows of each code, where a cell holds several."""
        codes, _ = exploded(cells, self.column)
        self._rows += len(cells)
        self._missing += int(cells.isna().sum())
        self._unread += int((codes < 0).sum())
        self._parts.append(np.unique(codes[codes >= 0].astype(np.float64), return_counts=True))

    def _merged(self) -> tuple[Floats, Ints]:
        """Give the distinct values in order, and how often each occurs."""
        if not self._parts:
            return np.empty(0), np.empty(0, dtype=np.int64)
        values = np.concatenate([values for values, _ in self._parts])
        counts = np.concatenate([counts for _, counts in self._parts])
        distinct, place = np.unique(values, return_inverse=True)
        total = np.zeros(len(distinct), dtype=np.int64)
        np.add.at(total, place, counts)
        return distinct, total

    def profile(self) -> ColumnProfile:
        """Describe what was counted."""
        values, counts = self._merged()
        if self.lattice is not None:
            values = _in_units(values, self.column)
            allowed = _within(values, self.lattice)
            bins, others = bins_of(self.column, self.lattice, values[allowed], counts[allowed]), 0
            possible = self.lattice.points
        else:
            levels = _levels(self.column)
            allowed = np.isin(values, levels)
            bins, others = _categories(self.column, levels, values[allowed], counts[allowed])
            possible = len(levels)
        strange = self._unread + int(counts[~allowed].sum())
        strange += self._missing if self.column.required else 0
        kinds = len(values) + (self._missing > 0)
        return ColumnProfile(
            column=self.column,
            rows=self._rows,
            missing=self._missing,
            strange=strange,
            bins=bins,
            others=others,
            distinct=len(values),
            constant=kinds == 1 and possible + self.column.nullable > 1,
            mean=self._mean(values, counts),
            five=self._five(values, counts),
        )

    def _mean(self, values: Floats, counts: Ints) -> float | None:
        if self.lattice is None or not self.column.kind.is_quantity or not len(values):
            return None
        return math.fsum((values * counts).tolist()) / int(counts.sum())

    def _five(self, values: Floats, counts: Ints) -> tuple[str, ...]:
        """Give the least value with at least this share of the values at or below it."""
        if self.lattice is None or not len(values):
            return ()
        below = np.cumsum(counts)
        ranks = [-(-int(below[-1]) * quarter // 4) for quarter in range(5)]  # rounded up
        places = np.searchsorted(below, np.maximum(ranks, 1))
        return tuple(value_text(self.column, self.lattice, values[place]) for place in places)


def _in_units(values: Floats, column: Column) -> Floats:
    """Turn what `cell_values` reads into the units of a lattice."""
    if column.kind.in_days:
        return values - _DAY_ONE
    return values / 1_000_000 if column.kind.is_time else values


def _within(values: Floats, lattice: Lattice) -> npt.NDArray[np.bool_]:
    ends = lattice.values(np.array([0, lattice.points - 1]))
    between: npt.NDArray[np.bool_] = (values >= ends[0]) & (values <= ends[1])
    return between & lattice.on_lattice(values)


def _levels(column: Column) -> Floats:
    """Give the categories as `cell_values` reads them."""
    if column.kind.is_text:
        return np.arange(len(column.levels), dtype=np.float64)
    return level_values(column)


def _categories(
    column: Column, levels: Floats, values: Floats, counts: Ints
) -> tuple[tuple[Bin, ...], int]:
    """Count each declared category; beyond 30, keep the most frequent and add up the others."""
    rows_of = dict(zip(values.tolist(), counts.tolist(), strict=True))
    bins = [
        Bin(column.labels.get(text, text), rows_of.get(level, 0))
        for text, level in zip(column.levels, levels.tolist(), strict=True)
    ]
    if len(bins) > MAX_CATEGORIES:
        bins.sort(key=lambda item: -item.rows)
    rest = bins[MAX_CATEGORIES:]
    return tuple(bins[:MAX_CATEGORIES]), sum(item.rows for item in rest)
