"""Variances and standard deviations, by cells of a table.

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
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.privacy import Entropy, Event, RowSums, row_sums
from dpsynth.stats.rows import FINE, Rows
from dpsynth.stats.statistic import Answers, Events, Ints, sure
from dpsynth.stats.tables.counts import counting
from dpsynth.stats.tables.means import Floats, Means, fieller

_NUMBERS, _SUMS, _SQUARES = 0.15, 0.25, 0.6  # of the budget: most of the error is that of squares
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
        return (numbers, _NUMBERS), (sums, _SUMS), (squares, _SQUARES)

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

    def table(self, answers: Answers, events: Events, z: float) -> pd.DataFrame:
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
