"""Values beyond the source's range: synthetic rows where no real row is."""

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

Floats = npt.NDArray[np.float64]

TITLE = "Values beyond the source's range"
MEAN = (
    "Mean over numeric columns of the share of values below the lowest or above the highest "
    "populated cell of the source. A high value means that noise in empty cells became rows."
)
WORST = (
    "The same share in the column where it is largest. A high value means that this column has "
    "values that no real row has, such as stays of 60 days where nobody stays 14."
)


def outside(sides: PairedTables) -> PartResult:
    """Measure the share of present values beyond the source's outermost populated cells.

    A cell is what a fit counts: one value, or a span of values in a column of many. Intervals are
    by jackknife over the units of the synthetic table; the source's range is held fixed.
    """
    codec = sides.tables.codec
    figures: list[JackknifeEstimate] = []
    details: list[dict[str, Any]] = []
    for place, (column, cells) in enumerate(
        zip(sides.tables.schema.modelled, codec.cells, strict=True)
    ):
        codes = sides.source.view.codes[:, place]
        populated = codes[codes < cells]
        if not len(populated):  # categories, or a column without a value
            continue
        low, high = int(populated.min()), int(populated.max())
        ends = partial(_beyond, place=place, cells=cells)
        shares = sides.each(partial(ends, low=low, high=high))
        figure = JackknifeEstimate.of(absolute, shares)
        if figure is None:  # the synthetic column has no value
            continue
        figures.append(figure)
        parts = {"below": (low, cells), "above": (0, high)}
        entry: dict[str, Any] = {"column": column.name, "title": column.title or column.name}
        for part, (first, last) in parts.items():
            entry[part] = plain(ends(sides.synthetic, low=first, high=last)[0])
        entry["synthetic"] = plain(shares.synthetic[0])
        entry["holdout"] = None if shares.holdout is None else plain(shares.holdout[0])
        details.append(entry)
    if not figures:
        note = "no numeric column has values, so none can be beyond the source's range"
        return PartResult((), {"outside": details}, (note,))
    mean = JackknifeEstimate.mean(figures).estimate(sides.n)
    worst = max(figures, key=lambda figure: figure.value).estimate(sides.n)
    measures = (
        Measure("outside", TITLE, mean, 0.0, MEAN),
        Measure("outside_worst", f"{TITLE}, worst column", worst, 0.0, WORST),
    )
    return PartResult(measures, {"outside": details})


def _beyond(side: PairedTable, *, place: int, cells: int, low: int, high: int) -> Floats:
    codes = side.view.codes[:, place].astype(np.int64)
    present = codes < cells
    return side.shares(present & ((codes < low) | (codes > high)), present)
