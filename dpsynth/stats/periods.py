"""A stretch of time, cut into hours, days, weeks, months or years; a public fact."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpsynth.errors import InputError
from dpsynth.schema import Column
from dpsynth.schema.relations import converted
from dpsynth.schema.types import DAY, TYPES

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
PERIODS: dict[str, Any] = {"hour": "h", "day": "D", "week": "W", "month": "M", "year": "Y"}
_LEAST = {"hour": 3600, "day": DAY, "week": 7 * DAY, "month": 28 * DAY, "year": 365 * DAY}
_MONDAY = 4 * DAY  # 1970-01-05 was one


@dataclass(frozen=True, eq=False)
class Window:
    """Periods, one after another.

    Attributes:
        period: ``hour``, ``day``, ``week``, ``month`` or ``year``.
        starts: when each begins, in seconds since 1970, ``[periods]``.
    """

    period: str
    starts: Ints

    @classmethod
    def of(cls, first: float, last: float, period: str) -> Window:
        """Return the periods from the one of a moment to that of another, in seconds since 1970.

        >>> Window.of(0, 3 * 86400, "week").labels
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

        >>> Window.of(0, 40 * 86400, "day").most(3 * 86400)
        4
        """
        return min(1 + int(np.ceil(seconds / _LEAST[self.period])), self.size)


def window_of(column: Column, values: Floats, period: str) -> tuple[Window, Ints]:
    """Return the periods of a column of dates or times, and the one of each value.

    Args:
        column: of dates, or of dates and times.
        values: of its codes, in the column's unit; none is missing.
        period: as of a `Window`.

    Raises:
        InputError: the column is read in steps that pass over periods.
    """
    if period == "hour" and column.kind.drops_time:
        raise InputError(f"column '{column.name}' has dates without a time of day; count by day")
    seconds = converted(values, column.kind, TYPES["datetime"])
    window = Window.of(seconds.min(), seconds.max(), period)
    places = window.places(seconds)
    if len(np.unique(places)) < window.size:
        raise InputError(
            f"column '{column.name}' is read in coarser steps than a {period}: declare narrower "
            "bounds, or a larger step, so that it has at most 4,096 values"
        )
    return window, places
