"""Grains: the round units of a numeric column, and drawn points that follow their shares.

A lattice is what a column may hold, and often finer than what it does hold: heart rates that are
whole numbers, on a lattice of tenths; weights that people round to 5 kg. The grain of a point is
the coarsest unit (100, 50, 10, 5, 1, .5, .1, ...) that it is a multiple of, down to the lattice's
own stride. Zero is a multiple of all, and what lies beyond a declared bound is read as the bound,
so neither tells how a column was written: they have no grain.

Which columns have grains, and which points have which, follows from the schema alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.column_codecs import Coder, NumericCoder, coder_of
from dpsynth.schema import Column, Lattice, Schema, lowest
from dpsynth.schema.relations import Floor
from dpsynth.tables import typed_series

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FEWEST_POINTS, MOST_POINTS = 50, 10_000  # of a lattice; beyond, codes stand for too many points
MULTIPLES = 10  # of a unit, at least so many within the bounds
WHOLE = 2  # multiples of 1: scores have few values, and most of them are whole
MOST_UNITS = 8
NONE = -1

Rng = np.random.Generator


@dataclass(frozen=True, eq=False)
class Grains:
    """The grains of a column.

    Attributes:
        units: in ticks of the lattice, the coarsest first; the last is its stride.
        of_points: the place of each point's grain among the units, ``[points]``; `NONE` for one
            without.
        by_code: how many points of each grain a code stands for, ``[codes, units]``.
    """

    units: tuple[int, ...]
    of_points: Ints
    by_code: Ints

    @classmethod
    def of(cls, coder: NumericCoder) -> Grains | None:
        """Return the grains of a column; None if its public facts leave nothing to tell apart."""
        lattice = coder.lattice
        kind = coder.column.kind  # times, durations and years have other habits
        if not (kind.is_plain and kind.is_quantity):
            return None
        if not FEWEST_POINTS <= lattice.points <= MOST_POINTS:
            return None
        units = units_of(lattice)
        ticks = lattice.ticks(np.arange(lattice.points))
        places = np.full(lattice.points, len(units) - 1)
        for place in range(len(units) - 2, -1, -1):
            places[ticks % units[place] == 0] = place
        places[ticks == 0] = NONE
        places[[0, -1]] = NONE
        held = np.unique(places[places != NONE])
        if len(held) < 2:
            return None
        codes = coder.grid.code_of(np.arange(lattice.points))
        by_code = np.zeros((coder.grid.codes, len(units)), dtype=np.int64)
        some = places != NONE
        np.add.at(by_code, (codes[some], places[some]), 1)
        return cls(units, places, by_code)


def units_of(lattice: Lattice) -> tuple[int, ...]:
    """Return the round units of a lattice in ticks, the coarsest first, then its stride.

    A unit is 1 or 5 times a power of ten and a multiple of all finer ones. It has at least
    `MULTIPLES` multiples within the bounds, and whole numbers at least `WHOLE`.

    Example:
        >>> from dpsynth.schema.lattice import lattice_of_bounds
        >>> units_of(lattice_of_bounds(30, 250))  # in tenths
        (100, 50, 10, 5, 1)
        >>> units_of(lattice_of_bounds(0, 7, step=0.1))
        (10, 5, 1)
    """
    span = (lattice.points - 1) * lattice.stride
    found = [lattice.stride]
    power = 1
    while power <= span:
        for unit in (power, 5 * power):
            enough = WHOLE if unit == 10**lattice.decimals else MULTIPLES
            if unit > found[-1] and unit % found[-1] == 0 and unit * enough <= span:
                found.append(unit)
        power *= 10
    return tuple(reversed(found))[-MOST_UNITS:]


def grains_of(column: Column, coder: Any, *, gap: bool) -> Grains | None:
    """Return the grains of a coded column; None for a category, a time, or the gap of two dates."""
    if gap or column.is_categorical or not isinstance(coder, NumericCoder):
        return None
    return Grains.of(coder)


@dataclass(frozen=True)
class GrainedCoder(NumericCoder):
    """A numeric column whose drawn points follow shares of grains, where codes leave a choice.

    Attributes:
        weights: of each unit: how much commoner its points are than an even spread makes them.
    """

    weights: tuple[float, ...] = ()

    @classmethod
    def following(cls, coder: NumericCoder, weights: Floats) -> GrainedCoder:
        """Let a coder follow weights of the column's units."""
        return cls(coder.column, coder.decimal, coder.lattice, tuple(weights.tolist()))

    @cached_property
    def _mass(self) -> Floats:
        """Sum of the weights of all points up to each, ``[points + 1]``, without the round ones."""
        grains = Grains.of(self)
        assert grains is not None
        mass = np.append(np.asarray(self.weights, dtype=np.float64), 1.0)[grains.of_points]
        mass[self.grid.round[self.grid.round >= 0]] = 0.0  # they have codes of their own
        return np.concatenate([[0.0], np.cumsum(mass)])

    def decode(self, codes: npt.NDArray[np.integer], rng: np.random.Generator) -> pd.Series[Any]:
        """Draw a lattice point of each code, by the weights of the points' grains."""
        cells = codes.astype(np.int64)
        missing = cells >= self.grid.codes
        cells[missing] = 0
        positions = self.grid.draw(cells, rng)
        several = np.flatnonzero(self.grid.points[cells] > 1)
        if len(several):
            span = self.grid.span[cells[several]]
            low, high = (self._mass[self.grid.edges[span + end]] for end in (0, 1))
            point = low + rng.random(len(several)) * (high - low)
            drawn = np.searchsorted(self._mass, point, side="right") - 1
            drawn = np.clip(drawn, self.grid.edges[span], self.grid.edges[span + 1] - 1)
            kept = self._mass[drawn + 1] > self._mass[drawn]  # of weight 0: an even draw stands
            positions[several[kept]] = drawn[kept]
        return typed_series(self.lattice.values(positions), missing, self.column)


def rounded(
    points: Ints,
    grain_of: Ints,
    widths: Sequence[int],
    rates: Sequence[float],
    rng: np.random.Generator,
) -> Ints:
    """Return points moved between grains.

    Args:
        points: of a lattice.
        grain_of: of each point of the lattice, from 0, the coarsest; below 0 for none.
        widths: points from one multiple of each unit to the next, the coarsest first.
        rates: of each grain, as in `RoundingCoder`.
        rng: of the draws.

    Example:
        >>> whole = np.array([-1, 1, 1, 0, 1, 1, 0, 1, 1, -1])  # thirds
        >>> rounded(np.arange(10), whole, [3, 1], [0.0, 1.0], np.random.default_rng(0)).tolist()
        [0, 3, 3, 3, 3, 6, 6, 6, 6, 9]
    """
    found = points.copy()
    for grain in range(len(widths) - 1, 0, -1):
        rate = rates[grain]
        if not rate:
            continue
        own, chance = grain_of[found], rng.random(len(found)) < abs(rate)
        if rate > 0:
            who = np.flatnonzero((own == grain) & chance)
            goals = np.flatnonzero((grain_of >= 0) & (grain_of < grain))
            wanted = found[who]
        else:
            who = np.flatnonzero((own >= 0) & (own < grain) & chance)
            goals = np.flatnonzero(grain_of == grain)
            half = widths[grain - 1] // 2
            wanted = found[who] + rng.integers(-half, half + 1, len(who))
        if len(goals):
            found[who] = _nearest(goals, wanted, rng)
    return found


def _nearest(goals: Ints, wanted: Ints, rng: np.random.Generator) -> Ints:
    """Return the goal next to each point; of two as near, one by chance."""
    place = np.searchsorted(goals, wanted)
    above = goals[np.minimum(place, len(goals) - 1)]
    below = goals[np.maximum(place - 1, 0)]
    apart = np.abs(above - wanted) - np.abs(wanted - below)
    up = (apart < 0) | ((apart == 0) & (rng.random(len(wanted)) < 0.5))
    return np.asarray(np.where(up, above, below))


def rates_of(drawn: npt.NDArray[np.number], seen: Mapping[int, float], points: Floats) -> Floats:
    """Return by how much points move between grains, the finest first, as `rounded` does it.

    Args:
        drawn: how many drawn points have each grain.
        seen: of some grains, the share that was counted, among those of it and all coarser ones.
        points: of each grain on the lattice: rounded points fall on coarser grains like these.

    Example:
        >>> rates_of(np.array([10.0, 90.0]), {1: 0.0}, np.array([10.0, 90.0])).tolist()
        [0.0, 1.0]
        >>> rates_of(np.array([10.0, 90.0]), {1: 0.45}, np.array([10.0, 90.0])).tolist()
        [0.0, 0.5]
    """
    left, rates = drawn.astype(np.float64), np.zeros(len(drawn))
    for grain in range(len(drawn) - 1, 0, -1):
        whole = left[: grain + 1].sum()
        if grain not in seen or whole <= 0:
            continue
        own, share = left[grain] / whole, seen[grain]
        coarser = points[:grain] / max(points[:grain].sum(), 1.0)
        if own > share:
            rates[grain] = 1.0 - share / own
            left[:grain] += rates[grain] * left[grain] * coarser
            left[grain] *= 1.0 - rates[grain]
        elif own < share:
            rates[grain] = -(share - own) / (1.0 - own)
            left[grain] -= rates[grain] * left[:grain].sum()
            left[:grain] *= 1.0 + rates[grain]
    return rates


@dataclass(frozen=True, eq=False)
class Raised:
    """How codes of a row say the grain of a column that is modelled as its gap above others.

    Attributes:
        bases: the columns below, by name, and for each of their codes the least position that it
            allows; a code beyond these allows all.
        of_points: the grain of each position of the column itself, `NONE` without one.
        units: how many grains there are.
    """

    bases: tuple[tuple[str, tuple[int, ...]], ...]
    of_points: tuple[int, ...]
    units: int

    @classmethod
    def of(cls, column: Column, schema: Schema) -> Raised | None:
        """Return it for a column with a floor; None if codes of the row do not say its value."""
        coder = coder_of(column, schema.dialect.decimal)
        grains = grains_of(column, coder, gap=False)
        if column.floor is None or grains is None or (own := _fine(coder)) is None:
            return None
        bases = []
        for name, strict in column.floor.bases:
            base = schema.column(name)
            below = None if base.is_computed else _fine(coder_of(base, "."))
            if below is None or (base.floor is not None and cls.of(base, schema) is None):
                return None
            values = below.values(np.arange(below.points))
            least = lowest(Floor(((name, strict),)), own, {name: values})
            bases.append((name, tuple(least.tolist())))
        return cls(tuple(bases), tuple(grains.of_points.tolist()), len(grains.units))


def _fine(coder: Coder) -> Lattice | None:
    """Return the lattice of a column whose codes stand for one value each."""
    if not isinstance(coder, NumericCoder) or coder.grid.codes != coder.lattice.points:
        return None
    return coder.lattice


def landed(
    points: Ints, allowed: tuple[Ints, Ints], coder: NumericCoder, weights: Floats, rng: Rng
) -> Ints:
    """Return points of a column above others, moved so that their grains are as weights say.

    Each moves by half a unit at most; one that would leave what its row allows stays.

    Args:
        points: as drawn.
        allowed: the least and the last point of each row.
        coder: of the column.
        weights: of each unit: how much commoner its points are than an even spread makes them.
        rng: of the draws.
    """
    grains = Grains.of(coder)
    if grains is None or not len(points) or (weights == 1.0).all():
        return points
    own, units = grains.of_points, len(grains.units)
    even = np.bincount(own[own != NONE], minlength=units).astype(np.float64)
    drawn = np.bincount(own[points][own[points] != NONE], minlength=units)
    wanted = even * weights[:units]
    whole = np.cumsum(wanted)
    seen = {k: float(wanted[k] / whole[k]) for k in range(1, units) if whole[k] > 0 < even[k]}
    widths = [unit // coder.lattice.stride for unit in grains.units]
    found = rounded(points, own, widths, rates_of(drawn, seen, even).tolist(), rng)
    least, last = allowed
    return np.where((found >= least) & (found <= last), found, points)
