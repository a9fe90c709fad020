"""Bins of a numeric column: at most 30, equally wide, with ends that people would choose.

A bin is a whole number of steps of the column's lattice, so that no bin has more points than its
neighbours by accident; dates are divided by days, weeks, months, quarters and years.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

import numpy as np
import numpy.typing as npt

from dpsynth._util.clock import clock_text
from dpsynth.schema import Column, Lattice
from dpsynth.schema.lattice import EPOCH

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

MAX_BINS = 30
_DAY, _WEEK = 86_400, 7 * 86_400  # seconds
_SECONDS = (60, 300, 900, 3_600, 3 * 3_600, 6 * 3_600, 12 * 3_600)
_MONTHS = (1, 3, 12, 60, 120, 600, 1_200, 6_000, 12_000)
_MONTHS_OF_1970 = 1970 * 12


@dataclass(frozen=True)
class Bin:
    """A range of values or a category: its name, and how many rows are in it."""

    label: str
    rows: int


def bins_of(column: Column, lattice: Lattice, values: Floats, counts: Ints) -> tuple[Bin, ...]:
    """Divide the range that occurs into at most 30 bins; none if nothing occurs.

    Args:
        column: its declaration.
        lattice: of the column.
        values: distinct values in order, in the lattice's units.
        counts: how often each occurs.
    """
    if not len(values):
        return ()
    if column.kind.is_time:
        return _of_times(column, values, counts)
    return _of_numbers(column, lattice, values, counts)


def value_text(column: Column, lattice: Lattice, value: float) -> str:
    """Write a value of a numeric column as its table does, with the decimals of its lattice."""
    if column.kind.in_days:
        return f"{_time(value * _DAY):%Y-%m-%d}"
    if column.kind.is_time:
        return _time(value).isoformat(sep=" ", timespec="minutes" if value % 60 == 0 else "seconds")
    if column.kind.is_clock:
        return clock_text(value)
    comma = "," if column.kind.is_quantity else ""
    text = f"{value:{comma}.{lattice.decimals}f}"
    return text.rstrip("0").rstrip(".") if lattice.decimals > 3 else text


def _of_numbers(column: Column, lattice: Lattice, values: Floats, counts: Ints) -> tuple[Bin, ...]:
    ticks = lattice.ticks(lattice.positions(values))
    # Bins begin at multiples of their width, unless the lattice's points lie between such.
    origin = lattice.first % lattice.stride
    for width in _widths(lattice.stride, clock=column.kind.is_clock):
        places = (ticks - origin) // width
        if places[-1] - places[0] < MAX_BINS:
            break
    last = lattice.first + (lattice.points - 1) * lattice.stride

    def label(place: int) -> str:
        begin = origin + place * width
        ends = max(begin, lattice.first), min(begin + width - lattice.stride, last)
        texts = [value_text(column, lattice, tick / 10**lattice.decimals) for tick in ends]
        return texts[0] if ends[0] == ends[1] else f"{texts[0]} to {texts[1]}"

    return _counted(places, counts, label)


def _of_times(column: Column, values: Floats, counts: Ints) -> tuple[Bin, ...]:
    seconds = (values * _DAY if column.kind.in_days else values).astype("datetime64[s]")
    clock = () if column.kind.in_days else _SECONDS
    for width in (*clock, _DAY, _WEEK):
        shift = 3 * _DAY if width == _WEEK else 0  # 1970 began on a Thursday, weeks on a Monday
        places = (seconds.astype(np.int64) + shift) // width
        if places[-1] - places[0] < MAX_BINS:
            label = partial(_begun, width=width, shift=shift)
            return _counted(places, counts, label)
    months = seconds.astype("datetime64[M]").astype(np.int64) + _MONTHS_OF_1970
    for many in _MONTHS:
        places = months // many
        if places[-1] - places[0] < MAX_BINS:
            break
    return _counted(places, counts, lambda place: _months(place * many, many))


def _counted(places: Ints, counts: Ints, label: Callable[[int], str]) -> tuple[Bin, ...]:
    """Add up the counts of each place, empty ones between included."""
    first = int(places[0])
    rows = np.zeros(int(places[-1]) - first + 1, dtype=np.int64)
    np.add.at(rows, places - first, counts)
    return tuple(Bin(label(first + step), int(count)) for step, count in enumerate(rows))


def _widths(stride: int, *, clock: bool) -> Iterator[int]:
    """Yield the stride times 1, 2, 5, 10, 20, 50, ...; parts of an hour or a day for a clock."""
    if clock:
        yield from (width for width in _SECONDS if width % stride == 0)
    power = 1
    while True:
        for digit in (1, 2, 5):
            yield stride * digit * power
        power *= 10


def _begun(place: int, width: int, shift: int) -> str:
    """Name a day, a week, or a part of a day, by when it begins."""
    begin = _time(place * width - shift)
    if width < _DAY:
        return f"from {begin:%Y-%m-%d %H:%M}"
    return f"{begin:%Y-%m-%d}" if width == _DAY else f"week of {begin:%Y-%m-%d}"


def _months(first: int, many: int) -> str:
    """Name a month, a quarter, a year or several years."""
    year, month = divmod(first, 12)
    match many:
        case 1:
            return f"{year}-{month + 1:02}"
        case 3:
            return f"{year}, quarter {month // 3 + 1}"
        case 12:
            return str(year)
    return f"{year} to {year + many // 12 - 1}"


def _time(seconds: float) -> datetime:
    return EPOCH + timedelta(seconds=float(seconds))
