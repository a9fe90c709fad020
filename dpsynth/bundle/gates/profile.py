"""The profile of a synthetic table: what each column holds, in exact figures.

In a long table each test stands for a column, since its values have a kind and bounds of their own;
keys and places of rows are numbers that the sampler gives, and are no columns here. The table is
public, and so are its figures. They are computed from counts of distinct values, in
chunks, and do not depend on how the rows are divided into chunks.

Bins of a numeric column: at most 30, equally wide, with ends that people would choose.

A bin is a whole number of steps of the column's lattice, so that no bin has more points than its
neighbours by accident; dates are divided by days, weeks, months, quarters and years.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import cell_values, exploded, level_values, published_lattice
from dpsynth.schema import Column, Lattice, Schema, SyntheticTable, synthetic_tables
from dpsynth.schema.relations import converted
from dpsynth.schema.types import EPOCH, TYPES

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_CATEGORIES = 30
_MANY = 2**18  # distinct values of a column, kept from several chunks, before they are merged


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


MAX_BINS = 30
_DAY, _WEEK = 86_400, 7 * 86_400  # seconds
_SECONDS = (60, 300, 900, 3_600, 3 * 3_600, 6 * 3_600, 12 * 3_600)
_MONTHS = (1, 3, 12, 60, 120, 600, 1_200, 6_000, 12_000)
_MONTHS_OF_1970 = 1970 * 12


@dataclass(frozen=True)
class Bin:
    """A range of values or a category: its name, and how many rows are in it."""

    label: str
    rows: int


def bins_of(column: Column, lattice: Lattice, values: Floats, counts: Ints) -> tuple[Bin, ...]:
    """Divide the range that occurs into at most 30 bins; none if nothing occurs.

    Args:
        column: its declaration.
        lattice: of the column.
        values: distinct values in order, in the lattice's units.
        counts: how often each occurs.
    """
    if not len(values):
        return ()
    if column.kind.is_time:
        return _of_times(column, values, counts)
    return _of_numbers(column, lattice, values, counts)


def value_text(column: Column, lattice: Lattice, value: float) -> str:
    """Write a value of a numeric column as its table does, with the decimals of its lattice."""
    if column.kind.is_spelled:
        return column.kind.text(value)
    comma = "," if column.kind.is_quantity else ""
    text = f"{value:{comma}.{lattice.decimals}f}"
    return text.rstrip("0").rstrip(".") if lattice.decimals > 3 else text


def _of_numbers(column: Column, lattice: Lattice, values: Floats, counts: Ints) -> tuple[Bin, ...]:
    ticks = lattice.ticks(lattice.positions(values))
    # Bins begin at multiples of their width, unless the lattice's points lie between such.
    origin = lattice.first % lattice.stride
    for width in _widths(lattice.stride, clock=column.kind.is_elapsed):
        places = (ticks - origin) // width
        if places[-1] - places[0] < MAX_BINS:
            break
    last = lattice.first + (lattice.points - 1) * lattice.stride

    def label(place: int) -> str:
        begin = origin + place * width
        ends = max(begin, lattice.first), min(begin + width - lattice.stride, last)
        texts = [value_text(column, lattice, tick / 10**lattice.decimals) for tick in ends]
        return texts[0] if ends[0] == ends[1] else f"{texts[0]} to {texts[1]}"

    return _counted(places, counts, label)


def _of_times(column: Column, values: Floats, counts: Ints) -> tuple[Bin, ...]:
    unit = column.kind.seconds
    seconds = converted(values, column.kind, TYPES["datetime"]).astype("datetime64[s]")
    for width in (width for width in (*_SECONDS, _DAY, _WEEK) if unit and width >= unit):
        shift = 3 * _DAY if width == _WEEK else 0  # 1970 began on a Thursday, weeks on a Monday
        places = (seconds.astype(np.int64) + shift) // width
        if places[-1] - places[0] < MAX_BINS:
            label = partial(_begun, width=width, shift=shift)
            return _counted(places, counts, label)
    months = seconds.astype("datetime64[M]").astype(np.int64) + _MONTHS_OF_1970
    for many in _MONTHS:
        places = months // many
        if places[-1] - places[0] < MAX_BINS:
            break
    return _counted(places, counts, lambda place: _months(place * many, many))


def _counted(places: Ints, counts: Ints, label: Callable[[int], str]) -> tuple[Bin, ...]:
    """Add up the counts of each place, empty ones between included."""
    first = int(places[0])
    rows = np.zeros(int(places[-1]) - first + 1, dtype=np.int64)
    np.add.at(rows, places - first, counts)
    return tuple(Bin(label(first + step), int(count)) for step, count in enumerate(rows))


def _widths(stride: int, *, clock: bool) -> Iterator[int]:
    """Yield the stride times 1, 2, 5, 10, 20, 50, ...; parts of an hour or a day for a clock."""
    if clock:
        yield from (width for width in _SECONDS if width % stride == 0)
    power = 1
    while True:
        for digit in (1, 2, 5):
            yield stride * digit * power
        power *= 10


def _begun(place: int, width: int, shift: int) -> str:
    """Name a day, a week, or a part of a day, by when it begins."""
    begin = _time(place * width - shift)
    if width < _DAY:
        return f"from {begin:%Y-%m-%d %H:%M}"
    return f"{begin:%Y-%m-%d}" if width == _DAY else f"week of {begin:%Y-%m-%d}"


def _months(first: int, many: int) -> str:
    """Name a month, a quarter, a year or several years."""
    year, month = divmod(first, 12)
    match many:
        case 1:
            return f"{year}-{month + 1:02}"
        case 3:
            return f"{year}, quarter {month // 3 + 1}"
        case 12:
            return str(year)
    return f"{year} to {year + many // 12 - 1}"


def _time(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=float(seconds))
