"""An axis of a table: the cells into which a column's values are sorted; a public fact.

Dates and times are cut into hours, days, weeks, months or years.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth._util.formatting import figure
from dpsynth._util.messages import did_you_mean, listed
from dpsynth.encoding import Codec
from dpsynth.encoding.code_values import code_ends, code_values
from dpsynth.encoding.column_codecs import coder_of
from dpsynth.errors import InputError
from dpsynth.privacy.answers import NOWHERE
from dpsynth.schema import Column
from dpsynth.schema.relations import converted
from dpsynth.schema.types import DAY, TYPES

MISSING = "(missing)"
MAX_CELLS = 1_000_000
_FEW = 40  # codes of a numeric column, each of which may be a cell of its own

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
PERIODS: dict[str, Any] = {"hour": "h", "day": "D", "week": "W", "month": "M", "year": "Y"}
_LEAST = {"hour": 3600, "day": DAY, "week": 7 * DAY, "month": 28 * DAY, "year": 365 * DAY}
_MONDAY = 4 * DAY  # 1970-01-05 was one


@dataclass(frozen=True, eq=False)
class Axis:
    """The cells of one column.

    Attributes:
        column: its name.
        labels: of the cells, in order.
        cell_of: the cell of each code of the column, ``[codes]``.
        place: of the column among the coded ones.
    """

    column: str
    labels: tuple[str, ...]
    cell_of: Ints
    place: int

    @property
    def size(self) -> int:
        """How many cells there are."""
        return len(self.labels)

    @property
    def key(self) -> tuple[str, tuple[str, ...]]:
        """What two axes share that have the same cells."""
        return self.column, self.labels

    @classmethod
    def of(cls, codec: Codec, name: str, cuts: Sequence[float] | str | None) -> Axis:
        """Sort a column's codes into cells.

        Args:
            codec: of the schema.
            name: of the column.
            cuts: numbers at which a numeric column is cut; ``hour``, ``day``, ``week``, ``month``
                or ``year`` for a date; None for each value by itself.

        Raises:
            InputError: there is no such column, or it cannot be cut so.

        Example:
            >>> from dpsynth.schema import Schema
            >>> axis = Axis.of(Codec(Schema.load("cardio")), "height", [150, 170])
            >>> axis.labels
            ('below 150', '150 to below 170', '170 or more')
        """
        if name not in codec.names:
            meant = did_you_mean(name, codec.names)
            raise InputError(f"there is no column '{name}' to count by{meant}")
        place = codec.names.index(name)
        column = codec.schema.modelled[place]
        if column.discovers:
            raise InputError(
                f"nobody declared the codes of column '{name}' (discover: true); only 'count' can "
                "be by them, with the column's name alone"
            )
        decimal = codec.schema.dialect.decimal
        values = code_values(column, decimal)
        ordered = codec.cells[place]
        if isinstance(cuts, str):
            labels, cells = _periods(column, values[:ordered], cuts)
        elif cuts is not None:
            labels, cells = _between(column, decimal, ordered, cuts)
        elif ordered:
            labels, cells = _each(column, values[:ordered])
        else:
            texts = coder_of(column, decimal).decode(
                np.arange(codec.sizes[place]), np.random.default_rng(0)
            )
            labels = [MISSING if pd.isna(text) else str(text) for text in texts]
            return cls(name, tuple(labels), np.arange(len(labels)), place)
        others = codec.sizes[place] - ordered
        cells = np.append(cells, np.full(others, len(labels)))
        return cls(name, (*labels, *[MISSING][:others]), cells.astype(np.int64), place)

    def only(self, labels: Sequence[str]) -> Axis:
        """Return the axis of these cells alone; rows of others have none (`NOWHERE`)."""
        place = np.full(self.size, NOWHERE)
        for new, label in enumerate(labels):
            place[self.labels.index(label)] = new
        return Axis(self.column, tuple(labels), place[self.cell_of], self.place)

    def known(self) -> Axis:
        """Return the axis without the cell of missing values."""
        return self.only([label for label in self.labels if label != MISSING])

    def cells(self, codes: npt.NDArray[np.integer]) -> Ints:
        """Return the cell of each row, from codes ``[rows, columns]``."""
        found: Ints = self.cell_of[codes[:, self.place]]
        return found


def told_apart(axes: Iterable[Axis]) -> dict[int, Ints]:
    """Return, for each column of the axes, which codes lie in the same cells of all its axes.

    >>> one, two = (Axis("x", ("a", "b"), np.array(cells), 4) for cells in ([0, 0, 1], [0, 1, 1]))
    >>> {place: classes.tolist() for place, classes in told_apart([one, two]).items()}
    {4: [0, 1, 2]}
    """
    found: dict[int, Ints] = {}
    for axis in axes:
        both = np.stack([found.get(axis.place, axis.cell_of), axis.cell_of])
        _, found[axis.place] = np.unique(both, axis=1, return_inverse=True)
    return dict(sorted(found.items()))


def _between(
    column: Column, decimal: str, ordered: int, cuts: Sequence[float]
) -> tuple[list[str], Ints]:
    """Cut a numeric column at numbers, each of which begins one of its codes."""
    if not column.kind.is_number or not ordered:
        raise InputError(f"column '{column.name}' has no numbers to cut; name it without cuts")
    edges = np.asarray(cuts, dtype=np.float64)
    if not len(edges) or not (np.diff(edges) > 0).all():
        raise InputError(f"the cuts of column '{column.name}' must be numbers that rise")
    values = code_ends(column, decimal)[0].to_numpy(np.float64, na_value=np.nan)[:ordered]
    if edges[0] <= values[0] or edges[-1] > values[-1]:
        raise InputError(
            f"the cuts of column '{column.name}' must lie within its bounds, above "
            f"{figure(values[0])} and up to {figure(values[-1])}: they say where a cell begins"
        )
    nearest = values[np.abs(values[:, None] - edges).argmin(axis=0)]
    if (within := ~np.isclose(nearest, edges, rtol=1e-9, atol=0)).any():
        raise InputError(
            f"column '{column.name}' cannot be cut at {figure(edges[within][0])}, because its "
            f"numbers are read in steps; the nearest place is {nearest[within][0]:g}"
        )
    words = [figure(edge) for edge in edges]
    middle = [f"{low} to below {high}" for low, high in pairwise(words)]
    labels = [f"below {words[0]}", *middle, f"{words[-1]} or more"]
    # the nearest codes begin where the cuts are, so no rounding puts one on the wrong side
    return labels, np.searchsorted(nearest, values, side="right").astype(np.int64)


def _each(column: Column, values: npt.NDArray[np.float64]) -> tuple[list[str], Ints]:
    """Take each value by itself, if there are few."""
    if len(values) > _FEW or not column.kind.is_number:
        how = "numbers at which to cut it" if column.kind.is_number else listed(list(PERIODS))
        raise InputError(
            f"column '{column.name}' has {len(values):,} values, too many for a cell each; give "
            f"{how}: {{{column.name}: ...}}"
        )
    return [figure(value) for value in values], np.arange(len(values))


def _periods(
    column: Column, values: npt.NDArray[np.float64], period: str
) -> tuple[list[str], Ints]:
    """Sort times into hours, days, weeks (from Monday), months or years."""
    if not column.kind.is_time or period not in PERIODS:
        raise InputError(
            f"column '{column.name}' cannot be counted by '{period}': dates and times are counted "
            f"by {listed(list(PERIODS))}"
        )
    window, places = window_of(column, values, period)
    return list(window.labels), places


@dataclass(frozen=True, eq=False)
class Periods:
    """Periods, one after another.

    Attributes:
        period: ``hour``, ``day``, ``week``, ``month`` or ``year``.
        starts: when each begins, in seconds since 1970, ``[periods]``.
    """

    period: str
    starts: Ints

    @classmethod
    def of(cls, first: float, last: float, period: str) -> Periods:
        """Return the periods from the one of a moment to that of another, in seconds since 1970.

        >>> Periods.of(0, 3 * 86400, "week").labels
        ('1969-12-29',)
        """
        ends = np.array([first, last]).astype(np.int64)
        if period == "week":
            begun, until = (ends - _MONDAY) // (7 * DAY) * 7 * DAY + _MONDAY
            return cls(period, np.arange(begun, until + 1, 7 * DAY))
        begun, until = ends.astype("datetime64[s]").astype(f"datetime64[{PERIODS[period]}]")
        every = np.arange(begun, until + 1)
        return cls(period, every.astype("datetime64[s]").astype(np.int64))

    @property
    def size(self) -> int:
        """How many periods there are."""
        return len(self.starts)

    @property
    def labels(self) -> tuple[str, ...]:
        """What each is called: by its first day, or its month, its year, or its hour."""
        unit = "D" if self.period == "week" else PERIODS[self.period]
        moments = self.starts.astype("datetime64[s]").astype(f"datetime64[{unit}]")
        ending = ":00" if self.period == "hour" else ""
        return tuple(f"{moment}{ending}" for moment in moments)

    def places(self, moments: Floats) -> Ints:
        """Return the period of each moment, in seconds; -1 before the first one."""
        found = np.searchsorted(self.starts, moments, side="right") - 1
        return found.astype(np.int64)

    def most(self, seconds: float) -> int:
        """Return how many periods something that lasts so long can touch, at most.

        >>> Periods.of(0, 40 * 86400, "day").most(3 * 86400)
        4
        """
        return min(1 + int(np.ceil(seconds / _LEAST[self.period])), self.size)


def window_of(column: Column, values: Floats, period: str) -> tuple[Periods, Ints]:
    """Return the periods of a column of dates or times, and the one of each value.

    Args:
        column: of dates, or of dates and times.
        values: of its codes, in the column's unit; none is missing.
        period: as of `Periods`.

    Raises:
        InputError: the column is read in steps that pass over periods.
    """
    if period == "hour" and column.kind.drops_time:
        raise InputError(f"column '{column.name}' has dates without a time of day; count by day")
    seconds = converted(values, column.kind, TYPES["datetime"])
    window = Periods.of(seconds.min(), seconds.max(), period)
    places = window.places(seconds)
    if len(np.unique(places)) < window.size:
        raise InputError(
            f"column '{column.name}' is read in coarser steps than a {period}: declare narrower "
            "bounds, or a larger step, so that it has at most 4,096 values"
        )
    return window, places
