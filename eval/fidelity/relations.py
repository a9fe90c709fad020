"""Joint distributions of two and three columns: total variation distance, mutual information.

Total variation distance of two tables: half the L1 distance of their histograms.

A number computed from real rows is internal: it never enters a run or a bundle.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    PartResult,
    Variants,
    about,
    absolute,
    groups,
    jackknife_error,
    numbers,
    plain,
)
from dpsynth.eval.core.paired import GROUPS

Floats = npt.NDArray[np.float64]
Sets = list[tuple[int, ...]]

MAX_PAIRS = 2500
MAX_TRIPLES = 300
SEED = 20  # of the choice of triples: always the same for one schema

TVD2 = (
    "Mean over pairs of columns of the total variation distance between the two tables' joint "
    "distributions: half the sum of absolute differences of shares, 0 if equal, 1 if nothing is in "
    "common. A high value means that relations between two columns are not kept."
)
TVD3 = (
    "The same for triples of columns: a high value beside good pairs means that effects of two "
    "columns together on a third are not kept."
)
INFORMATION = (
    "Mean over pairs of columns of the absolute difference of their mutual information, normalised "
    "by the geometric mean of the two entropies (0: independent, 1: one tells the other). A high "
    "value means that some columns tell more or less of each other than in the source."
)


def joints(sides: PairedTables) -> PartResult:
    """Compare all pairs of columns and up to 300 triples; intervals by jackknife over units."""
    columns = len(sides.bins.sizes)
    if columns < 2:
        return PartResult(notes=("the table has one column: there are no pairs to compare",))
    pairs, all_pairs = _sets(columns, 2, MAX_PAIRS)
    entropies = [_entropies(sides.joint([j])) for j in range(columns)]
    distances, informations = [], []
    matrix = np.full((columns, columns), np.nan)
    matrices = {name: np.full((columns, columns), np.nan) for name in ("source", "synthetic")}
    for i, j in pairs:
        shares = sides.joint([i, j])
        distance = JackknifeEstimate.of(half_l1, shares)
        mutual = _information(entropies[i], entropies[j], _entropies(shares))
        information = JackknifeEstimate.of(absolute, mutual)
        assert distance is not None and information is not None  # shares of rows that exist
        distances.append(distance)
        informations.append(information)
        matrix[i, j] = matrix[j, i] = distance.value
        matrices["source"][i, j] = matrices["source"][j, i] = mutual.source[0]
        matrices["synthetic"][i, j] = matrices["synthetic"][j, i] = mutual.synthetic[0]
    notes = [] if all_pairs else [f"pairs of columns: {MAX_PAIRS} were drawn at random"]
    measures = [
        _measure("tvd2", "Distance of pairs of columns", distances, sides, TVD2),
        _measure(
            "information", "Difference of mutual information", informations, sides, INFORMATION
        ),
    ]
    triples, all_triples = _sets(columns, 3, MAX_TRIPLES)
    if triples:
        estimates = [JackknifeEstimate.of(half_l1, sides.joint(triple)) for triple in triples]
        known = [figure for figure in estimates if figure is not None]
        measures.append(_measure("tvd3", "Distance of triples of columns", known, sides, TVD3))
    if not all_triples:
        notes.append(f"triples of columns: {MAX_TRIPLES} were drawn at random, with a fixed seed")
    names = list(sides.tables.codec.names)
    details: dict[str, Any] = {
        "names": names,
        "tvd": plain(matrix),
        "information": {name: plain(values) for name, values in matrices.items()},
    }
    return PartResult(tuple(measures), {"pairs": details}, tuple(notes))


def _measure(
    key: str, title: str, figures: list[JackknifeEstimate], sides: PairedTables, meaning: str
) -> Measure:
    return Measure(key, title, JackknifeEstimate.mean(figures).estimate(sides.n), 0.0, meaning)


def _sets(columns: int, ways: int, maximum: int) -> tuple[Sets, bool]:
    """Return all sets of columns, or ``most`` random ones; and whether they are all."""
    if comb(columns, ways) <= maximum:
        return list(combinations(range(columns), ways)), True
    rng = np.random.default_rng(SEED)
    sets: set[tuple[int, ...]] = set()
    while len(sets) < maximum:
        sets.add(tuple(sorted(rng.choice(columns, size=ways, replace=False).tolist())))
    return sorted(sets), False


def _entropies(shares: Variants) -> Variants:
    """Return the entropy of each variant, in nats."""

    def entropy(shares: Floats) -> Floats:
        logs = np.log(shares, out=np.zeros_like(shares), where=shares > 0)
        return np.asarray(-(shares * logs).sum(axis=1))

    source, synthetic, holdout, chance = shares
    of_holdout = None if holdout is None else entropy(holdout)
    return Variants(entropy(source), entropy(synthetic), of_holdout, entropy(chance))


def _information(a: Variants, b: Variants, both: Variants) -> Variants:
    """Return I(a; b) / sqrt(H(a) H(b)) of each variant; 0 where a column is constant."""

    def normalised(a: Floats, b: Floats, both: Floats) -> Floats:
        scale = np.sqrt(a * b)
        shared = np.maximum(a + b - both, 0.0)
        ratio = np.divide(shared, scale, out=np.zeros_like(shared), where=scale > 1e-12)
        return np.minimum(ratio, 1.0)

    of_holdout = None
    if a.holdout is not None and b.holdout is not None and both.holdout is not None:
        of_holdout = normalised(a.holdout, b.holdout, both.holdout)
    return Variants(
        normalised(a.source, b.source, both.source),
        normalised(a.synthetic, b.synthetic, both.synthetic),
        of_holdout,
        normalised(a.chance, b.chance, both.chance),
    )


Ints = npt.NDArray[np.int64]

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


Codes = npt.NDArray[np.integer]


def tvd(a: Codes, b: Codes, columns: Sequence[int]) -> float:
    """Return the total variation distance of two tables' joint distribution of some columns.

    Half the L1 distance of the two histograms; 0 is equal, 1 is disjoint.
    """
    key_a = np.zeros(len(a), dtype=np.int64)
    key_b = np.zeros(len(b), dtype=np.int64)
    for j in columns:
        width = int(max(a[:, j].max(), b[:, j].max())) + 1
        key_a = key_a * width + a[:, j]
        key_b = key_b * width + b[:, j]
    keys, inverse = np.unique(np.concatenate([key_a, key_b]), return_inverse=True)
    share_a = np.bincount(inverse[: len(a)], minlength=len(keys)) / len(a)
    share_b = np.bincount(inverse[len(a) :], minlength=len(keys)) / len(b)
    return float(half_l1(share_a, share_b))


def mean_tvd(a: Codes, b: Codes, ways: int) -> float:
    """Return the mean total variation distance over all sets of ``ways`` columns."""
    return float(np.mean([tvd(a, b, set_) for set_ in combinations(range(a.shape[1]), ways)]))


def half_l1(a: Floats, b: Floats) -> Floats:
    """Return half the L1 distance over the last axis, of shares that sum to 1 along it."""
    return np.asarray(0.5 * np.abs(a - b).sum(axis=-1))
