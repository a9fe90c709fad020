"""The table of patients with hidden columns that describe their histories: one row a patient.

Beside the baseline, a patient's row says on which day each event happened, and for every series how
many rows there are, when the first one is, how much of the time left to her they span, and the
first row itself. All of it has mass 1 a patient, so it needs no cap, and an ordinary mixture
learns it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER, Cohort, Histories, SeriesRows
from dpsynth.models import Codes, Domain, Feature
from dpsynth.models.histories.domain import HistoryDomain, HistoryTable, Series
from dpsynth.models.histories.grids import SpanGrid

Ints = npt.NDArray[np.int64]

SPAN_GRID = SpanGrid()
COUNT = 2.0  # weight of a pair with the number of rows of a series
OWN = 2.0  # weight of a pair of columns of the tables of patients and of events


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
        days = self.domain.days
        columns = [*self.domain.baseline]
        columns += [days.feature(f"day of {name}", none=True) for name in self.domain.events]
        for table in self.domain.tables:
            for series in table.series:
                columns += _hidden_features(table, series, self.domain)
        return tuple(columns)

    @cached_property
    def as_domain(self) -> Domain:
        """The table as a flat one: one row a patient."""
        return Domain(self.features, self.domain.population, 1)

    @cached_property
    def hidden(self) -> tuple[tuple[Hidden, ...], ...]:
        """Where the hidden columns of every series of every table are."""
        place = len(self.domain.baseline) + len(self.domain.events)
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

    def weight_of(self, pair: tuple[int, int]) -> float:
        """Say by how much a pair is measured more precisely than others: by what its columns are.

        What stands in the tables of patients and of events is wanted as it is; a hidden column
        only begins a history. How many rows there are decides who has a step, and how many weigh.
        """
        own = len(self.domain.baseline) + len(self.domain.events)
        if max(pair) < own:
            return OWN
        return COUNT if any(hidden.count in pair for of in self.hidden for hidden in of) else 1.0

    def codes(self, histories: Histories) -> Codes:
        """Return a row of each patient, ``[patients, columns]``; a function of her own rows."""
        grid, ends = self.domain.days, histories.ends
        columns = [*histories.baseline.T]
        for onsets in histories.onsets.T:
            never = onsets == NEVER
            columns.append(np.where(never, grid.cells, grid.code(np.where(never, 0, onsets), ends)))
        for table, of_table in zip(self.domain.tables, histories.rows, strict=True):
            for series, rows in zip(table.series, of_table, strict=True):
                columns += self._hidden_codes(table, series, rows, ends)
        return np.column_stack(columns).astype(np.uint16)

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


def one_row_each(codes: Codes) -> Cohort:
    """Return rows of the person table as a cohort, in which each patient has one."""
    return Cohort(codes[:, None, :], np.ones((len(codes), 1), dtype=bool))


def _hidden_features(table: HistoryTable, series: Series, domain: HistoryDomain) -> list[Feature]:
    name = series.name
    columns = [series.counts.feature(f"rows of {name}")]
    if table.timed:
        columns += [
            domain.days.feature(f"first day of {name}", none=True),
            SPAN_GRID.feature(f"span of {name}"),
        ]
    for value in series.values:  # one code more: no row
        points = value.points
        columns.append(
            Feature(f"first {value.name} of {name}", value.size + 1, value.cells, points)
        )
    return columns


def _at(array: npt.NDArray[np.integer], places: Ints) -> npt.NDArray[np.integer]:
    """Return elements by place; zeros if there is none at all."""
    return array[places] if len(array) else np.zeros(len(places), dtype=array.dtype)
