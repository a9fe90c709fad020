"""Levels that nobody declared and no real row has: `other`, and missing cells in a full column.

A declared level without a row in the source is left alone: it may be real and rare.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.eval.core import (
    JackknifeEstimate,
    Measure,
    PairedTable,
    PairedTables,
    PartResult,
    absolute,
    plain,
)
from dpsynth.schema import Column
from dpsynth.schema.column import OTHER

Floats = npt.NDArray[np.float64]

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
