"""Public grids for what a history adds to a row: numbers of rows, days, gaps and paces.

Each grid turns a number into an ordered code and draws a number back within its code. Nothing is
fitted: codes follow from declared windows and caps alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from dpsynth.models import Feature

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

YEAR = 365.25  # days
YEARS = ((5.0, 0.5), (20.0, 1.0), (120.0, 5.0))
"""How days before the origin are told apart: up to so many years back, in cells of years."""
GROUP = 10  # codes of a day that are counted together too: few events are told apart by them
PARTS = 20  # of follow-up, by which days after the origin are told apart
PACES = 40
RATIO, SMALLER, LARGER = 1.25, 15, 17  # of cells of gaps next to the mean gap, and how many
SPANS = 40  # parts of the time left after the first row, by which spans are told apart
TINY, FLAT, STEEPEST, MOST = 1e-12, 1e-6, 1.0, 500.0
"""A share that is none; slopes of the law of numbers within a cell, of none and the most; and how
far it rises within a cell at most."""
EXACT = 6  # rows up to which each number has a code


@dataclass(frozen=True, eq=False)
class Grid:
    """Whole numbers in ordered cells: ``edges[c] <= number < edges[c + 1]``.

    >>> Grid.of_counts(10).edges.tolist()
    [0, 1, 2, 3, 4, 5, 6, 7, 9, 11]
    """

    edges: Ints

    @classmethod
    def of_counts(cls, maximum: int) -> Grid:
        """Numbers of rows from 0: exact to 6, then cells that widen by two fifths each."""
        edges = [*range(min(maximum, EXACT) + 2)]
        while edges[-1] <= maximum:
            edges.append(min(int(edges[-1] * 1.4), maximum + 1))
        return cls(np.array(edges))

    @classmethod
    def of_gaps(cls, longest: int) -> Grid:
        """Days between two rows: days, weeks, half months up to two years, quarters, years."""
        halves = np.rint(np.arange(2, 49) * YEAR / 24).astype(np.int64).tolist()
        grid = [0, 1, 2, 4, 8, 15, 22, *halves, *range(822, 1827, 91), *range(1827, 36_500, 365)]
        return cls(np.array([*(day for day in grid if day <= longest), longest + 1]))

    @classmethod
    def of_paces(cls, longest: int) -> Grid:
        """Mean days between rows, by ratio; less than a day apart."""
        edges = np.unique(np.rint(np.geomspace(3, max(longest + 1, 4), PACES)).astype(np.int64))
        return cls(np.concatenate([[0, 1], edges]))

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return len(self.edges) - 1

    @property
    def middles(self) -> Floats:
        """The number in the middle of each cell."""
        return np.asarray((self.edges[:-1] + self.edges[1:] - 1) / 2)

    def feature(self, name: str, *, none: bool = False) -> Feature:
        """Return the column of the cells; with ``none``, one code more for no number."""
        points = tuple(np.diff(self.edges).tolist())
        return Feature(name, self.cells + int(none), self.cells, points)

    def code(self, numbers: npt.NDArray[np.integer] | Floats) -> Ints:
        """Return the cell of each number, the nearest one for those outside."""
        places = np.searchsorted(self.edges, numbers, side="right") - 1
        return np.asarray(np.clip(places, 0, self.cells - 1), dtype=np.int64)

    def draw(self, codes: Ints, rng: np.random.Generator, shares: Floats | None = None) -> Ints:
        """Draw a whole number within each cell: uniformly, or as the shares of the cells fall."""
        if shares is None:
            return np.asarray(rng.integers(self.edges[codes], self.edges[codes + 1]))
        rates, widths = self._rates(shares)[codes], np.diff(self.edges)[codes]
        points = rng.random(len(codes))
        rates = np.where(np.abs(rates) < FLAT, FLAT, rates)
        within = np.log1p(points * np.expm1(np.minimum(rates * widths, MOST))) / rates
        return np.asarray(self.edges[codes] + np.clip(within.astype(np.int64), 0, widths - 1))

    def _rates(self, shares: Floats) -> Floats:
        """Return how fast the law rises within each cell: in logarithms, per number.

        It is the slope between the cells on both sides; 0 where one of them is empty.
        """
        heights = shares[: self.cells] / np.diff(self.edges)
        rates = np.zeros(self.cells)
        if self.cells > 2:
            logs, middles = np.log(np.maximum(heights, TINY)), self.middles
            slopes = (logs[2:] - logs[:-2]) / (middles[2:] - middles[:-2])
            known = (heights[2:] > TINY) & (heights[:-2] > TINY)
            rates[1:-1] = np.where(known, np.clip(slopes, -STEEPEST, STEEPEST), 0.0)
            rates[-1] = rates[-2]
        return rates


@dataclass(frozen=True)
class TimeGrid:
    """Days of a patient: years before the origin, the origin, and parts of what follows.

    The longer ago, the wider a cell: half years, then years, then five years.

    Days after the origin are coded as a share of the patient's own follow-up, so a drawn day never
    lies after its end.

    Attributes:
        first: the first day of the window, at most 0.
        last: the last day of the window, at least 0.

    >>> grid = TimeGrid(first=-365, last=3650)
    >>> ends = np.array([1000, 1000, 1000])
    >>> grid.code(np.array([-10, 0, 1000]), ends).tolist(), grid.cells
    ([1, 2, 22], 23)
    """

    first: int
    last: int

    @cached_property
    def past(self) -> Floats:
        """Ends of the cells before the origin in days, from the earliest to 0: ``[before + 1]``."""
        ends, year = [0.0], 0.0
        for until, width in YEARS:
            while year < until and year * YEAR < -self.first:
                year += width
                ends.append(-year * YEAR)
        return np.array(ends[::-1])

    @property
    def before(self) -> int:
        """Cells before the origin."""
        return len(self.past) - 1

    @property
    def cells(self) -> int:
        """How many codes there are."""
        return self.before + 1 + (PARTS if self.last > 0 else 0)

    def feature(self, name: str, *, none: bool = False, apart: bool = False) -> Feature:
        """Return the column of the codes.

        Args:
            name: of the column.
            none: whether one code more, the last one, means that there is no day.
            apart: whether no bin has days on both sides of the origin. Rare days, such as those of
                an event, are better told by few bins, wherever they lie.
        """
        past = np.rint(np.diff(self.past)).astype(np.int64).tolist()
        after = [max(self.last // PARTS, 1)] * (self.cells - self.before - 1)
        points, after_origin = (*past, 1, *after), (self.before + 1,) if after and apart else ()
        size = self.cells + int(none)
        return Feature(name, size, self.cells, points, GROUP, landmarks=after_origin)

    def code(self, days: Ints, ends: Ints) -> Ints:
        """Return the code of each day of a patient whose follow-up ends on ``ends``."""
        past = np.clip(
            np.searchsorted(self.past, days, side="right") - 1, 0, max(self.before - 1, 0)
        )
        after = self.before + 1 + np.clip(PARTS * (days - 1) // np.maximum(ends, 1), 0, PARTS - 1)
        codes = np.where(days < 0, past, np.where(days == 0, self.before, after))
        return np.asarray(np.clip(codes, 0, self.cells - 1), dtype=np.int64)

    def draw(self, codes: Ints, ends: Ints, rng: np.random.Generator) -> Ints:
        """Draw a day within each code, none outside the window or after ``ends``."""
        points = rng.random(len(codes))
        cells = np.clip(codes, 0, max(self.before - 1, 0))
        low, high = self.past[cells], self.past[np.minimum(cells + 1, self.before)]
        past = np.minimum(np.floor(low + points * (high - low)), -1)
        share = (codes - self.before - 1 + points) / PARTS
        after = 1 + np.floor(share * np.maximum(ends, 0))
        days = np.where(codes < self.before, past, np.where(codes == self.before, 0, after))
        return np.asarray(np.clip(days, self.first, np.minimum(ends, self.last)), dtype=np.int64)


@dataclass(frozen=True)
class SpanGrid:
    """Days from a patient's first row to her last, as a share of the time left to her.

    The time left (``rooms``) lasts from her first row to the end of her follow-up, so a drawn span
    never reaches beyond it. No days at all is a code of its own.

    >>> grid = SpanGrid()
    >>> grid.code(np.array([0, 1, 1000]), np.array([1000, 1000, 1000])).tolist(), grid.cells
    ([0, 1, 40], 41)
    """

    @property
    def cells(self) -> int:
        """How many codes there are."""
        return SPANS + 1

    def feature(self, name: str) -> Feature:
        """Return the column of the codes; the last one means that there is no span."""
        return Feature(name, self.cells + 1, self.cells, (1,) * self.cells)

    def code(self, spans: Ints, rooms: Ints) -> Ints:
        """Return the code of each span."""
        parts = np.clip(SPANS * (spans - 1) // np.maximum(rooms, 1), 0, SPANS - 1)
        return np.asarray(np.where(spans > 0, 1 + parts, 0), dtype=np.int64)

    def draw(self, codes: Ints, rooms: Ints, rng: np.random.Generator) -> Ints:
        """Draw a whole number of days within each code, none beyond the room."""
        shares = (codes - 1 + rng.random(len(codes))) / SPANS
        spans = np.where(codes > 0, 1 + np.floor(shares * np.maximum(rooms, 0)), 0)
        return np.asarray(np.clip(spans, 0, np.maximum(rooms, 0)), dtype=np.int64)


@dataclass(frozen=True)
class RatioGrid:
    """Days from a patient's row to her next, by how they compare with the mean of what is left.

    A patient's rows are close or far apart as a whole; next to her own mean gap (``paces``: days
    from here to her last row over rows to come) a gap's law is much the same for all. No days at
    all is code 0, and her last gap, which is what is left, a code behind the others.

    >>> grid = RatioGrid()
    >>> codes = grid.code(np.array([0, 30, 60]), np.array([30.0, 30.0, 30.0]))
    >>> codes.tolist(), grid.cells
    ([0, 17, 20], 34)
    """

    @cached_property
    def edges(self) -> Floats:
        """Ratios at which a cell begins, but for the first one: no days; ``[cells - 1]``."""
        return np.asarray(np.concatenate([[0.0], RATIO ** np.arange(-SMALLER, LARGER)]))

    @cached_property
    def bounds(self) -> Floats:
        """Ratios between which the codes from 1 on lie; ``[cells]``."""
        return np.append(self.edges, self.edges[-1] * RATIO)

    @property
    def cells(self) -> int:
        """How many codes there are, without the last gap's."""
        return len(self.edges) + 1

    def feature(self, name: str) -> Feature:
        """Return the column; its last code, without order, is a last gap, or none before."""
        return Feature(name, self.cells + 1, self.cells, (1,) * self.cells)

    def code(self, gaps: Ints, paces: Floats) -> Ints:
        """Return the code of each gap; a patient without a day left has code 0."""
        ratios = gaps / np.where(paces > 0, paces, 1.0)
        places = np.searchsorted(self.edges, ratios, side="right")
        return np.asarray(np.where((gaps > 0) & (paces > 0), places, 0), dtype=np.int64)

    def allowed(self, left: Ints) -> npt.NDArray[np.bool_]:
        """Say which codes fit before the last row if so many are to come, ``[rows, cells]``."""
        lowest = np.concatenate([[0.0], self.edges])
        return np.asarray(lowest < left[:, None])


def filled(codes: Ints, wanted: npt.NDArray[np.bool_], none: int, rng: np.random.Generator) -> Ints:
    """Put another patient's code where one is wanted and there is none; 0 where none is wanted."""
    has = codes < none
    known = codes[wanted & has]
    found = np.where(has, codes, 0)
    gaps = np.flatnonzero(wanted & ~has)
    if len(gaps) and len(known):
        found[gaps] = rng.choice(known, len(gaps))
    return found
