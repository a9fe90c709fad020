"""The codes of numbers, dates and times in SQL: the arithmetic of `Lattice.positions` and `Grid`.

It is the same sequence of operations on doubles, and so has the same results to the last bit. What
could fail in a warehouse is left out before: a value far outside the bounds is moved next to them,
and one that is next to zero becomes zero, which changes no position.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

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


def code_in_sql(position: str, grid: Grid) -> str:
    """Return the code of a position, as SQL that all warehouses read alike.

    Args:
        position: the name of a column of whole numbers.
        grid: that says which positions share a code.
    """
    if grid.codes == grid.edges[-1]:
        return position
    edges, firsts, rounds = grid.edges.tolist(), grid.first.tolist(), grid.round.tolist()

    def code(span: int) -> str:
        if rounds[span] == NONE:
            return str(firsts[span])
        alone, others = firsts[span], firsts[span] + 1
        return f"CASE WHEN {position} = {rounds[span]} THEN {alone} ELSE {others} END"

    return by_bisection(position, edges[:-1], code)


def by_bisection(value: str, starts: Sequence[int], leaf: Callable[[int], str]) -> str:
    """Return SQL for what the stretch of a whole number gives.

    Args:
        value: the name of a column, from the first start on.
        starts: first value of each stretch, ascending.
        leaf: gives the SQL of a stretch, by its place.
    """

    def between(first: int, end: int) -> str:
        if end - first == 1:
            return leaf(first)
        middle = (first + end) // 2
        low, high = between(first, middle), between(middle, end)
        return f"CASE WHEN {value} < {starts[middle]} THEN {low} ELSE {high} END"

    return between(0, len(starts))


def _beyond(lattice: Lattice) -> tuple[float, float]:
    """Return values below the first point and above the last one; to clip to them is harmless."""
    ends = lattice.values(np.array([-2, lattice.points + 1]))
    scale = float(10**lattice.decimals)
    steps = (ends * scale - lattice.first) / lattice.stride
    assert steps[0] <= 0 and steps[1] >= lattice.points - 1
    return float(ends[0]), float(ends[1])
