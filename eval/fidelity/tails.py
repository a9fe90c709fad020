"""The tails of numeric columns: how many rows lie beyond the source's first and last percentile."""

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
    numbers,
)
from dpsynth.schema import Column

Floats = npt.NDArray[np.float64]

TAILS = (("low", 0.01), ("high", 0.99))
MIN_ROWS = 100  # with a value in the source: a percentile of fewer is the smallest value
MEANING = (
    "Mean over numeric columns and both ends of the absolute difference of the share of rows "
    "beyond the source's percentile 1 or 99. A high value means that extreme values are lost or "
    "exaggerated."
)


def tails(sides: PairedTables) -> PartResult:
    """Compare the share of present values beyond the source's quantiles; jackknife over units.

    A tail is left out where hardly any row of the source can be beyond: the quantile lies on the
    column's smallest or largest value.
    """
    figures: list[JackknifeEstimate] = []
    details: list[dict[str, Any]] = []
    for column in sides.tables.schema.modelled:
        if column.is_categorical:
            continue
        values = numbers(sides.source.view, column)
        present = values[~np.isnan(values)]
        if len(present) < MIN_ROWS:
            continue
        for tail, quantile in TAILS:
            cut = float(np.quantile(present, quantile, method="inverted_cdf"))
            if cut in (present.min(), present.max()):
                continue
            shares = sides.each(partial(_beyond, column=column, tail=tail, cut=cut))
            figure = JackknifeEstimate.of(absolute, shares)
            if figure is not None:
                figures.append(figure)
            detail = {"column": column.name, "tail": tail, "quantile": quantile}
            details.append(detail | shares.whole())
    if not figures:
        return PartResult(
            (), {"tails": details}, ("no numeric column has tails that can be compared",)
        )
    estimate = JackknifeEstimate.mean(figures).estimate(sides.n)
    measure = Measure("tails", "Difference of tails", estimate, 0.0, MEANING)
    return PartResult((measure,), {"tails": details})


def _beyond(side: PairedTable, column: Column, tail: str, cut: float) -> Floats:
    values = numbers(side.view, column)
    beyond = values < cut if tail == "low" else values > cut
    return side.shares(beyond, ~np.isnan(values))
