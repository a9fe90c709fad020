"""The codes of numbers, dates and times in SQL: the arithmetic of `Lattice.positions` and `Grid`.

It is the same sequence of operations on doubles, and so has the same results to the last bit. What
could fail in a warehouse is left out before: a value far outside the bounds is moved next to them,
and one that is next to zero becomes zero, which changes no position.
"""

from __future__ import annotations

from typing import Any

import ibis
import numpy as np

from dpsynth.encoding.grid import NONE, Grid
from dpsynth.encoding.warehouse.values import Expression, number, whole
from dpsynth.schema import Lattice
from dpsynth.schema.lattice import MAX_SLACK, ULPS

TINY = 1e-200  # nearer to zero, a warehouse may refuse to divide


def steps_of(value: Expression, lattice: Lattice) -> Expression:
    """Return how many steps a value lies above the first point, between the first and the last."""
    scale = float(10**lattice.decimals)
    first, stride, last = float(lattice.first), float(lattice.stride), float(lattice.points - 1)
    low, high = _beyond(lattice)
    value = ibis.cases(
        (value <= number(low), number(low)),
        (value >= number(high), number(high)),
        ((value < number(TINY)) & (value > number(-TINY)), number(0.0)),
        else_=value,
    )
    steps = (value * number(scale) - number(first)) / number(stride)
    return ibis.cases(
        (steps <= number(0.0), number(0.0)), (steps >= number(last), number(last)), else_=steps
    )


def position_of(steps: Expression, lattice: Lattice) -> Expression:
    """Return the nearest position; what is in the middle up to the last bits goes to the even."""
    first, stride = float(lattice.first), float(lattice.stride)
    floor = steps.floor().cast("int64")
    part = steps - floor.cast("float64")
    point = (number(first) + steps * number(stride)).abs()
    size = ibis.ifelse(point >= number(abs(first)), point, number(abs(first)))
    slack = number(ULPS) * size / number(stride)
    off = (part - number(0.5)).abs()
    in_middle = (off <= slack) & (off <= number(MAX_SLACK))
    above = ibis.ifelse(part > number(0.5), whole(1), whole(0))
    return floor + ibis.ifelse(in_middle, floor % whole(2), above)


def code_of(position: Expression, grid: Grid) -> Expression:
    """Return the code of a position."""
    if grid.codes == grid.edges[-1]:
        return position
    edges, firsts, rounds = grid.edges.tolist(), grid.first.tolist(), grid.round.tolist()

    def code(span: int) -> Expression:
        if rounds[span] == NONE:
            return whole(firsts[span])
        is_round = position == whole(rounds[span])
        return ibis.ifelse(is_round, whole(firsts[span]), whole(firsts[span] + 1))

    return tree(position, edges[:-1], code)


def tree(value: Expression, starts: list[int], leaf: Any) -> Expression:
    """Return what the stretch of a whole number gives, by bisection.

    Args:
        value: from the first start on.
        starts: first value of each stretch, ascending.
        leaf: gives the expression of a stretch, by its place.
    """

    def between(first: int, end: int) -> Expression:
        if end - first == 1:
            return leaf(first)
        middle = (first + end) // 2
        below = value < whole(starts[middle])
        return ibis.ifelse(below, between(first, middle), between(middle, end))

    return between(0, len(starts))


def _beyond(lattice: Lattice) -> tuple[float, float]:
    """Return values below the first point and above the last one; to clip to them is harmless."""
    ends = lattice.values(np.array([-2, lattice.points + 1]))
    scale = float(10**lattice.decimals)
    steps = (ends * scale - lattice.first) / lattice.stride
    assert steps[0] <= 0 and steps[1] >= lattice.points - 1
    return float(ends[0]), float(ends[1])
