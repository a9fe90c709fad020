"""How many patients or rows there are in each cell, and the cells with the largest numbers.

Tables of counts that share columns, made to agree: the best unbiased estimate of each.

Noise is independent and of the same scale in all cells of a table, so a table falls apart into
orthogonal components, one for each subset S of its axes: what S adds to its own margins. The
component of S in a table q with noise sigma_q, summed over the axes outside S, has the variance
sigma_q^2 times the number n_q,S of cells that were summed. All tables that hold the axes S measure
the same component; it is their mean with weights 1 / (sigma_q^2 n_q,S), and each table is put
together again from the components of its subsets. That is generalised least squares in closed form
(Xiao, He, Zhang, Kifer, An Optimal and Scalable Matrix Mechanism for Noisy Marginals under Convex
Loss Functions, NeurIPS 2023, section 4, whose residual bases these are): no unbiased estimate has
less variance, and margins of two tables over the same axes are equal. It is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth.privacy import (
    Entropy,
    Event,
    LaplaceCounts,
    RowSums,
    TopChoice,
    laplace_counts,
    most_units,
    row_sums,
)
from dpsynth.privacy.answers import NOWHERE
from dpsynth.privacy.events import UNDECIDED
from dpsynth.stats.answer_request import Numbers
from dpsynth.stats.axes import MISSING
from dpsynth.stats.statistic import FINE, Events, Ints, Rows, Statistic, sure


def counting(name: str, statistic: Statistic, parts: int = 1) -> RowSums:
    """Return the event of counting a statistic's units or rows in cells of each part."""
    return RowSums(
        name,
        parts=parts,
        rows_per_unit=statistic.rows_per_unit,
        largest=FINE if statistic.per_unit else 1,
        signed=False,
        once=statistic.once and statistic.rows_per_unit > 1,
        shared=statistic.per_unit,
        sigma=UNDECIDED,
    )


@dataclass(frozen=True, eq=False)
class Counts(Statistic):
    """Counts of declared cells; a contingency table where there are several axes."""

    def events(self) -> tuple[tuple[Event, float], ...]:
        """One histogram of all cells."""
        return ((counting(self.name, self), 1.0),)

    def in_laplace(self) -> LaplaceCounts | None:
        """Return its event with Laplace noise; None for a kind whose figures assume another."""
        if type(self) is not Counts:
            return None
        once = self.once and self.rows_per_unit > 1
        return LaplaceCounts(self.name, self.rows_per_unit, once, UNDECIDED)

    def sizes(self) -> dict[str, list[int]]:
        """One part of all cells."""
        return {self.name: [self.size]}

    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Count."""
        event = events[self.name]
        cells = self.cells(rows)
        if isinstance(event, LaplaceCounts):
            added = rows.adding(cells[:, None])
            return {self.name: laplace_counts(added, self.size, event, entropy)}
        assert isinstance(event, RowSums)
        weights = rows.weights(cells != NOWHERE)[:, None] if self.per_unit else None
        added = rows.adding(cells[:, None], weights)
        return {self.name: row_sums(added, [self.size], event, entropy)}

    @property
    def adds_up(self) -> bool:
        """Whether its margins are counts of the same rows: no unit may be in several cells."""
        return not self.once or self.rows_per_unit == 1

    def noisy(self, answers: Numbers, events: Events) -> NoisyTable:
        """Return the answers as a table that can be made to agree with others."""
        event = events[self.name]
        assert isinstance(event, RowSums | LaplaceCounts)
        whole = event.largest if isinstance(event, RowSums) else 1
        counts = np.asarray(answers[self.name][0], dtype=np.float64).reshape(self.shape) / whole
        sd = event.sigma if isinstance(event, RowSums) else event.sd
        return NoisyTable(tuple(axis.key for axis in self.axes), counts, sd / whole)

    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
        """List the cells with their counts."""
        noisy = self.noisy(answers, events)
        return self.listed(noisy.counts, noisy.sigma, self.reach(events, z))

    def reach(self, events: Events, z: float) -> float:
        """Return how many standard deviations of its noise an interval reaches.

        ``z`` for Gaussian noise. For Laplace noise, that of its own law if that is more; a sum of
        several such counts, in tables that agree, lies between both laws.
        """
        event = events[self.name]
        return z if not isinstance(event, LaplaceCounts) else max(z, _reach(event, z) / event.sd)

    def half_width(self, events: Events, z: float) -> float:
        """Return how far the interval of a count reaches to each side, before tables agree."""
        event = events[self.name]
        if isinstance(event, LaplaceCounts):
            return max(z * event.sd, float(_reach(event, z)))
        assert isinstance(event, RowSums)
        return z * event.sigma / event.largest

    def listed(self, counts: np.ndarray, sd: float, z: float) -> pd.DataFrame:
        """List cells with counts whose noise has this standard deviation."""
        found = self.frame()
        values = np.round(counts.ravel(), 1)
        found["count"] = values
        found["lower"] = np.maximum(np.floor(values - z * sd), 0.0)
        found["upper"] = np.maximum(np.ceil(values + z * sd), 0.0)
        return found

    def expected(self, events: Events, z: float) -> str:
        """Say how far a count will be off."""
        event = events[self.name]
        cells = "1 cell" if self.size == 1 else f"{self.size:,} cells"
        if isinstance(event, LaplaceCounts):
            off = f"{_reach(event, z):,} {self.counted} {sure(z)}"
            return f"{cells}, each to within {off} (Laplace noise)"
        assert isinstance(event, RowSums)
        off = figure(z * event.sigma / event.largest)
        return f"{cells}, each to within {off} {self.counted} {sure(z)}"


def _reach(event: LaplaceCounts, z: float) -> int:
    """Return what Laplace noise is beyond as seldom as Gaussian noise beyond ``z`` deviations."""
    from scipy.special import ndtr

    return event.reach(2 * float(ndtr(-z)))


Floats = npt.NDArray[np.float64]
Keys = tuple[Hashable, ...]


@dataclass(frozen=True, eq=False)
class NoisyTable:
    """A table of counts with noise.

    Attributes:
        axes: what each dimension is; two tables share an axis where these are equal.
        counts: one for each cell, of the shape of the axes; none for a total.
        sigma: standard deviation of the noise of each.
    """

    axes: Keys
    counts: Floats
    sigma: float


@dataclass(frozen=True, eq=False)
class Agreed:
    """A table that agrees with the others.

    Attributes:
        counts: the estimates, of the table's shape.
        sd: standard deviation of the noise that is left in each.
    """

    counts: Floats
    sd: float


def agreed(tables: Sequence[NoisyTable]) -> list[Agreed]:
    """Make tables agree on all margins that they share.

    Args:
        tables: of the same rows, with independent noise; axes of the same name have the same cells.

    Returns:
        The estimates, in order.

    Example:
        >>> total = NoisyTable((), np.array(100.0), 1.0)
        >>> by_sex = NoisyTable(("sex",), np.array([70.0, 40.0]), 1.0)
        >>> [table.counts.round(1).tolist() for table in agreed([total, by_sex])]
        [103.3, [66.7, 36.7]]
    """
    subsets = {frozenset(part) for table in tables for part in _subsets(table.axes)}
    components = {subset: _component(subset, tables) for subset in subsets}
    return [_together(table, components) for table in tables]


@dataclass(frozen=True, eq=False)
class _Component:
    axes: Keys
    values: Floats
    variance: float  # of a margin of these axes, before the part of smaller subsets is taken out


def _subsets(axes: Keys) -> list[Keys]:
    return [part for size in range(len(axes) + 1) for part in combinations(axes, size)]


def _component(subset: frozenset[Hashable], tables: Sequence[NoisyTable]) -> _Component:
    """Return the mean of what all tables that hold these axes say of their component."""
    holders = [table for table in tables if subset <= set(table.axes)]
    order = tuple(axis for axis in holders[0].axes if axis in subset)
    total, precision = np.zeros(()), 0.0
    for table in holders:
        outside = tuple(i for i, axis in enumerate(table.axes) if axis not in subset)
        margin = table.counts.sum(axis=outside)
        kept = [axis for axis in table.axes if axis in subset]
        margin = margin.transpose([kept.index(axis) for axis in order])
        for place in range(margin.ndim):
            margin = margin - margin.mean(axis=place, keepdims=True)
        weight = 1 / (table.sigma**2 * math.prod(table.counts.shape[i] for i in outside))
        total, precision = total + weight * margin, precision + weight
    return _Component(order, np.asarray(total / precision), 1 / precision)


def _together(table: NoisyTable, components: dict[frozenset[Hashable], _Component]) -> Agreed:
    """Put a table together from the components of all subsets of its axes."""
    counts, variance = np.zeros(table.counts.shape), 0.0
    for part in _subsets(table.axes):
        component = components[frozenset(part)]
        spread = math.prod(
            size
            for size, axis in zip(table.counts.shape, table.axes, strict=True)
            if axis not in part
        )
        values = component.values.transpose([component.axes.index(axis) for axis in part])
        shape = [
            size if axis in part else 1
            for size, axis in zip(table.counts.shape, table.axes, strict=True)
        ]
        counts = counts + values.reshape(shape) / spread
        centred = math.prod(
            1 - 1 / size
            for size, axis in zip(table.counts.shape, table.axes, strict=True)
            if axis in part
        )
        variance += component.variance * centred / spread**2
    return Agreed(counts, math.sqrt(variance))


_INTERVALS = (
    ("difference", "lower", "upper"),
    ("variance", "lower", "upper"),
    ("mean", "lower", "upper"),
    ("sd", "sd: lower", "sd: upper"),
)
_ALSO = {"difference": ("people: lower", "people: upper")}
_MOST = 12
_WEIGHT = "own weight"
_ROUNDING = 1e-6  # of a last digit: what is a rounding error away from it counts as it


def meaningful(table: pd.DataFrame) -> pd.DataFrame:
    """Return a table whose figures have as many decimals as their noise leaves meaningful.

    The narrowest interval of a column has two digits in half of its width. Ends are rounded
    outwards, so intervals hold as often as before. Counts have few digits already.

    >>> table = pd.DataFrame({"mean": [120.739644], "lower": [118.0871], "upper": [123.0483]})
    >>> meaningful(table).iloc[0].tolist()
    [120.7, 118.0, 123.1]
    """
    found, taken = table.copy(), False
    for name, low, high in _INTERVALS:
        if name not in table or not pd.api.types.is_float_dtype(table[name].dtype):
            continue
        if low == "lower" and taken:  # a figure beside another, without an interval of its own
            continue
        taken |= low == "lower"
        places = _decimals((table[high] - table[low]).to_numpy(np.float64) / 2)
        found[name] = table[name].round(places)
        for label in (low, *_ALSO.get(name, ())[:1]):
            found[label] = _down(table[label], places)
        for label in (high, *_ALSO.get(name, ())[1:]):
            found[label] = -_down(-table[label], places)
        if name == "sd" and "mean" in table:
            found["mean"] = table["mean"].round(places + 1)
    if _WEIGHT in table:
        found[_WEIGHT] = table[_WEIGHT].round(3)
    return found


def _decimals(halves: np.ndarray[tuple[int], np.dtype[np.float64]]) -> int:
    """Return the decimals that show two digits of the least of these."""
    known = halves[np.isfinite(halves) & (halves > 0)]
    if not len(known):
        return 3
    return int(np.clip(1 - np.floor(np.log10(known.min())), 0, _MOST))


def _down(values: pd.Series[float], places: int) -> pd.Series[float]:
    """Round down to so many decimals; no zero is negative."""
    whole = (values * 10.0**places + _ROUNDING) // 1.0
    return (whole / 10.0**places).round(places) + 0.0


_CHOICE, _NUMBERS = 0.6, 0.4


@dataclass(frozen=True, eq=False)
class Ranking(Statistic):
    """The ``most`` values of one column, by the number of patients that have them.

    A patient raises the score of each of her values by 1 and lowers none: scores are monotone.

    Attributes:
        most: how many values are named.
    """

    most: int

    @property
    def candidates(self) -> int:
        """How many values may be named: all but the missing one."""
        return sum(label != MISSING for label in self.axes[0].labels)

    def names(self) -> tuple[str, str]:
        """Return the names of its events."""
        return f"{self.name}: choice", f"{self.name}: numbers"

    def events(self) -> tuple[tuple[Event, float], ...]:
        """The choice, and counts of which those of the chosen values are kept."""
        choice, numbers = self.names()
        event = TopChoice(choice, self.most, self.candidates, 1, monotone=True, scale=UNDECIDED)
        return (event, _CHOICE), (counting(numbers, self), _NUMBERS)

    def sizes(self) -> dict[str, list[int]]:
        """A place and a number for each chosen value; other counts are not kept."""
        return {name: [self.most] for name in self.names()}

    def fits(self, answers: Numbers) -> bool:
        """Whether each of the chosen places is that of another candidate."""
        chosen = [int(place) for part in answers[self.names()[0]] for place in part]
        distinct = len(set(chosen)) == len(chosen)
        return super().fits(answers) and distinct and set(chosen) <= set(range(self.candidates))

    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Choose, then count the patients of each chosen value."""
        choice, numbers = self.names()
        event, counts = events[choice], events[numbers]
        assert isinstance(event, TopChoice) and isinstance(counts, RowSums)
        cells = self.cells(rows)
        added = rows.adding(cells[:, None])
        chosen = np.array(most_units(added, self.size, event, entropy), dtype=np.int64)
        (noisy,) = row_sums(added, [self.size], counts, entropy)
        return {choice: [chosen], numbers: [noisy[chosen]]}

    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
        """List the chosen values, best first."""
        choice, numbers = self.names()
        counts = events[numbers]
        assert isinstance(counts, RowSums)
        chosen = np.asarray(answers[choice][0])
        values = np.asarray(answers[numbers][0], dtype=np.float64)
        labels = np.array(self.axes[0].labels, dtype=object)[chosen]
        return pd.DataFrame(
            {
                "rank": np.arange(1, len(chosen) + 1),
                self.axes[0].column: labels,
                "count": values,
                "lower": np.maximum(np.floor(values - z * counts.sigma), 0.0),
                "upper": np.maximum(np.ceil(values + z * counts.sigma), 0.0),
            }
        )

    def expected(self, events: Events, z: float) -> str:
        """Say how close two values are that may change places."""
        event = events[self.names()[0]]
        assert isinstance(event, TopChoice)
        apart = event.scale * np.log(event.candidates / math.erfc(z / math.sqrt(2)))
        return f"values named have within about {figure(apart)} units of those left out, {sure(z)}"
