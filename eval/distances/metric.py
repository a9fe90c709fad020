"""How far two rows lie apart, on the schema's scale: categories and numbers together.

The distance is the heterogeneous Euclidean-overlap metric HEOM of Wilson and Martinez (Improved
Heterogeneous Distance Functions, JAIR 6, 1997, section 2.3): its square is a sum over the modelled
columns,

    (difference / declared range)^2 of two numbers (dates and times too),
    0 of equal categories, 1 of different ones,
    0 where both are missing, 1 where one is.

Ranges are declared, so the scale is public and the same for every table. Numbers are compared as
points of their lattice: differences that are equal on paper are equal here.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.encoding import Codec
from dpsynth.eval.core import TableView, numbers
from dpsynth.schema import in_units

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Codes = npt.NDArray[np.uint16]

CELLS = 2**22  # that `Metric.squared` holds at a time


@dataclass(frozen=True, eq=False)
class Points:
    """Rows as a metric sees them.

    Attributes:
        numbers: steps above the minimum, whole numbers; NaN where missing ``[rows, numeric]``.
        codes: of categories, missing included ``[rows, categorical]``.
    """

    numbers: Floats
    codes: Codes

    @property
    def rows(self) -> int:
        """How many."""
        return len(self.codes)

    def take(self, rows: Ints) -> Points:
        """Return some rows, in the given order."""
        return Points(self.numbers[rows], self.codes[rows])

    def kinds(self) -> Ints:
        """Number the distinct rows from 0 in order of appearance; return each row's number."""
        steps = np.where(np.isnan(self.numbers), -1.0, self.numbers)
        return row_kinds(np.hstack([steps, self.codes]))


@dataclass(frozen=True, eq=False)
class Metric:
    """The distance of one schema.

    Attributes:
        codec: the schema's codes.
        numeric: places of the numeric columns among the modelled ones.
        categorical: places of the others.
        step: of each numeric column, as a share of its declared range.
        top: the largest value of each numeric column, as a share of the range; at most 1.
    """

    codec: Codec
    numeric: tuple[int, ...]
    categorical: tuple[int, ...]
    step: Floats
    top: Floats

    @classmethod
    def of(cls, codec: Codec, skip: Collection[str] = ()) -> Metric:
        """Take the scale of each modelled column from the schema; ``skip`` leaves columns out."""
        numeric, categorical, steps, tops = [], [], [], []
        for place, column in enumerate(codec.schema.modelled):
            lattice = codec.lattice(column.name)
            if column.name in skip:
                continue
            if lattice is None or column.minimum is None or column.maximum is None:
                categorical.append(place)
                continue
            numeric.append(place)
            ends = column.minimum, column.maximum
            low, high = (in_units(end, column.kind) for end in ends)
            ticks = (high - low) * 10**lattice.decimals
            steps.append(float(lattice.stride / ticks) if ticks else 0.0)
            tops.append(float((lattice.points - 1) * lattice.stride / ticks) if ticks else 0.0)
        return cls(codec, tuple(numeric), tuple(categorical), np.array(steps), np.array(tops))

    def points(self, view: TableView) -> Points:
        """Read the rows of a table."""
        steps = np.empty((view.rows, len(self.numeric)))
        for at, place in enumerate(self.numeric):
            column = self.codec.schema.modelled[place]
            lattice = self.codec.lattice(column.name)
            values = numbers(view, column)
            here = ~np.isnan(values)
            steps[:, at] = np.nan
            if lattice is not None:
                steps[here, at] = lattice.positions(values[here])
        return Points(steps, np.ascontiguousarray(view.codes[:, list(self.categorical)]))

    def squared(self, a: Points, rows: Ints, b: Points, others: Ints) -> Floats:
        """Return the squared distances of pairs: of each of ``rows`` to one of ``others``.

        In float64, each as a function of the two rows alone: the same pair gives the same number
        to the last bit, whichever pairs stand beside it.
        """
        distances = np.empty(len(rows))
        batch = max(1, CELLS // max(1, len(self.numeric) + len(self.categorical)))
        for start in range(0, len(rows), batch):
            here = slice(start, start + batch)
            distances[here] = self._squared(a.take(rows[here]), b.take(others[here]))
        return distances

    def _squared(self, a: Points, b: Points) -> Floats:
        apart = ((a.numbers - b.numbers) * self.step) ** 2
        unlike = np.isnan(apart)
        apart[unlike] = (np.isnan(a.numbers) != np.isnan(b.numbers))[unlike]
        total: Floats = apart.sum(axis=1) + (a.codes != b.codes).sum(axis=1)
        return total


def row_kinds(matrix: npt.NDArray[np.generic]) -> Ints:
    """Number the distinct rows of a matrix from 0 in order of appearance; return each row's."""
    matrix = np.ascontiguousarray(matrix)
    if not matrix.shape[1]:
        return np.zeros(len(matrix), dtype=np.int64)
    whole, width = matrix.tobytes(), matrix.shape[1] * matrix.itemsize
    rows = np.empty(len(matrix), dtype=object)
    rows[:] = [whole[start : start + width] for start in range(0, len(whole), width)]
    return np.asarray(pd.factorize(rows)[0], dtype=np.int64)
