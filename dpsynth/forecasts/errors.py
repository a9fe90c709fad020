"""How far a synthetic table is from its source: columns, pairs of columns, and small subgroups.

The distances are those of `dpsynth evaluate`: half the sum of absolute differences of shares, in
the same bins (`eval.core.paired`). A forecast takes them of rows that it drew itself, a benchmark
of real rows: both by this file, so that they compare.

A subgroup is the rows with one value of a column, or with one value of each of two or three
columns, in these bins. It survives if its synthetic rows are between half and twice as many as its
source has: what an evaluation asks of rare categories (`eval.report.uses.rare_shares`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.core import Bins

Codes = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Pair = tuple[int, int]

MAX_PAIRS = 2500  # as in an evaluation; of more, so many are drawn
TRIPLES = 100  # of columns, whose cells are subgroups too
MAX_CELLS = 200_000  # of such a triple
MIN_ROWS = 5  # of a subgroup; fewer are no group
PROBED = 160  # subgroups whose columns are compared
SEED = 20  # of the choice among them: the same for one schema
SIZES = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000)
FACTOR = 2.0  # by which the rows of a subgroup that survives may change
SURVIVES = 0.9  # of the subgroups of a size must
WIDTH = 1.25  # of a band of sizes in which that share is taken
FEW = 8  # subgroups, below which they tell nothing


@dataclass(frozen=True, eq=False)
class Errors:
    """Distances of a synthetic table from its source, from 0 (equal) to 1.

    Attributes:
        columns: of each column alone ``[columns]``.
        pairs: the pairs of columns that were compared.
        of_pairs: the distance of each ``[pairs]``; empty for a table of one column.
        subgroups: what became of small parts of the table.
    """

    columns: Floats
    pairs: tuple[Pair, ...]
    of_pairs: Floats
    subgroups: Subgroups

    @classmethod
    def between(cls, source: Codes, synthetic: Codes, codec: Codec) -> Errors:
        """Compare two tables of codes ``[rows, columns]``; the source decides the bins."""
        bins = Bins.of(source, codec)
        real, drawn, sizes = bins.cut(source), bins.cut(synthetic), bins.sizes
        pairs = _pairs(len(sizes))
        subgroups = SubgroupCounter()
        found = []
        for together in [*((j,) for j in range(len(sizes))), *pairs, *_triples(sizes)]:
            own = [sizes[j] for j in together]
            before, after = (
                np.bincount(
                    keys_of([table[j] for j in together], own), minlength=int(np.prod(own))
                ).astype(np.int64)
                for table in (real, drawn)
            )
            if len(together) < 3:
                found.append(distance(before, after))
            subgroups.add(together, before, after)
        return cls(
            np.array(found[: len(sizes)]),
            tuple(pairs),
            np.array(found[len(sizes) :]),
            subgroups.found(real, drawn, sizes),
        )

    @property
    def mean_of_columns(self) -> float:
        """Mean over the columns: TVD1."""
        return float(self.columns.mean())

    @property
    def mean_of_pairs(self) -> float:
        """Mean over the pairs: TVD2; that of the columns where there is no pair."""
        return float(self.of_pairs.mean()) if len(self.pairs) else self.mean_of_columns


def _pairs(columns: int) -> list[Pair]:
    """Return all pairs of columns, or `MAX_PAIRS` of them: always the same ones."""
    every = list(combinations(range(columns), 2))
    if len(every) <= MAX_PAIRS:
        return every
    chosen = np.random.default_rng(SEED).choice(len(every), MAX_PAIRS, replace=False)
    return [every[place] for place in sorted(chosen)]


def _triples(sizes: Sequence[int]) -> list[tuple[int, int, int]]:
    """Draw triples of columns without too many cells: always the same ones."""
    every = np.random.default_rng(SEED).permuted(
        np.tile(np.arange(len(sizes)), (TRIPLES, 1)), axis=1
    )[:, :3]
    drawn = {tuple(sorted(map(int, three))) for three in every}
    return sorted(
        (a, b, c)
        for a, b, c in (three for three in drawn if len(three) == 3)
        if sizes[a] * sizes[b] * sizes[c] <= MAX_CELLS
    )


@dataclass(frozen=True, eq=False)
class Subgroups:
    """Parts of a table.

    Attributes:
        rows: of the source in each, at least `MIN_ROWS` ``[subgroups]``.
        kept: synthetic rows over the rows expected from the source ``[subgroups]``.
        ways: how many columns name it, 1 to 3 ``[subgroups]``.
        probed: places of the subgroups whose columns were compared.
        inside: distance of a column within each of these, mean over the other columns.
        chance: the same for as many rows drawn from the source's subgroup, expected.
    """

    rows: Ints
    kept: Floats
    ways: Ints
    probed: Ints
    inside: Floats
    chance: Floats

    def smallest_of_all(self) -> int | None:
        """Return the size from which on nine in ten survive, however many columns name them.

        None where subgroups of some kind survive at no size.
        """
        kinds = [ways for ways in (1, 2, 3) if (self.ways == ways).sum() >= FEW]
        sizes = [self.smallest(ways) for ways in kinds]
        known = [size for size in sizes if size is not None]
        return max(known) if known and len(known) == len(kinds) else None

    def smallest(self, ways: int) -> int | None:
        """Return the size from which on nine in ten subgroups survive, in rows.

        The share that survives is taken in narrow bands of size, and then levelled, so that it
        never falls as subgroups grow (isotonic regression; Barlow et al., Statistical Inference
        under Order Restrictions, 1972, section 1.2). None where no size has enough, or there are
        too few subgroups to tell. The smallest size that occurs is the least answer.

        Args:
            ways: how many columns name the subgroups.
        """
        from sklearn.isotonic import isotonic_regression

        chosen = self.ways == ways
        rows, survives = self.rows[chosen], self._survives()[chosen]
        if len(rows) < FEW:
            return None
        bands = np.floor(np.log(rows / MIN_ROWS) / np.log(WIDTH)).astype(np.int64)
        numbers, of_row, counts = np.unique(bands, return_inverse=True, return_counts=True)
        shares = np.bincount(of_row, weights=survives) / counts
        levels = isotonic_regression(shares, sample_weight=counts.astype(np.float64))
        enough = np.flatnonzero(levels >= SURVIVES)
        if not len(enough):
            return None
        first = int(enough[0])
        middles = np.log(MIN_ROWS) + np.log(WIDTH) * (numbers + 0.5)
        if first == 0:
            return int(rows.min())
        below, above = levels[first - 1], levels[first]
        part = (SURVIVES - below) / (above - below)
        crossing = middles[first - 1] + part * (middles[first] - middles[first - 1])
        return int(np.ceil(np.exp(crossing)))

    def by_size(self) -> list[dict[str, float | int | None]]:
        """Sum up the subgroups of each size of `SIZES` that there are, in JSON types.

        A size stands for those within a factor of 1.7. ``off`` is the change in rows, as a share,
        that nine in ten subgroups stay within; ``survive`` the share that survives.
        """
        found: list[dict[str, float | int | None]] = []
        for size in SIZES:
            here = self._near(self.rows, size)
            if here.sum() < FEW:
                continue
            probed = self._near(self.rows[self.probed], size)
            known = bool(probed.any())
            found.append(
                {
                    "rows": size,
                    "subgroups": int(here.sum()),
                    "off": float(np.quantile(np.abs(self.kept[here] - 1), 0.9)),
                    "survive": float(self._survives()[here].mean()),
                    "inside": float(self.inside[probed].mean()) if known else None,
                    "chance": float(self.chance[probed].mean()) if known else None,
                }
            )
        return found

    def _survives(self) -> npt.NDArray[np.bool_]:
        return (self.kept >= 1 / FACTOR) & (self.kept <= FACTOR)

    @staticmethod
    def _near(rows: Ints, size: int) -> npt.NDArray[np.bool_]:
        return (rows >= size / 1.7) & (rows < size * 1.7)


class SubgroupCounter:
    """Gathers subgroups from the counts of columns and pairs, then compares some of them."""

    def __init__(self) -> None:
        """Begin with none."""
        self._rows: list[Ints] = [np.empty(0, dtype=np.int64)]
        self._kept: list[Floats] = [np.empty(0)]
        self._places: list[tuple[tuple[int, ...], int]] = []

    def add(self, together: tuple[int, ...], before: Ints, after: Ints) -> None:
        """Take the cells of some columns: counts of source and synthetic rows."""
        cells = np.flatnonzero((before >= MIN_ROWS) & (before <= before.sum() / 2))
        self._rows.append(before[cells])
        self._kept.append(after[cells] * (before.sum() / after.sum()) / before[cells])
        self._places += [(together, int(cell)) for cell in cells]

    def found(self, source: Codes, synthetic: Codes, sizes: Sequence[int]) -> Subgroups:
        """Compare the columns within some of them; tables are bins ``[columns, rows]``."""
        rows = np.concatenate(self._rows)
        probed = _spread(rows)
        within = [_inside(source, synthetic, sizes, *self._places[place]) for place in probed]
        pairs = np.array(within, dtype=np.float64).reshape(-1, 2)
        ways = np.array([len(together) for together, _ in self._places], dtype=np.int64)
        kept = np.concatenate(self._kept)
        return Subgroups(rows, kept, ways, probed, pairs[:, 0], pairs[:, 1])


def keys_of(bins: Sequence[Codes], sizes: Sequence[int]) -> Ints:
    """Number the cell of each row among those of some columns."""
    keys = bins[0].astype(np.int64)
    for column, size in zip(bins[1:], sizes[1:], strict=True):
        keys = keys * size + column
    return keys


def distance(before: Ints, after: Ints) -> float:
    """Return half the sum of absolute differences of shares."""
    return float(0.5 * np.abs(before / before.sum() - after / after.sum()).sum())


def _spread(rows: Ints) -> Ints:
    """Choose `PROBED` subgroups, spread evenly over the orders of size."""
    if len(rows) <= PROBED:
        return np.arange(len(rows))
    shuffled = np.random.default_rng(SEED).permutation(len(rows))
    ranked = shuffled[np.argsort(rows[shuffled], kind="stable")]
    logs = np.log(rows[ranked])
    places = np.searchsorted(logs, np.linspace(logs[0], logs[-1], PROBED))
    return np.unique(ranked[places.clip(max=len(rows) - 1)])


def _inside(
    source: Codes, synthetic: Codes, sizes: Sequence[int], together: tuple[int, ...], cell: int
) -> tuple[float, float]:
    """Return the mean distance of the other columns within a subgroup, and what chance gives.

    Chance is the expected distance of as many rows drawn with replacement: half the sum of
    sqrt(2 p (1 - p) / (pi n)), the mean absolute value of a normal with the variance of a share.
    """
    own = [sizes[j] for j in together]
    real, drawn = (
        np.flatnonzero(keys_of([table[j] for j in together], own) == cell)
        for table in (source, synthetic)
    )
    found, chance = [], []
    for j in range(len(sizes)):
        if j in together:
            continue
        before = np.bincount(source[j][real], minlength=sizes[j])
        after = np.bincount(synthetic[j][drawn], minlength=sizes[j])
        found.append(distance(before, after) if len(drawn) else 1.0)
        shares = before / before.sum()
        chance.append(float(np.sqrt(2 * shares * (1 - shares) / (np.pi * before.sum())).sum() / 2))
    return (float(np.mean(found)), float(np.mean(chance))) if found else (0.0, 0.0)
