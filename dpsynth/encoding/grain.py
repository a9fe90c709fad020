"""Grains: the round units of a numeric column, and drawn points that follow their shares.

A lattice is what a column may hold, and often finer than what it does hold: heart rates that are
whole numbers, on a lattice of tenths; weights that people round to 5 kg. The grain of a point is
the coarsest unit (100, 50, 10, 5, 1, .5, .1, ...) that it is a multiple of, down to the lattice's
own stride. Zero is a multiple of all, and what lies beyond a declared bound is read as the bound,
so neither tells how a column was written: they have no grain.

Which columns have grains, and which points have which, follows from the schema alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding.column_codecs import NumericCoder
from dpsynth.schema import Column, Lattice
from dpsynth.tables import typed_series

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

FEWEST_POINTS, MOST_POINTS = 50, 10_000  # of a lattice; beyond, codes stand for too many points
MULTIPLES = 10  # of a unit, at least so many within the bounds
MOST_UNITS = 8
NONE = -1


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
        kind = coder.column.kind  # times and years have other habits
        if not (kind.is_number and kind.is_quantity):
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

    A unit is 1 or 5 times a power of ten and a multiple of all finer ones.

    Example:
        >>> from dpsynth.schema.lattice import lattice_of_bounds
        >>> units_of(lattice_of_bounds(30, 250))  # in tenths
        (100, 50, 10, 5, 1)
    """
    span = (lattice.points - 1) * lattice.stride
    found = [lattice.stride]
    power = 1
    while power <= span:
        for unit in (power, 5 * power):
            if unit > found[-1] and unit % found[-1] == 0 and unit * MULTIPLES <= span:
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
