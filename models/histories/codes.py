"""Codes of rows: which codes a patient ever has comes first, then her rows share them out.

The table of patients says how much a patient tends to each code of a column. Those above a cut are
hers, but at least one of them, and no more than she has rows; the cuts make each code as frequent
among patients as was released. Each of her codes is on one row, and the other rows get them as
often as codes were released. Another column of the same row is drawn given the first one, from a
released table, among the codes that are hers in it.

Where consecutive rows have the same code more often than chance makes them, a part of the patients
has her rows in runs of one code.

Each of a patient's k rows of a table weighs floor(M / k) in every histogram: at most M in each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpsynth.encoding import SeriesRows
from dpsynth.models.histories.domain import Series
from dpsynth.models.histories.patients import MOST_EVER, is_number
from dpsynth.models.histories.row_grains import weight_of
from dpsynth.models.marginals.projection import project
from dpsynth.privacy import WeightedRows

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

TINY = 1e-9
ROUNDS, FEWER = 25, 8  # in which cuts and weights are found, and found again
STRANGE = 0.02  # weight of a code that is not the patient's own, where it follows from another one


def coded_values(series: Series) -> list[int]:
    """Return the values that are drawn as codes, the one that the others follow first."""
    coded = [place for place, value in enumerate(series.values) if not is_number(value)]
    return sorted(coded, key=lambda place: _rank(series.values[place].size))


def _rank(size: int) -> tuple[bool, int]:
    return size > MOST_EVER, -size


def code_sizes(series: Series) -> list[int]:
    """Return the cells of each histogram: codes as those of the row before or not, and tables."""
    first, *others = coded_values(series)
    size = series.values[first].size
    return [2 * size, *(size * series.values[one].size for one in others)]


def code_rows(rows: SeriesRows, series: Series, patients: int, mass: int) -> WeightedRows:
    """Lay out the rows of a series."""
    coded = coded_values(series)
    values = rows.values[:, coded].astype(np.int64)
    sizes = [series.values[one].size for one in coded]
    counts = rows.counts(patients)
    cells = [2 * values[:, 0] + _repeats(rows, values[:, 0])]
    cells += [values[:, 0] * size + values[:, j] for j, size in enumerate(sizes) if j]
    one = np.ones(len(values), dtype=np.int64)
    weights = weight_of(one, counts[rows.patients], mass)
    return WeightedRows(tuple(cells), rows.patients, weights)


def _repeats(rows: SeriesRows, codes: Ints) -> Ints:
    """Return 1 where a patient's row before has the same code."""
    same = np.zeros(len(codes), dtype=np.int64)
    same[1:] = (codes[1:] == codes[:-1]) & (rows.patients[1:] == rows.patients[:-1])
    return same


@dataclass(frozen=True, eq=False)
class RowCodes:
    """The codes of a series' rows.

    Attributes:
        series: the series.
        first: shares of the codes of the first column.
        again: share of the patients' rows that have the code of the row before.
        others: of each other column, given the first one, ``[codes, codes]``.
        cuts: of each column, what is added to how much a patient tends to each code.
        runs: part of the patients who have their rows in runs of one code; below 0, who have the
            same code as rarely as they can.
        often: weights with which the rows of a patient get her codes; None for the shares.
    """

    series: Series
    first: Floats
    again: float
    others: tuple[Floats, ...]
    cuts: tuple[Floats, ...]
    runs: float = 0.0
    often: Floats | None = None

    @classmethod
    def of(cls, counts: Sequence[Floats], series: Series, sigma: float) -> RowCodes:
        """Read them off noisy counts."""
        first, *others = coded_values(series)
        size = series.values[first].size
        single, same = counts[0].reshape(size, 2).T
        margin = np.maximum(single + same, 0.0)
        again = float(np.clip(same.sum() / max(margin.sum(), TINY), 0.0, 1.0))
        tables = []
        for one, table in zip(others, counts[1:], strict=True):
            joint = table.reshape(size, series.values[one].size)
            whole = positive(joint.sum(axis=0))
            rows = np.maximum(margin, 0.1 * sigma)
            own = np.stack(
                [project(cells, total) for cells, total in zip(joint, rows, strict=True)]
            )
            # of a code that noise hides, the other column follows its own shares
            weight = (sigma / (rows + sigma))[:, None] ** 2
            tables.append((1 - weight) * own / own.sum(axis=1, keepdims=True) + weight * whole)
        cuts = tuple(np.zeros(series.values[one].size) for one in (first, *others))
        return cls(series, positive(margin), again, tuple(tables), cuts)

    def calibrated(
        self,
        rows: SeriesRows,
        tends: Sequence[Floats | None],
        shares: Sequence[Floats | None],
        patients: int,
        rng: np.random.Generator,
    ) -> RowCodes:
        """Find cuts, and how many patients have runs, on drawn patients.

        Args:
            rows: of drawn patients.
            tends: how much each patient tends to each code of each column, ``[patients, codes]``.
            shares: of all patients who ever have each code.
            patients: how many were drawn.
            rng: of the draws.
        """
        owner, counts = np.unique(rows.patients, return_counts=True)
        rounds = ROUNDS if self.often is None else FEWER
        cuts = []
        for own, wanted, cut in zip(tends, shares, self.cuts, strict=True):
            found = cut.copy()
            if own is not None and wanted is not None and len(owner):
                for _ in range(rounds):
                    had = owned(own[owner] + found, counts).sum(axis=0) / patients
                    least = 0.5 / patients
                    step = np.log((wanted + least) / (had + least))
                    found += 0.25 * np.clip(step, -1.0, 1.0)
            cuts.append(found)
        found_cuts = replace(self, cuts=tuple(cuts), runs=0.0)
        weight = 1 / np.repeat(counts, counts) if len(owner) else np.empty(0)
        often = self.first.copy() if self.often is None else self.often
        for _ in range(rounds // 2):
            codes = replace(found_cuts, often=often).draw(rows, tends[:1], rng)[:, 0]
            had = np.bincount(codes, weight, minlength=len(often)) / max(len(owner), 1)
            often = often * np.clip((self.first + 1e-4) / (had + 1e-4), 0.5, 2.0) ** 0.7
        found_cuts = replace(found_cuts, often=often)

        def share(runs: float) -> float:
            codes = replace(found_cuts, runs=runs).draw(rows, tends, rng)
            return float(weight @ _repeats(rows, codes[:, 0])) / max(len(owner), 1)

        mixed, most, least_ = share(0.0), share(1.0), share(-1.0)
        if self.again > mixed:
            runs = (self.again - mixed) / max(most - mixed, 0.01)
        else:
            runs = (self.again - mixed) / max(mixed - least_, 0.01)
        return replace(found_cuts, runs=float(np.clip(runs, -1.0, 1.0)))

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
        often = self.first if self.often is None else self.often
        likely = np.tile(often + TINY, (len(owner), 1))
        own = None
        if tends[0] is not None:
            own = owned(tends[0][owner] + self.cuts[0], counts)
            likely = own * likely
        codes = drawn(likely[place], rng)
        if own is not None:
            _each_once(codes, own, counts, place, rng)
        columns = [codes]
        for table, tend, cut in zip(self.others, tends[1:], self.cuts[1:], strict=False):
            likely = table[codes]
            if tend is not None:
                theirs = owned(tend[owner] + cut, counts)[place]
                likely = likely * (theirs + STRANGE)
            columns.append(drawn(likely, rng))
        found = np.column_stack(columns)
        return self._in_runs(found, owner, place, counts, rng)

    def _in_runs(
        self, codes: Ints, owner: Ints, place: Ints, counts: Ints, rng: np.random.Generator
    ) -> Ints:
        """Put the rows of a part of the patients in runs of one code, or codes in turns."""
        if self.runs == 0 or not len(owner):
            return codes
        sorts = rng.random(len(owner)) < abs(self.runs)
        label = rng.random((len(owner), len(self.first)))[place, codes[:, 0]]
        if self.runs < 0:  # the first of each code, then the second of each, and so on
            each = place * len(self.first) + codes[:, 0]
            order = np.argsort(each, kind="stable")
            first = np.searchsorted(each[order], each[order], side="left")
            turn = np.empty(len(codes))
            turn[order] = np.arange(len(codes)) - first
            label = turn + label
        key = np.where(sorts[place], label, np.arange(len(codes)))
        return codes[np.lexsort((key, place))]


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


def _each_once(
    codes: Ints, own: npt.NDArray[np.bool_], counts: Ints, place: Ints, rng: np.random.Generator
) -> None:
    """Put each code of a patient on one of her rows, as far as there are rows, in place."""
    who, code = np.nonzero(own)
    shuffled = np.argsort(who + rng.random(len(who)))
    who, code = who[shuffled], code[shuffled]
    turn = np.arange(len(who)) - np.searchsorted(who, who, side="left")
    fits = turn < counts[who]
    seat = np.argsort(place + rng.random(len(place)))  # rows of each patient, shuffled
    starts = np.cumsum(counts) - counts
    codes[seat[starts[who[fits]] + turn[fits]]] = code[fits]


def positive(counts: Floats) -> Floats:
    """Return shares of noisy counts, none below zero."""
    kept = np.maximum(counts, 0.0)
    return np.asarray((kept + TINY) / (kept + TINY).sum())
