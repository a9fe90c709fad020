"""Cells as numbers in SQL: missing, bad or a value; gaps between dates; parts of the calendar.

A value is a double: NULL where the cell is missing, infinite where it is bad, and else what
`dpsynth.tables.read_cells` gives, to the last bit.
"""

from __future__ import annotations

import math
from typing import Any

import ibis
import numpy as np

from dpsynth.schema import Column
from dpsynth.schema.relations import DAY, SECONDS, Interval
from dpsynth.tables import array_of, is_close, missing_words, nearest, read_texts
from dpsynth.tables.cell_values import LAST_BITS
from dpsynth.tables.warehouse import Stored

Expression = Any  # an ibis value; ibis builds its classes at run time

LARGEST = 1.7976931348623157e308
WHOLE_FROM = 2.0**53  # every double from here on is whole
WEEK, HOUR = 7, SECONDS["h"]
_MARCH = 719_468  # days from 0000-03-01 to 1970-01-01
_ERA = 146_097  # days of 400 years


def number(value: float) -> Expression:
    """Return a constant as a double, to the last bit: as a text that the warehouse casts.

    A bare 0.1 is a decimal number in SQL.
    """
    return ibis.literal(repr(float(value))).cast("float64")


def whole(value: int) -> Expression:
    """Return a constant as a whole number."""
    return ibis.literal(int(value), type="int64")


def absent() -> Expression:
    """Return what stands for a missing cell."""
    return ibis.null("float64")


def bad() -> Expression:
    """Return what stands for a cell that is none of its column."""
    return ibis.literal("Infinity").cast("float64")


def is_bad(value: Expression) -> Expression:
    """Tell whether a value stands for a bad cell; unknown where it is missing."""
    return value > number(LARGEST)


def tokens_of(column: Column, decimal: str) -> list[float]:
    """Return the numbers that stand for a missing cell of a column."""
    meant = read_texts(array_of(sorted(missing_words(column))), column, decimal)
    return [float(value) for value in np.unique(meant[np.isfinite(meant)])]


def close_to(value: Expression, option: float, *, category: bool = False) -> Expression:
    """Tell whether a value is an option up to the last bits, as `dpsynth.tables.is_close`.

    Args:
        value: to compare.
        option: a number of the schema.
        category: whether it is compared as a category is, by `dpsynth.tables.nearest`.
    """

    def same(other: float) -> bool:
        if category:
            return nearest(other, np.array([option])) is not None
        return bool(is_close(np.array([other]), np.float64(option))[0])

    ends = []
    for side in (-math.inf, math.inf):
        end = option
        while same(float(np.nextafter(end, side))):
            end = float(np.nextafter(end, side))
        ends.append(end)
    return (value >= number(ends[0])) & (value <= number(ends[1]))


def value_of(cell: Expression, column: Column, stored: Stored, decimal: str) -> Expression:
    """Return the value of a cell that its warehouse has made a double of."""
    value = cell
    missing = cell.isnull() | cell.isnan()
    finite = (cell >= number(-LARGEST)) & (cell <= number(LARGEST))
    if column.kind.whole and stored in (Stored.FLOAT, Stored.DECIMAL):
        value = _whole_value(cell, as_written=column.is_categorical)
    branches = [(missing, absent()), (~finite, bad())]
    branches += [
        (close_to(value, token, category=column.is_categorical), absent())
        for token in tokens_of(column, decimal)
    ]
    return ibis.cases(*branches, else_=value)


def _whole_value(cell: Expression, *, as_written: bool) -> Expression:
    """Return the whole number that a cell is up to the last bits; bad where it is none.

    As it is written, the last bits stay: categories are compared with these.
    """
    floor = cell.floor().cast("float64")
    whole_one = floor + ibis.ifelse(cell - floor >= number(0.5), number(1.0), number(0.0))
    is_near = (cell - whole_one).abs() <= number(LAST_BITS) * whole_one.abs()
    large = (cell >= number(WHOLE_FROM)) | (cell <= number(-WHOLE_FROM))
    return ibis.cases((large, cell), (is_near, cell if as_written else whole_one), else_=bad())


def gap_of(own: Expression, other: Expression, column: Column, base: Column) -> Expression:
    """Return the gap between two times of a row, in whole units; as `relations.row_gaps`."""
    interval = column.interval
    assert isinstance(interval, Interval)
    in_days = column.kind.in_days
    if base.kind.in_days != in_days:
        day = number(DAY)
        shifted = (other / day).floor().cast("float64") if in_days else other * day
        other = ibis.ifelse(is_bad(other), other, shifted)
    first, last = (own, other) if interval.before else (other, own)
    between = last.floor().cast("float64") - first.floor().cast("float64")
    gap = (between / number(interval.length(in_days=in_days))).floor().cast("float64")
    return ibis.cases(
        (own.isnull() | other.isnull(), absent()), (is_bad(own) | is_bad(other), bad()), else_=gap
    )


def calendar_place(value: Expression, column: Column, part: str) -> Expression:
    """Return the weekday from Monday, the month from January or the hour, from 0; else NULL."""
    moment = value.floor().cast("int64")
    in_days = column.kind.in_days
    days = moment if in_days else (value / number(DAY)).floor().cast("int64")
    place: Expression
    if part == "hour":
        clock = whole(0) if in_days else moment - days * whole(DAY)
        place = _quotient(clock, HOUR)
    elif part == "weekday":  # 1970 began on a Thursday
        place = _rest(days + whole(_MARCH * WEEK + 3), WEEK)
    else:
        place = _month(days)
    return ibis.ifelse(value.isnull() | is_bad(value), ibis.null("int64"), place)


def _month(days: Expression) -> Expression:
    """Return the month of a day of the years from 1 to 9999, from 0 for January.

    Years are counted from March, so that the day that a leap year adds comes last.
    """
    of_era = _rest(days + whole(_MARCH), _ERA)
    leaps = _quotient(of_era, 1_460) - _quotient(of_era, 36_524) + _quotient(of_era, 146_096)
    year = _quotient(of_era - leaps, 365)
    of_year = of_era - (year * whole(365) + _quotient(year, 4) - _quotient(year, 100))
    from_march = _quotient(of_year * whole(5) + whole(2), 153)
    return _rest(from_march + whole(2), 12)


def _quotient(dividend: Expression, divisor: int) -> Expression:
    """Divide a whole number from 0, far below 2^53, without rest."""
    return (dividend.cast("float64") / number(divisor)).floor().cast("int64")


def _rest(dividend: Expression, divisor: int) -> Expression:
    return dividend - _quotient(dividend, divisor) * whole(divisor)
