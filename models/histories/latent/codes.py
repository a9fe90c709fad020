"""Codes of rows: which codes a patient ever has comes first, then her rows share them out.

The table of patients says how much a patient tends to each code of a column. Those above a cut are
hers, but at least one of them, and no more than she has rows; the cuts make each code as frequent
among patients as was released. Each of her codes is on one row, and the other rows get them as
often as codes were released. Another column of the same row is drawn given the first one, from a
released table, among the codes that are hers in it.

The next row's code depends on the row before: which code that has, where few codes make a table of
both at most `CELLS` cells, else whether it is the same one. Weights of these are found by drawing,
as far as the noise lets one see (iterative proportional fitting: Deming and Stephan 1940).

Each of a patient's k rows of a table weighs floor(M / k) in every histogram: at most M in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import SeriesRows
from dpsynth.models.histories.domain import Series
from dpsynth.models.histories.latent.calendar import factors_of
from dpsynth.models.histories.latent.laws import CELLS
from dpsynth.models.histories.latent.patients import MOST_EVER, is_number
from dpsynth.models.histories.row_grains import weight_of
from dpsynth.models.marginals.projection import project
from dpsynth.privacy import WeightedRows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

TINY = 1e-9
MOST_CELLS = 100_000  # of a table of two columns of codes
ROUNDS, FEWER = 25, 8  # in which cuts and weights are found, and found again
STRANGE = 0.02  # weight of a code that is not the patient's own, where it follows from another one


def coded_values(series: Series) -> list[int]:
    """Return the values that are drawn as codes, the one that the others follow first."""
    coded = [place for place, value in enumerate(series.values) if not is_number(value)]
    return sorted(coded, key=lambda place: _rank(series.values[place].size))


def _rank(size: int) -> tuple[bool, int]:
    return size > MOST_EVER, -size


def code_sizes(series: Series) -> list[int]:
    """Return the cells of each histogram: codes by the row before, and tables."""
    first, *others = coded_values(series)
    size = series.values[first].size
    sizes = [series.values[one].size for one in others]
    return [states(size) * size, *(size * own if is_given(size, own) else own for own in sizes)]


def is_given(first: int, other: int) -> bool:
    """Whether another column is told given the first one: not where both have very many codes."""
    return first * other <= MOST_CELLS


def states(size: int) -> int:
    """Return how many kinds of rows before there are: none and each code, or other and same."""
    return size + 1 if (size + 1) * size <= CELLS else 2


def state_of(before: Ints, codes: Ints, size: int) -> Ints:
    """Return which kind of row is before each code; `before` is -1 for none."""
    return before + 1 if states(size) > 2 else (before == codes).astype(np.int64)


def code_rows(rows: SeriesRows, series: Series, patients: int, mass: int) -> WeightedRows:
    """Lay out the rows of a series."""
    coded = coded_values(series)
    values = rows.values[:, coded].astype(np.int64)
    sizes = [series.values[one].size for one in coded]
    counts = rows.counts(patients)
    cells = [_follows(rows, values[:, 0], sizes[0])]
    cells += [
        values[:, 0] * size * is_given(sizes[0], size) + values[:, j]
        for j, size in enumerate(sizes)
        if j
    ]
    one = np.ones(len(values), dtype=np.int64)
    weights = weight_of(one, counts[rows.patients], mass)
    return WeightedRows(tuple(cells), rows.patients, weights)


def _follows(rows: SeriesRows, codes: Ints, size: int) -> Ints:
    """Return the cell of each row's code and the row before it."""
    before = np.full(len(codes), -1)
    before[1:] = np.where(rows.patients[1:] == rows.patients[:-1], codes[:-1], -1)
    return state_of(before, codes, size) * size + codes


@dataclass(frozen=True, eq=False)
class RowCodes:
    """The codes of a series' rows.

    Attributes:
        series: the series.
        released: noisy shares of codes of the first column by the row before, ``[states, codes]``.
        noise: of these.
        others: of each other column, given the first one, ``[codes, codes]``.
        cuts: of each column, what is added to how much a patient tends to each code.
        follows: weights with which the rows of a patient get her codes, ``[states, codes]``.
    """

    series: Series
    released: Floats
    noise: float
    others: tuple[Floats, ...]
    cuts: tuple[Floats, ...]
    follows: Floats

    @classmethod
    def of(cls, counts: Sequence[Floats], series: Series, sigma: float) -> RowCodes:
        """Read them off noisy counts."""
        first, *others = coded_values(series)
        size = series.values[first].size
        pairs = counts[0].reshape(-1, size)
        margin = np.maximum(pairs.sum(axis=0), 0.0)
        tables = []
        for one, table in zip(others, counts[1:], strict=True):
            joint = table.reshape(-1, series.values[one].size)
            if len(joint) < size:
                joint = np.outer(positive(margin), joint[0])
            whole = positive(joint.sum(axis=0))
            rows = np.maximum(margin, 0.1 * sigma)
            own = np.stack(
                [project(cells, total) for cells, total in zip(joint, rows, strict=True)]
            )
            # of a code that noise hides, the other column follows its own shares
            weight = (sigma / (rows + sigma))[:, None] ** 2
            tables.append((1 - weight) * own / own.sum(axis=1, keepdims=True) + weight * whole)
        cuts = tuple(np.zeros(series.values[one].size) for one in (first, *others))
        total = max(float(pairs.sum()), sigma)
        follows = np.tile(positive(margin), (len(pairs), 1))
        return cls(series, pairs / total, sigma / total, tuple(tables), cuts, follows)

    def calibrated(
        self,
        rows: SeriesRows,
        tends: Sequence[Floats | None],
        shares: Sequence[Floats | None],
        patients: int,
        rng: np.random.Generator,
    ) -> RowCodes:
        """Find cuts and weights on drawn patients.

        Args:
            rows: of drawn patients.
            tends: how much each patient tends to each code of each column, ``[patients, codes]``.
            shares: of all patients who ever have each code.
            patients: how many were drawn.
            rng: of the draws.
        """
        owner, counts = np.unique(rows.patients, return_counts=True)
        if not len(owner):
            return self
        cuts = []
        for own, wanted, cut in zip(tends, shares, self.cuts, strict=True):
            found = cut.copy()
            if own is not None and wanted is not None:
                for _ in range(ROUNDS if not cut.any() else FEWER):
                    had = owned(own[owner] + found, counts).sum(axis=0) / patients
                    least = 0.5 / patients
                    step = np.log((wanted + least) / (had + least))
                    found += 0.25 * np.clip(step, -1.0, 1.0)
            cuts.append(found)
        found_cuts = replace(self, cuts=tuple(cuts))
        weight = 1 / np.repeat(counts, counts) / len(owner)
        size = self.follows.shape[1]
        for _ in range(FEWER):
            codes = found_cuts.draw(rows, tends[:1], rng)[:, 0]
            cells = np.bincount(_follows(rows, codes, size), weight, minlength=self.follows.size)
            drawn_so = cells.reshape(self.follows.shape).astype(np.float64)
            factors = factors_of(drawn_so, self.released, self.noise)
            found_cuts = replace(found_cuts, follows=found_cuts.follows * factors)
        return found_cuts

    def draw(
        self, rows: SeriesRows, tends: Sequence[Floats | None], rng: np.random.Generator
    ) -> Ints:
        """Draw the codes of all rows, ``[rows, coded values]``.

        Args:
            rows: of the patients, in order.
            tends: how much each patient tends to each code of each column, ``[patients, codes]``;
                None where that is not known.
            rng: of the draws.
        """
        owner, place, counts = np.unique(rows.patients, return_inverse=True, return_counts=True)
        own = None
        if tends[0] is not None:
            own = owned(tends[0][owner] + self.cuts[0], counts)
        codes = self._in_order(own, counts, rng)
        columns = [codes]
        for table, tend, cut in zip(self.others, tends[1:], self.cuts[1:], strict=False):
            likely = table[codes]
            if tend is not None:
                theirs = owned(tend[owner] + cut, counts)[place]
                likely = likely * (theirs + STRANGE)
            columns.append(drawn(likely, rng))
        return np.column_stack(columns)

    def _in_order(
        self, own: npt.NDArray[np.bool_] | None, counts: Ints, rng: np.random.Generator
    ) -> Ints:
        """Draw the codes of the first column, row by row; each of a patient's codes comes."""
        size = self.follows.shape[1]
        codes = np.zeros(int(counts.sum()), dtype=np.int64)
        starts = np.cumsum(counts) - counts
        before = np.full(len(counts), -1)
        wait = None if own is None else own.copy()
        for step in range(int(counts.max(initial=0))):
            who = np.flatnonzero(counts > step)
            if states(size) > 2:
                likely = self.follows[before[who] + 1] + TINY
            else:
                likely = np.tile(self.follows[0] + TINY, (len(who), 1))
                again = before[who] >= 0
                likely[again, before[who][again]] = self.follows[1, before[who][again]] + TINY
            if own is not None and wait is not None:
                full = wait[who].sum(axis=1) >= counts[who] - step
                likely = likely * np.where(full[:, None], wait[who], own[who])
            one = drawn(likely, rng)
            codes[starts[who] + step] = before[who] = one
            if wait is not None:
                wait[who, one] = False
        return codes


def owned(tends: Floats, counts: Ints) -> npt.NDArray[np.bool_]:
    """Return which codes are a patient's: at least one, and no more than she has rows.

    Args:
        tends: how much she tends to each code; from 0 on, it is hers.
        counts: of her rows.
    """
    rank = np.argsort(np.argsort(-tends, axis=1), axis=1)
    return np.asarray(((tends >= 0) & (rank < counts[:, None])) | (rank == 0))


def drawn(likely: Floats, rng: np.random.Generator) -> Ints:
    """Draw a code of each row by its weights, ``[rows, codes]``."""
    ends = np.cumsum(likely, axis=1)
    points = rng.random(len(likely))[:, None] * ends[:, -1:]
    return np.asarray(np.minimum((points > ends).sum(axis=1), likely.shape[1] - 1))


def positive(counts: Floats) -> Floats:
    """Return shares of noisy counts, none below zero."""
    kept = np.maximum(counts, 0.0)
    return np.asarray((kept + TINY) / (kept + TINY).sum())
