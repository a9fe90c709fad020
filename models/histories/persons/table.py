"""The table of patients with hidden columns that describe their histories: one row a patient.

Beside the baseline, a patient's row says on which day each event happened, and for every series how
many rows there are, when the first one is, how much of the time left to her they span, and the
first row itself. All of it has mass 1 a patient, so it needs no cap, and an ordinary mixture
learns it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER, Cohort, Histories, SeriesRows
from dpsynth.models import Codes, Domain, Feature, codes_of
from dpsynth.models.histories.domain import (
    FollowUp,
    HistoryDomain,
    HistoryTable,
    Series,
)
from dpsynth.models.histories.grids import Grid, SpanGrid
from dpsynth.models.histories.persons.ending import Ending

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

SPAN_GRID = SpanGrid()
NUMBERS, SERIES, EVENTS = ORDERS = ("numbers of rows", "series", "events")
"""What a network of the table may draw last. Earlier versions drew `EVENTS` last."""
MOST_CODES = 1_000
"""Bins of the table, about, up to which a network of it learns in three minutes."""


@dataclass(frozen=True)
class Hidden:
    """Places of a series' hidden columns in the person table.

    Attributes:
        count: code of the number of rows.
        first: code of the first day; None in an untimed table.
        span: code of the days from the first row to the last, of the time left; None in an
            untimed table.
        values: codes of the first row.
    """

    count: int
    first: int | None
    span: int | None
    values: tuple[int, ...]


@dataclass(frozen=True)
class PersonTable:
    """Histories to rows of patients, and what a drawn row says of a history."""

    domain: HistoryDomain

    @cached_property
    def features(self) -> tuple[Feature, ...]:
        """The columns: baseline, events, then the hidden columns of every series."""
        columns, events = [*self.domain.baseline], [*self.domain.events]
        if self.ending is not None:
            _taken_out(self._end, columns, events)
            columns[self.ended] = self.ending.feature
        columns += [self.domain.days.feature(f"day of {name}", none=True) for name in events]
        for table in self.domain.tables:
            for series in table.series:
                columns += _hidden_features(table, series, self.domain)
        return tuple(columns)

    @cached_property
    def ending(self) -> Ending | None:
        """When and how follow-up ended, if the domain says how: one column in the place of two."""
        end = self.domain.end
        if end is None:
            return None
        if end.event is not None:
            status = Feature("ended", 2, 0)
        elif end.status is not None:
            status = self.domain.baseline[end.status]
        else:
            return None
        return Ending(self.domain.baseline[end.column], status)

    @property
    def _end(self) -> FollowUp:
        assert self.domain.end is not None
        return self.domain.end

    @cached_property
    def ended(self) -> int:
        """The place of the column of when and how follow-up ended; -1 without one."""
        if self.ending is None:
            return -1
        before = self._end.status is not None and self._end.status < self._end.column
        return self._end.column - int(before)

    @property
    def baseline(self) -> int:
        """How many of the first columns hold the baseline."""
        joint = self.ending is not None and self._end.status is not None
        return len(self.domain.baseline) - int(joint)

    @property
    def own(self) -> int:
        """How many of the first columns hold the baseline and the events."""
        joint = self.ending is not None and self._end.event is not None
        return self.baseline + len(self.domain.events) - int(joint)

    @cached_property
    def as_domain(self) -> Domain:
        """The table as a flat one: one row a patient."""
        return Domain(self.features, self.domain.population, 1)

    @cached_property
    def numbers_of_wide(self) -> dict[int, Grid]:
        """Grids of the numbers of rows of wide tables, by place."""
        return {
            hidden.count: series.counts
            for table, of_table in zip(self.domain.tables, self.hidden, strict=True)
            for series, hidden in zip(table.series, of_table, strict=True)
            if table.is_wide
        }

    @cached_property
    def hidden(self) -> tuple[tuple[Hidden, ...], ...]:
        """Where the hidden columns of every series of every table are."""
        place = self.own
        found = []
        for table in self.domain.tables:
            of_table = []
            for series in table.series:
                values = place + (3 if table.timed else 1)
                after = values + len(series.values)
                first, span = (place + 1, place + 2) if table.timed else (None, None)
                of_table.append(Hidden(place, first, span, tuple(range(values, after))))
                place = after
            found.append(tuple(of_table))
        return tuple(found)

    def codes(self, histories: Histories) -> Codes:
        """Return a row of each patient, ``[patients, columns]``; a function of her own rows."""
        grid, ends = self.domain.days, histories.ends
        columns: list[npt.NDArray[np.integer]] = [*histories.baseline.T]
        onsets = [*histories.onsets.T]
        if self.ending is not None:
            status = _taken_out(self._end, columns, onsets)
            if self._end.event is not None:
                status = status != NEVER
            days = columns[self.ended].astype(np.int64)
            columns[self.ended] = self.ending.joined(days, status.astype(np.int64))
        for of_event in onsets:
            never = of_event == NEVER
            code = grid.code(np.where(never, 0, of_event), ends)
            columns.append(np.where(never, grid.cells, code))
        for table, of_table in zip(self.domain.tables, histories.rows, strict=True):
            for series, rows in zip(table.series, of_table, strict=True):
                columns += self._hidden_codes(table, series, rows, ends)
        return np.column_stack(columns).astype(np.uint16)

    def baseline_of(self, codes: npt.NDArray[np.integer]) -> Ints:
        """Return the baseline that drawn rows say, ``[patients, columns]``."""
        columns = [*codes[:, : self.baseline].astype(np.int64).T]
        if self.ending is not None:
            columns[self.ended], status = self.ending.parted(columns[self.ended])
            if self._end.status is not None:
                columns.insert(self._end.status, status)
        return np.column_stack(columns) if columns else np.empty((len(codes), 0), dtype=np.int64)

    def ends_of(self, baseline: Ints) -> Ints:
        """Return the last day of each patient's follow-up."""
        if self.domain.end is None:
            return np.full(len(baseline), self.domain.last)
        return self.domain.end.days_of(baseline[:, self.domain.end.column])

    def onsets_of(
        self, codes: npt.NDArray[np.integer], ends: Ints, rng: np.random.Generator
    ) -> Ints:
        """Draw the day of each event that rows say, `NEVER` without one, ``[patients, events]``.

        The event that ends follow-up is on its last day.
        """
        days, columns = self.domain.days, []
        for drawn in codes[:, self.baseline : self.own].astype(np.int64).T:
            who = np.flatnonzero(drawn < days.cells)
            onsets = np.full(len(codes), NEVER)
            onsets[who] = days.draw(drawn[who], ends[who], rng)
            columns.append(onsets)
        if self.ending is not None and self._end.event is not None:
            _, ended = self.ending.parted(codes[:, self.ended].astype(np.int64))
            columns.insert(self._end.event, np.where(ended == 1, ends, NEVER))
        return np.column_stack(columns) if columns else np.empty((len(codes), 0), dtype=np.int64)

    def _hidden_codes(
        self, table: HistoryTable, series: Series, rows: SeriesRows, ends: Ints
    ) -> list[npt.NDArray[np.integer]]:
        patients = len(ends)
        counts = rows.counts(patients)
        has, first = counts > 0, np.minimum(rows.starts(patients), max(len(rows.days) - 1, 0))
        columns: list[npt.NDArray[np.integer]] = [series.counts.code(counts)]
        if table.timed:
            grid = self.domain.days
            days = _at(rows.days, first).astype(np.int64)
            columns.append(np.where(has, grid.code(days, ends), grid.cells))
            last = np.maximum(first + counts - 1, 0)
            spans = SPAN_GRID.code(_at(rows.days, last) - days, ends - days)
            columns.append(np.where(counts > 1, spans, SPAN_GRID.cells))
        for feature, values in zip(series.values, rows.values.T, strict=True):
            columns.append(np.where(has, _at(values, first), feature.size))
        return columns


def _taken_out(end: FollowUp, baseline: list[Any], events: list[Any]) -> Any:
    """Take out of the lists what says how follow-up ended, and return it."""
    if end.event is not None:
        return events.pop(end.event)
    assert end.status is not None
    return baseline.pop(end.status)


def one_row_each(codes: Codes) -> Cohort:
    """Return rows of the person table as a cohort, in which each patient has one."""
    return Cohort(codes[:, None, :], np.ones((len(codes), 1), dtype=bool))


def learns_soon(person: PersonTable) -> bool:
    """Whether the table has few enough codes for a network: a public fact."""
    return codes_of(person.as_domain) <= MOST_CODES


def _hidden_features(table: HistoryTable, series: Series, domain: HistoryDomain) -> list[Feature]:
    name = series.name
    columns = [series.counts.feature(f"rows of {name}")]
    if table.timed:
        columns += [
            domain.days.feature(f"first day of {name}", none=True, apart=True),
            SPAN_GRID.feature(f"span of {name}"),
        ]
    for value in series.values:  # one code more: no row
        points, parents = value.points, value.parents
        parents = (*parents, max(parents) + 1) if parents else ()
        first = f"first {value.name} of {name}"
        columns.append(Feature(first, value.size + 1, value.cells, points, parents=parents))
    return columns


def _at(array: npt.NDArray[np.integer], places: Ints) -> npt.NDArray[np.integer]:
    """Return elements by place; zeros if there is none at all."""
    return array[places] if len(array) else np.zeros(len(places), dtype=array.dtype)
