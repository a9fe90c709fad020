"""Tables of counts that share columns, made to agree: the best unbiased estimate of each.

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
