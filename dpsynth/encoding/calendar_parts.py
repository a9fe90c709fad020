"""Parts of the calendar beside a date: weekday, month, and the hour of the day.

A part is a function of its own date, and of no other row (see `relations` for what that means for
sensitivity). A drawn date moves to the nearest one that has the drawn parts; this reads drawn
cells only, and so is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpsynth.schema import Column, lattice_of, part_name
from dpsynth.schema.coded import PARTS
from dpsynth.schema.relations import DAY, SECONDS
from dpsynth.tables import read_cells, typed_series, typed_values

Ints = npt.NDArray[np.int64]

HOUR = SECONDS["h"]
WEEK = 7
MAX_MONTHS = 6  # how far the nearest month of a name can be


def calendar_part(frame: pd.DataFrame, column: Column, part: str, decimal: str) -> pd.Series[Any]:
    """Return a part of the calendar of each cell, None where it is missing or cannot be read."""
    values, missing = read_cells(frame[column.name], column, decimal)
    absent = missing | ~np.isfinite(values)
    unit = 1 if column.kind.in_days else DAY
    days, clock = np.divmod(np.floor(np.where(absent, 0.0, values)).astype(np.int64), unit)
    names = np.array([*PARTS[part], None], dtype=object)
    places = clock // HOUR if part == "hour" else _place_of(days, part)
    return pd.Series(names[np.where(absent, -1, places)], name=part_name(column.name, part))


def _place_of(days: Ints, part: str) -> Ints:
    """Return the weekday from Monday, or the month from January, from 0."""
    if part == "weekday":
        return (days + 3) % WEEK  # 1970 began on a Thursday
    return _months(days) % 12


def _months(days: Ints) -> Ints:
    months: Ints = days.astype("datetime64[D]").astype("datetime64[M]").astype(np.int64)
    return months


def moved_dates(cells: Mapping[Any, pd.Series[Any]], column: Column) -> pd.Series[Any]:
    """Move each drawn date to the nearest one with the drawn parts, within the bounds."""
    values = typed_values(cells[column.name], column.kind)
    missing = np.isnan(values)
    lattice = lattice_of(column)
    unit = 1 if column.kind.in_days else DAY
    bounds = lattice.values(np.array([0, lattice.points - 1])).astype(np.int64)
    whole = np.where(missing, bounds[0], values).astype(np.int64)
    wanted = {part: _wanted(cells[part_name(column.name, part)], part) for part in column.calendar}
    days, clock = np.divmod(whole, unit)
    for part in ("month", "weekday"):
        if part in wanted:
            days = _nearest(days, wanted[part], part, bounds // unit)
    moved = days * unit + clock
    if "hour" in wanted:
        moved = _at_hour(moved, wanted["hour"], bounds)
    values = lattice.values(lattice.positions(moved.astype(np.float64)))
    return typed_series(values, missing, column)


def _at_hour(moments: Ints, wanted: Ints, ends: Ints) -> Ints:
    """Return the same minute of the wanted hour, on the same day unless a bound is in the way.

    The first and the last day may have a part of their hours only. Then the day is a week away, so
    that the weekday stays, or where the bounds are nearer, a day away.
    """
    days, clock = np.divmod(moments, DAY)
    same = days * DAY + wanted * HOUR + clock % HOUR
    chosen = moments.copy()
    done = wanted < 0
    for away in (0, WEEK, -WEEK, 1, -1):
        option = same + away * DAY
        fits = ~done & (option >= ends[0]) & (option <= ends[1])
        chosen[fits] = option[fits]
        done |= fits
    return chosen


def _wanted(cells: pd.Series[Any], part: str) -> Ints:
    """Return the place of each drawn part in the calendar, -1 where it is missing."""
    places = {name: place for place, name in enumerate(PARTS[part])}
    return np.array([places.get(name, -1) for name in cells], dtype=np.int64)


def _nearest(days: Ints, wanted: Ints, part: str, ends: Ints) -> Ints:
    """Return the nearest days with this part of the calendar; others stay where none is allowed."""
    if part == "weekday":
        shift = (wanted - _place_of(days, part) + 3) % WEEK - 3
        options = [days + shift, days + shift + WEEK, days + shift - WEEK]
        month = _months(days)
        inside = [_months(option) == month for option in options]
    else:
        months = _months(days)
        shift = (wanted - months % 12 + MAX_MONTHS - 1) % 12 - MAX_MONTHS + 1
        within = days - _first(months)
        options = [
            np.minimum(_first(month) + within, _first(month + 1) - 1)
            for month in (months + shift, months + shift + 12, months + shift - 12)
        ]
        inside = [np.ones(len(days), dtype=bool)] * len(options)
    chosen = days.copy()
    done = wanted < 0
    for strict in (True, False):
        for option, same in zip(options, inside, strict=True):
            fits = ~done & (option >= ends[0]) & (option <= ends[1]) & (same | (not strict))
            chosen[fits] = option[fits]
            done |= fits
    return chosen


def _first(months: Ints) -> Ints:
    first: Ints = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64)
    return first
