"""The table of patients of a latent model: one row each, with facts that sum up her histories.

Beside the baseline and the day of each event, a row says of every *clock* (rows that come at the
same times: a wide table, a test, or all tests of a table of many) how many rows there are, when the
first one is and how long they last; of every number its *level*, the mean normal score of the
patient's values; and which codes she ever has. A patient has one row, so it needs no cap, and a
generator of one table learns it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Histories, SeriesRows
from dpsynth.models import Codes, Domain, Feature
from dpsynth.models.histories.domain import HistoryDomain, HistoryTable, Series
from dpsynth.models.histories.grids import SpanGrid
from dpsynth.models.histories.persons.table import PersonTable

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

OWN_CLOCKS = 8  # tests of a table up to which each has a clock of its own
LEVELS, HIGHEST = 64, 3.2  # cells of a level, and the scores between which they lie
COARSE = 16  # ordered codes of a value up to which it is drawn as a code
MOST_EVER = 64  # codes of a column of which a patient's row says whether she ever has them
TAKEN = 6  # cells of the share of occasions at which a test is taken; and one for never

SPANS = SpanGrid()


def is_number(value: Feature) -> bool:
    """Whether a value is drawn by its level and memory, and not as a code."""
    return value.cells > COARSE


@dataclass(frozen=True)
class Clock:
    """Rows that come at the same times.

    Attributes:
        table: its place among the tables.
        series: places of its series in the table.
        count: column of the number of rows, or of occasions.
        first: column of the first day; -1 in an untimed table.
        span: column of the days from the first to the last.
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


def clock_series(table: HistoryTable) -> list[tuple[int, ...]]:
    """Return the series of each clock of a table: a public fact."""
    every = range(len(table.series))
    return [(one,) for one in every] if len(table.series) <= OWN_CLOCKS else [tuple(every)]


@dataclass(frozen=True)
class PatientTable:
    """Histories to rows of patients, and what a drawn row says of a history.

    Attributes:
        domain: of the histories.
        scores: of the codes of each number, by table, series and value; empty arrays for codes.
            They come from released shares; without them there are no levels yet.
    """

    domain: HistoryDomain
    scores: tuple[tuple[tuple[Floats, ...], ...], ...] = ()

    @cached_property
    def persons(self) -> PersonTable:
        """The baseline, the events, and how follow-up ended."""
        return PersonTable(replace(self.domain, tables=()))

    @cached_property
    def _layout(self) -> tuple[list[Feature], list[Clock], list[list[Facts]]]:
        columns = [replace(one, grains=(), raised=None) for one in self.persons.features]
        clocks: list[Clock] = []
        facts: list[list[Facts]] = []
        for place, table in enumerate(self.domain.tables):
            for series in clock_series(table):
                one = table.series[series[0]]
                name = one.name if len(series) == 1 else table.name
                start = len(columns)
                columns.append(one.counts.feature(f"rows of {name}"))
                if table.timed:
                    day = f"first day of {name}"
                    columns.append(self.domain.days.feature(day, none=True, apart=True))
                    columns.append(SPANS.feature(f"span of {name}"))
                days = (start + 1, start + 2) if table.timed else (-1, -1)
                clocks.append(Clock(place, series, start, *days))
            shared = len(table.series) > OWN_CLOCKS
            facts.append([_add_facts(columns, one, shared=shared) for one in table.series])
        return columns, clocks, facts

    @property
    def features(self) -> tuple[Feature, ...]:
        """The columns."""
        return tuple(self._layout[0])

    @property
    def clocks(self) -> list[Clock]:
        """The clocks, table by table."""
        return self._layout[1]

    @property
    def facts(self) -> list[list[Facts]]:
        """Columns of each series, by table."""
        return self._layout[2]

    @cached_property
    def as_domain(self) -> Domain:
        """The table as a flat one."""
        return Domain(self.features, self.domain.population, 1)

    def codes(self, histories: Histories) -> Codes:
        """Return a row of each patient, ``[patients, columns]``; a function of her own rows."""
        found = np.zeros((len(histories), len(self.features)), dtype=np.uint16)
        persons = self.persons.codes(replace(histories, rows=()))
        found[:, : persons.shape[1]] = persons
        for clock in self.clocks:
            table = self.domain.tables[clock.table]
            rows = occasions([histories.rows[clock.table][one] for one in clock.series])
            counts = rows.counts(len(histories))
            found[:, clock.count] = table.series[clock.series[0]].counts.code(counts)
            if clock.first >= 0:
                self._days(found, clock, rows, counts, histories.ends)
        for place, of_table in enumerate(self.facts):
            asked = _occasions_of(self.clocks, place, histories)
            for series, facts in enumerate(of_table):
                rows = histories.rows[place][series]
                self._values(found, rows, self.domain.tables[place].series[series], facts, place)
                if facts.taken >= 0:
                    found[:, facts.taken] = taken_code(rows.counts(len(histories)), asked)
        return found

    def _days(
        self, found: Codes, clock: Clock, rows: SeriesRows, counts: Ints, ends: Ints
    ) -> None:
        has, grid = counts > 0, self.domain.days
        starts = np.minimum(rows.starts(len(ends)), max(len(rows.days) - 1, 0))
        days = rows.days if len(rows.days) else np.zeros(1, dtype=np.int64)
        first = days[starts]
        last = days[np.minimum(np.maximum(starts + counts - 1, 0), len(days) - 1)]
        found[:, clock.first] = np.where(has, grid.code(first, ends), grid.cells)
        spans = SPANS.code(last - first, ends - first)
        found[:, clock.span] = np.where(counts > 1, spans, SPANS.cells)

    def _values(
        self, found: Codes, rows: SeriesRows, series: Series, facts: Facts, place: int
    ) -> None:
        where = series_place(self.domain.tables[place], series)
        for value, feature in enumerate(series.values):
            codes = rows.values[:, value]
            if facts.levels[value] >= 0:
                scores = self.scores[place][where][value]
                found[:, facts.levels[value]] = level_code(
                    mean_scores(rows.patients, codes, scores, len(found))
                )
            elif facts.ever[value] >= 0:
                found[rows.patients, facts.ever[value] + codes.astype(np.int64)] = 1


def series_place(table: HistoryTable, series: Series) -> int:
    """Return the place of a series in its table."""
    return next(place for place, one in enumerate(table.series) if one is series)


def _add_facts(columns: list[Feature], series: Series, *, shared: bool) -> Facts:
    levels, ever, taken = [], [], -1
    if shared:
        taken = len(columns)
        columns.append(Feature(f"share of {series.name}", TAKEN + 1, TAKEN + 1, (1,) * (TAKEN + 1)))
    for value in series.values:
        name = f"{value.name} of {series.name}"
        levels.append(len(columns) if is_number(value) else -1)
        ever.append(len(columns) if not is_number(value) and value.size <= MOST_EVER else -1)
        if is_number(value):
            columns.append(Feature(f"level of {name}", LEVELS + 1, LEVELS, (1,) * LEVELS))
        elif value.size <= MOST_EVER:
            columns += [Feature(f"ever {code} as {name}", 2, 0) for code in range(value.size)]
    return Facts(tuple(levels), tuple(ever), taken)


def occasions(rows: Sequence[SeriesRows]) -> SeriesRows:
    """Return the times at which a patient has a row in any of some series, each once, in order."""
    if len(rows) == 1:
        return rows[0]
    patients = np.concatenate([one.patients for one in rows])
    days = np.concatenate([one.days for one in rows])
    order = np.lexsort((days, patients))
    patients, days = patients[order], days[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = (np.diff(patients) != 0) | (np.diff(days) != 0)
    return SeriesRows(patients[new], days[new], np.empty((int(new.sum()), 0), dtype=np.uint16))


def _occasions_of(clocks: Sequence[Clock], table: int, histories: Histories) -> Ints:
    """Return the number of occasions of each patient in a table of one clock."""
    series = [one.series for one in clocks if one.table == table]
    if len(series) != 1 or len(series[0]) == 1:
        return np.zeros(len(histories), dtype=np.int64)
    return occasions([histories.rows[table][one] for one in series[0]]).counts(len(histories))


def taken_code(counts: Ints, asked: Ints) -> Ints:
    """Return the cell of the share of occasions at which a test is taken; 0 is never."""
    shares = np.minimum(counts / np.maximum(asked, 1), 1.0)
    return np.where(counts > 0, np.ceil(shares * TAKEN), 0).astype(np.int64)


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
