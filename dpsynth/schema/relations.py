"""Columns that lean on others of their row: floors, groupings and intervals.

An interval: a date that is known by how long it lies after, or before, another date of its row.

A gap is counted in whole units, rounded down: days, weeks, hours, minutes, seconds, or completed
years, as ages are. Dates are whole numbers here: days since 1970-01-01, or seconds for a datetime.

>>> stay = Interval("admitted", "d", longest=90)
>>> stay.gaps(np.array([100, 100]), np.array([104, 90]), tick=DAY)
array([  4., -10.])
>>> age = Interval("admitted", "a", longest=110, before=True)
>>> days = np.array(["2024-02-28", "2024-02-29"]).astype("datetime64[D]").astype(np.int64)
>>> age.gaps(days, np.array([365, 365]), tick=DAY)  # born on 1971-01-01
array([53., 53.])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.schema.code_systems import Codes, code_list, first_codes, rollups_of
from dpsynth.schema.types import DAY, TYPES, YEAR, ColumnType


@dataclass(frozen=True)
class Floor:
    """Which columns a column is never below.

    Attributes:
        bases: the other columns, and whether the column is above each, not equal to it.
        longest: largest gap above the lowest value that the others allow, in the column's unit
            (days or seconds for dates); None for what its bounds allow.

    >>> Floor((("diastolic", True), ("first", False))).words
    'above diastolic, at least first'
    """

    bases: tuple[tuple[str, bool], ...]
    longest: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The other columns."""
        return tuple(name for name, _ in self.bases)

    @property
    def words(self) -> str:
        """Say it in a few words."""
        return ", ".join(
            f"above {name}" if strict else f"at least {name}" for name, strict in self.bases
        )


NO_GROUP = "other"  # of a category that belongs to no group


@dataclass(frozen=True)
class Grouping:
    """A column that follows from a column of codes.

    Attributes:
        base: the column of codes.
        level: a level of its list, counted from the top, or a roll-up of its system.
    """

    base: str
    level: str

    @property
    def words(self) -> str:
        """Say it in a few words."""
        named = f"level {self.level}" if self.level.isdigit() else self.level
        return f"{named} of {self.base}"

    def groups(self, codes: Codes | None, categories: Sequence[str]) -> Mapping[str, str]:
        """Return the group of each category that a cell of the base can hold.

        Args:
            codes: of the base.
            categories: its levels.

        Raises:
            InputError: the system has no such roll-up.
            ValueError: the base has no codes, or its list has no such level; says what to do.

        >>> codes = Codes("ICD-10-CM", "block")
        >>> Grouping("diagnosis", "chapter").groups(codes, codes.categories)["E08-E13"]
        'endocrine'
        """
        if codes is None:
            raise ValueError(f"column {self.base!r} has no codes; declare them: dpsynth.codes")
        group = self._group_of(codes)
        return {category: group(category) or NO_GROUP for category in categories}

    def labels(self, codes: Codes | None) -> Mapping[str, str]:
        """Return what the groups stand for, where that is known."""
        if codes is None:
            return {}
        if not self.level.isdigit():
            return code_list(codes.system, self.level).labels
        return {} if codes.tree is None else codes.tree.labels

    def _group_of(self, codes: Codes) -> Callable[[str], str | None]:
        tree = codes.tree
        if not self.level.isdigit():
            known = rollups_of(codes.system)
            if self.level not in known:
                words = ", ".join(known) or "none: name a level of the list, such as 1"
                raise ValueError(f"{codes.system} has no roll-up {self.level!r}; known: {words}")
            if tree is None and known.index(self.level) > known.index(codes.rollup):
                raise ValueError(
                    f"{self.level} is finer than {codes.rollup}, which cells of {self.base!r} hold"
                )
            published = code_list(codes.system, self.level)

            def rolled(category: str) -> str | None:
                first = category.partition("-")[0]  # of a block such as E08-E13
                named = first_codes(codes.system).get(category, first)
                return published.roll_up(category) or published.roll_up(named)

            return rolled
        if tree is None:
            raise ValueError(
                f"level {self.level} is that of a list, and column {self.base!r} has none; name a "
                f"roll-up: {', '.join(rollups_of(codes.system))}"
            )
        deepest = int(codes.emit) if codes.emit.isdigit() else tree.depth
        if not 1 <= int(self.level) <= deepest:
            raise ValueError(f"cells of {self.base!r} have levels 1 to {deepest}")
        return lambda category: tree.ancestor(category, self.level) if tree.find(category) else None


Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

SECONDS = {"s": 1, "min": 60, "h": 3_600, "d": DAY, "wk": 7 * DAY}
NO_END = -(2**53)  # the longest gap of a draft that does not say it
RESOLUTION = 60  # seconds; a datetime is drawn to the minute within a longer unit
WORDS = {"s": "second", "min": "minute", "h": "hour", "d": "day", "wk": "week", YEAR: "year"}


@dataclass(frozen=True)
class Interval:
    """How a date lies to another date of the same row.

    Attributes:
        base: the other column.
        unit: in which the gap is counted: s, min, h, d, wk, or a for completed years.
        longest: largest gap, in units.
        shortest: smallest gap, in units; negative where a date may lie on the other side.
        before: whether the gap is counted from this date to the base, and not from the base to it.
    """

    base: str
    unit: str
    longest: int
    shortest: int = 0
    before: bool = False

    def gaps(self, base: Ints, date: Ints, *, tick: int) -> Floats:
        """Return the gap of each row in whole units, rounded down; it may be out of bounds.

        Args:
            base: the other dates.
            date: the own ones.
            tick: how long the unit of the dates is, in seconds.
        """
        first, last = (date, base) if self.before else (base, date)
        if self.unit == YEAR:
            return completed_years(first, last).astype(np.float64)
        whole: Ints = np.floor_divide(last - first, self.length(tick))
        return whole.astype(np.float64)

    def ends(self, base: Ints, gaps: Ints, *, tick: int) -> tuple[Ints, Ints]:
        """Return the first and the last value that has these gaps to the base.

        The longest gap, where it is not in years, has one value: none lies beyond the bound.
        """
        if self.unit == YEAR and self.before:
            return _latest_birth(base, gaps + 1) + 1, _latest_birth(base, gaps)
        if self.unit == YEAR:
            return anniversary(base, gaps), anniversary(base, gaps + 1) - 1
        length = self.length(tick)
        near = gaps * length
        far = near + np.where(gaps < self.longest, length - self.resolution(tick), 0)
        return (base - far, base - near) if self.before else (base + near, base + far)

    def draw(self, base: Ints, gaps: Ints, rng: np.random.Generator, *, tick: int) -> Ints:
        """Draw a value uniformly among those that have these gaps to the base."""
        first, last = self.ends(base, gaps, tick=tick)
        step = 1 if self.unit == YEAR else self.resolution(tick)
        if not (last > first).any():
            return first
        return first + step * rng.integers(0, (last - first) // step + 1)

    def length(self, tick: int) -> int:
        """Return how long a unit other than a year is, in ticks."""
        return SECONDS[self.unit] // tick

    def resolution(self, tick: int) -> int:
        """Return the distance of two values that can be drawn within a unit."""
        return max(1, min(RESOLUTION, SECONDS[self.unit]) // tick)

    def words(self, base: str) -> str:
        """Say the relation in a few words; ``base`` is what the other column is called."""
        ends = f"{self.shortest} to {plural(self.longest, self.unit)}"
        return f"{ends} {'before' if self.before else 'after'} {base}"


def converted(values: Floats | Ints, own: ColumnType, to: ColumnType) -> Floats:
    """Turn dates of one type into those of another: days into midnights, seconds into their day.

    >>> from dpsynth.schema.types import TYPES
    >>> converted(np.array([1.5e5, np.nan]), TYPES["datetime"], TYPES["date"])
    array([ 1., nan])
    """
    cells = np.asarray(values, dtype=np.float64)
    if own.unit == to.unit:
        return cells
    known = np.isfinite(cells)
    ticks = np.floor(np.where(known, cells, 0.0)).astype(np.int64)
    whole = ticks.astype(f"datetime64[{own.unit}]").astype(f"datetime64[{to.unit}]")
    return np.where(known, whole.astype(np.int64).astype(np.float64), cells)


SLACK = 1e-6  # of a unit; less than a second is of any, so that exact differences are whole


def in_time_units(values: Floats | Ints, own: ColumnType, seconds: int) -> Floats:
    """Return times in a unit since 1970-01-01: whole days, or hours or minutes with their parts.

    Args:
        values: in the unit of their type.
        own: their type.
        seconds: how long the unit is.
    """
    if seconds == DAY:
        return converted(values, own, TYPES["date"])
    return np.asarray(values, dtype=np.float64) * own.seconds / seconds


def elapsed(times: Floats, origins: Floats) -> Floats:
    """Return the whole units from origins to times: days on the calendar, hours by the clock."""
    return np.asarray(np.floor(times - origins + SLACK))


def plural(number: int, unit: str) -> str:
    """Write a number of units: ``1 day``, ``90 days``."""
    return f"{number} {WORDS[unit]}{'' if number == 1 else 's'}"


def completed_years(first: Ints, last: Ints) -> Ints:
    """Return the age on the day ``last`` of somebody born on the day ``first``.

    Who is born on 29 February is a year older on 1 March of a year without that day.
    """
    months, days = _calendar(first)
    later_months, later_days = _calendar(last)
    years: Ints = np.floor_divide(later_months - months - (later_days < days), 12)
    return years


def anniversary(day: Ints, years: Ints | int) -> Ints:
    """Return the day so many years later; of 29 February 1 March, where there is none."""
    months, days = _calendar(day)
    return _first_of_month(months + 12 * years) + days


def _latest_birth(day: Ints, years: Ints) -> Ints:
    """Return the last birthday of those who have completed these years on a day."""
    months, _ = _calendar(day)
    birth = anniversary(day, -years)
    late = _calendar(birth)[0] != months - 12 * years  # 29 February became 1 March
    return np.where(late, birth - 1, birth)


def _calendar(day: Ints) -> tuple[Ints, Ints]:
    """Return months since January 1970, and the day of the month from 0."""
    months = np.asarray(day).astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months, np.asarray(day - _first_of_month(months), dtype=np.int64)


def _first_of_month(months: Ints) -> Ints:
    first: Ints = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first
