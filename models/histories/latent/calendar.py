"""Days of rows between a patient's first one and her last.

A patient's number of rows, first day and last day are columns of the table of patients. The days
between them are order statistics of uniform points, weighed by what was released of two histograms
of all clocks: the day in the window, and the days since the row before, each by the class of her
number of rows. A patient with n rows, at least three, of one of s clocks adds
floor(M / ((n - 1) sqrt(s))) to a cell of both for each row but the first: an L2 norm of at most M
in each, since clocks are parts of the histograms (`dpsynth.privacy.mechanisms`).

Weights are found by drawing: what is drawn too rarely is made likelier (iterative proportional
fitting: Deming and Stephan 1940), as far as the noise lets one see.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import SeriesRows
from dpsynth.models.histories.grids import Grid
from dpsynth.models.histories.row_grains import weight_of
from dpsynth.privacy import WeightedRows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

CLASSES = (3, 4, 10)  # numbers of rows, from which on days have laws of their own
DAYS = 32  # cells of the window
ORDERED, SPACED = 14, 10  # candidates for the next day: order statistics, and gaps
ROUNDS = 10  # in which weights are found
CLEAR = 1.2  # standard deviations of noise by which a difference is shrunk
STEEP = 4.0  # by how much a weight moves in a round, at most
TINY = 1e-9


def class_of(counts: Ints) -> Ints:
    """Return the class of each number of rows."""
    return np.maximum(np.searchsorted(CLASSES, counts, side="right") - 1, 0)


@dataclass(frozen=True, eq=False)
class Calendar:
    """How the rows of a clock lie between a patient's first row and her last.

    Attributes:
        edges: days at which cells of the window begin, and its end, ``[DAYS + 1]``.
        gaps: cells of days since the row before.
        days: weight of each day, by class, ``[classes, DAYS]``.
        apart: weight of each gap, by class, ``[classes, gaps]``.
        often: shares of gaps, from which candidates are drawn, ``[classes, gaps]``.
        longest: days that two rows in a row may lie apart at most.
    """

    edges: Floats
    gaps: Grid
    days: Floats
    apart: Floats
    often: Floats
    longest: int

    @classmethod
    def even(cls, first: int, last: int, longest: int) -> Calendar:
        """Return the calendar of order statistics alone."""
        gaps = Grid.of_gaps(max(longest, 1))
        ones = np.ones((len(CLASSES), DAYS)), np.ones((len(CLASSES), gaps.cells))
        often = np.ones((len(CLASSES), gaps.cells)) / gaps.cells
        return cls(np.linspace(first, last + 1, DAYS + 1), gaps, *ones, often, max(longest, 1))

    @property
    def sizes(self) -> tuple[int, int]:
        """Cells of both histograms; a last row has no day of its own."""
        return len(CLASSES) * DAYS + 1, len(CLASSES) * self.gaps.cells

    def cells(self, rows: SeriesRows, patients: int) -> tuple[Ints, Ints, Ints, Ints]:
        """Return cells of both histograms, patients and numbers of rows, of all later rows."""
        counts, starts = rows.counts(patients), rows.starts(patients)
        index = np.arange(len(rows.patients)) - starts[rows.patients]
        own = counts[rows.patients]
        later = np.flatnonzero((index > 0) & (own >= CLASSES[0]))
        which = class_of(own[later])
        day = self.day_cell(rows.days[later])
        last = index[later] == own[later] - 1
        days = np.where(last, len(CLASSES) * DAYS, which * DAYS + day)
        gap = self.gaps.code(rows.days[later] - rows.days[later - 1])
        return days, which * self.gaps.cells + gap, rows.patients[later], own[later]

    def day_cell(self, days: Ints) -> Ints:
        """Return the cell of each day."""
        cells = np.searchsorted(self.edges, days, side="right") - 1
        return np.asarray(np.clip(cells, 0, DAYS - 1), dtype=np.int64)

    @cached_property
    def _weights(self) -> tuple[Floats, Floats, Floats]:
        """Weights of each day of the window and of each gap in days, and how often gaps are drawn.

        By class: ``[classes, days]``.
        """
        widths = np.diff(self.gaps.edges)
        cell = np.repeat(np.arange(self.gaps.cells), widths)
        often = ((self.often + TINY) / widths)[:, cell]
        every = self.day_cell(np.arange(self.edges[0], self.edges[-1]))
        return self.days[:, every], self.apart[:, cell], often

    def draw(self, counts: Ints, first: Ints, last: Ints, rng: np.random.Generator) -> SeriesRows:
        """Draw the days of so many rows of each patient, the first and last ones included."""
        patients = np.repeat(np.arange(len(counts)), counts)
        starts = np.cumsum(counts) - counts
        days = np.zeros(len(patients), dtype=np.int64)
        has = counts > 0
        days[starts[has]] = first[has]
        several = counts > 1
        days[(starts + counts - 1)[several]] = last[several]
        at = first.copy()
        which = class_of(counts)
        for step in range(1, int(counts.max(initial=0)) - 1):
            who = np.flatnonzero(counts - 1 > step)
            left = counts[who] - 1 - step
            at[who] = self._next(at[who], last[who], left, which[who], rng)
            days[starts[who] + step] = at[who]
        return SeriesRows(patients, days, np.empty((len(days), 0), dtype=np.uint16))

    def _next(
        self, at: Ints, last: Ints, left: Ints, which: Ints, rng: np.random.Generator
    ) -> Ints:
        """Draw the next day of each patient, with so many rows left before her last one."""
        room = np.maximum(last - at, 0)[:, None]
        shape = (len(at), ORDERED)
        order = np.floor(room * (1 - rng.random(shape) ** (1 / left[:, None]))).astype(np.int64)
        ends = np.cumsum(self.often, axis=1)
        cells = np.empty((len(at), SPACED), dtype=np.int64)
        for one in range(len(CLASSES)):
            mine = which == one
            points = rng.random((int(mine.sum()), SPACED)) * ends[one, -1]
            cells[mine] = np.searchsorted(ends[one], points, side="right")
        cells = np.minimum(cells, self.gaps.cells - 1)
        spaced = self.gaps.draw(cells.ravel(), rng).reshape(cells.shape)
        least = np.maximum(room - left[:, None] * self.longest, 0)
        gaps = np.concatenate([order, spaced], axis=1)
        gaps = np.clip(gaps, least, np.minimum(room, self.longest))
        whole = np.maximum(room, 1)
        inside = np.clip(1 - gaps / (whole + 1), 0, 1)
        q1 = left[:, None] / whole * inside ** (left[:, None] - 1)
        by_day, by_gap, often = self._weights
        days, place = at[:, None] + gaps, which[:, None] * (self.longest + 1) + gaps
        since = which[:, None] * len(by_day[0]) + days - int(self.edges[0])
        q2 = np.take(often, place)
        likely = np.take(by_day, since) * np.take(by_gap, place)
        weights = q1 / (ORDERED * q1 + SPACED * q2 + TINY) * likely + TINY
        ends = np.cumsum(weights, axis=1)
        chosen = (rng.random(len(at))[:, None] * ends[:, -1:] > ends).sum(axis=1)
        return np.asarray(days[np.arange(len(at)), np.minimum(chosen, days.shape[1] - 1)])

    def fitted(
        self,
        released: tuple[Floats, Floats],
        sigma: float,
        starts: tuple[Ints, Ints, Ints],
        clocks: Ints,
        mass: int,
        rng: np.random.Generator,
    ) -> Calendar:
        """Find weights with which drawn rows have the released histograms.

        Args:
            released: counts of days and of gaps.
            sigma: noise of a count.
            starts: numbers of rows, first and last days of drawn patients.
            clocks: of each of them, in which she has three rows or more.
            mass: of a patient.
            rng: of the draws.
        """
        days, gaps = (np.maximum(one, 0.0) for one in released)
        whole = gaps.sum()
        if whole < 5 * sigma * np.sqrt(len(gaps)):
            return self
        shape = (len(CLASSES), self.gaps.cells)
        often = gaps.reshape(shape) + TINY * whole
        found = replace(self, often=often / often.sum(axis=1, keepdims=True))
        scale = None
        for _ in range(ROUNDS):
            rows = found.draw(*starts, rng)
            cells = found.cells(rows, len(starts[0]))
            weights = weight_of(clocks[cells[2]], cells[3] - 1, mass).astype(np.float64)
            drawn = [
                np.bincount(cell, weights, minlength=size)
                for cell, size in zip(cells[:2], self.sizes, strict=True)
            ]
            if scale is None:
                scale = whole / max(drawn[1].sum(), TINY)
            factors = [
                factors_of(one * scale, want, sigma)
                for one, want in zip(drawn, released, strict=True)
            ]
            found = replace(
                found,
                days=found.days * factors[0][:-1].reshape(found.days.shape),
                apart=found.apart * factors[1].reshape(found.apart.shape),
            )
        return found


def factors_of(drawn: Floats, released: Floats, sigma: float) -> Floats:
    """Return by how much cells are made likelier: as far as the noise lets one see."""
    off = released - drawn
    shrunk = off * np.maximum(0.0, 1 - (CLEAR * sigma / np.maximum(np.abs(off), TINY)) ** 2)
    floor = 0.1 * sigma + TINY
    return np.clip((drawn + shrunk + floor) / (drawn + floor), 1 / STEEP, STEEP) ** 0.7


def calendar_rows(
    clocks: Sequence[tuple[Calendar, SeriesRows]], patients: int, mass: int
) -> WeightedRows:
    """Lay out the later rows of all clocks: a part of both histograms for each clock."""
    found = [calendar.cells(rows, patients) for calendar, rows in clocks]
    offsets = np.cumsum([[0, 0], *(calendar.sizes for calendar, _ in clocks)], axis=0)
    cells = tuple(
        np.concatenate([one[kind] + offsets[place][kind] for place, one in enumerate(found)])
        for kind in (0, 1)
    )
    owners = np.concatenate([one[2] for one in found])
    counts = np.concatenate([one[3] for one in found])
    parts = np.repeat(np.arange(len(found)), [len(one[2]) for one in found])
    shared = np.sum([np.bincount(one[2], minlength=patients) > 0 for one in found], axis=0)
    return WeightedRows(cells, owners, weight_of(shared[owners], counts - 1, mass), parts)
