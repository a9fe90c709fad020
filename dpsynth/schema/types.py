"""The column types: everything that dpsynth knows about each, in one table.

The rest of the code asks the fields of a `ColumnType` and never compares its name, so a new type is
one entry of `TYPES` and, where its text is not a plain number, a function that reads it and one
that writes it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from enum import StrEnum
from typing import Any

from dpsynth._util.clock import (
    clock_of,
    clock_seconds,
    clock_text,
    duration_of,
    duration_seconds,
    is_clock_format,
    read_clock,
    read_duration,
    the_day,
    write_clock,
    write_duration,
)
from dpsynth._util.short_repr import short_repr

EPOCH_DAY = date(1970, 1, 1).toordinal()
DAY = 86_400  # seconds
MINUTE = 60  # seconds; the default step of a date and time
MONTHS, DAYS, SECONDS = "M", "D", "s"  # units of time, as NumPy names them
YEAR = "a"  # as in the Unified Code for Units of Measure
EPOCH = datetime(1970, 1, 1)
_ISO_MONTH = re.compile(r"[0-9]{4}-[0-9]{2}")
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ]|$)")


class Family(StrEnum):
    """What the values of a type are, in the words of messages: values of one family compare."""

    NUMBER = "number"
    TRUTH = "boolean"
    TIME = "date"
    CLOCK = "time of day"
    DURATION = "duration"
    TEXT = "text"
    UNREAD = "unread"


def itself(value: Any) -> Any:
    """Return a value as it is: of a number, a bound and its value are the same."""
    return value


def takes_none(pattern: str) -> bool:
    """Tell that a type has no formats."""
    return False


@dataclass(frozen=True)
class ColumnType:
    r"""One type of a column.

    A cell of a number or a time is a float64 in the unit of the column's lattice: the number
    itself; months, days or seconds since 1970-01-01; for a time of day, seconds since midnight; for
    a duration, seconds.

    Attributes:
        name: in a schema document.
        family: what its values are.
        noun: for people, such as "whole number".
        arrow: its type in Parquet, by the text that Arrow gives it, such as ``int64``.
        croissant: its data type in Croissant, such as ``sc:Integer``.
        table_schema: its type in the Table Schema of the synthetic CSV.
        parquet_schema: its type in the Table Schema of the synthetic Parquet file.
        spelling: pattern of its text in the synthetic CSV, of numbers and times only.
        read: reads one trimmed text, with the column's ``format`` or None, as a value; NaN if it is
            none. None for a type whose text is a decimal number, a category or a truth value.
        write: writes a value as the text of the synthetic CSV and of bounds, which `read` reads.
            None for a type whose text is a plain number, a category or a truth value.
        label: writes a value for people; as `write` does if None.
        bound: makes the bound of a schema from a value in the unit, such as a datetime.date.
        value: returns the value of such a bound.
        whole_range: returns the bounds of a column with a format, or None, that declares none. None
            for a type whose bounds must be declared.
        too_fine: the message about a bound of a time that is finer than its unit.
        takes: whether a strptime pattern suits as ``format``. None if the type ignores formats.
        formats: those that a check tries on cells which cannot be read, the likeliest first.
        wrong_format: the message about another pattern, after its text.
        whole: whether values are whole numbers.
        step: distance of two lattice points, in the value's unit, where a column declares none;
            None where the declared bounds decide.
        bounds: least and greatest value that a declared bound may have; None for any.
        unit: of a time, as NumPy names it: `MONTHS`, `DAYS` or `SECONDS`.
        seconds: how long that unit is, in seconds; 0 if not all are equally long.
        gaps: units in which the gap to another date is counted; empty if it cannot be.
        usual_gap: the unit of a gap that declares none.
        calendar: parts of the calendar that a value has.
        ucum: the unit of differences, such as ``d`` of dates.
        example: text of a bound, for messages about times.
        is_quantity: whether a mean tells something. Only quantities have thousands separators.
        digits: fewest digits in the synthetic CSV; shorter numbers begin with zeros.
        is_key: whether the key of the privacy unit may have this type.

    >>> TYPES["year"].is_number, TYPES["year"].whole, TYPES["year"].is_quantity
    (True, True, False)
    """

    name: str
    family: Family
    noun: str
    arrow: str
    croissant: str
    table_schema: str
    parquet_schema: str
    spelling: str = ""
    read: Callable[[str, str | None], float] | None = None
    write: Callable[[float], str] | None = None
    label: Callable[[float], str] | None = None
    bound: Callable[[float], Any] = itself
    value: Callable[[Any], float] = itself
    whole_range: Callable[[str | None], Mapping[str, Any]] | None = None
    too_fine: str = ""
    takes: Callable[[str], bool] | None = None
    formats: tuple[str, ...] = ()
    wrong_format: str = ""
    whole: bool = False
    step: int | None = None
    bounds: tuple[int, int] | None = None
    unit: str | None = None
    seconds: int = 0
    gaps: tuple[str, ...] = ()
    usual_gap: str = ""
    calendar: tuple[str, ...] = ()
    ucum: str | None = None
    example: str = ""
    is_quantity: bool = False
    digits: int = 0
    is_key: bool = False

    def __repr__(self) -> str:
        """Name the type."""
        return short_repr(self, self.name)

    @property
    def is_number(self) -> bool:
        """Whether values are numbers, or counted as such: durations are numbers of seconds."""
        return self.family in (Family.NUMBER, Family.DURATION)

    @property
    def is_time(self) -> bool:
        """Whether values are points in time."""
        return self.family is Family.TIME

    @property
    def is_numeric(self) -> bool:
        """Whether a column without categories has bounds and a lattice."""
        return self.is_number or self.is_time or self.is_clock

    @property
    def is_clock(self) -> bool:
        """Whether values are times of day."""
        return self.family is Family.CLOCK

    @property
    def is_truth(self) -> bool:
        """Whether values are true and false."""
        return self.family is Family.TRUTH

    @property
    def is_text(self) -> bool:
        """Whether values are texts."""
        return self.family is Family.TEXT

    @property
    def has_decimals(self) -> bool:
        """Whether values are numbers that need not be whole."""
        return self.is_number and not self.whole

    @property
    def is_plain(self) -> bool:
        """Whether values are numbers whose text is the number."""
        return self.is_number and not self.is_spelled

    @property
    def drops_time(self) -> bool:
        """Whether the time of day of a date and time is dropped."""
        return self.is_time and "hour" not in self.calendar

    @property
    def is_point(self) -> bool:
        """Whether values are points in time or times of day."""
        return self.is_time or self.is_clock

    @property
    def is_elapsed(self) -> bool:
        """Whether values are seconds since midnight, or those of a duration."""
        return self.is_clock or self.family is Family.DURATION

    @property
    def is_spelled(self) -> bool:
        """Whether the text of a value is more than a number."""
        return self.write is not None

    def text(self, value: float) -> str:
        """Write a value for people; only of a type that is spelled."""
        write = self.label or self.write
        assert write is not None
        return write(value)

    @property
    def text_only(self) -> bool:
        """Whether private cells must be text.

        A reader that makes a number of a text does not know the parser of a type, so a typed cell
        could be coded otherwise than its text.
        """
        return self.is_text or (self.is_number and self.read is not None)


def read_date(text: str, pattern: str | None = None) -> float:
    """Read a date, as days since 1970-01-01: by a strptime pattern, or else ISO 8601.

    The time of day of a date and time is dropped; what is no date is NaN.

    >>> read_date("1970-01-02"), read_date("3.1.1970", "%d.%m.%Y"), read_date("19700102")
    (1.0, 2.0, nan)
    """
    moment = _moment(text, pattern)
    return math.nan if moment is None else float(moment.toordinal() - EPOCH_DAY)


def read_datetime(text: str, pattern: str | None = None) -> float:
    """Read a date and time, as seconds since 1970-01-01: by a strptime pattern, or else ISO 8601.

    A date alone is its midnight; an offset from UTC is dropped: the clock of the place counts.

    >>> read_datetime("1970-01-02T00:00:01.5"), read_datetime("1970-01-02")
    (86401.5, 86400.0)
    """
    moment = _moment(text, pattern)
    if moment is None:
        return math.nan
    days = moment.toordinal() - EPOCH_DAY
    whole = days * DAY + moment.hour * 3600 + moment.minute * 60 + moment.second
    return whole + moment.microsecond / 1e6


def write_date(value: float) -> str:
    """Write days since 1970-01-01 in ISO 8601.

    >>> write_date(1.0)
    '1970-01-02'
    """
    return date_of(value).isoformat()


def date_of(value: float) -> date:
    """Return the date so many days after 1970-01-01."""
    return date.fromordinal(EPOCH_DAY + int(value))


def days_of_date(bound: date) -> int:
    """Return the days from 1970-01-01 to a date."""
    return bound.toordinal() - EPOCH_DAY


def write_datetime(value: float) -> str:
    """Write seconds since 1970-01-01 in ISO 8601.

    >>> write_datetime(86_460.0)
    '1970-01-02T00:01:00'
    """
    return datetime_of(value).isoformat()


def datetime_of(value: float) -> datetime:
    """Return the date and time so many seconds after 1970-01-01."""
    return EPOCH + timedelta(seconds=int(value))


def seconds_of_datetime(bound: datetime) -> float:
    """Return the seconds from 1970-01-01 to a date and time, whose zone is dropped."""
    elapsed = bound.replace(tzinfo=None) - EPOCH
    return elapsed.days * DAY + elapsed.seconds + elapsed.microseconds / 1e6


def datetime_text(value: float) -> str:
    """Write seconds since 1970-01-01 for people: without seconds where there are none.

    >>> datetime_text(86_460.0), datetime_text(86_461.0)
    ('1970-01-02 00:01', '1970-01-02 00:01:01')
    """
    return datetime_of(value).isoformat(" ", "seconds" if value % MINUTE else "minutes")


def read_month(text: str, pattern: str | None = None) -> float:
    """Read a year and month, as months since 1970-01: by a strptime pattern, or else ISO 8601.

    The day of a date is dropped; what is neither is NaN.

    >>> read_month("1970-03"), read_month("3/1970", "%m/%Y"), read_month("1970-03-31")
    (2.0, 2.0, 2.0)
    """
    moment = _moment(f"{text}-01" if _ISO_MONTH.fullmatch(text) else text, pattern)
    return math.nan if moment is None else float(months_of_date(moment))


def write_month(value: float) -> str:
    """Write months since 1970-01 in ISO 8601.

    >>> write_month(2.0)
    '1970-03'
    """
    return date_of_month(value).isoformat()[:7]


def date_of_month(value: float) -> date:
    """Return the first day of the month so many months after 1970-01."""
    year, month = divmod(int(value), 12)
    return date(1970 + year, month + 1, 1)


def months_of_date(bound: date) -> int:
    """Return the months from 1970-01 to that of a date."""
    return 12 * (bound.year - 1970) + bound.month - 1


def is_month_format(pattern: str) -> bool:
    """Tell whether a strptime pattern reads the year and month that it writes."""
    try:
        read = datetime.strptime(datetime(2001, 2, 1).strftime(pattern), pattern)
    except (ValueError, LookupError, re.error):  # the last: a directive that occurs twice
        return False
    return (read.year, read.month) == (2001, 2)


def is_date_format(pattern: str) -> bool:
    """Tell whether a strptime pattern reads the date that it writes."""
    try:
        return datetime.strptime(datetime(2001, 2, 3).strftime(pattern), pattern).year == 2001
    except (ValueError, LookupError, re.error):  # the last: a directive that occurs twice
        return False


def _moment(text: str, pattern: str | None) -> datetime | None:
    moment = _by_pattern(text, pattern) if pattern else None
    return _by_iso(text) if moment is None else moment


def _by_pattern(text: str, pattern: str) -> datetime | None:
    try:
        return datetime.strptime(text, pattern)
    except ValueError:
        return None


def _by_iso(text: str) -> datetime | None:
    if not _ISO_DATE.match(text):  # fromisoformat alone would take 20000110 and 2000-W02-1
        return None
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None


_NO_DATE_FORMAT = (
    "is not a date format; write it with %d, %m and %Y, each directive once: '%d.%m.%Y' reads "
    "31.12.2015"
)
_DATE_FORMATS = (
    *("%Y-%m-%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d"),
    *("%Y.%m.%d", "%Y%m%d", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%d-%b-%Y", "%d %b %Y"),
    *("%d%b%Y", "%d-%b-%y", "%b %d, %Y", "%d. %B %Y", "%B %d, %Y", "%d %B %Y"),
)
_CLOCK_FORMATS = ("%H.%M", "%Hh%M", "%H:%M Uhr", "%H.%M Uhr", "%H%M", "%I:%M %p", "%I:%M:%S %p")
_TIME_ENDINGS = (
    *("", " %H:%M", " %H:%M:%S", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p"),
    *(" %Hh%M", " à %Hh%M", " %H h %M", " %H.%M", ", %H:%M"),
)
_DATETIME_FORMATS = tuple(day + ending for ending in _TIME_ENDINGS for day in _DATE_FORMATS)
_MONTH_FORMATS = ("%m/%Y", "%m.%Y", "%m-%Y", "%Y/%m", "%Y%m", "%b %Y", "%b-%y", "%B %Y", "%m/%y")
_ALL = (
    ColumnType(
        name="integer",
        family=Family.NUMBER,
        noun="whole number",
        arrow="int64",
        croissant="sc:Integer",
        table_schema="integer",
        parquet_schema="integer",
        spelling=r"[+-]?[0-9]+",
        whole=True,
        step=1,
        is_quantity=True,
        is_key=True,
    ),
    ColumnType(
        name="number",
        family=Family.NUMBER,
        noun="number",
        arrow="double",
        croissant="sc:Float",
        table_schema="number",
        parquet_schema="number",
        spelling=r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?",
        is_quantity=True,
    ),
    ColumnType(
        name="boolean",
        family=Family.TRUTH,
        noun="true or false",
        arrow="bool",
        croissant="sc:Boolean",
        table_schema="boolean",
        parquet_schema="boolean",
    ),
    ColumnType(
        name="string",
        family=Family.TEXT,
        noun="category",
        arrow="string",
        croissant="sc:Text",
        table_schema="string",
        parquet_schema="string",
        is_key=True,
    ),
    ColumnType(
        name="date",
        family=Family.TIME,
        noun="date",
        arrow="date32[day]",
        croissant="sc:Date",
        table_schema="date",
        parquet_schema="date",
        spelling=r"[0-9]{4}-[0-9]{2}-[0-9]{2}",
        read=read_date,
        write=write_date,
        bound=date_of,
        value=days_of_date,
        too_fine="a date has no time of day; declare type datetime or drop it",
        takes=is_date_format,
        formats=_DATETIME_FORMATS,
        wrong_format=_NO_DATE_FORMAT,
        step=1,
        unit=DAYS,
        seconds=DAY,
        gaps=("d", "wk", YEAR),
        usual_gap="d",
        calendar=("weekday", "month"),
        ucum="d",
        example="2015-12-31",
    ),
    ColumnType(
        name="datetime",
        family=Family.TIME,
        noun="date and time",
        arrow="timestamp[us]",
        croissant="sc:DateTime",
        table_schema="datetime",
        parquet_schema="datetime",
        spelling=r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}",
        read=read_datetime,
        write=write_datetime,
        label=datetime_text,
        bound=datetime_of,
        value=seconds_of_datetime,
        too_fine="a bound has whole seconds",
        takes=is_date_format,
        formats=_DATETIME_FORMATS,
        wrong_format=_NO_DATE_FORMAT,
        step=MINUTE,
        unit=SECONDS,
        seconds=1,
        gaps=("s", "min", "h", "d", "wk"),
        usual_gap="min",
        calendar=("weekday", "month", "hour"),
        ucum="s",
        example="2015-12-31T08:30:00",
    ),
    ColumnType(
        name="time",
        family=Family.CLOCK,
        noun="time of day",
        arrow="time32[ms]",
        croissant="sc:Time",
        table_schema="time",
        parquet_schema="time",
        spelling=r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]",
        read=read_clock,
        write=write_clock,
        label=clock_text,
        bound=clock_of,
        value=clock_seconds,
        whole_range=the_day,
        takes=is_clock_format,
        formats=_CLOCK_FORMATS,
        wrong_format="is not a format of times, such as '%H:%M'",
        step=MINUTE,
        example="08:30",
    ),
    ColumnType(
        name="year",
        family=Family.NUMBER,
        noun="year",
        arrow="int64",
        croissant="sc:Integer",
        table_schema="year",
        parquet_schema="integer",
        spelling=r"[0-9]{4}",
        whole=True,
        step=1,
        bounds=(1, 9999),
        digits=4,
    ),
    ColumnType(
        name="yearmonth",
        family=Family.TIME,
        noun="year and month",
        arrow="date32[day]",
        croissant="sc:Text",
        table_schema="yearmonth",
        parquet_schema="date",
        spelling=r"[0-9]{4}-(0[1-9]|1[0-2])",
        read=read_month,
        write=write_month,
        bound=date_of_month,
        value=months_of_date,
        too_fine="a year and month has no day; write it like '2015-03', or declare type date",
        takes=is_month_format,
        formats=(*_MONTH_FORMATS, *_DATE_FORMATS),
        wrong_format="is not a format of years and months, such as '%m/%Y'",
        step=1,
        unit=MONTHS,
        calendar=("month",),
        ucum="mo",
        example="2015-03",
    ),
    ColumnType(
        name="duration",
        family=Family.DURATION,
        noun="duration",
        arrow="duration[s]",
        croissant="sc:Text",
        table_schema="duration",
        parquet_schema="duration",
        spelling=r"-?P([0-9]+D)?(T([0-9]+H)?([0-9]+M)?([0-9]+S)?)?",
        read=read_duration,
        write=write_duration,
        bound=duration_of,
        value=duration_seconds,
        takes=takes_none,
        wrong_format="is not read: durations are written like P1DT12H or 36:00; leave format out",
        whole=True,
        step=MINUTE,
        ucum="s",
        example="P1DT12H",
        is_quantity=True,
    ),
)
TYPES: dict[str, ColumnType] = {one.name: one for one in _ALL}


def type_of(name: str) -> ColumnType:
    """Return a type by its name.

    A column of role drop may have any type of Table Schema; those that dpsynth does not read are in
    the family `Family.UNREAD`.
    """
    return TYPES.get(name) or ColumnType(name, Family.UNREAD, name, "", "", name, name)
