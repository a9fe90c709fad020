"""The table of patients of a latent model: one row each, with facts that sum up her histories.

Beside the baseline, when and how follow-up ended, and the day of each event, a row says of every
*clock* (rows that come at the same times: a wide table, a test, or all tests of a table of many)
how many rows there are, when the first one is and how long they last; of every number its *level*,
the mean normal score of the patient's values; at which share of the occasions a test is taken; and
which codes she ever has. A patient has one row, so it needs no cap.

What is declared takes columns out: rows inside those of another table are told by their number next
to the days of those (`DENSITY`), rows that are due by the share of them that is there, and nothing
is told of what is fixed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER, Histories, SeriesRows
from dpsynth.models import Codes, Feature
from dpsynth.models.histories.domain import FollowUp, HistoryDomain, HistoryTable, Series
from dpsynth.models.histories.grids import SpanGrid

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Floats = npt.NDArray[np.float64]

OWN_CLOCKS = 8  # tests of a table up to which each may have a clock of its own
LEVELS, HIGHEST = 64, 3.2  # cells of a level, and the scores between which they lie
COARSE = 4  # ordered codes of a value up to which it is drawn as a code
MOST_EVER = 64  # codes of a column of which a patient's row says whether she ever has them
SHARES = np.array([0.0, 0.35, 1.0, 1.0])
"""Ends of cells of a share of occasions, or of rows that are due: none, few, most, and all."""
TAKEN = len(SHARES) - 1
PARTS = 32  # equal parts of the window after the origin, by which times are told
DENSITY = np.concatenate(
    [[0.0, 1e-9], np.geomspace(1 / 512, 1, 15), [1.0001], np.geomspace(1.25, 32, 12)]
)
"""Where cells of the number of rows for each day of their parents begin; 0 and 1 have their own."""

SPANS = SpanGrid()

BASELINE, END, TIME, COUNT, DAY, SPAN, SHARE, LEVEL, EVER = (
    *("baseline", "end", "time", "count", "day", "span", "share", "level", "ever"),
)


def is_number(value: Feature) -> bool:
    """Whether a value is drawn by its level and memory, and not as a code."""
    return value.cells > COARSE


@dataclass(frozen=True)
class Column:
    """A column of the table of patients.

    Attributes:
        feature: its codes.
        kind: what it says.
        given: the column of a number or share that says whether a patient has it at all, by a code
            above 0; otherwise its own code is its last one. -1 if everybody has it, and -2 if none
            says who has it.
        block: the first of the columns of codes of one value; -1 for other columns.
        undeclared: whether it is about a code that is not declared.
    """

    feature: Feature
    kind: str
    given: int = -1
    block: int = -1
    undeclared: bool = False


@dataclass(frozen=True)
class Clock:
    """Rows that come at the same times.

    Attributes:
        table: its place among the tables.
        series: places of its series in the table.
        count: column of the number of rows, or of occasions, as far as it is not fixed: that of
            rows, of the density, or of the share of rows that are due; -1 if it is fixed.
        first: column of the first day; -1 in an untimed table, or where days follow from others.
        span: column of the days from the first to the last; -1 as for ``first``.
    """

    table: int
    series: tuple[int, ...]
    count: int
    first: int
    span: int

    @property
    def shared(self) -> bool:
        """Whether several series have it: each row is an occasion, at which some are taken."""
        return len(self.series) > 1


@dataclass(frozen=True)
class Facts:
    """Columns of a series' facts.

    Attributes:
        levels: of each value, its level; -1 for what is drawn as a code.
        ever: of each value, the first of the columns of its codes; -1 for numbers and long lists.
        taken: the share of occasions at which it is taken; -1 where it has a clock of its own.
    """

    levels: tuple[int, ...]
    ever: tuple[int, ...]
    taken: int


def parents_first(domain: HistoryDomain) -> list[int]:
    """Return the places of the tables, those inside whose rows others lie first."""

    def depth(table: int) -> int:
        inside = domain.tables[table].inside
        return 0 if inside is None else 1 + depth(inside.table)

    return sorted(range(len(domain.tables)), key=depth)


def may_share(table: HistoryTable) -> bool:
    """Whether it is not public if the tests of a table are taken together or each by itself."""
    return 1 < len(table.series) <= OWN_CLOCKS


def clock_series(table: HistoryTable, *, shared: bool) -> list[tuple[int, ...]]:
    """Return the series of each clock of a table."""
    every = range(len(table.series))
    own = len(table.series) <= OWN_CLOCKS and not (shared and len(table.series) > 1)
    return [(one,) for one in every] if own else [tuple(every)]


def occupied(rows: Sequence[SeriesRows], patients: int) -> tuple[Ints, Floats]:
    """Return who has rows, and how much of her occasions her tests fill, each above 0 to 1.

    It is the number of her rows, one for each test and day, over that of her occasions times that
    of the tests that she ever has; 1 where she has one test alone.
    """
    single = [occasions([one, one]).counts(patients) for one in rows]
    tests = np.sum([counts > 0 for counts in single], axis=0)
    whole = occasions([*rows, rows[0]]).counts(patients) * tests
    who = np.flatnonzero(tests > 1)
    return who, np.sum(single, axis=0)[who] / np.maximum(whole[who], 1)


@dataclass(frozen=True)
class Times:
    """Cells of a day of the window, and of the day up to which a patient was followed without it.

    The codes of `observed` are a day's cell, or, behind these, the cell of the last day of
    follow-up, of a patient who had no such day (censored).

    Attributes:
        past: where cells before the origin begin, and the origin: ``[before + 1]``.
        last: the last day of the window.
    """

    past: Floats
    last: int

    @classmethod
    def of(cls, domain: HistoryDomain) -> Times:
        """Return those of a window."""
        return cls(domain.days.past, domain.last)

    @property
    def before(self) -> int:
        """Cells before the origin."""
        return len(self.past) - 1

    @property
    def cells(self) -> int:
        """Cells of a day: before the origin, the origin, and parts of what follows."""
        return self.before + 1 + (PARTS if self.last > 0 else 0)

    @property
    def size(self) -> int:
        """Observed codes."""
        return 2 * self.cells + 1

    def cell(self, days: Ints) -> Ints:
        """Return the cell of each day."""
        past = np.clip(np.searchsorted(self.past, days, side="right") - 1, 0, self.before)
        after = self.before + 1 + PARTS * (days - 1) // max(self.last, 1)
        return np.asarray(np.where(days > 0, np.minimum(after, self.cells - 1), past))

    def observed(self, days: Ints, followed: Ints) -> Ints:
        """Return observed codes.

        Args:
            days: of each patient; `NEVER` where there is none.
            followed: the last day on which she was followed.
        """
        never = days == NEVER
        whole = followed >= self.last
        censored = self.cells + np.where(whole, self.cells, self.cell(followed))
        return np.where(never, censored, self.cell(np.where(never, 0, days)))

    def draw(self, cells: Ints, rng: np.random.Generator) -> Ints:
        """Draw a day within each cell."""
        points = rng.random(len(cells))
        at = np.clip(cells, 0, max(self.before - 1, 0))
        low, high = self.past[at], self.past[np.minimum(at + 1, self.before)]
        past = np.minimum(np.floor(low + points * (high - low)), -1)
        width = self.last / PARTS
        begin = np.ceil((cells - self.before - 1) * width)
        end = np.ceil((cells - self.before) * width)
        after = 1 + np.floor(begin + points * np.maximum(end - begin, 1))
        days = np.where(cells < self.before, past, np.where(cells == self.before, 0, after))
        return np.asarray(np.minimum(days, self.last), dtype=np.int64)


@dataclass(frozen=True)
class Endings:
    """When and how follow-up ended: a cell of the window, or its last day, for each status.

    Attributes:
        end: of the domain.
        statuses: how many ways there are.
        last: day of the window.
        missing: the code of an end that is not stated, such as that of a date of death; None where
            it always is. Such a patient is followed to the last day.
    """

    end: FollowUp
    statuses: int
    last: int
    missing: int | None = None

    @property
    def cells(self) -> int:
        """Cells of a status: parts of the window, its last day, and an end that is not stated."""
        return PARTS + 1 + (self.missing is not None)

    def codes(self, ends: Ints, status: Ints, stated: Ints) -> Ints:
        """Return the code of each end and status.

        Args:
            ends: of each patient.
            status: how it ended.
            stated: the code of the end in the table of patients.
        """
        part = np.minimum(PARTS * ends // max(self.last, 1), PARTS - 1)
        cells = np.where(ends >= self.last, PARTS, part)
        if self.missing is not None:
            cells = np.where(stated == self.missing, PARTS + 1, cells)
        return np.asarray(status * self.cells + cells)

    def unstated(self, codes: Ints) -> Bools:
        """Tell whose end is not stated."""
        return np.asarray(codes % self.cells == PARTS + 1)

    def draw(self, codes: Ints, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Draw the last day of each patient, and return her status."""
        status, cells = codes // self.cells, codes % self.cells
        begin = np.ceil(cells * self.last / PARTS)
        end = np.maximum(np.ceil((cells + 1) * self.last / PARTS), begin + 1)
        days = np.floor(begin + rng.random(len(codes)) * (end - begin))
        days = np.where(cells >= PARTS, self.last, np.minimum(days, max(self.last - 1, 0)))
        return days.astype(np.int64), status


@dataclass(frozen=True)
class PatientTable:
    """Histories to rows of patients.

    Attributes:
        domain: of the histories.
        scores: of the codes of each number, by table, series and value; empty arrays for codes.
            They come from released shares; without them there are no levels yet.
        shared: places of the tables whose tests have one clock, among those that may.
        panels: of tables whose tests have one clock, which panel each test is in: the tests of one
            are taken together. Without it each test is by itself.
    """

    domain: HistoryDomain
    scores: tuple[tuple[tuple[Floats, ...], ...], ...] = ()
    shared: tuple[int, ...] = ()
    panels: tuple[tuple[int, tuple[int, ...]], ...] = ()

    @cached_property
    def times(self) -> Times:
        """Cells of the days of events."""
        return Times.of(self.domain)

    @cached_property
    def endings(self) -> Endings | None:
        """When and how follow-up ended; None if all are followed to the last day."""
        end = self.domain.end
        if end is None:
            return None
        ways = 1
        if end.event is not None:
            ways = 2
        elif end.status is not None:
            ways = self.domain.baseline[end.status].size
        column = self.domain.baseline[end.column]
        missing = column.size - 1 if column.size > column.cells else None
        return Endings(end, ways, self.domain.last, missing)

    @property
    def kept(self) -> list[int]:
        """Places of the baseline columns that stand as they are."""
        end = self.domain.end
        out = () if end is None else (end.column, end.status)
        return [place for place in range(len(self.domain.baseline)) if place not in out]

    @property
    def timed(self) -> list[int]:
        """Places of the events that have a time of their own: not the one that ends follow-up."""
        end = self.domain.end
        out = None if end is None else end.event
        return [place for place in range(len(self.domain.events)) if place != out]

    @cached_property
    def _layout(self) -> tuple[list[Column], list[Clock], list[list[Facts]]]:
        columns = [
            Column(replace(self.domain.baseline[place], grains=(), raised=None), BASELINE)
            for place in self.kept
        ]
        if self.endings is not None:
            size = self.endings.statuses * self.endings.cells
            columns.append(Column(Feature("end of follow-up", size, 0), END))
        columns += [
            Column(Feature(f"day of {self.domain.events[place]}", self.times.size, 0), TIME)
            for place in self.timed
        ]
        clocks: list[Clock] = []
        facts: dict[int, list[Facts]] = {}
        for place in parents_first(self.domain):
            table = self.domain.tables[place]
            parent = -2
            if table.inside is not None:
                counts = [one.count for one in clocks if one.table == table.inside.table]
                parent = counts[0] if counts[0] >= 0 else -2
            of_table = [
                self._add_clock(columns, place, series, parent)
                for series in clock_series(table, shared=place in self.shared)
            ]
            clocks += of_table
            shared = of_table[0] if of_table[0].shared else None
            given = [shared or one for one in (of_table * len(table.series))]
            panels = dict(self.panels).get(place, tuple(range(len(table.series))))
            taken: dict[int, int] = {}
            facts[place] = [
                _add_facts(columns, one, clock, taken, panel)
                for one, clock, panel in zip(table.series, given, panels, strict=False)
            ]
        return columns, clocks, [facts[place] for place in range(len(self.domain.tables))]

    def _add_clock(
        self, columns: list[Column], place: int, series: tuple[int, ...], parent: int
    ) -> Clock:
        table = self.domain.tables[place]
        one = table.series[series[0]]
        name = one.name if len(series) == 1 else table.name
        start = len(columns)
        if table.inside is not None:
            if table.exactly is not None:
                return Clock(place, series, -1, -1, -1)
            cells = len(DENSITY)
            columns.append(Column(Feature(f"density of {name}", cells + 1, cells), COUNT, parent))
            return Clock(place, series, start, -1, -1)
        if table.due:
            if table.exactly is not None:
                return Clock(place, series, -1, -1, -1)
            columns.append(Column(Feature(f"share of {name}", TAKEN + 1, TAKEN + 1), SHARE))
            return Clock(place, series, start, -1, -1)
        count = -1
        if table.exactly is None:
            count = len(columns)
            columns.append(Column(one.counts.feature(f"rows of {name}"), COUNT))
        if not table.timed:
            return Clock(place, series, count, -1, -1)
        day = self.domain.days.feature(f"first day of {name}", none=True)
        columns.append(Column(replace(day, groups=0), DAY, count))
        columns.append(Column(SPANS.feature(f"span of {name}"), SPAN, count))
        return Clock(place, series, count, len(columns) - 2, len(columns) - 1)

    @property
    def columns(self) -> list[Column]:
        """The columns."""
        return self._layout[0]

    @property
    def clocks(self) -> list[Clock]:
        """The clocks, table by table, parents first."""
        return self._layout[1]

    @property
    def facts(self) -> list[list[Facts]]:
        """Columns of each series, by table."""
        return self._layout[2]

    def codes(self, histories: Histories) -> Codes:
        """Return a row of each patient, ``[patients, columns]``; a function of her own rows."""
        found = np.zeros((len(histories), len(self.columns)), dtype=np.uint16)
        found[:, : len(self.kept)] = histories.baseline[:, self.kept]
        at = len(self.kept)
        if self.endings is not None:
            end = self.endings.end
            status = np.zeros(len(histories), dtype=np.int64)
            if end.event is not None:
                status = (histories.onsets[:, end.event] != NEVER).astype(np.int64)
            elif end.status is not None:
                status = histories.baseline[:, end.status].astype(np.int64)
            stated = histories.baseline[:, end.column].astype(np.int64)
            found[:, at] = self.endings.codes(histories.ends, status, stated)
            at += 1
        for place in self.timed:
            found[:, at] = self.times.observed(*self._own_times(histories, place))
            at += 1
        for clock in self.clocks:
            self._clock_codes(found, clock, histories)
        for place, of_table in enumerate(self.facts):
            asked = _occasions_of(self.clocks, place, histories)
            members: dict[int, list[SeriesRows]] = {}
            for series, facts in enumerate(of_table):
                rows = histories.rows[place][series]
                self._values(found, rows, place, series, facts)
                if facts.taken >= 0:
                    members.setdefault(facts.taken, []).append(rows)
            for taken, together in members.items():
                share = share_code(occasions(together).counts(len(histories)), asked)
                found[:, taken] = np.where(asked > 0, share, TAKEN + 1)
        return found

    def _own_times(self, histories: Histories, event: int) -> tuple[Ints, Ints]:
        """Return the day of an event by itself, and the day up to which it had not come.

        An event that another one implies, and that comes on that one's day, comes by it: by itself
        it had not come till then. So it is drawn by itself, and comes with the other at the latest.
        """
        days, until = histories.onsets[:, event], histories.ends
        for cause, implied, _ in self.domain.implies:
            if implied == event:
                other = histories.onsets[:, cause]
                by_it = (other != NEVER) & (days == other)
                until = np.where(by_it, np.minimum(other, until), until)
                days = np.where(by_it, NEVER, days)
        return days, until

    def _clock_codes(self, found: Codes, clock: Clock, histories: Histories) -> None:
        table, number = self.domain.tables[clock.table], len(histories)
        rows = occasions([histories.rows[clock.table][one] for one in clock.series])
        counts = rows.counts(number)
        if clock.count >= 0:
            if table.inside is not None:
                days = parent_days(histories.rows, table, number)
                code = np.searchsorted(DENSITY, counts / np.maximum(days, 1), side="right") - 1
                found[:, clock.count] = np.where(days > 0, code, len(DENSITY))
            elif table.due:
                found[:, clock.count] = share_code(counts, rows_due(table, histories.ends))
            else:
                found[:, clock.count] = table.series[clock.series[0]].counts.code(counts)
        if clock.first < 0:
            return
        has, grid, ends = counts > 0, self.domain.days, histories.ends
        starts = np.minimum(rows.starts(number), max(len(rows.days) - 1, 0))
        days = rows.days if len(rows.days) else np.zeros(1, dtype=np.int64)
        first = days[starts]
        last = days[np.minimum(np.maximum(starts + counts - 1, 0), len(days) - 1)]
        found[:, clock.first] = np.where(has, grid.code(first, ends), grid.cells)
        spans = SPANS.code(last - first, ends - first)
        found[:, clock.span] = np.where(counts > 1, spans, SPANS.cells)

    def _values(
        self, found: Codes, rows: SeriesRows, place: int, series: int, facts: Facts
    ) -> None:
        for value in range(len(facts.levels)):
            codes = rows.values[:, value]
            if facts.levels[value] >= 0 and self.scores:
                scores = self.scores[place][series][value]
                found[:, facts.levels[value]] = level_code(
                    mean_scores(rows.patients, codes, scores, len(found))
                )
            elif facts.ever[value] >= 0:
                size = self.domain.tables[place].series[series].values[value].size
                own = slice(facts.ever[value], facts.ever[value] + size)
                found[:, own] = np.where(rows.counts(len(found)) > 0, 0, 2)[:, None]
                found[rows.patients, facts.ever[value] + codes.astype(np.int64)] = 1


def _add_facts(
    columns: list[Column], series: Series, clock: Clock, panels: dict[int, int], panel: int
) -> Facts:
    levels, ever, taken = [], [], -1
    given = clock.count if clock.count >= 0 else -2
    if clock.shared:
        if panel not in panels:
            panels[panel] = len(columns)
            share = Feature(f"share of {series.name}", TAKEN + 2, TAKEN + 1)
            columns.append(Column(share, SHARE, given))
        taken = given = panels[panel]
    for value in series.values:
        name = f"{value.name} of {series.name}"
        levels.append(len(columns) if is_number(value) else -1)
        ever.append(len(columns) if not is_number(value) and value.size <= MOST_EVER else -1)
        if is_number(value):
            feature = Feature(f"level of {name}", LEVELS + 1, LEVELS)
            columns.append(Column(feature, LEVEL, given))
        elif value.size <= MOST_EVER:
            block = len(columns)
            columns += [
                Column(
                    Feature(f"ever {code} as {name}", 3, 2),
                    *(EVER, given, block, code in value.unlisted),
                )
                for code in range(value.size)
            ]
    return Facts(tuple(levels), tuple(ever), taken)


def occasions(rows: Sequence[SeriesRows]) -> SeriesRows:
    """Return the times at which a patient has a row in any of some series, each once, in order."""
    if len(rows) == 1:
        return rows[0]
    first = min(int(one.days.min(initial=0)) for one in rows)
    width = max(int(one.days.max(initial=0)) for one in rows) - first + 1
    keys = np.sort(np.concatenate([one.patients * width + one.days - first for one in rows]))
    patients, days = np.divmod(keys[np.diff(keys, prepend=-1) > 0], width)
    return SeriesRows(patients, days + first, np.empty((len(days), 0), dtype=np.uint16))


def _occasions_of(clocks: Sequence[Clock], table: int, histories: Histories) -> Ints:
    """Return the number of occasions of each patient in a table of one clock."""
    series = [one.series for one in clocks if one.table == table]
    if len(series) != 1 or len(series[0]) == 1:
        return np.zeros(len(histories), dtype=np.int64)
    return occasions([histories.rows[table][one] for one in series[0]]).counts(len(histories))


def rows_due(table: HistoryTable, ends: Ints) -> Ints:
    """Return how many rows of a table are due up to each patient's end."""
    return np.searchsorted(table.due, ends, side="right").astype(np.int64)


def parent_spans(
    rows: Sequence[Sequence[SeriesRows]], table: HistoryTable
) -> tuple[Ints, Ints, Ints]:
    """Return patient, first day and number of days of each row inside which a table's rows lie."""
    assert table.inside is not None
    parent = rows[table.inside.table][0]
    lengths = np.asarray(table.inside.days)[parent.values[:, table.inside.length]]
    return parent.patients, parent.days, lengths + 1


def parent_days(rows: Sequence[Sequence[SeriesRows]], table: HistoryTable, patients: int) -> Ints:
    """Return how many days of parents each patient has; one in two of them counts twice."""
    owners, _, lengths = parent_spans(rows, table)
    return np.bincount(owners, lengths, minlength=patients).astype(np.int64)


def share_code(counts: Ints, asked: Ints) -> Ints:
    """Return the cell of a share; 0 is none."""
    found = np.where(counts > SHARES[1] * asked, 2, 1)
    found = np.where(counts >= asked, 3, found)
    return np.where(counts > 0, found, 0).astype(np.int64)


def share_drawn(codes: Ints, rng: np.random.Generator) -> Floats:
    """Draw a share within each cell."""
    low, high = SHARES[np.maximum(codes - 1, 0)], SHARES[np.minimum(codes, TAKEN)]
    return np.asarray(np.where(codes > 0, low + rng.random(len(codes)) * (high - low), 0.0))


def mean_scores(patients: Ints, codes: Codes, scores: Floats, number: int) -> Floats:
    """Return the mean score of each patient's values, NaN without any, ``[patients]``."""
    has = codes < len(scores)
    own = patients[has]
    sums = np.bincount(own, scores[codes[has]], minlength=number)
    counts = np.bincount(own, minlength=number)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)


def level_code(levels: Floats) -> Ints:
    """Return the cell of each level; `LEVELS` where there is none."""
    known = np.nan_to_num(levels)
    cells = np.floor((known + HIGHEST) / (2 * HIGHEST) * LEVELS)
    return np.where(np.isnan(levels), LEVELS, np.clip(cells, 0, LEVELS - 1)).astype(np.int64)


def level_drawn(codes: Ints, rng: np.random.Generator) -> Floats:
    """Draw a level within each cell."""
    return np.asarray((codes + rng.random(len(codes))) * (2 * HIGHEST / LEVELS) - HIGHEST)
