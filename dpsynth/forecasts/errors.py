"""How far a synthetic table is from its source: columns, pairs of columns, and small subgroups.

The distances are those of `dpsynth evaluate`: half the sum of absolute differences of shares, in
the same bins (`eval.core.paired`). A forecast takes them of rows that it drew itself, a benchmark
of real rows: both by this file, so that they compare.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import Codec
from dpsynth.eval.core import Bins
from dpsynth.forecasts.subgroups import SEED, SubgroupCounter, Subgroups, distance
from dpsynth.forecasts.subgroups import keys_of as keys

Codes = npt.NDArray[np.uint16]
Floats = npt.NDArray[np.float64]
Pair = tuple[int, int]

MAX_PAIRS = 2500  # as in an evaluation; of more, so many are drawn
TRIPLES = 100  # of columns, whose cells are subgroups too
MAX_CELLS = 200_000  # of such a triple


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
                    keys([table[j] for j in together], own), minlength=int(np.prod(own))
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
