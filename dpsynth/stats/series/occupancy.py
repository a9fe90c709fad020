"""Occupancy: how many units are there in each period of a window, such as beds in use by day.

**What is asked.** A row is a stay: from a moment to another, or for a length of time. It covers
each period that it touches, the last one included, and counts in each group of its row; a unit
counts once in each period of a group. Periods before the window's first are left out. A stay of
more periods than ``longest`` counts in its first ones alone. Rows without a begin or an end, or
that end before they begin, are left out.

**What it costs** is derived in privacy/answer_events.py: less than as many periods as a stay
may have (docs/statistics.md has figures).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.privacy import Entropy, Event, Stays, StaySums, noise_of_periods, stay_sums, unfiltered
from dpsynth.privacy.answer_events import WHOLE, filter_weights
from dpsynth.privacy.answers import NOWHERE
from dpsynth.privacy.events import UNDECIDED
from dpsynth.stats.periods import Window
from dpsynth.stats.rows import Asked, Rows
from dpsynth.stats.series.line import LINE, with_line
from dpsynth.stats.series.smoothing import smoothed
from dpsynth.stats.statistic import Answers, Events, Ints, Statistic, sure

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Stretch:
    """Where a stay's begin or end is in a row.

    Attributes:
        place: of its column among the coded ones.
        seconds: of each code, ``[codes]``: since 1970, or of its length; NaN where there is none.
    """

    place: int
    seconds: Floats

    def of(self, rows: Rows) -> Floats:
        """Return the seconds of each row."""
        return self.seconds[rows.codes[:, self.place]]


@dataclass(frozen=True, eq=False)
class Occupancy(Statistic):
    """Units in each period; ``axes`` are those of the groups.

    Attributes:
        window: its periods.
        begin: when stays begin.
        end: when they end, or how long they are.
        lasts: whether ``end`` is how long they are.
        longest: the most periods of a stay.
        smooth: whether a smooth line is wanted.
    """

    window: Window
    begin: Stretch
    end: Stretch
    lasts: bool
    longest: int
    smooth: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """What columns of a series are called."""
        return ("period", *LINE)

    @property
    def reads(self) -> Asked:
        """Its groups, and every code of begins and ends."""
        moments = {one.place: np.arange(len(one.seconds)) for one in (self.begin, self.end)}
        return dict(super().reads) | moments

    @property
    def counted(self) -> str:
        """What its numbers are of."""
        return "units"

    def events(self) -> tuple[tuple[Event, float], ...]:
        """One series of each group."""
        event = StaySums(
            self.name,
            periods=self.window.size,
            longest=self.longest,
            stays_per_unit=self.rows_per_unit,
            sigma=UNDECIDED,
        )
        return ((event, 1.0),)

    def sizes(self) -> dict[str, list[int]]:
        """A number for each period of each group."""
        return {self.name: [self.size * self.window.size]}

    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Count who is there."""
        event = events[self.name]
        assert isinstance(event, StaySums)
        return {self.name: stay_sums(self.stays(rows), self.size, event, entropy)}

    def stays(self, rows: Rows) -> Stays:
        """Return the stays of rows within the window, none longer than declared."""
        begin, end, groups = self.begin.of(rows), self.end.of(rows), self.cells(rows)
        if self.lasts:
            end = begin + end
        known = np.isfinite(begin) & np.isfinite(end) & (begin <= end) & (groups != NOWHERE)
        first, last = (self.window.places(moment[known]) for moment in (begin, end))
        last = np.minimum(last, first + self.longest - 1)  # before the window is cut
        inside = (last >= 0) & (first < self.window.size)
        first, last = np.maximum(first, 0), np.minimum(last, self.window.size - 1)
        units, groups = rows.units[known], groups[known]
        like = None if rows.like is None else rows.like[known][inside]
        return Stays(units[inside], groups[inside], first[inside], last[inside], like)

    def table(self, answers: Answers, events: Events, z: float) -> pd.DataFrame:
        """List groups and periods with the units that are there."""
        event = events[self.name]
        assert isinstance(event, StaySums)
        series = unfiltered(answers[self.name][0], event)
        off = z * np.tile(noise_of_periods(event), self.size)
        groups = self.frame().to_numpy(dtype=object).repeat(self.window.size, axis=0)
        found = pd.DataFrame(groups, columns=[axis.column for axis in self.axes])
        found["period"] = np.array(self.window.labels * self.size, dtype=object)
        values = series.ravel()
        found["count"] = values.round(1) + 0.0
        found["lower"] = np.maximum(np.floor(values - off), 0.0)
        found["upper"] = np.maximum(np.ceil(values + off), 0.0)
        if not self.smooth:
            return found
        power = noise_power(event)
        lines = np.stack([np.stack(smoothed(one, power, z)) for one in series], axis=1)
        return with_line(found, lines.reshape(3, -1))

    def expected(self, events: Events, z: float) -> str:
        """Say how far a number will be off, at the end of the window, where noise is largest."""
        event = events[self.name]
        assert isinstance(event, StaySums)
        off = figure(z * float(noise_of_periods(event)[-1]))
        return f"{self.numbers:,} periods, each to within {off} units {sure(z)}"


def noise_power(event: StaySums) -> Floats:
    """Return the variance of the noise at the frequency of each cosine, ``[periods]``, in units."""
    weights = filter_weights(event.periods, event.longest) / WHOLE
    gain = np.abs(np.fft.rfft(weights, 2 * event.periods)[: event.periods])
    return np.asarray((event.sigma / WHOLE / gain) ** 2, dtype=np.float64)
