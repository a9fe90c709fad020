"""Joint distributions of two and three columns: total variation distance, mutual information."""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTables,
    PartResult,
    Variants,
    absolute,
    plain,
)
from dpsynth.eval.fidelity.total_variation import half_l1

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
