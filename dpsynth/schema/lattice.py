"""Numeric columns as integer lattices: declared bounds and resolution.

A column's values are ``minimum + i * step`` for ``i = 0 .. points - 1``. Everything is kept in
ticks, whole multiples of ``10 ** -decimals`` of the column's unit (the number itself, days since
1970-01-01 for a date, seconds since midnight for a time of day: see `dpsynth.schema.types`), so
that a value is one correctly rounded division away and prints as it was declared: 0.3, never
0.30000000000000004.

>>> lattice = lattice_of_bounds(30.0, 45.0, step=0.1)
>>> lattice.points, lattice.decimals
(151, 1)
>>> lattice.values(lattice.positions(np.array([36.649, 99.0])))
array([36.6, 45. ])
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpsynth.errors import Problem, SchemaError
from dpsynth.schema.types import ColumnType

if TYPE_CHECKING:
    from dpsynth.schema.column import Column

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MIN_POINTS = 1_000  # a number without a declared step gets at least so many points
MAX_WHOLE = 2**53  # a float64 holds every integer up to here
MAX_TICK = 2**50  # decimals up to here come back exactly from a float64 and two roundings
ULPS = 8 * float(np.finfo(np.float64).eps)  # relative; the last bits in which readers differ
MAX_SLACK = 1 / 16  # of a step, where a step is hardly more than the last bit


@dataclass(frozen=True)
class Lattice:
    """The points ``(first + i * stride) / 10 ** decimals``, ``i = 0 .. points - 1``.

    A *position* is the index i of a point.
    """

    first: int
    stride: int
    points: int
    decimals: int

    def __post_init__(self) -> None:
        """Refuse what the arithmetic of the class cannot hold exactly."""
        if self.stride < 1 or self.points < 1 or self.decimals < 0:
            raise ValueError("a lattice needs stride >= 1, points >= 1 and decimals >= 0")
        last = self.first + (self.points - 1) * self.stride
        largest = MAX_TICK if self.decimals else MAX_WHOLE
        if max(abs(self.first), abs(last)) > largest:
            raise ValueError(f"a lattice must stay within {largest} ticks of zero")

    def positions(self, values: Floats) -> Ints:
        """Return the position of the nearest point; values outside the bounds are clipped to them.

        A value within a few units in the last place of the middle between two points counts as that
        middle, and goes to the even one: fast readers of text differ in the last place.

        Args:
            values: finite or infinite numbers in the column's unit; NaN is not allowed.
        """
        scale = float(10**self.decimals)
        with np.errstate(over="ignore"):
            steps = (values * scale - self.first) / self.stride
        steps = np.clip(steps, 0, self.points - 1)
        size = np.maximum(np.abs(self.first + steps * self.stride), abs(self.first))
        halves = np.rint(2 * steps) / 2
        near = np.abs(steps - halves) <= np.minimum(ULPS * size / self.stride, MAX_SLACK)
        return np.rint(np.where(near, halves, steps)).astype(np.int64)

    def on_lattice(self, values: Floats) -> npt.NDArray[np.bool_]:
        """Tell which values are a point of the lattice, up to the rounding of a float64."""
        nearest = self.values(self.positions(values))
        return np.asarray(np.isclose(values, nearest, rtol=1e-12, atol=0.0))

    def ticks(self, positions: Ints) -> Ints:
        """Return the points as whole multiples of ``10 ** -decimals``."""
        return self.first + positions * self.stride

    def values(self, positions: Ints) -> Floats:
        """Return the points in the column's unit, each the float64 nearest to its decimal text."""
        return self.ticks(positions) / float(10**self.decimals)


def lattice_of(column: Column) -> Lattice:
    """Return the lattice of a column of numbers or times.

    Raises:
        SchemaError: the column's bounds and step do not make a lattice.
    """
    try:
        if column.minimum is None or column.maximum is None:
            raise ValueError("minimum or maximum is missing; declare both")
        low, high = (in_units(bound, column.kind) for bound in (column.minimum, column.maximum))
        step = column.kind.step
        if step is None:
            return lattice_of_bounds(low, high, step=column.step)
        if column.step is not None:
            step = int(column.step)
            if step != column.step:
                raise ValueError(f"step must be a whole number for type {column.type}")
        return lattice_of_bounds(low, high, step=step)
    except (ValueError, OverflowError) as error:
        raise SchemaError(column.name, [Problem(f"column '{column.name}'", str(error))]) from None


def lattice_of_bounds(
    minimum: float | Fraction, maximum: float | Fraction, *, step: float | Fraction | None = None
) -> Lattice:
    """Return the lattice from ``minimum`` up to at most ``maximum``.

    Without a step, it is the power of ten ``10 ** -d`` with the smallest d >= 0 that gives at
    least 1000 points, or, if that is finer, the last digit of the declared bounds.

    Raises:
        ValueError: the step is not positive, the bounds are in the wrong order, or they lie so far
            apart that a float64 cannot tell all points.
    """
    low, high = Fraction(str(minimum)), Fraction(str(maximum))
    if low > high:
        raise ValueError("minimum is above maximum")
    width = _default_step(low, high) if step is None else Fraction(str(step))
    if width <= 0:
        raise ValueError("step must be positive")
    decimals = max(_decimals(low), _decimals(width))
    points = int((high - low) // width) + 1
    if width * 10**decimals > MAX_WHOLE:
        raise ValueError("step is far larger than what the bounds span; declare a smaller one")
    try:
        return Lattice(int(low * 10**decimals), int(width * 10**decimals), points, decimals)
    except ValueError:
        raise ValueError(
            f"the bounds lie too far from zero for a resolution of 1e-{decimals}; declare a "
            "coarser `step`, or bounds with fewer digits"
        ) from None


def in_units(bound: Any, kind: ColumnType) -> Fraction:
    """Return a bound in the unit of its lattice, such as days since 1970-01-01."""
    return Fraction(str(kind.value(bound)))


def _default_step(low: Fraction, high: Fraction) -> Fraction:
    """Return the resolution of a number that declares none."""
    digits = max(_decimals(low), _decimals(high))
    if high > low:
        fewest = 0
        while (high - low) * 10**fewest < MIN_POINTS - 1:
            fewest += 1
        digits = max(digits, fewest)
    return Fraction(1, 10**digits)


def _decimals(value: Fraction) -> int:
    """Return how many decimals a finite decimal fraction has."""
    digits = 0
    while (value * 10**digits).denominator != 1:
        digits += 1
    return digits
