"""Means, totals, proportions and variances, by cells of a table, and by small areas.

Means, totals and proportions, by cells of a table.

**What is asked.** The number of rows that have a value, and the sum of the values, each counted
from the middle of the bounds, in parts of half their width: whole numbers from -`FINE` to `FINE`.
So a row moves a sum by as little as the bounds permit, whatever the column's unit. Rounding to
parts moves a mean by less than the width of the bounds over 2 `FINE`.

**The interval of a mean** is that of Fieller (Some Problems in Interval Estimation, JRSS B 16,
1954): all means m for which S - m N, noise included, is as near 0 as its noise permits. At the true
mean, S - m N is normal with the variance sigma_S^2 + m^2 sigma_N^2, however small N is; dividing
two noisy numbers is not. Where N may be 0, it is the whole range of the bounds.

Variances and standard deviations, by cells of a table.

**What is asked.** What `Means` asks, and the sum of the squares of the values, counted as they are
there: from 0 to `FINE`. The variance is that of the table's rows (or patients), divided by their
number.

**The interval.** Let n, s and q be the true number, sum and sum of squares of a cell, N, S and Q
the noisy ones, m = s / n the true mean and v = q / n - m^2 the variance. As q - 2 m s + (m^2 - v) n
is 0, W(m, v) = Q - 2 m S + (m^2 - v) N is normal around 0, with the variance
sd_Q^2 + 4 m^2 sd_S^2 + (m^2 - v)^2 sd_N^2, however small n is. For a given m, all v for which W is
as near 0 as its noise permits lie between the roots of a quadratic, as in Fieller's interval. The
true m is not known: of the chance alpha to miss, a fifth is spent on Fieller's interval of the
mean, and the rest on W; the interval of v is the union over the means in the first. W is flat in m
around S / N, so that this costs little. Both parts hold together with 1 - alpha at least; no
linearisation is used. Rounding of values to parts of half the bounds is added on both sides.

Means by area where some areas are small: merged, or drawn towards the others.

Post-processing of noisy numbers and sums alone. Numbers are those of `Means`: values lie within -1
and 1, N_i and S_i are the noisy number and sum of area i, with noise of sd_N and sd_S.

**Merged**: all areas whose noisy number is below the least that was asked for are one, and the
interval is Fieller's of their sums. Which areas these are depends on their noise a little, which
the interval does not know; bench/statistics_of_tables.py measures how often it holds.

**Drawn together** (Fay and Herriot, Estimates of Income for Small Places, JASA 74, 1979; James and
Stein): y_i = S_i / n_i is taken as normal around the area's mean t_i with the known variance
D_i = (sd_S^2 + m^2 sd_N^2) / k_i^2, and t_i as normal around m with the variance A + v / k_i. Here
v is what people vary: at most 1 - m^2 between the bounds (Bhatia and Davis), times the rows that
one of them may have. n_i is N_i, and at least twice sd_N, so that an area of nobody has a figure
too; k_i is one sd_N less, so that a number that noise has raised does not pass for a precise one.
Given A, t_i has the mean y_i - B_i (y_i - m) with B_i = D_i / (A + v / k_i + D_i), and m is the
mean of y_i with weights 1 / (A + v / k_i + D_i). A is not known: it is integrated out, flat between
0 and 1 (Morris, Parametric Empirical Bayes Inference, JASA 78, 1983). The interval is that of the
posterior's mean and variance. It holds the figure of the extract in so many *of the areas, on
average over them*, and not for each area by itself: an area unlike all others is drawn away from
what it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.errors import InputError
from dpsynth.privacy import Contributions, Entropy, Event, RowSums, row_sums
from dpsynth.privacy.answers import NOWHERE
from dpsynth.privacy.events import UNDECIDED
from dpsynth.stats.answer_request import Numbers
from dpsynth.stats.axes import Axis
from dpsynth.stats.counts import counting
from dpsynth.stats.statistic import FINE, Asked, Events, Ints, Rows, Statistic, sure

_NUMBERS, _SUMS = 0.3, 0.7  # of the budget: most of a mean's error comes from its sum

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Means(Statistic):
    """Means of a column, or proportions of some of its values.

    Attributes:
        column: its name.
        place: of the column among the coded ones.
        values: the number of each code, ``[codes]``, within the bounds; NaN for a code without one.
        low: the lower bound.
        high: the upper bound.
        small: what is done with small areas; None where each cell stands for itself.
        unit: of measurement, in words; empty if none is declared.
    """

    column: str
    place: int
    values: Floats
    low: float
    high: float
    small: Small | None = None
    unit: str = ""

    @property
    def middle(self) -> float:
        """Whence values are counted."""
        return (self.low + self.high) / 2

    @property
    def half(self) -> float:
        """Half the width of the bounds: what `FINE` parts are."""
        return (self.high - self.low) / 2

    @property
    def units(self) -> str:
        """What its figures are in, after a blank."""
        return f" {self.unit}" if self.unit else ""

    @property
    def reads(self) -> Asked:
        """Its axes, and every code of the column."""
        return dict(super().reads) | {self.place: np.arange(len(self.values))}

    def names(self) -> tuple[str, str]:
        """Return the names of its events."""
        return f"{self.name}: numbers", f"{self.name}: sums"

    def events(self) -> tuple[tuple[Event, float], ...]:
        """A histogram of the rows that have a value, and one of sums."""
        numbers, sums = self.names()
        each = RowSums(
            sums,
            parts=1,
            rows_per_unit=self.rows_per_unit,
            largest=FINE,
            signed=True,
            once=False,
            shared=self.per_unit,
            sigma=UNDECIDED,
        )
        return (counting(numbers, self), _NUMBERS), (each, _SUMS)

    def sizes(self) -> dict[str, list[int]]:
        """A number and a sum for each cell."""
        return {name: [self.size] for name in self.names()}

    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Count the rows with a value, and add the values up."""
        weights, values = self.added(rows, (self.values - self.middle) / self.half)
        numbers, sums = self.names()
        count, total = events[numbers], events[sums]
        assert isinstance(count, RowSums) and isinstance(total, RowSums)
        return {
            numbers: row_sums(weights, [self.size], count, entropy),
            sums: row_sums(values, [self.size], total, entropy),
        }

    def added(self, rows: Rows, values: Floats) -> tuple[Contributions, Contributions]:
        """Return what rows with a value add to counts, and to sums of a value for each code.

        Args:
            rows: of the cohort.
            values: from -1 to 1, ``[codes]``; NaN for a code without one.
        """
        of_rows = np.rint(values * FINE)[rows.codes[:, self.place]]
        known = np.isfinite(of_rows)
        cells = np.where(known, self.cells(rows), NOWHERE)[:, None]
        weights = rows.weights(cells[:, 0] != NOWHERE)[:, None] if self.per_unit else None
        shares = 1.0 if weights is None else weights[:, 0] / FINE
        parts = np.trunc(np.where(known, of_rows, 0) * shares).astype(np.int64)[:, None]
        return rows.adding(cells, weights), rows.adding(cells, parts)

    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
        """List the cells with their means, within the bounds."""
        numbers, sums = self.names()
        count, total = events[numbers], events[sums]
        assert isinstance(count, RowSums) and isinstance(total, RowSums)
        whole = FINE if self.per_unit else 1
        n = np.asarray(answers[numbers][0], dtype=np.float64) / whole
        s = np.asarray(answers[sums][0], dtype=np.float64) / FINE
        sds = total.sigma / FINE, count.sigma / whole
        found, small = self.frame(), self.small
        if small is not None and small.how == MERGE:
            cell = merged(n, small.least)
            found, parts = _together(found, cell), np.sqrt(np.bincount(cell))
            n, s = np.bincount(cell, n).astype(np.float64), np.bincount(cell, s).astype(np.float64)
            means, lower, upper = fieller(s, n, sds[0] * parts, sds[1] * parts, z)
        elif small is not None:
            rows = 1 if self.per_unit else self.rows_per_unit
            means, lower, upper, own = shrunk(n, s, sds[1], sds[0], z, rows)
        else:
            means, lower, upper = fieller(s, n, *sds, z)
        for label, values in (("mean", means), ("lower", lower), ("upper", upper)):
            found[label] = self.middle + self.half * values
        found["number"] = n
        if small is not None and small.how == SHRINK:
            found["own weight"] = own
        return found

    def expected(self, events: Events, z: float) -> str:
        """Say how far a mean of a thousand rows will be off."""
        total = events[self.names()[1]]
        assert isinstance(total, RowSums)
        off = z * total.sigma / FINE * self.half / 1000
        what = "proportion" if (self.low, self.high) == (0.0, 1.0) else "mean"
        return f"a {what} of 1,000 {self.counted} to within {figure(off)}{self.units} {sure(z)}"


def _together(frame: pd.DataFrame, cell: Ints) -> pd.DataFrame:
    """Return the labels of merged cells, with those that are one in a text."""
    column = frame.columns[0]
    labels = [frame[column][cell == place].tolist() for place in range(int(cell.max()) + 1)]
    texts = [one[0] if len(one) == 1 else f"together: {'; '.join(one)}" for one in labels]
    return pd.DataFrame({column: texts})


def fieller(
    sums: Floats, numbers: Floats, sd_sums: float | Floats, sd_numbers: float | Floats, z: float
) -> tuple[Floats, Floats, Floats]:
    """Return ratios of sums to numbers with their intervals, all within -1 and 1.

    >>> [part.round(2).tolist() for part in fieller(np.array([50.0]), np.array([100.0]), 5, 5, 2)]
    [[0.5], [0.39], [0.62]]
    """
    a = numbers**2 - (z * sd_numbers) ** 2
    b = sums * numbers
    c = sums**2 - (z * sd_sums) ** 2
    inside = np.maximum(b**2 - a * c, 0.0)
    known = a > 0
    safe = np.where(known, a, 1.0)
    lower = np.where(known, (b - np.sqrt(inside)) / safe, -1.0)
    upper = np.where(known, (b + np.sqrt(inside)) / safe, 1.0)
    ratio = np.where(known, sums / np.where(numbers == 0, 1.0, numbers), 0.0)
    return tuple(np.clip(part, -1.0, 1.0) for part in (ratio, lower, upper))  # type: ignore[return-value]


_OF_NUMBERS, _OF_SUMS, _OF_SQUARES = (
    0.15,
    0.25,
    0.6,
)  # of the budget: most of the error is that of squares
_FOR_THE_MEAN = 0.2  # of the chance to miss
_GRID = 33  # means that are tried


@dataclass(frozen=True, eq=False)
class Variances(Means):
    """Variances of a column between its bounds."""

    @property
    def squares(self) -> str:
        """The name of the event of squares."""
        return f"{self.name}: squares"

    def events(self) -> tuple[tuple[Event, float], ...]:
        """The events of means, and one of squares."""
        (numbers, _), (sums, _) = super().events()
        squares = replace(counting(self.squares, self), largest=FINE)
        return (numbers, _OF_NUMBERS), (sums, _OF_SUMS), (squares, _OF_SQUARES)

    def sizes(self) -> dict[str, list[int]]:
        """A number, a sum and a sum of squares for each cell."""
        return super().sizes() | {self.squares: [self.size]}

    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Count rows, and add values and their squares up."""
        found = super().answer(rows, events, entropy)
        _, added = self.added(rows, ((self.values - self.middle) / self.half) ** 2)
        event = events[self.squares]
        assert isinstance(event, RowSums)
        return found | {self.squares: row_sums(added, [self.size], event, entropy)}

    @property
    def rounding(self) -> float:
        """How far rounding moves a variance at most, in squares of half the bounds' width.

        A value is off by half a part, and so is its square: 1.5 parts in the variance. Where k
        rows share a patient, each is rounded down and patients weigh the same up to k parts.
        """
        return (9 * self.rows_per_unit if self.per_unit else 1.5) / FINE

    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
        """List the cells with their variances and standard deviations."""
        sums, sds = [], []
        whole = FINE if self.per_unit else 1
        for name, parts in zip((*self.names(), self.squares), (whole, FINE, FINE), strict=True):
            event = events[name]
            assert isinstance(event, RowSums)
            sums.append(np.asarray(answers[name][0], dtype=np.float64) / parts)
            sds.append(event.sigma / parts)
        n, s, q = sums
        variance, lower, upper = variances(n, s, q, (sds[0], sds[1], sds[2]), z, self.rounding)
        mean, _, _ = fieller(s, n, sds[1], sds[0], z)
        found = self.frame()
        for label, values in (("variance", variance), ("lower", lower), ("upper", upper)):
            found[label] = self.half**2 * values
        for label, values in (("sd", variance), ("sd: lower", lower), ("sd: upper", upper)):
            found[label] = self.half * np.sqrt(values)
        found["mean"] = self.middle + self.half * mean
        found["number"] = n
        return found

    def expected(self, events: Events, z: float) -> str:
        """Say how far a variance of a thousand rows will be off."""
        event = events[self.squares]
        assert isinstance(event, RowSums)
        off = z * event.sigma / FINE * self.half**2 / 1000
        square = f" ({self.unit})^2" if self.unit else ""
        return f"a variance of 1,000 {self.counted} to within {figure(off)}{square} {sure(z)}"


def variances(
    n: Floats,
    s: Floats,
    q: Floats,
    sds: tuple[float, float, float],
    z: float,
    rounding: float = 0.0,
) -> tuple[Floats, Floats, Floats]:
    """Return variances with their intervals, all from 0 to 1.

    Args:
        n: noisy numbers, ``[cells]``.
        s: noisy sums of values, which lie within -1 and 1.
        q: noisy sums of their squares.
        sds: of the noise in numbers, sums and sums of squares.
        z: how many standard deviations a normal interval of this confidence reaches.
        rounding: added on both sides.

    Example:
        >>> n, s, q = np.array([1000.0]), np.array([200.0]), np.array([140.0])
        >>> [part.round(3).tolist() for part in variances(n, s, q, (5, 5, 5), 1.96)]
        [[0.1], [0.089], [0.111]]
    """
    from scipy.special import ndtr, ndtri

    sd_n, sd_s, sd_q = sds
    alpha = 2 * float(ndtr(-z))
    of_mean = -float(ndtri(_FOR_THE_MEAN * alpha / 2))
    rest = -float(ndtri((1 - _FOR_THE_MEAN) * alpha / 2))
    middle, first, last = fieller(s, n, sd_s, sd_n, of_mean)
    steps = np.linspace(0.0, 1.0, _GRID)[:, None]
    means = np.concatenate([first + steps * (last - first), middle[None]])
    moment = q - 2 * means * s + means**2 * n
    a = n**2 - (rest * sd_n) ** 2
    b = moment * n - (rest * sd_n * means) ** 2
    c = moment**2 - rest**2 * (sd_q**2 + (2 * means * sd_s) ** 2 + (means**2 * sd_n) ** 2)
    inside = b**2 - a * c
    known = (a > 0) & (n > 0)
    safe = np.where(known, a, 1.0)
    root = np.sqrt(np.maximum(inside, 0.0))
    lower = np.where(inside >= 0, (b - root) / safe, np.inf).min(axis=0)
    upper = np.where(inside >= 0, (b + root) / safe, -np.inf).max(axis=0)
    lower = np.where(known, lower - rounding, 0.0)
    upper = np.where(known, upper + rounding, 1.0)
    lower, upper = np.clip(lower, 0.0, 1.0), np.clip(upper, 0.0, 1.0)
    some = np.where(n > 0, n, 1.0)
    value = np.where(known, q / some - (s / some) ** 2, 0.0)
    return np.clip(value, lower, np.maximum(lower, upper)), lower, np.maximum(lower, upper)


MERGE, SHRINK = "merge", "shrink"
LEAST_AREAS = 4  # to be drawn together
_SPREADS = 60


@dataclass(frozen=True)
class Small:
    """What is done with small areas.

    Attributes:
        how: ``merge`` or ``shrink``.
        least: the least noisy number of an area that is not merged.
    """

    how: str
    least: float = 0.0

    @classmethod
    def of(cls, entry: Mapping[str, Any], axes: tuple[Axis, ...]) -> Small | None:
        """Read it from the entry of a request; None if nothing is asked.

        Raises:
            InputError: it is neither ``shrink`` nor ``{merge: number}``, or there are no areas.
        """
        asked = entry.get("small")
        if asked is None:
            return None
        cells = int(np.prod([axis.size for axis in axes])) if axes else 1
        if asked == SHRINK:
            if cells < LEAST_AREAS:
                raise InputError(f"'small: shrink' needs {LEAST_AREAS} cells at least in 'by'")
            return cls(SHRINK)
        least = asked.get(MERGE) if isinstance(asked, Mapping) and set(asked) == {MERGE} else None
        if not isinstance(least, int | float) or least is True or not 1 <= least <= 1e9:
            raise InputError("'small' is either shrink, or {merge: least number of an area}")
        if len(axes) != 1:
            raise InputError("'small: merge' needs exactly one column in 'by'")
        return cls(MERGE, float(least))


def merged(n: Floats, least: float) -> npt.NDArray[np.int64]:
    """Return the cell of each area: its own, or one for all that have fewer; ``[areas]``.

    A single small area stays what it is.

    >>> merged(np.array([90.0, 7.0, 50.0, 11.0]), 20).tolist()
    [0, 2, 1, 2]
    """
    few = n < least
    if few.sum() < 2:
        return np.arange(len(n))
    return np.where(few, (~few).sum(), np.cumsum(~few) - 1)


def shrunk(
    n: Floats, s: Floats, sd_n: float, sd_s: float, z: float, rows: int
) -> tuple[Floats, Floats, Floats, Floats]:
    """Draw means of areas together.

    Args:
        n: noisy numbers, ``[areas]``.
        s: noisy sums of values within -1 and 1.
        sd_n: of the noise in numbers.
        sd_s: of the noise in sums.
        z: how many standard deviations intervals reach.
        rows: how many rows of one person may count in a number.

    Returns:
        Means, lower and upper ends, and the weight of each area's own figure, from 0 to 1.

    Example:
        >>> n = np.array([900.0, 20.0, 800.0, 850.0, 950.0])
        >>> means, lower, upper, own = shrunk(n, 0.2 * n + 9, 5.0, 5.0, 1.96, 1)
        >>> bool(abs(means[1] - 0.2) < abs(0.65 - 0.2)), bool(own[1] < own[0])
        (True, True)
    """
    size = np.maximum(n, max(2 * sd_n, 1.0))
    middle = float(np.clip(s.sum() / max(float(size.sum()), 1.0), -1.0, 1.0))
    own = np.clip(s / size, -1.0, 1.0)
    fewer = np.maximum(size - sd_n, max(sd_n, 1.0))
    noise = (sd_s**2 + (middle * sd_n) ** 2) / fewer**2
    people = rows * (1 - middle**2) / fewer
    spreads = (np.arange(_SPREADS) + 0.5) / _SPREADS  # roots of A
    prior = spreads[:, None] ** 2 + people
    total = prior + noise
    weights = 1 / total
    mean = (weights * own).sum(axis=1) / weights.sum(axis=1)
    likelihood = -0.5 * (np.log(total) + weights * (own - mean[:, None]) ** 2).sum(axis=1)
    likelihood -= 0.5 * np.log(weights.sum(axis=1))
    chance = spreads * np.exp(likelihood - likelihood.max())  # flat in A: spread times its step
    chance = (chance / chance.sum())[:, None]
    pull = noise / total
    drawn = own - pull * (own - mean[:, None])
    variance = prior * pull + pull**2 / weights.sum(axis=1)[:, None]
    found = (chance * drawn).sum(axis=0)
    sd = np.sqrt((chance * (variance + (drawn - found) ** 2)).sum(axis=0))
    lower, upper = np.clip(found - z * sd, -1, 1), np.clip(found + z * sd, -1, 1)
    return found, lower, upper, 1 - (chance * pull).sum(axis=0)
