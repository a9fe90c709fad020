"""Means, totals and proportions, by cells of a table.

**What is asked.** The number of rows that have a value, and the sum of the values, each counted
from the middle of the bounds, in parts of half their width: whole numbers from -`FINE` to `FINE`.
So a row moves a sum by as little as the bounds permit, whatever the column's unit. Rounding to
parts moves a mean by less than the width of the bounds over 2 `FINE`.

**The interval of a mean** is that of Fieller (Some Problems in Interval Estimation, JRSS B 16,
1954): all means m for which S - m N, noise included, is as near 0 as its noise permits. At the true
mean, S - m N is normal with the variance sigma_S^2 + m^2 sigma_N^2, however small N is; dividing
two noisy numbers is not. Where N may be 0, it is the whole range of the bounds.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.privacy import Contributions, Entropy, Event, RowSums, row_sums
from dpsynth.privacy.answers import NOWHERE
from dpsynth.privacy.events import UNDECIDED
from dpsynth.stats.rows import FINE, Asked, Rows
from dpsynth.stats.statistic import Answers, Events, Ints, Statistic, sure
from dpsynth.stats.tables.areas import MERGE, SHRINK, Small, merged, shrunk
from dpsynth.stats.tables.counts import counting

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

    def table(self, answers: Answers, events: Events, z: float) -> pd.DataFrame:
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
