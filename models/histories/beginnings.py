"""How drawn histories begin: the first row of each patient in one series, from the person table."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.models.histories.grids import filled
from dpsynth.models.histories.persons.table import SPAN_GRID, Hidden
from dpsynth.models.histories.steps import StepModel

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Beginnings:
    """What the person table says of one series, for every patient.

    Attributes:
        counts: number of rows, ``[patients]``.
        days: of the first row.
        ends: last day of follow-up.
        lasts: day of the last row.
        values: codes of the first row, ``[patients, values]``.
        baseline: coarse bins, ``[patients, conditions]``.
    """

    counts: Ints
    days: Ints
    ends: Ints
    lasts: Ints
    values: Ints
    baseline: Ints


def beginnings(
    model: StepModel,
    hidden: Hidden,
    codes: Ints,
    ends: Ints,
    rng: np.random.Generator,
    numbers: Floats | None = None,
) -> Beginnings:
    """Read off a patient's drawn row how a series begins.

    Hidden columns of a drawn row may disagree: where there are rows, a first day, pace and
    values are drawn again from those who have them.

    Args:
        model: of the steps of the series.
        hidden: places of its columns.
        codes: drawn rows of the person table.
        ends: last day of each patient's follow-up.
        rng: of the draws.
        numbers: shares of the codes of the number of rows; even within a code without them.
    """
    series = model.table.series
    counts = np.minimum(series.counts.draw(codes[:, hidden.count], rng, numbers), series.max_rows)
    several, some = counts > 1, counts > 0
    days = np.zeros(len(codes), dtype=np.int64)
    lasts = days
    if hidden.first is not None and hidden.span is not None:
        grid = model.table.domain.days
        first = filled(codes[:, hidden.first], some, grid.cells, rng)
        days[some] = grid.draw(first[some], ends[some], rng)
        spans = filled(codes[:, hidden.span], several, SPAN_GRID.cells, rng)
        lasts = days + SPAN_GRID.draw(spans, ends - days, rng)
    values = np.column_stack(
        [
            filled(codes[:, column], some, value.size, rng)
            for column, value in zip(hidden.values, series.values, strict=True)
        ]
    )
    return Beginnings(counts, days, ends, lasts, values, model.table.baseline_of(codes))
