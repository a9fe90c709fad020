"""Rank correlation of numeric columns, and how far two tables differ in it."""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.eval.core import (
    Measure,
    PairedTable,
    PairedTables,
    PartResult,
    about,
    groups,
    jackknife_error,
    numbers,
    plain,
)
from dpsynth.eval.core.paired import GROUPS

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

JACKKNIFE_ROWS = 10_000  # about so many rows of whole units give the interval
MEANING = (
    "Mean over pairs of numeric columns of the absolute difference of Spearman's correlation, each "
    "on the rows that have both values. A high value means that what rises together in the source "
    "does not in the synthetic table, or the other way round."
)


def correlation(sides: PairedTables, rng: np.random.Generator) -> PartResult:
    """Compare Spearman's correlation of all pairs of numeric columns.

    A pair enters if it has a correlation in the source: rows with both values, of which neither
    column is constant. Where such a pair has none in another table, it counts there as 0. The
    interval is a delete-a-group jackknife by unit; on large tables, of a part of about 10 000 rows
    of whole units, scaled by the square root of its size.
    """
    columns = [column for column in sides.tables.schema.modelled if not column.is_categorical]
    names = [column.name for column in columns]
    if len(columns) < 2:
        return PartResult(
            notes=("fewer than two numeric columns: there is no correlation to compare",)
        )
    ranks = [
        np.stack([order_of(numbers(side.view, column)) for column in columns])
        for side in sides.every
    ]
    matrices = [spearman(orders) for orders in ranks]
    source, synthetic = matrices[:2]
    details = {"names": names, "source": plain(source), "synthetic": plain(synthetic)}
    parts: dict[str, Any] = {"pairs": {"correlation": details}}
    pairs = np.isfinite(source) & np.triu(np.ones(source.shape, dtype=bool), 1)
    if not pairs.any():
        return PartResult(
            (), parts, ("no pair of numeric columns has a correlation in the source",)
        )
    value = _distance(source, synthetic, pairs)
    errors = []
    for side, orders, other in (
        (sides.source, ranks[0], synthetic),
        (sides.synthetic, ranks[1], source),
    ):
        errors.append(_error(side, orders, other, pairs, rng))
    reference = None if sides.holdout is None else _distance(source, matrices[2], pairs)
    estimate = about(
        value,
        math.hypot(*errors),
        sides.n,
        reference=reference,
        chance=_distance(source, matrices[-1], pairs),
        minimum=0.0,
        maximum=2.0,
    )
    measure = Measure("correlation", "Difference of correlations", estimate, 0.0, MEANING)
    return PartResult((measure,), parts)


def spearman(orders: Ints) -> Floats:
    """Return Spearman's correlation of each pair of columns ``[columns, columns]``.

    Args:
        orders: the place of each value in its column's order ``[columns, rows]``, equal values
            having equal places; -1 is missing.

    Returns:
        A symmetric matrix; NaN on the diagonal and where a pair has no correlation.
    """
    matrix = np.full((len(orders), len(orders)), np.nan)
    for i, j in combinations(range(len(orders)), 2):
        both = (orders[i] >= 0) & (orders[j] >= 0)
        a, b = _mid_ranks(orders[i][both]), _mid_ranks(orders[j][both])
        scale = math.sqrt(float(a @ a) * float(b @ b))
        if scale > 0:
            matrix[i, j] = matrix[j, i] = float(a @ b) / scale
    return matrix


def order_of(values: Floats) -> Ints:
    """Return the place of each value among the distinct ones, -1 where it is missing."""
    return np.asarray(pd.factorize(values, sort=True)[0], dtype=np.int64)


def _mid_ranks(orders: Ints) -> Floats:
    """Return ranks around 0; equal values share the mean of theirs."""
    if not len(orders):
        return np.zeros(0)
    counts = np.bincount(orders)
    ranks = np.cumsum(counts) - (counts - 1) / 2
    return np.asarray(ranks[orders] - (len(orders) + 1) / 2)


def _distance(a: Floats, b: Floats, pairs: npt.NDArray[np.bool_]) -> float:
    """Return the mean absolute difference over pairs; a missing correlation is 0."""
    return float(np.abs(np.nan_to_num(a[pairs]) - np.nan_to_num(b[pairs])).mean())


def _error(
    side: PairedTable,
    orders: Ints,
    other: Floats,
    pairs: npt.NDArray[np.bool_],
    rng: np.random.Generator,
) -> float:
    """Return the standard error that the sampling of one table's units gives the distance."""
    rows, units = orders.shape[1], len(np.unique(side.view.units))
    count = min(GROUPS, units)
    if count < 2:
        return 0.0
    parts = max(1, min(rows // JACKKNIFE_ROWS, units // count))
    seats = groups(side.view.units, parts * count, rng)
    part = seats < count
    orders, seats = orders[:, part], seats[part]
    without = [_distance(spearman(orders[:, seats != g]), other, pairs) for g in range(count)]
    return jackknife_error(without) * math.sqrt(orders.shape[1] / rows)
