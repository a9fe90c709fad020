"""What a statistic is: its events, its answers, and the table that follows from them."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Protocol, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.short_repr import short_repr
from dpsynth.encoding import CodedCells, Cohort
from dpsynth.errors import InputError
from dpsynth.privacy import Contributions, Entropy, Event
from dpsynth.privacy.answers import NOWHERE
from dpsynth.stats.answer_request import Numbers
from dpsynth.stats.axes import MAX_CELLS, MISSING, Axis, told_apart

Ints = npt.NDArray[np.int64]
Events = Mapping[str, Event]
MAX_CONFIDENCE = 0.999999  # nearer 1, an interval has no end
MAX_AXES = 8  # tables of counts are made to agree over all subsets of their axes
COLUMNS = (
    *("count", "lower", "upper", "mean", "number", "share", "value", "rank"),
    *("variance", "sd", "sd: lower", "sd: upper", "own weight"),
)
"""What columns of results are called, beside those of the table."""


def sure(z: float) -> str:
    """Say with which confidence noise stays within so many standard deviations.

    >>> sure(1.959964)
    'with 95 % confidence'
    """
    return f"with {100 * math.erf(z / math.sqrt(2)):.4g} % confidence"


def normal_quantile(confidence: float) -> float:
    """Return how many standard deviations an interval of this confidence reaches to each side.

    >>> round(normal_quantile(0.95), 2)
    1.96
    """
    from scipy.special import ndtri

    return float(ndtri((1 + confidence) / 2))


@dataclass(frozen=True, eq=False)
class Statistic(ABC):
    """One entry of a request.

    Attributes:
        name: of the entry; distinct in a request.
        weight: its part of the budget against those of the others.
        axes: by which it is broken down.
        rows_per_unit: how many rows of a unit count, at most.
        once: whether units are counted, each at most once in a cell; else rows.
        per_unit: whether each unit counts the same, shared by its rows; else each row does.
    """

    name: str
    weight: float
    axes: tuple[Axis, ...]
    rows_per_unit: int
    once: bool
    per_unit: bool

    def __post_init__(self) -> None:
        """Refuse what could be charged for, and then neither held nor written."""
        if len(self.axes) > MAX_AXES:
            raise InputError(f"'by' names more than {MAX_AXES} columns")
        if self.size > MAX_CELLS or self.numbers > MAX_CELLS:
            raise InputError(
                f"it needs {self.numbers:,} noisy numbers; {MAX_CELLS:,} are the most: use fewer "
                "columns, fewer cells, or a column with a larger step"
            )
        for axis in self.axes:
            if axis.column in (*COLUMNS, *self.columns):
                raise InputError(
                    f"column '{axis.column}' is called as a column of the result; rename it in the "
                    "table and its schema"
                )
            if axis.labels.count(MISSING) > (axis.labels[-1] == MISSING):
                raise InputError(f"column '{axis.column}' has a value called {MISSING}; rename it")

    @property
    def columns(self) -> tuple[str, ...]:
        """What columns of its result are called, beside `COLUMNS`."""
        return ()

    @property
    def numbers(self) -> int:
        """How many noisy numbers its answers hold."""
        return sum(size for sizes in self.sizes().values() for size in sizes)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many cells each axis has."""
        return tuple(axis.size for axis in self.axes)

    @property
    def size(self) -> int:
        """How many cells there are."""
        return prod(self.shape)

    @property
    def counted(self) -> str:
        """What its numbers are of."""
        return "units" if self.per_unit or self.once else "rows"

    def cells(self, rows: Rows) -> Ints:
        """Return the cell of each row, over all axes; `NOWHERE` where an axis has none for it."""
        cells = np.zeros(len(rows.units), dtype=np.int64)
        for axis in self.axes:
            here = axis.cells(rows.codes)
            missed = (cells == NOWHERE) | (here == NOWHERE)
            cells = np.where(missed, NOWHERE, cells * axis.size + here)
        return cells

    def frame(self) -> pd.DataFrame:
        """Return the cells' labels, a column for each axis."""
        places = np.unravel_index(np.arange(self.size), self.shape) if self.axes else ()
        return pd.DataFrame(
            {
                axis.column: np.array(axis.labels, dtype=object)[place]
                for axis, place in zip(self.axes, places, strict=True)
            },
            index=range(self.size),
        )

    @abstractmethod
    def events(self) -> tuple[tuple[Event, float], ...]:
        """Return its events, without noise, and the part of its budget that each gets."""

    @abstractmethod
    def sizes(self) -> dict[str, list[int]]:
        """Return how many numbers each part of each event's answer has, by the event's name."""

    def fits(self, answers: Numbers) -> bool:
        """Whether answers, which hold those of its events, are such as it asks for."""
        return all(
            [len(part) for part in answers[name]] == sizes
            and all(part.dtype.kind == "i" for part in answers[name])
            for name, sizes in self.sizes().items()
        )

    @property
    def reads(self) -> Asked:
        """The columns that it reads, and which of their codes it tells apart."""
        return told_apart(self.axes)

    @property
    def undeclared(self) -> tuple[str, ...]:
        """The columns whose codes it reads though nobody declared them."""
        return ()

    @abstractmethod
    def answer(self, rows: Rows, events: Events, entropy: Entropy) -> dict[str, list[Ints]]:
        """Ask its events about private rows; what is returned carries noise."""

    @abstractmethod
    def table(self, answers: Numbers, events: Events, z: float) -> pd.DataFrame:
        """Make its table from answers alone; intervals reach ``z`` standard deviations."""

    def facts(self, answers: Numbers, events: Events) -> dict[str, float]:
        """Return figures of the table as a whole, such as those of a test, from answers alone."""
        return {}

    @abstractmethod
    def expected(self, events: Events, z: float) -> str:
        """Say how wide its intervals will be, in what they are, and how sure, from public facts."""


FINE = 2**15
"""Parts of a whole: what a unit is shared into by its rows, and half the width of bounds."""
Asked = Mapping[int, npt.NDArray[np.integer]]
"""What a statistic reads: by the place of a column, the class of each of its codes. Codes of one
class are the same to it."""


class Readable(Protocol):
    """Rows of a cohort, wherever they are."""

    def reading(self, asked: Asked) -> Rows:
        """Return what a statistic reads of them."""


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Rows of a cohort.

    Attributes:
        units: the unit of each row, ``[rows]``.
        codes: of its columns, ``[rows, columns]``.
        undeclared: rows with the codes of columns whose codes nobody declared; None if none asks.
        like: how many units there are with just the rows of this row's unit, which stands for them
            all, ``[rows]``; None where each stands for itself.
    """

    units: Ints
    codes: npt.NDArray[np.uint16]
    undeclared: CodedCells | None = None
    like: Ints | None = None

    def __repr__(self) -> str:
        """Show no row."""
        return short_repr(self, "coded rows of units")

    def reading(self, asked: Asked) -> Rows:
        """Return them all: they are here."""
        return self

    def adding(self, cells: Ints, values: Ints | None = None) -> Contributions:
        """Return what they add to cells of each part, ``[rows, parts]``; see `Contributions`."""
        return Contributions(self.units, cells, values, self.like)

    def weights(self, known: npt.NDArray[np.bool_]) -> Ints:
        """Return what each row counts where every unit counts `FINE`, shared by its known rows.

        Parts are rounded down; a row that is not known counts 0.
        """
        _, place = np.unique(self.units, return_inverse=True)
        counts = np.bincount(place[known], minlength=int(place.max(initial=-1)) + 1)
        return np.where(known, FINE // np.maximum(counts[place], 1), 0)

    @classmethod
    def of(cls, cohort: Cohort) -> Self:
        """Take the rows that are there."""
        units, places = np.nonzero(cohort.mask)
        return cls(units.astype(np.int64), cohort.codes[units, places])
