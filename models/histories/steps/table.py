"""The steps of histories: one row for each pair of consecutive rows of a patient in a series.

A step says what is known before it (the coarse baseline, how many rows the patient has, which one
this is and how many follow, the day, the pace, the gap before, the values before) and what is to be
drawn: the gap, and the values. A measurement is drawn as its change from where a line puts it,
given the patient's level (the mean of her last value and of her values so far); other values are
drawn as they stand.

Each step of a patient weighs one over her steps in the series and over the series of the table in
which she has a step, as a whole number (`privacy.mechanisms` says what that costs). The
number of her rows is a condition, which undoes the weights when a history is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import SeriesRows
from dpsynth.models import Feature
from dpsynth.models.histories.domain import HistoryDomain, HistoryTable, Series
from dpsynth.models.histories.steps.lines import Line

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

MASS = 720_720
"""L2 norm of what a patient's steps of a table weigh, at most: a multiple of 1 .. 16."""


@dataclass(frozen=True, eq=False)
class Coarse:
    """A column of the person table in a few bins: a condition of every step.

    Attributes:
        column: its place in the person table.
        bin_of: the bin of each code.
    """

    column: int
    bin_of: Ints

    @property
    def feature(self) -> Feature:
        """Return it as a column without order."""
        return Feature(f"baseline {self.column}", int(self.bin_of.max(initial=0)) + 1, 0)


@dataclass(frozen=True, eq=False)
class Known:
    """What is known before steps of one series are drawn, for one patient each; ``[steps]``.

    Attributes:
        baseline: coarse bins, ``[steps, conditions]``.
        counts: rows of the patient in the series.
        index: place of the row that is to come, from 1.
        days: of the row before.
        ends: last day of follow-up.
        paces: mean days between the rows from here to the patient's last one.
        gaps: days between the two rows before; -1 for none.
        before: codes of the row before, ``[steps, values]``.
        levels: mean of the last code and of the codes so far, NaN without any, ``[steps, values]``.
    """

    baseline: Ints
    counts: Ints
    index: Ints
    days: Ints
    ends: Ints
    paces: Floats
    gaps: Ints
    before: Ints
    levels: Floats


@dataclass(frozen=True, eq=False)
class StepTable:
    """Histories to steps of one series.

    Attributes:
        domain: of the histories.
        table: the table of the series.
        series: the series.
        conditions: columns of the person table that are known before every step.
        lines: of the values that are drawn as changes; None for the others.
    """

    domain: HistoryDomain
    table: HistoryTable
    series: Series
    conditions: tuple[Coarse, ...]
    lines: tuple[Line | None, ...]

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The columns: what is known, then what is drawn."""
        counts = self.series.counts
        columns = [coarse.feature for coarse in self.conditions]
        columns += [counts.feature(name) for name in ("rows", "index", "remaining")]
        if self.table.timed:
            columns += [
                self.domain.days.feature("day before"),
                self.table.paces.feature("pace"),
                self.table.gaps.feature("gap before"),
            ]
        columns += [_before(value, change) for value, change in self._values]
        if self.table.timed:
            columns.append(self.table.gaps.feature("gap"))
        return tuple(columns + [_drawn(value, change) for value, change in self._values])

    @cached_property
    def drawn(self) -> int:
        """Place of the first column that is drawn; those before it are conditions."""
        return len(self.features) - len(self.series.values) - int(self.table.timed)

    @property
    def _values(self) -> list[tuple[Feature, bool]]:
        return [*zip(self.series.values, self.table.changes_of(self.series), strict=True)]

    def baseline_of(self, person_codes: npt.NDArray[np.integer]) -> Ints:
        """Return the coarse bins of rows of the person table, ``[rows, conditions]``."""
        columns = [coarse.bin_of[person_codes[:, coarse.column]] for coarse in self.conditions]
        return np.column_stack(columns or [np.empty((len(person_codes), 0), dtype=np.int64)])

    def known_codes(self, known: Known) -> Ints:
        """Return the codes of the conditions, ``[steps, conditions]``."""
        grid = self.series.counts
        remaining = known.counts - 1 - known.index
        columns = [*known.baseline.T]
        columns += [grid.code(part) for part in (known.counts, known.index, remaining)]
        if self.table.timed:
            gaps = self.table.gaps
            columns += [
                self.domain.days.code(known.days, known.ends),
                self.table.paces.code(known.paces),
                np.where(known.gaps < 0, gaps.cells, gaps.code(known.gaps, known.paces)),
            ]
        for place, (value, change) in enumerate(self._values):
            levels = known.levels[:, place]
            none = np.isnan(levels)
            rounded = np.rint(np.where(none, 0.0, levels)).astype(np.int64)
            columns.append(
                np.where(none, value.cells, rounded) if change else known.before[:, place]
            )
        return np.column_stack(columns)

    def drawn_codes(self, known: Known, gaps: Ints, values: Ints) -> Ints:
        """Return the codes of what follows: gaps in days, and values as changes where so drawn."""
        columns = []
        if self.table.timed:
            grid, last = self.table.gaps, known.index == known.counts - 1
            columns.append(np.where(last, grid.cells, grid.code(gaps, known.paces)))
        for place, (value, line) in enumerate(zip(self.series.values, self.lines, strict=True)):
            codes = values[:, place]
            columns.append(
                codes if line is None else _changes(codes, known.levels[:, place], value, line)
            )
        return np.column_stack(columns)

    def values_of(self, known: Known, drawn: Ints, rng: np.random.Generator) -> Ints:
        """Turn drawn codes of values back into codes of the series, ``[steps, values]``."""
        columns = []
        for place, (value, line) in enumerate(zip(self.series.values, self.lines, strict=True)):
            codes = drawn[:, place]
            columns.append(
                codes if line is None else _applied(codes, known.levels[:, place], value, line)
            )
        return np.column_stack(columns)


def _before(value: Feature, change: bool) -> Feature:
    if change:
        return Feature(f"level of {value.name}", value.cells + 1, value.cells, value.points)
    return replace(value, name=f"{value.name} before")


def _drawn(value: Feature, change: bool) -> Feature:
    if not change:
        return value
    cells = 2 * value.cells - 1
    loose = value.size - value.cells
    return Feature(f"change of {value.name}", cells + loose, cells, (1,) * cells)


def _centres(levels: Floats, value: Feature, line: Line) -> Ints:
    """Return where the line puts the next code; without a level, at its mean."""
    return np.clip(np.rint(line.at(levels)), 0, value.cells - 1).astype(np.int64)


def _changes(codes: Ints, levels: Floats, value: Feature, line: Line) -> Ints:
    """Return changes from the line as codes from 0; codes without order come after them."""
    codes = codes.astype(np.int64)
    changes = codes - _centres(levels, value, line) + value.cells - 1
    return np.where(codes < value.cells, changes, codes + value.cells - 1)


def _applied(codes: Ints, levels: Floats, value: Feature, line: Line) -> Ints:
    """Return codes of the value from drawn changes, within its bounds.

    Where the line holds, a value stays at the level, or missing where there is no level.
    """
    if line.holds:
        none = value.size - 1 if value.size > value.cells else round(line.mean)
        return np.where(np.isnan(levels), none, _centres(levels, value, line))
    codes = codes.astype(np.int64)
    moved = np.clip(codes - value.cells + 1 + _centres(levels, value, line), 0, value.cells - 1)
    return np.where(codes < 2 * value.cells - 1, moved, codes - value.cells + 1)


@dataclass(frozen=True, eq=False)
class Steps:
    """Consecutive rows of one series.

    Attributes:
        place: of each step's row in the series, ``[steps]``.
        patients: of each step.
        index: of the row within the patient's, from 1.
        counts: rows of the patient.
        gaps: days since the row before.
        levels: as in `Known`.
    """

    place: Ints
    patients: Ints
    index: Ints
    counts: Ints
    gaps: Ints
    levels: Floats

    @classmethod
    def of(cls, rows: SeriesRows, values: Sequence[Feature], patients: int) -> Steps:
        """Pair each row with the one before; nothing but the patient's own rows is used."""
        counts, starts = rows.counts(patients), rows.starts(patients)
        index = np.arange(len(rows.patients)) - starts[rows.patients]
        place = np.flatnonzero(index > 0)
        who = rows.patients[place]
        return cls(
            place,
            who,
            index[place],
            counts[who],
            rows.days[place] - rows.days[place - 1],
            _levels(rows, values, starts)[place - 1],
        )


def _levels(rows: SeriesRows, values: Sequence[Feature], starts: Ints) -> Floats:
    """Return, after each row, the mean of the patient's last code and of all her codes so far."""
    levels = np.full(rows.values.shape, np.nan)
    first = starts[rows.patients] if len(rows.patients) else np.empty(0, dtype=np.int64)
    for place, value in enumerate(values):
        codes = rows.values[:, place].astype(np.float64)
        has = codes < value.cells
        sums = np.concatenate([[0.0], np.cumsum(np.where(has, codes, 0.0))])
        numbers = np.concatenate([[0], np.cumsum(has)])
        after = np.arange(1, len(codes) + 1)
        number = numbers[after] - numbers[first]
        mean = (sums[after] - sums[first]) / np.maximum(number, 1)
        last = (
            np.maximum.accumulate(np.where(has, np.arange(len(codes)), -1)) if len(codes) else after
        )
        levels[:, place] = np.where(number > 0, (codes[last] + mean) / 2, np.nan)
    return levels


def weights_of(steps: Sequence[Steps], patients: int) -> list[Ints]:
    """Return what each step of each series weighs: a patient's steps at most `MASS` together.

    A patient with steps in s series gives each of her k steps in one of them floor(MASS / (s k)).
    More would be covered, floor(MASS / (k sqrt(s))): but then fewer series are held at their
    level, and changes that are drawn from noise run to the bounds.
    """
    series = np.zeros(patients, dtype=np.int64)
    for part in steps:
        series[np.unique(part.patients)] += 1
    return [MASS // (series[part.patients] * (part.counts - 1)) for part in steps]
