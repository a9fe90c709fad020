"""What the codes of a column stand for, as numbers; from its declaration alone."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dpsynth.encoding.column_codecs import NumericCoder, coder_of
from dpsynth.schema import Column

Floats = npt.NDArray[np.float64]


def code_values(column: Column, decimal: str) -> Floats:
    """Return the number that each code of a column stands for, ``[codes]``, in the column's unit.

    A code of several lattice points stands for the one in their middle. Times are days or seconds
    since 1970. Categories, and the code of missing, are NaN.

    >>> from dpsynth.schema import Schema
    >>> code_values(Schema.load("cardio").column("height"), ".")[:3]
    array([120., 121., 122.])
    """
    coder = coder_of(column, decimal)
    values = np.full(coder.size, np.nan)
    if not isinstance(coder, NumericCoder):
        return values
    grid = coder.grid
    starts, ends = grid.edges[:-1][grid.span], grid.edges[1:][grid.span] - 1
    alone = (grid.round[grid.span] != -1) & (np.arange(grid.codes) == grid.first[grid.span])
    places = np.where(alone, grid.round[grid.span], (starts + ends) // 2)
    values[: grid.codes] = coder.lattice.values(places)
    return values
