"""Relations of columns: joint distributions, correlations, and facts about pairs.

Total variation distance of two tables is half the L1 distance of their histograms. A number
computed from real rows is internal: it never enters a run or a bundle.

**Facts about pairs**: what never happens, what is rare, and which relations are strong. Averages
over all pairs of columns hide them: men in gynaecology are a thousandth of a mean distance. Each
pair spans the cells of two columns' bins. With R rows of the source in a cell, E the rows that
independent columns would have, and S the rows of another table, scaled to as many rows:

- `never`: cells with R = 0 and E >= 10. Sum of S over sum of E; of 10 expected rows, none occurs
  by chance with a probability of exp(-10).
- `seldom`: cells with E >= 10 and 0 < R <= E / 5. Sum of S over sum of R.
- `strongest`: the 20 pairs with the largest Cramer's V in the source, corrected for bias (Bergsma,
  A Bias-Correction for Cramer's V and Tschuprow's T, J. Korean Statistical Society 42, 2013).
  Mean of V over V in the source, each at most 1. A relation counts if the standard error of V in
  the source is at most a tenth of it: a noncentral chi-square with d degrees of freedom and
  noncentrality n f has variance 2 d + 4 n f.

The source alone decides which cells and pairs count. A ratio of few rows is chance: `never` needs
cells of 200 expected rows together, and `seldom` 100 real rows. Which pairs of values no real row
has is listed too: candidates for rules.

Combinations that synthetic rows have and no real row has are candidates for rules, too. Pregnant at
70, newborn and smoking: each value is common, and together they never occur. A cell of two columns
counts if the source has none of it although many would be there were the columns independent; of 10
expected, none occurs with a probability of exp(-10). Whether such a cell is impossible or was
missed by chance, a person decides, who knows the columns.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    PartResult,
    Variants,
    about,
    absolute,
    bin_label,
    groups,
    jackknife_error,
    numbers,
    plain,
)
from dpsynth.eval.core.paired import GROUPS
from dpsynth.eval.core.scores import order_of, spearman

Floats = npt.NDArray[np.float64]
Sets = list[tuple[int, ...]]

MAX_PAIRS = 2500
MAX_TRIPLES = 300
SEED = 20  # of the choice of triples and of groups: always the same for one schema

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
CORRELATION_MEANING = (
    "Mean over pairs of numeric columns of the absolute difference of Spearman's correlation, each "
    "on the rows that have both values. A high value means that what rises together in the source "
    "does not in the synthetic table, or the other way round."
)


def correlation(sides: PairedTables) -> PartResult:
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
    rng = np.random.default_rng(SEED)
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
    measure = Measure(
        "correlation", "Difference of correlations", estimate, 0.0, CORRELATION_MEANING
    )
    return PartResult((measure,), parts)


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


Bools = npt.NDArray[np.bool_]

RARE = 5.0  # a cell is rare if it has at most this part of its expected rows
STRONGEST = 20  # pairs
MIN_EXPECTED = 200  # rows of the source in all cells of `never`, were columns independent
MIN_RARE = 100  # rows of the source in all cells of `seldom`
MAX_ERROR = 0.1  # largest standard error of a strength, as a part of it, that counts as a relation
TINY = 1e-12

NEVER = (
    "Synthetic rows with pairs of values that no real row has, although chance would give at least "
    "10 real rows, as a share of those that independent columns would give: 0 as in the source, 1 "
    "if nothing is known of the two columns. A high value means rows that a clinician calls "
    "impossible."
)
NEVER_ROWS = (
    "Share of synthetic rows with at least one pair of values that no real row has, although "
    "chance would give at least 10."
)
SELDOM = (
    "Synthetic rows with pairs of values that are rare in the source, a fifth or less of what "
    "independent columns would give, over the real rows: above 1, rare combinations are too "
    "common; near 0, they were deleted."
)
STRONG = (
    "How much is left of the 20 strongest relations between two columns: mean of Cramer's V in the "
    "synthetic table over that in the source, each at most 1. A low value means that what is known "
    "best of the patients is blurred."
)


class _Pair(NamedTuple):
    """A pair of columns: their places, their strength in the source, and unseen rows by table."""

    places: tuple[int, int]
    strength: float
    unseen: list[float]


class _Hits:
    """Of each row of a table: in how many unseen and rare cells it is."""

    def __init__(self, side: PairedTable) -> None:
        """Begin with none."""
        self.side = side
        self.never = np.zeros(side.view.rows, dtype=np.int64)
        self.seldom = np.zeros(side.view.rows, dtype=np.int64)

    def per_row(self, hits: Ints) -> Floats:
        """Return hits over rows ``[variants]``, of the table, and without each group."""
        side = self.side
        of_groups = np.bincount(side.seats, weights=hits, minlength=max(1, side.groups))
        total = np.array([of_groups.sum()])
        sums = np.concatenate([total, total - of_groups]) if side.groups else total
        return np.asarray(sums / np.maximum(side.sizes(), 1))


def pair_facts(sides: PairedTables) -> PartResult:
    """Measure what never happens, what is rare, and what is left of the strongest relations.

    Intervals are by jackknife over the units of the synthetic table; the cells that the source
    leaves empty or nearly so are held fixed. That of `strongest` is over both tables.
    """
    sizes = sides.bins.sizes
    if len(sizes) < 2:
        return PartResult((), {"unseen": [], "strongest": []})
    hits = [_Hits(side) for side in sides.every]
    expected, rare, pairs = 0.0, 0, list[_Pair]()
    for i, j in combinations(range(len(sizes)), 2):
        keys = [_pair_keys(side, i, j, sizes[j]) for side in sides.every]
        source = np.bincount(keys[0], minlength=sizes[i] * sizes[j]).reshape(sizes[i], sizes[j])
        chance = source.sum(axis=1)[:, None] * source.sum(axis=0)[None, :] / source.sum()
        often = chance >= MIN_CELL
        never = (often & (source == 0)).ravel()
        seldom = (often & (source > 0) & (source <= chance / RARE)).ravel()
        unseen = [0.0] * len(keys)
        if never.any():
            expected += float(chance.ravel()[never].sum())
            for place, (of_side, key) in enumerate(zip(hits, keys, strict=True)):
                hit = never[key]
                of_side.never += hit
                unseen[place] = float(hit.mean())
        if seldom.any():
            rare += int(source.ravel()[seldom].sum())
            for of_side, key in zip(hits, keys, strict=True):
                of_side.seldom += seldom[key]
        pairs.append(_Pair((i, j), _strength(source), unseen))
    real = sides.source.view.rows
    measures, notes = [_never(sides, hits, 1.0, NEVER_ROWS)], list[str]()
    if expected >= MIN_EXPECTED:
        measures.insert(0, _never(sides, hits, real / expected, NEVER))
    else:
        notes.append(
            "never: the pairs of values that no real row has are too few to measure a ratio"
        )
    if rare >= MIN_RARE:
        measures.append(_seldom(sides, hits, real / rare))
    else:
        notes.append("seldom: too few real rows have a rare pair of values to measure a ratio")
    strongest = sorted(pairs, key=lambda pair: -pair.strength)[:STRONGEST]
    strongest = [pair for pair in strongest if pair.strength > 0]
    measure, listed = _strongest(sides, strongest)
    measures += [] if measure is None else [measure]
    details = {"unseen": _unseen(sides, pairs), "strongest": listed}
    return PartResult(tuple(measures), details, tuple(notes))


def _never(sides: PairedTables, hits: list[_Hits], scale: float, meaning: str) -> Measure:
    """Measure unseen cells: hits of them over the expected ones, or rows with any."""
    rows = meaning is NEVER_ROWS
    every = [(side.never > 0).astype(np.int64) if rows else side.never for side in hits]
    values = sides.variants(
        [side.per_row(each) * scale for side, each in zip(hits, every, strict=True)]
    )
    figure = JackknifeEstimate.of(absolute, values)
    assert figure is not None  # of rows that exist
    key, title = ("never_rows", "Rows with a pair") if rows else ("never", "Pairs")
    title += " of values that no real row has"
    estimate = figure.estimate(sides.n, maximum=1.0 if rows else np.inf)
    return Measure(key, title, estimate, 0.0, meaning)


def _seldom(sides: PairedTables, hits: list[_Hits], scale: float) -> Measure:
    """Measure rare cells: their rows over those of the source, whose own are held fixed."""
    values = sides.variants([side.per_row(side.seldom) * scale for side in hits])
    figure = JackknifeEstimate.of(np.multiply, values._replace(source=np.ones_like(values.source)))
    assert figure is not None  # of rows that exist
    title, estimate = "Rare pairs of values", figure.estimate(sides.n, maximum=np.inf)
    return Measure("seldom", f"{title}, over the real rows", estimate, 1.0, SELDOM)


def _strongest(
    sides: PairedTables, pairs: list[_Pair]
) -> tuple[Measure | None, list[dict[str, Any]]]:
    """Measure what is left of the strongest relations, and list them by name."""
    if not pairs:
        return None, []
    sizes, names = sides.bins.sizes, sides.tables.codec.names

    def strengths(side: PairedTable) -> Floats:
        columns = []
        for i, j in (pair.places for pair in pairs):
            shape = sizes[i], sizes[j]
            counts = side.counts(_pair_keys(side, i, j, shape[1]), shape[0] * shape[1])
            source = np.bincount(
                _pair_keys(sides.source, i, j, shape[1]), minlength=counts.shape[1]
            )
            known = source.reshape(shape) > 0
            table = counts.reshape(-1, *shape)[:, known.any(axis=1)][:, :, known.any(axis=0)]
            columns.append(_cramer(table))
        return np.stack(columns, axis=1)

    values = sides.each(strengths)
    figure = JackknifeEstimate.of(_kept, values)
    assert figure is not None  # their strengths in the source are above 0
    title = "What is left of the 20 strongest relations"
    measure = Measure("strongest", title, figure.estimate(sides.n), 1.0, STRONG)
    listed = [
        {
            "columns": [names[i], names[j]],
            "source": plain(values.source[0, k]),
            "synthetic": plain(values.synthetic[0, k]),
            "holdout": None if values.holdout is None else plain(values.holdout[0, k]),
            "chance": plain(values.chance[0, k]),
        }
        for k, (i, j) in enumerate(pair.places for pair in pairs)
    ]
    return measure, listed


def _kept(source: Floats, other: Floats) -> Floats:
    """Return the mean over relations of what another table keeps of each, at most all of it."""
    return np.asarray(np.minimum(1.0, other / np.maximum(source, TINY)).mean(axis=-1))


def _cramer(tables: Ints) -> Floats:
    """Return the bias-corrected Cramer's V of tables of counts ``[variants, rows, columns]``.

    >>> _cramer(np.array([[[50, 0], [0, 50]], [[25, 25], [25, 25]]])).round(3).tolist()
    [1.0, 0.0]
    """
    n = np.maximum(tables.sum(axis=(1, 2)), 2).astype(float)
    rows, columns = tables.sum(axis=2).astype(float), tables.sum(axis=1).astype(float)
    expected = rows[:, :, None] * columns[:, None, :] / n[:, None, None]
    squares = np.divide(
        (tables - expected) ** 2, expected, out=np.zeros_like(expected), where=expected > 0
    )
    r, k = (rows > 0).sum(axis=1), (columns > 0).sum(axis=1)
    phi = np.maximum(0.0, squares.sum(axis=(1, 2)) / n - (r - 1) * (k - 1) / (n - 1))
    least = np.minimum(r - (r - 1) ** 2 / (n - 1), k - (k - 1) ** 2 / (n - 1)) - 1
    return np.asarray(np.where(np.minimum(r, k) > 1, np.sqrt(phi / np.maximum(least, TINY)), 0.0))


def _strength(counts: Ints) -> float:
    """Return V of a table of counts ``[rows, columns]``; 0 if it does not stand above chance.

    >>> round(_strength(np.array([[300, 100], [100, 300]])), 2)
    0.5
    >>> _strength(np.array([[6, 4], [4, 6]]))
    0.0
    """
    strength = float(_cramer(counts[None])[0])
    r, k = (int((counts.sum(axis=axis) > 0).sum()) for axis in (1, 0))
    signal = strength**2 * (min(r, k) - 1) * float(counts.sum())  # n f, about
    spread = np.sqrt(2 * (r - 1) * (k - 1) + 4 * signal)
    return strength if strength and spread / 2 <= MAX_ERROR * signal else 0.0


def _unseen(sides: PairedTables, pairs: list[_Pair]) -> list[dict[str, Any]]:
    """List the pairs of columns with most synthetic rows in cells that the source leaves empty."""
    candidates = [pair for pair in pairs if is_candidate(sides, pair.places, pair.unseen)]
    candidates.sort(key=lambda pair: -pair.unseen[1])
    return [Unseen(sides, *pair.places).detail(pair.unseen) for pair in candidates[:SHOWN_PAIRS]]


def _pair_keys(side: PairedTable, i: int, j: int, size: int) -> Ints:
    """Number the cell of each row."""
    keys: Ints = side.bins[i].astype(np.int64)
    keys *= size
    keys += side.bins[j]
    return keys


MIN_CELL = 10.0  # rows of the source in a cell, were the columns independent
UNSEEN_SHARE = 0.005  # of the synthetic rows in such cells, from which a pair is named
SHOWN_PAIRS = 5  # pairs


def is_candidate(sides: PairedTables, places: tuple[int, int], shares: Sequence[float]) -> bool:
    """Whether enough synthetic rows are in cells that the source leaves empty for a rule to help.

    Args:
        sides: what is compared.
        places: of the two columns.
        shares: of the rows of each table that are in such cells, in the order of ``sides.every``.
    """
    one, other = (sides.tables.schema.modelled[place].name for place in places)
    if one in other or other in one:  # a status beside its number, a weekday beside its date
        return False
    in_holdout = shares[2] if sides.holdout is not None else 0.0
    return shares[1] - in_holdout >= UNSEEN_SHARE


@dataclass(frozen=True, eq=False)
class Unseen:
    """A pair of columns with synthetic rows in cells that the source leaves empty."""

    sides: PairedTables
    i: int
    j: int

    def detail(self, shares: Sequence[float]) -> dict[str, Any]:
        """Name the columns, the shares of rows, and the cell that has most synthetic rows."""
        sides, i, j = self.sides, self.i, self.j
        shape = sides.bins.sizes[i], sides.bins.sizes[j]
        source, synthetic = (
            np.bincount(
                side.bins[i].astype(np.int64) * shape[1] + side.bins[j],
                minlength=shape[0] * shape[1],
            ).reshape(shape)
            for side in (sides.source, sides.synthetic)
        )
        expected = source.sum(axis=1)[:, None] * source.sum(axis=0)[None, :] / source.sum()
        counts = np.where((source == 0) & (expected >= MIN_CELL), synthetic, 0)
        a, b = np.unravel_index(int(counts.argmax()), shape)
        return {
            "columns": [sides.tables.schema.modelled[place].name for place in (i, j)],
            "share": plain(shares[1]),
            "holdout": plain(shares[2]) if sides.holdout is not None else None,
            "bins": [bin_label(sides, i, int(a)), bin_label(sides, j, int(b))],
            "largest": plain(counts.max() / sides.n),
            "expected": plain(expected[a, b] / source.sum()),
        }
