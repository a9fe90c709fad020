"""The column types: everything that dpsynth knows about each, in one table.

The rest of the code asks the fields of a `ColumnType` and never compares its name, so a new type is
one entry of `TYPES` and, where its text is not a plain number, one parser.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum

from dpsynth._util.clock import read_clock
from dpsynth._util.short_repr import short_repr

EPOCH_DAY = date(1970, 1, 1).toordinal()
DAY = 86_400  # seconds
MINUTE = 60  # seconds; the default step of a date and time
DAYS, SECONDS = "D", "s"  # units of time, as NumPy names them
_ISO_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}([T ]|$)")


class Family(StrEnum):
    """What the values of a type are, in the words of messages: values of one family compare."""

    NUMBER = "number"
    TRUTH = "boolean"
    TIME = "date"
    CLOCK = "time of day"
    TEXT = "text"
    UNREAD = "unread"


@dataclass(frozen=True)
class ColumnType:
    r"""One type of a column.

    A cell of a number or a time is a float64 in the unit of the column's lattice: the number
    itself, days or seconds since 1970-01-01, or, for a time of day, seconds since midnight.

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
        whole: whether values are whole numbers.
        step: distance of two lattice points, in the value's unit, where a column declares none;
            None where the declared bounds decide.
        bounds: least and greatest value that a declared bound may have; None for any.
        unit: `DAYS` or `SECONDS` for a time.
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
    whole: bool = False
    step: int | None = None
    bounds: tuple[int, int] | None = None
    unit: str | None = None
    example: str = ""
    is_quantity: bool = False
    digits: int = 0
    is_key: bool = False

    def __repr__(self) -> str:
        """Name the type."""
        return short_repr(self, self.name)

    @property
    def is_number(self) -> bool:
        """Whether values are numbers."""
        return self.family is Family.NUMBER

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
    def in_days(self) -> bool:
        """Whether values are days."""
        return self.unit == DAYS

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
        step=1,
        unit=DAYS,
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
        step=MINUTE,
        unit=SECONDS,
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
)
TYPES: dict[str, ColumnType] = {one.name: one for one in _ALL}


def type_of(name: str) -> ColumnType:
    """Return a type by its name.

    A column of role drop may have any type of Table Schema; those that dpsynth does not read are in
    the family `Family.UNREAD`.
    """
    return TYPES.get(name) or ColumnType(name, Family.UNREAD, name, "", "", name, name)
