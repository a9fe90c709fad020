"""Dates and times of SPSS, SAS and Stata: numbers since a start of each program's own.

What a number means follows from the format of its column.

- SPSS: seconds since 1582-10-14, for dates as well
- SAS: days (formats of dates) or seconds (formats of dates and times) since 1960-01-01
- Stata: days (``%td``) or milliseconds (``%tc``) since 1960-01-01
- times of day: seconds since midnight; in Stata, milliseconds whose format shows no date
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timedelta

from dpsynth.tables.text_columns import cell_text

_DAY = 86_400  # seconds
_STARTS = {
    "SPSS": datetime(1582, 10, 14),
    "SAS": datetime(1960, 1, 1),
    "Stata": datetime(1960, 1, 1),
}
_SPSS_TIMES = re.compile(r"(A|E|J|S)?DATE\d*|DATETIME[\d.]*|YMDHMS[\d.]*|(QYR|MOYR|WKYR)\d*")
_SPSS_CLOCKS = re.compile(r"(D|M)?TIME[\d.]*|(WKDAY|MONTH)\d*")
_SPSS_DAY = re.compile(r"TIME[\d.]*")
_SAS_DAY = re.compile(r"(TIME|TIMEAMPM|HHMM|(E8601|B8601|IS8601)TM)[\d.]*")
_STATA_DAY = re.compile(r"%-?tc[Hh]+([:._]*(MM|mm|SS|ss|s+))*([_.]*(am|AM|a\.m\.|A\.M\.))?")
_STATA_TIMES = re.compile(r"%-?(t?d|tc)")
_SAS_DATES = re.compile(
    r"(DATE|DAY|DDMMYY[BCDNPS]?|MMDDYY[BCDNPS]?|YYMMDD[BCDNPS]?|YYMM[CDNPS]?|MMYY[CDNPS]?|MONYY"
    r"|YYMON|JULIAN|WEEKDATE|WEEKDATX|WORDDATE|WORDDATX|(E8601|B8601|IS8601)DA|NLDATE|EURDFDD"
    r"|EURDFDE|MINGUO)[\d.]*"
)
_SAS_TIMES = re.compile(r"(DATETIME|DATEAMPM|MDYAMPM|(E8601|B8601|IS8601)DT|NLDATM|EURDFDT)[\d.]*")
_SAS_CLOCKS = re.compile(r"(TIME|TIMEAMPM|TOD|HHMM|HOUR|MMSS|(E8601|B8601|IS8601)TM)[\d.]*")


def is_time(form: str, program: str) -> bool:
    """Tell whether a format shows a date, or a date and time.

    >>> is_time("DATE11", "SPSS"), is_time("%td", "Stata"), is_time("F8.2", "SPSS")
    (True, True, False)
    """
    if is_clock(form, program):
        return False
    if program == "Stata":  # %tC, which counts leap seconds, is not read
        return _STATA_TIMES.match(form) is not None
    form = form.upper()
    if program == "SPSS":
        return _SPSS_TIMES.fullmatch(form) is not None
    return _SAS_DATES.fullmatch(form) is not None or _SAS_TIMES.fullmatch(form) is not None


def is_clock(form: str, program: str) -> bool:
    """Tell whether a format shows a time of day.

    >>> is_clock("TIME8", "SPSS"), is_clock("%tcHH:MM", "Stata"), is_clock("%tc", "Stata")
    (True, True, False)
    """
    if program == "Stata":
        return _STATA_DAY.fullmatch(form) is not None
    return (_SPSS_DAY if program == "SPSS" else _SAS_DAY).fullmatch(form.upper()) is not None


def clock_text(value: float, program: str) -> str | None:
    """Return a time of day as text, or the number itself where no clock shows it.

    >>> clock_text(30_600.0, "SPSS"), clock_text(90_000.0, "SAS")
    ('08:30:00', '90000')
    """
    if value != value:
        return None
    micro = round(float(value) * (1_000 if program == "Stata" else 1_000_000))
    if not 0 <= micro < _DAY * 1_000_000:
        return cell_text(value)
    return (datetime.min + timedelta(microseconds=micro)).time().isoformat()


def is_other_time(form: str, program: str) -> bool:
    """Tell whether a format shows what dpsynth reads neither as number, nor date, nor time."""
    if is_clock(form, program):
        return False
    if program == "Stata":
        return re.match(r"%-?t", form) is not None and not is_time(form, program)
    form = form.upper()
    clocks = _SPSS_CLOCKS if program == "SPSS" else _SAS_CLOCKS
    return clocks.fullmatch(form) is not None


def date_text(value: float, form: str, program: str) -> str | None:
    """Return a date in ISO 8601, or the number itself where no calendar has it.

    >>> date_text(13_200_537_600.0, "DATETIME20", "SPSS")
    '2001-02-03'
    """
    if value != value:
        return None
    seconds = float(value)
    if program == "Stata":
        seconds = seconds / 1000 if re.match(r"%-?tc", form) else seconds * _DAY
    elif program == "SAS" and _SAS_TIMES.fullmatch(form.upper()) is None:
        seconds = math.floor(seconds) * _DAY
    try:
        moment = _STARTS[program] + timedelta(seconds=seconds)
    except (OverflowError, ValueError):
        return cell_text(value)
    if moment.hour or moment.minute or moment.second or moment.microsecond:
        return moment.isoformat(sep=" ")
    return moment.date().isoformat()
