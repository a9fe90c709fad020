"""Time series: counts and occupancy by period, with a smooth line beside them.

Occupancy: how many units are there in each period of a window, such as beds in use by day.

**What is asked.** A row is a stay: from a moment to another, or for a length of time. It covers
each period that it touches, the last one included, and counts in each group of its row; a unit
counts once in each period of a group. Periods before the window's first are left out. A stay of
more periods than ``longest`` counts in its first ones alone. Rows without a begin or an end, or
that end before they begin, are left out.

**What it costs** is derived in privacy/answer_events.py: less than as many periods as a stay
may have (docs/statistics.md has figures).

A smooth line through a series of known noise, with its interval; post-processing.

**The model.** What the source has in period t is a random walk, with normal steps of variance v and
a beginning of which nothing is known, plus a scatter of variance w: people come by chance. The
scatter of one period has nothing to do with that of others in a series of counts; in a filtered
one, it lasts as the noise does, because stays last. The answer is that plus noise, of a known law
(the local level model of Harvey, Forecasting, Structural Time Series Models and the Kalman Filter,
1989). The line is the mean of what the source has, given the answers; without scatter it is the
penalised smoother, which minimises the squared distance to them plus the squares of all steps, in
their variances.

**How it is computed.** The cosines of the discrete cosine transform are the eigenvectors of a
random walk's penalty, with eigenvalues 2 - 2 cos(pi j / T). So each coefficient c_j of y has, by
itself, the signal's variance v / (2 - 2 cos(pi j / T)) + w n_j / n and the noise's n_j, with n
their mean. Its mean is c_j times the share of the signal, and its variance is the product of both
variances over their sum. c_0 is left as it is. The noise of a filtered series is nearly of this
form: n_j is its power at the frequency of the cosine.

**v and w are not known**, and are not guessed: means and variances are averaged over a grid of
both, even in their logarithms, with the weights that the series gives them (their marginal
likelihood). Beforehand, a scatter of less than half of what people who come one by one have is held
to be less likely, by a factor of 20: where noise hides it, it is there. The interval holds both
variances: that given v and w, and that of the means.

**What the interval says.** As one of Bayes, it holds the source's numbers with the confidence
stated on average over the periods of a series (Wahba, Bayesian Confidence Intervals for the
Cross-Validated Smoothing Spline, JRSS B 45, 1983). Where one period stands out from its neighbours,
it may miss just that one; the raw interval does not. docs/statistics.md says how often it holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.errors import InputError
from dpsynth.privacy import Entropy, Event, Stays, StaySums, noise_of_periods, stay_sums, unfiltered
from dpsynth.privacy.answers import NOWHERE
from dpsynth.privacy.events import UNDECIDED
from dpsynth.privacy.stay_filters import WHOLE, filter_weights
from dpsynth.stats.answer_request import Numbers
from dpsynth.stats.axes import MISSING, Periods
from dpsynth.stats.counts import Counts
from dpsynth.stats.statistic import Asked, Events, Ints, Rows, Statistic, sure

LINE = ("smooth", "smooth: lower", "smooth: upper")


@dataclass(frozen=True, eq=False)
class LineOfCounts(Counts):
    """A table of counts, smoothed along one of its axes.

    Attributes:
        time: the place of that axis among all.
    """

    time: int

    def __post_init__(self) -> None:
        """Refuse a series that is too short."""
        super().__post_init__()
        if self._periods < LEAST:
            raise InputError(f"'smooth' needs {LEAST} periods at least")

    @property
    def columns(self) -> tuple[str, ...]:
        """What columns of the line are called."""
        return LINE

    @property
    def adds_up(self) -> bool:
        """Never: the noise of tables that were made to agree is not the same in all periods."""
        return False

    @property
    def _periods(self) -> int:
        labels = self.axes[self.time].labels
        return len(labels) - (labels[-1] == MISSING)

    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
        """List the cells with their counts and the smooth line; what has no time is left as is."""
        found = super().table(answers, events, z)
        noisy = self.noisy(answers, events)
        series = np.moveaxis(noisy.counts, self.time, -1)
        line = np.stack([series, series - z * noisy.sigma, series + z * noisy.sigma])
        power = np.full(self._periods, noisy.sigma**2)
        for place in np.ndindex(series.shape[:-1]):
            line[(slice(None), *place, slice(self._periods))] = smoothed(
                series[place][: self._periods], power, z
            )
        return with_line(found, np.moveaxis(line, -1, self.time + 1).reshape(3, -1))


def with_line(table: pd.DataFrame, line: Floats) -> pd.DataFrame:
    """Add a smooth line and its interval ``[3, rows]``, which begins at 0, as columns."""
    middle, lower, upper = line.round(1)
    for label, values in zip(
        LINE, (middle, np.maximum(lower, 0.0), np.maximum(upper, 0.0)), strict=True
    ):
        table[label] = values + 0.0
    return table


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

    window: Periods
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

    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
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


_WALKS = 10.0 ** np.linspace(-8, 8, 41)  # v over the noise
_LESS = -3.0  # logarithm of how much likelier it is that people come by chance
_SCATTERS = (0.0, *(10.0 ** np.linspace(-1.5, 1.5, 7)))  # w over the noise
LEAST = 8
"""Periods of a series, below which there is nothing to smooth."""


def smoothed(series: Floats, power: Floats, z: float) -> tuple[Floats, Floats, Floats]:
    """Return the smooth line of a series ``[T]`` and its interval.

    Args:
        series: noisy numbers.
        power: variance of the noise at the frequency of each cosine, ``[T]``; that of each number
            where its noise is independent.
        z: how many standard deviations the interval reaches.

    Example:
        >>> series = np.array([19.0, 2, 8, 31, 10, -9, 12, 9])
        >>> line, lower, upper = smoothed(series, np.full(8, 100.0), 2)
        >>> bool((upper - lower < 36).all()), bool(line.std() < series.std() / 2)
        (True, True)
    """
    from scipy.fft import dct, idct

    size = len(series)
    coefficients = dct(series, norm="ortho")
    roughness = 2 - 2 * np.cos(np.pi * np.arange(1, size) / size)
    noise = power[1:]
    found, shares, likelihoods = [], [], []
    chance = max(float(series.mean()), 0.0)  # the variance of people who come one by one
    for walk, scatter in product(_WALKS, (*_SCATTERS, chance / noise.mean())):
        signal = noise.mean() * walk / roughness + noise * scatter
        whole = signal + noise
        prior = _LESS if noise.mean() * scatter < chance / 2 else 0.0
        likelihoods.append(prior - 0.5 * (np.log(whole) + coefficients[1:] ** 2 / whole).sum())
        share = signal / whole
        found.append(idct(np.append(coefficients[0], share * coefficients[1:]), norm="ortho"))
        shares.append(share)
    weights = np.exp(np.array(likelihoods) - max(likelihoods))
    weights /= weights.sum()
    lines = np.array(found)
    line: Floats = weights @ lines
    left = np.append(power[0], (weights @ np.array(shares)) * noise)
    variance = _of_each(left) + weights @ (lines - line) ** 2
    off = z * np.sqrt(variance)
    return line, line - off, line + off


def _of_each(variances: Floats) -> Floats:
    """Return the variance of each number from those of the coefficients of the cosines, ``[T]``."""
    size = len(variances)
    turned = variances * np.exp(1j * np.pi * np.arange(size) / size)
    turned[0] = 0
    found: Floats = (variances.sum() + size * np.fft.ifft(turned).real) / size
    return found
