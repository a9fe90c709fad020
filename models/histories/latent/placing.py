"""Days of rows that follow from declared facts: inside rows of another table, or when they are due.

Rows inside those of another table (laboratory values of a stay) lie on the days of these, weighed
by how often each day is used: the first one, the second one, and so on. Rows that are due lie near
their due days, weighed by how often each is kept. Each of a patient's k rows of one of s such
tables weighs floor(M / (k sqrt(s))) in one histogram, of which each table is a part.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import SeriesRows
from dpsynth.models.histories.domain import HistoryTable
from dpsynth.models.histories.latent.laws import denoised

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

DAYS = np.array([0, 1, 2, 3, 4, 7, 14, 28])  # of a parent's row, at which cells begin
TINY = 1e-9


def cells_of(table: HistoryTable) -> int:
    """Return the cells of a table's part of the histogram; 0 where days follow from nothing."""
    if table.inside is not None:
        return len(DAYS)
    if table.due:
        return len(table.due) * (2 * min(table.within, 15) + 1)
    return 0


def due_cells(table: HistoryTable, days: Ints) -> Ints:
    """Return the cell of each day of rows that are due: the due day, and how far off it is."""
    due = np.asarray(table.due)
    within = min(table.within, 15)
    after = np.clip(np.searchsorted(due, days), 0, len(due) - 1)
    before = np.maximum(after - 1, 0)
    place = np.where(np.abs(days - due[before]) <= np.abs(due[after] - days), before, after)
    off = days - due[place]
    if table.within > within:
        off = np.rint(off * within / max(table.within, 1))
    off = np.clip(off, -within, within).astype(np.int64)
    return np.asarray(place * (2 * within + 1) + off + within, dtype=np.int64)


def inside_cells(
    days: SeriesRows, owners: Ints, starts: Ints, lengths: Ints, patients: int
) -> Ints:
    """Return the cell of each row's day since the parent's row began; the last begun counts.

    A row before all of the patient's parents is on day 0: those of others say nothing of it.
    """
    base = int(min(days.days.min(initial=0), starts.min(initial=0)))
    width = int(max(days.days.max(initial=0), starts.max(initial=0))) - base + 1
    keys = np.sort(owners * width + starts - base)
    at = np.searchsorted(keys, days.patients * width + days.days - base, side="right") - 1
    begun = np.append(keys, -1)[at]
    own = begun // width == days.patients
    since = np.where(own, days.days - base - begun % width, 0)
    return np.asarray(np.searchsorted(DAYS, since, side="right") - 1, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Placing:
    """How rows of a table lie on the days that are open to them.

    Attributes:
        table: of the rows.
        weights: of the cells.
    """

    table: HistoryTable
    weights: Floats

    @classmethod
    def of(cls, table: HistoryTable, counts: Floats, sigma: float) -> Placing:
        """Read it off noisy counts."""
        own = np.maximum(denoised(counts, sigma, 1.2), 0.0)
        if own.sum() <= 3 * sigma:
            own = np.ones(len(counts))
        return cls(table, own / own.sum() + 1e-4 / len(own))

    def weighed(self, drawn: Floats) -> Placing:
        """Divide by how often cells are drawn as it is."""
        wanted = self.weights / self.weights.sum()
        return Placing(self.table, wanted / np.maximum(drawn / max(drawn.sum(), TINY), 0.02))

    def draw_due(
        self, counts: Ints, ends: Ints, rng: np.random.Generator, first: int = 0
    ) -> SeriesRows:
        """Draw so many of the rows that are due, each once, none after the end.

        A row is nearest to its own due day, and none is before the first day of the window.
        """
        due, within = np.asarray(self.table.due), min(self.table.within, 15)
        table = self.weights.reshape(len(due), -1)
        open_to = due[None, :] <= ends[:, None]
        # of k places drawn by weight, those with the highest keys (Efraimidis and Spirakis 2006)
        keys = np.log(rng.random(open_to.shape)) / np.maximum(table.sum(axis=1), TINY)
        keys = np.where(open_to, keys, -np.inf)
        rank = np.argsort(np.argsort(-keys, axis=1), axis=1)
        patients, place = np.nonzero((rank < counts[:, None]) & open_to)
        days = due[place]
        if within:
            ends_of = np.cumsum(table / table.sum(axis=1, keepdims=True), axis=1)
            off = (rng.random(len(place))[:, None] > ends_of[place]).sum(axis=1) - within
            if self.table.within > within:
                off = np.rint((off + rng.random(len(off)) - 0.5) * self.table.within / within)
                off = np.clip(off, -self.table.within, self.table.within)
            middle = (due[:-1] + due[1:]) // 2
            low = np.maximum(np.append(first, middle + 1), first)[place]
            high = np.minimum(np.append(middle, np.iinfo(np.int64).max)[place], ends[patients])
            days = np.clip(days + off.astype(np.int64), low, high)
        return SeriesRows(patients, days, np.empty((len(days), 0), dtype=np.uint16))

    def draw_inside(
        self,
        counts: Ints,
        spans: tuple[Ints, Ints, Ints],
        ends: Ints,
        rng: np.random.Generator,
        *,
        apart: bool,
    ) -> SeriesRows:
        """Draw so many rows on days of parents.

        Args:
            counts: of each patient.
            spans: patient, first day and number of days of each parent row.
            ends: last day of each patient.
            rng: of the draws.
            apart: whether no two rows are on one day, as far as there are days.
        """
        owners, starts, lengths = spans
        lengths = np.maximum(np.minimum(lengths, ends[owners] - starts + 1), 1)
        number = np.bincount(owners, minlength=len(counts))
        counts = np.where(number > 0, counts, 0)
        if apart:
            return self._apart(counts, owners, starts, lengths, rng)
        # several rows may be on one day: a parent's cell is drawn by weight, and a day in it
        first = DAYS
        last = np.append(DAYS[1:], np.iinfo(np.int64).max)
        open_days = np.clip(np.minimum(last, lengths[:, None]) - first, 0, None)
        weights = (open_days * self.weights).ravel() + TINY * (open_days > 0).ravel()
        order = np.argsort(np.repeat(owners, len(DAYS)), kind="stable")
        whole = np.bincount(owners, weights.reshape(open_days.shape).sum(axis=1), len(counts))
        ends_of = np.cumsum(weights[order])
        patients = np.repeat(np.arange(len(counts)), counts)
        begin = (np.cumsum(whole) - whole)[patients]
        at = np.searchsorted(
            ends_of, begin + rng.random(len(patients)) * whole[patients] * 0.999999
        )
        row, cell = np.divmod(order[np.minimum(at, len(order) - 1)], len(DAYS))
        since = first[cell] + np.floor(rng.random(len(row)) * open_days[row, cell]).astype(np.int64)
        return _sorted(patients, starts[row] + since)

    def _apart(
        self, counts: Ints, owners: Ints, starts: Ints, lengths: Ints, rng: np.random.Generator
    ) -> SeriesRows:
        """Draw rows of which no two are on one day, as far as there are days."""
        patients = np.repeat(owners, lengths)
        since = np.arange(len(patients)) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        days = np.repeat(starts, lengths) + since
        weights = np.maximum(self.weights[np.searchsorted(DAYS, since, side="right") - 1], TINY)
        order = np.lexsort((-np.log(rng.random(len(days))) / weights, patients))
        first = np.searchsorted(patients[order], np.arange(len(counts)))
        turn = np.arange(len(order)) - first[patients[order]]
        chosen = order[turn < counts[patients[order]]]
        return _sorted(patients[chosen], days[chosen])


def _sorted(patients: Ints, days: Ints) -> SeriesRows:
    order = np.lexsort((days, patients))
    return SeriesRows(patients[order], days[order], np.empty((len(order), 0), dtype=np.uint16))
