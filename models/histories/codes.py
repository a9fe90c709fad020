"""Codes of rows: which codes a patient ever has comes first, then her rows share them out.

The table of patients says which codes of a column a patient ever has. Of the codes of her rows, each
of these is on one row, and the others are drawn among them as often as the codes are released. Where
consecutive rows have the same code more often than that makes them, a part of the patients has her
codes in runs. Another column of the same row is drawn given the first one, from a released table.

Each of a patient's k rows of a table weighs floor(M / k) in every histogram (and her pairs of rows
floor(M / (k - 1)) in that of repeats): at most M in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import SeriesRows
from dpsynth.models.histories.domain import Series
from dpsynth.models.histories.patients import MOST_EVER, is_number
from dpsynth.models.histories.row_grains import weight_of
from dpsynth.privacy import WeightedRows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

TINY = 1e-9


def coded_values(series: Series) -> list[int]:
    """Return the values that are drawn as codes, the one that the others follow first."""
    coded = [place for place, value in enumerate(series.values) if not is_number(value)]
    return sorted(coded, key=lambda place: _rank(series.values[place].size))


def _rank(size: int) -> tuple[bool, int]:
    return size > MOST_EVER, -size


def code_sizes(series: Series) -> list[int]:
    """Return the cells of each histogram: the first code, the others beside it, and repeats."""
    first, *others = coded_values(series)
    size = series.values[first].size
    tables = [size * series.values[one].size for one in others]
    return [size, *tables, *(2 * series.values[one].size for one in (first, *others))]


def code_rows(rows: SeriesRows, series: Series, patients: int, mass: int) -> WeightedRows:
    """Lay out the rows of a series."""
    coded = coded_values(series)
    values = rows.values[:, coded].astype(np.int64)
    sizes = [series.values[one].size for one in coded]
    counts, starts = rows.counts(patients), rows.starts(patients)
    index = np.arange(len(rows.patients)) - starts[rows.patients]
    cells = [values[:, 0]]
    cells += [values[:, 0] * size + values[:, j] for j, size in enumerate(sizes) if j]
    for j in range(len(sizes)):
        same = np.zeros(len(values), dtype=np.int64)
        same[1:] = values[1:, j] == values[:-1, j]
        cells.append(2 * values[:, j] + np.where(index > 0, same, 0))
    one = np.ones(len(values), dtype=np.int64)
    weights = weight_of(one, counts[rows.patients], mass)
    return WeightedRows(tuple(cells), rows.patients, weights)


@dataclass(frozen=True, eq=False)
class RowCodes:
    """The codes of a series' rows.

    Attributes:
        series: the series.
        first: shares of the codes of the first column.
        others: of each other column, given the first one, ``[codes, codes]``.
        runs: of each column, the part of the patients who have codes in runs.
    """

    series: Series
    first: Floats
    others: tuple[Floats, ...]
    runs: tuple[float, ...]

    @classmethod
    def of(cls, counts: Sequence[Floats], series: Series, sigma: float) -> RowCodes:
        """Read them off noisy counts."""
        first, *others = coded_values(series)
        size = series.values[first].size
        shares = positive(counts[0])
        tables = []
        for one, table in zip(others, counts[1:], strict=False):
            joint = np.maximum(table.reshape(size, series.values[one].size), 0.0)
            margin = joint.sum(axis=0) + TINY
            joint = joint + 2 * sigma * margin / margin.sum()
            tables.append(joint / joint.sum(axis=1, keepdims=True))
        return cls(series, shares, tuple(tables), (0.0,) * (1 + len(others)))

    def draw(
        self, rows: SeriesRows, evers: Sequence[npt.NDArray[np.bool_] | None], rng: np.random.Generator
    ) -> Ints:
        """Draw the codes of all rows, ``[rows, coded values]``.

        Args:
            rows: of the patients, in order.
            evers: which codes of each column each patient ever has, ``[patients, codes]``; None
                where that is not known.
            rng: of the draws.
        """
        number, ever = len(rows.patients), evers[0]
        owner, place, counts = np.unique(rows.patients, return_inverse=True, return_counts=True)
        likely = np.tile(self.first, (len(owner), 1))
        if ever is not None:
            own = ever[owner]
            likely = np.where(own.any(axis=1, keepdims=True), own * (self.first + TINY), likely)
        ends = np.cumsum(likely, axis=1)[place]
        points = rng.random(number)[:, None] * ends[:, -1:]
        codes = np.minimum((points > ends).sum(axis=1), len(self.first) - 1)
        if ever is not None:
            self._each_once(codes, rows, own, counts, place, rng)
        columns = [codes]
        for table in self.others:
            ends = np.cumsum(table, axis=1)[codes]
            points = rng.random(number)[:, None] * ends[:, -1:]
            columns.append(np.minimum((points > ends).sum(axis=1), table.shape[1] - 1))
        return np.column_stack(columns)

    @staticmethod
    def _each_once(
        codes: Ints,
        rows: SeriesRows,
        ever: npt.NDArray[np.bool_],
        counts: Ints,
        place: Ints,
        rng: np.random.Generator,
    ) -> None:
        """Put each code of a patient on one of her rows, as far as there are rows, in place."""
        who, code = np.nonzero(ever)
        shuffled = np.lexsort((rng.random(len(who)), who))
        who, code = who[shuffled], code[shuffled]
        turn = np.arange(len(who)) - np.searchsorted(who, who, side="left")
        fits = turn < counts[who]
        seat = np.lexsort((rng.random(len(place)), place))  # rows of each patient, shuffled
        starts = np.cumsum(counts) - counts
        codes[seat[starts[who[fits]] + turn[fits]]] = code[fits]


def positive(counts: Floats) -> Floats:
    """Return shares of noisy counts, none below zero."""
    kept = np.maximum(counts, 0.0)
    return np.asarray((kept + TINY) / (kept + TINY).sum())
