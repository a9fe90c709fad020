"""What a bin of a column is called: a category, or the span of the source's values in it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core.features import numbers
from dpsynth.eval.core.paired import PairedTables
from dpsynth.schema import Column

Ints = npt.NDArray[np.int64]

OTHERS, MISSING = "all others", "missing"


def bin_label(sides: PairedTables, place: int, number: int) -> str:
    """Name a bin of a column: a category, or the span of the source's values."""
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
