"""Combinations of two columns that synthetic rows have and no real row has: candidates for rules.

Pregnant at 70, newborn and smoking: each value is common, and together they never occur. A cell of
two columns counts if the source has none of it although many would be there were the columns
independent; of 10 expected, none occurs with a probability of exp(-10). Whether such a cell is
impossible or was missed by chance, a person decides, who knows the columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import PairedTables, PartResult, numbers, plain
from dpsynth.schema import Column

Ints = npt.NDArray[np.int64]

EXPECTED = 10.0  # rows of the source in a cell, were the columns independent
SHARE = 0.005  # of the synthetic rows in such cells, from which a pair is named
SHOWN = 5  # pairs
OTHERS, MISSING = "all others", "missing"


def unseen(sides: PairedTables) -> PartResult:
    """List pairs of columns with synthetic rows in cells that the source leaves empty."""
    columns = sides.tables.schema.modelled
    pairs = []
    for i, j in combinations(range(len(columns)), 2):
        if columns[i].name in columns[j].name or columns[j].name in columns[i].name:
            continue  # a status beside its number, a weekday beside its date
        sizes = sides.bins.sizes[i], sides.bins.sizes[j]
        counts = [
            np.bincount(
                side.bins[i].astype(np.int64) * sizes[1] + side.bins[j],
                minlength=sizes[0] * sizes[1],
            ).reshape(sizes)
            for side in sides.every
        ]
        source = counts[0]
        expected = source.sum(axis=1)[:, None] * source.sum(axis=0)[None, :] / source.sum()
        empty = (source == 0) & (expected >= EXPECTED)
        shares = [float(count[empty].sum() / count.sum()) for count in counts]
        in_holdout = shares[2] if sides.holdout is not None else 0.0
        if shares[1] - in_holdout >= SHARE:
            pairs.append((shares[1], in_holdout, i, j, np.where(empty, counts[1], 0)))
    pairs.sort(key=lambda one: -one[0])
    details = [_detail(sides, *one) for one in pairs[:SHOWN]]
    return PartResult((), {"unseen": details})


def _detail(
    sides: PairedTables, share: float, in_holdout: float, i: int, j: int, counts: Ints
) -> dict[str, Any]:
    columns = [sides.tables.schema.modelled[place] for place in (i, j)]
    a, b = np.unravel_index(int(counts.argmax()), counts.shape)
    return {
        "columns": [column.name for column in columns],
        "share": plain(share),
        "holdout": plain(in_holdout) if sides.holdout is not None else None,
        "bins": [_label(sides, i, int(a)), _label(sides, j, int(b))],
        "largest": plain(counts.max() / sides.n),
    }


def _label(sides: PairedTables, place: int, number: int) -> str:
    """Name a bin: a category, or the span of the source's values."""
    column = sides.tables.schema.modelled[place]
    codes = np.flatnonzero(sides.bins.of_code[place] == number)
    if column.is_categorical:
        names = list(_names(column, codes))
        return names[0] if len(names) == 1 else OTHERS
    values = numbers(sides.source.view, column)[sides.source.bins[place] == number]
    values = values[~np.isnan(values)]
    if not len(values):
        return MISSING
    if column.kind.unit is not None:
        ends = [
            str(np.array(int(end), dtype=f"datetime64[{column.kind.unit}]"))
            for end in (values.min(), values.max())
        ]
    else:
        ends = [f"{end:.6g}" for end in (values.min(), values.max())]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


def _names(column: Column, codes: Ints) -> Iterator[str]:
    for code in codes:
        if code >= len(column.levels):
            yield MISSING
            continue
        level = column.levels[code]
        yield str(column.labels.get(level, level))
