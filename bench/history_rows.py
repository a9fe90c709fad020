"""Row mode: histories as rows of one flat table, for comparison with the generator of histories.

Each row of the repeated table is joined with its patient's baseline and onsets, and the flat
generator `mixture` learns these rows with the patient as the unit. Drawn rows are dealt to drawn
patients: a patient's number of rows is drawn from the mixture's hidden column, and her rows from
those that say the same. Nothing else links the rows of a drawn patient.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import NEVER, Cohort, Histories, SeriesRows, select
from dpsynth.models import Domain, Feature, generator_class
from dpsynth.models.histories import HistoryDomain
from dpsynth.privacy import Entropy, PrivacyBudget, PrivacyPlan, Share

Ints = npt.NDArray[np.int64]


class RowGenerator:
    """The flat mixture of joined rows, with the methods of a generator of histories.

    The flat columns are the baseline, the day of each event, the series, the values of each series,
    and in a timed table the day of the row and the days since the row before in its series. In a
    table of several series, a patient without rows has one row without a series; in a table of one
    series, every patient has a row.
    """

    def __init__(self, domain: HistoryDomain, max_rows: int) -> None:
        """Lay out the columns of the flat table.

        Args:
            domain: public facts of the linked tables, one of which has repeated rows.
            max_rows: of a patient; a random set of rows is kept.
        """
        self.domain = domain
        (self.table,) = domain.tables
        self.several = len(self.table.series) > 1
        days = domain.last - domain.first + 1
        features = [*domain.baseline, *(_optional(name, days) for name in domain.events)]
        self.series_place = len(features)
        self.value_places = []
        if self.several:
            features.append(Feature("series", len(self.table.series) + 1, 0))
        for series in self.table.series:
            self.value_places.append(len(features))
            for value in series.values:
                size = value.size + self.several
                name = f"{series.name} {value.name}"
                features.append(Feature(name, size, value.cells, value.points))
        if self.table.timed:
            features += [_optional("day", days), _optional("gap", self.table.longest + 1)]
        self.flat = generator_class("mixture")(Domain(tuple(features), domain.population, max_rows))
        self.max_rows, self.features = max_rows, features

    def shares(self, budget: PrivacyBudget) -> tuple[Share, ...]:
        """Name the events of the flat fit."""
        return self.flat.shares(budget)

    def fit(self, histories: Histories, plan: PrivacyPlan, entropy: Entropy) -> Self:
        """Join, cap and learn the rows."""
        patients, codes = self._joined(histories)
        rows, places = select(patients, self.max_rows, entropy)
        names, seats = np.unique(patients[rows], return_inverse=True)
        laid = np.zeros((len(names), self.max_rows, codes.shape[1]), np.uint16)
        mask = np.zeros(laid.shape[:2], bool)
        laid[seats, places], mask[seats, places] = codes[rows], True
        self.flat.fit(Cohort(laid, mask), plan, entropy)
        return self

    def _joined(self, histories: Histories) -> tuple[Ints, Ints]:
        """Return the patient and the codes of each row of the flat table."""
        onsets = histories.onsets - self.domain.first
        days = self.domain.last - self.domain.first + 1
        onsets = np.where(histories.onsets == NEVER, days, np.clip(onsets, 0, days - 1))
        own = np.concatenate([histories.baseline.astype(np.int64), onsets], axis=1)
        missing = np.array([one.size - 1 for one in self.features])
        parts, found = [], []
        for place, rows in enumerate(histories.rows[0]):
            codes = np.tile(missing, (len(rows.patients), 1))
            if self.several:
                codes[:, self.series_place] = place
            start = self.value_places[place]
            codes[:, start : start + rows.values.shape[1]] = rows.values
            if self.table.timed:
                codes[:, -2] = np.clip(rows.days - self.domain.first, 0, days - 1)
                gaps = np.clip(np.diff(rows.days, prepend=0), 0, self.table.longest)
                first = np.diff(rows.patients, prepend=-1) != 0
                codes[:, -1] = np.where(first, self.table.longest + 1, gaps)
            parts.append(codes)
            found.append(rows.patients)
        if self.several:
            empty = np.setdiff1d(np.arange(len(histories)), np.concatenate(found))
            found.append(empty)
            parts.append(np.tile(missing, (len(empty), 1)))
        patients, codes = np.concatenate(found).astype(np.int64), np.concatenate(parts)
        codes[:, : own.shape[1]] = own[patients]
        return patients, codes

    def sample(self, patients: int, rng: np.random.Generator) -> Histories:
        """Draw patients with their numbers of rows, and deal rows to them."""
        owners, codes = self._dealt(patients, rng)
        first = np.searchsorted(owners, np.arange(patients))
        events = slice(len(self.domain.baseline), self.series_place)
        onsets = codes[first, events] + self.domain.first
        onsets[onsets > self.domain.last] = NEVER
        rows = tuple(
            self._rows(place, owners, codes, rng) for place in range(len(self.value_places))
        )
        baseline = codes[first, : len(self.domain.baseline)].astype(np.uint16)
        return Histories(baseline, np.zeros(patients, np.int64), onsets, (rows,))

    def _dealt(self, patients: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Draw rows, and the patient of each, ascending."""
        start: Any = self.flat.start_
        binning = start.binning
        hidden = start.products.draw(patients, rng)[:, 0]
        counts = binning.columns[0].refine(hidden, rng, even=True).astype(np.int64) + 1
        products = start.products.tilted(0, binning.row_factors())
        pool = products.draw(2 * int(counts.sum()), rng)
        owners = np.repeat(np.arange(patients), counts)
        chosen = np.zeros(len(owners), np.int64)
        for one in np.unique(hidden):
            wanted = np.flatnonzero(hidden[owners] == one)
            like = np.flatnonzero(pool[:, 0] == one)
            like = like if len(like) else np.arange(len(pool))
            chosen[wanted] = rng.choice(like, len(wanted), replace=len(like) < len(wanted))
        return owners, binning.refine(pool[chosen], rng, even=True).astype(np.int64)

    def _rows(self, place: int, owners: Ints, codes: Ints, rng: np.random.Generator) -> SeriesRows:
        """Take the rows of one series; cells that are missing are drawn from the other rows."""
        if self.several:
            own = codes[:, self.series_place] == place
            owners, codes = owners[own], codes[own]
        start = self.value_places[place]
        values = codes[:, start : start + len(self.table.changes)]
        if self.several:
            for column, feature in zip(values.T, self.table.series[place].values, strict=True):
                _fill(column, feature.size, rng)
        days = np.zeros(len(owners), np.int64)
        if self.table.timed:
            day, gap = codes[:, -2], codes[:, -1]
            _fill(day, self.domain.last - self.domain.first + 1, rng)
            order = np.lexsort((day, owners))
            days = self._days(owners[order], day[order] + self.domain.first, gap[order])
            values = values[order]
        return SeriesRows(owners, days, values.astype(np.uint16))

    def _days(self, owners: Ints, days: Ints, gaps: Ints) -> Ints:
        """Put each row so many days after the one before as its gap says; the first as it is."""
        starts = np.flatnonzero(np.diff(owners, prepend=-1) != 0)
        places = np.arange(len(owners)) - np.repeat(starts, np.diff([*starts, len(owners)]))
        for number in range(1, self.max_rows):
            here = np.flatnonzero(places == number)
            before = days[here - 1]
            has = gaps[here] <= self.table.longest
            days[here] = np.where(has, before + gaps[here], np.maximum(before, days[here]))
        return np.minimum(days, self.domain.last)


def _optional(name: str, cells: int) -> Feature:
    """Return a column of ordered codes, and one for a missing cell after them."""
    return Feature(name, cells + 1, cells, (1,) * cells)


def _fill(column: Ints, missing: int, rng: np.random.Generator) -> None:
    """Draw missing cells again from those that are not."""
    empty = column == missing
    if empty.any():
        present = column[~empty]
        column[empty] = rng.choice(present, int(empty.sum())) if len(present) else 0
