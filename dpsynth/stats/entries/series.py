"""Entries of time series: who is there in each period, and counts with a smooth line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from dpsynth._util.messages import listed
from dpsynth.encoding.code_values import code_values
from dpsynth.errors import InputError
from dpsynth.privacy.answer_events import MAX_PERIODS
from dpsynth.schema.types import DAY
from dpsynth.stats.entries.checks import check_keys
from dpsynth.stats.entries.columns import Columns
from dpsynth.stats.periods import PERIODS, Window, window_of
from dpsynth.stats.series import LineOfCounts, Occupancy
from dpsynth.stats.series.occupancy import Stretch
from dpsynth.stats.statistic import Statistic
from dpsynth.stats.tables import Counts

_LENGTHS = {"hours": 3600, "days": DAY}


def count(reader: Columns, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
    """Read a table of counts, with a smooth line along its only axis of periods if wanted."""
    counts = reader.count(name, weight, entry)
    if not _smooth(entry):
        return counts
    if not isinstance(counts, Counts):
        raise InputError("codes that nobody declared have no smooth line; leave 'smooth' out")
    items = entry.get("by", [])
    times = [
        place
        for place, item in enumerate(items)
        if isinstance(item, Mapping) and isinstance(next(iter(item.values())), str)
    ]
    if len(times) != 1:
        raise InputError("'smooth' needs one column in 'by' with a period: {admitted: month}")
    parts = {one.name: getattr(counts, one.name) for one in fields(counts)}
    return LineOfCounts(**parts, time=times[0])


def occupancy(reader: Columns, name: str, weight: float, entry: Mapping[str, Any]) -> Statistic:
    """Read who is there in each period."""
    of, period = entry["occupancy"], entry.get("period", "day")
    if not isinstance(of, Mapping) or ("until" in of) == ("for" in of):
        raise InputError(
            "'occupancy' is {from: column, until: column}, or {from: column, for: column}, where "
            "the second is how many days, or with 'in: hours' hours, a stay lasts"
        )
    more = ("until",) if "until" in of else ("for", "in")
    check_keys(of, "'occupancy'", ("from", *more), ("from", more[0]))
    if period not in PERIODS:
        raise InputError(f"'period' is one of {listed(list(PERIODS))}")
    begin = _moment(reader, of["from"], "'from'", period)
    if "until" in of:
        end = _moment(reader, of["until"], "'until'", period)
        window = _window(begin, max(begin, end, key=lambda one: np.nanmax(one.seconds)), period)
        most = window.size
    else:
        end = _length(reader, of)
        window = _window(begin, begin, period)
        most = window.most(float(np.nanmax(end.seconds)))
    longest = entry.get("longest", most)
    if type(longest) is not int or not 1 <= longest <= window.size:
        raise InputError(f"'longest' is a whole number of periods, from 1 to {window.size:,}")
    groups = reader.axes(entry)
    if {axis.place for axis in groups} & {begin.place, end.place}:
        raise InputError("'by' names the begin or the end of stays")
    return Occupancy(
        name,
        weight,
        groups,
        reader.schema.unit.max_rows,
        True,
        False,
        window,
        begin,
        end,
        "for" in of,
        min(longest, most),
        _smooth(entry),
    )


def _smooth(entry: Mapping[str, Any]) -> bool:
    smooth = entry.get("smooth", False)
    if not isinstance(smooth, bool):
        raise InputError("'smooth' is either true or false")
    return smooth


def _moment(reader: Columns, name: Any, what: str, period: str) -> Stretch:
    """Find a column of dates or times that is read as finely as periods are."""
    place = reader.column(name, what)
    column = reader.codec.schema.modelled[place]
    if not column.kind.is_time:
        raise InputError(f"{what} must name a column of dates, or of dates and times")
    values = code_values(column, reader.schema.dialect.decimal)
    window_of(column, values[np.isfinite(values)], period)
    seconds = values * (DAY if column.kind.in_days else 1)
    return Stretch(place, seconds)


def _length(reader: Columns, of: Mapping[str, Any]) -> Stretch:
    """Find a column of lengths of stays."""
    place = reader.column(of["for"], "'for'")
    column = reader.codec.schema.modelled[place]
    values = code_values(column, reader.schema.dialect.decimal)
    if not column.kind.is_number or not np.isfinite(values).any() or np.nanmin(values) < 0:
        raise InputError("'for' must name a column of numbers from 0: how long stays last")
    unit = of.get("in", "days")
    if unit not in _LENGTHS:
        raise InputError("'in' is either days or hours")
    return Stretch(place, values * _LENGTHS[unit])


def _window(first: Stretch, last: Stretch, period: str) -> Window:
    window = Window.of(np.nanmin(first.seconds), np.nanmax(last.seconds), period)
    if window.size > MAX_PERIODS:
        raise InputError(f"it has {window.size:,} periods; {MAX_PERIODS:,} are the most")
    return window
