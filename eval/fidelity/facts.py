"""Facts about pairs and levels: what never happens, what is rare, which relations are strong.

Facts about pairs of columns: what never happens, what is rare, and which relations are strong.

Averages over all pairs of columns hide such facts: men in gynaecology are a thousandth of a mean
distance. Each pair spans the cells of two columns' bins. With R rows of the source in a cell, E the
rows that independent columns would have, and S the rows of another table, scaled to as many rows:

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

Combinations of two columns that synthetic rows have and no real row has: candidates for rules.

Pregnant at 70, newborn and smoking: each value is common, and together they never occur. A cell of
two columns counts if the source has none of it although many would be there were the columns
independent; of 10 expected, none occurs with a probability of exp(-10). Whether such a cell is
impossible or was missed by chance, a person decides, who knows the columns.

Levels that nobody declared and no real row has: `other`, and missing cells in a full column.

A declared level without a row in the source is left alone: it may be real and rare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    PartResult,
    absolute,
    bin_label,
    plain,
)
from dpsynth.schema import Column
from dpsynth.schema.column import OTHER

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

RARE = 5.0  # a cell is rare if it has at most this part of its expected rows
STRONGEST = 20  # pairs
MIN_EXPECTED = 200  # rows of the source in all cells of `never`, were columns independent
MIN_RARE = 100  # rows of the source in all cells of `seldom`
ERROR = 0.1  # largest standard error of a strength, as a part of it, that counts as a relation
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
        keys = [_keys(side, i, j, sizes[j]) for side in sides.every]
        source = np.bincount(keys[0], minlength=sizes[i] * sizes[j]).reshape(sizes[i], sizes[j])
        chance = source.sum(axis=1)[:, None] * source.sum(axis=0)[None, :] / source.sum()
        often = chance >= EXPECTED
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
            counts = side.counts(_keys(side, i, j, shape[1]), shape[0] * shape[1])
            source = np.bincount(_keys(sides.source, i, j, shape[1]), minlength=counts.shape[1])
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
    return strength if strength and spread / 2 <= ERROR * signal else 0.0


def _unseen(sides: PairedTables, pairs: list[_Pair]) -> list[dict[str, Any]]:
    """List the pairs of columns with most synthetic rows in cells that the source leaves empty."""
    candidates = [pair for pair in pairs if is_candidate(sides, pair.places, pair.unseen)]
    candidates.sort(key=lambda pair: -pair.unseen[1])
    return [Unseen(sides, *pair.places).detail(pair.unseen) for pair in candidates[:SHOWN]]


def _keys(side: PairedTable, i: int, j: int, size: int) -> Ints:
    """Number the cell of each row."""
    keys: Ints = side.bins[i].astype(np.int64)
    keys *= size
    keys += side.bins[j]
    return keys


EXPECTED = 10.0  # rows of the source in a cell, were the columns independent
SHARE = 0.005  # of the synthetic rows in such cells, from which a pair is named
SHOWN = 5  # pairs


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
    return shares[1] - in_holdout >= SHARE


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
        counts = np.where((source == 0) & (expected >= EXPECTED), synthetic, 0)
        a, b = np.unravel_index(int(counts.argmax()), shape)
        return {
            "columns": [sides.tables.schema.modelled[place].name for place in (i, j)],
            "share": plain(shares[1]),
            "holdout": plain(shares[2]) if sides.holdout is not None else None,
            "bins": [bin_label(sides, i, int(a)), bin_label(sides, j, int(b))],
            "largest": plain(counts.max() / sides.n),
            "expected": plain(expected[a, b] / source.sum()),
        }


TITLE = "Cells with an undeclared level"
MEANING = (
    "Mean over columns of the share of cells that are `other` where every real row has a declared "
    "level, or missing where no real cell is. A value above 0 means levels made from noise alone."
)


def undeclared_levels(sides: PairedTables) -> PartResult:
    """Measure the share of cells with an undeclared level that the source does not have.

    Intervals are by jackknife over the units of the synthetic table.
    """
    figures, details = list[JackknifeEstimate](), list[dict[str, Any]]()
    for place, column in enumerate(sides.tables.schema.modelled):
        codes = _undeclared(column, sides.tables.codec.sizes[place])
        source = sides.source.view.codes[:, place]
        absent = [code for code in codes if not (source == code).any()]
        shares = sides.each(partial(_shares, place=place, codes=absent))
        figure = JackknifeEstimate.of(absolute, shares)
        assert figure is not None  # of rows that exist
        figures.append(figure)
        if figure.value > 0:
            holdout = None if shares.holdout is None else plain(shares.holdout[0])
            entry = {"column": column.name, "synthetic": plain(figure.value), "holdout": holdout}
            details.append(entry)
    details.sort(key=lambda entry: -entry["synthetic"])
    mean = JackknifeEstimate.mean(figures).estimate(sides.n)
    measure = Measure("levels", TITLE, mean, 0.0, MEANING)
    return PartResult((measure,), {"undeclared_levels": details})


def _shares(side: PairedTable, *, place: int, codes: list[int]) -> Floats:
    """Return the share of rows with one of some codes of a column ``[variants]``."""
    return side.shares(np.isin(side.view.codes[:, place], codes))


def _undeclared(column: Column, size: int) -> list[int]:
    """Return the codes of `other` and of missing cells, if the column can have them."""
    codes = [size - 1] if column.nullable else []
    if column.is_categorical and column.has_other:
        codes.append(column.levels.index(OTHER))
    return codes
