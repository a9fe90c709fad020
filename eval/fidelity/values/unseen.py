"""Combinations of two columns that synthetic rows have and no real row has: candidates for rules.

Pregnant at 70, newborn and smoking: each value is common, and together they never occur. A cell of
two columns counts if the source has none of it although many would be there were the columns
independent; of 10 expected, none occurs with a probability of exp(-10). Whether such a cell is
impossible or was missed by chance, a person decides, who knows the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsynth.eval.core import PairedTables, bin_label, plain

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
