"""Times of day and durations: read from text, written back, and counted in seconds.

A time of day counts from midnight, which is 0; one second before the next is 86 399. ``24:00`` is
no time of day, but it is a duration.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, time, timedelta

WHOLE_DAY = "the whole day"  # the basis of bounds that a schema need not declare
_PLAIN = re.compile(r"([01]?[0-9]|2[0-3]):([0-5][0-9])(?::([0-5][0-9])(?:\.([0-9]+))?)?")
_DAY = 86_400  # seconds
_LONGEST = 10_000 * 366 * _DAY  # no dates that a schema can hold lie farther apart
_ISO_DURATION = re.compile(
    r"(-?)P(?!$)(?:([0-9]{1,9})W)?(?:([0-9]{1,9})D)?"
    r"(?:T(?!$)(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,9}(?:\.[0-9]+)?)S)?)?"
)
_HOURS_AND_MINUTES = re.compile(
    r"(-?)()(?:([0-9]{1,9}) ?(?:days?|d),? )?"
    r"([0-9]{1,9}):([0-5][0-9])(?::([0-5][0-9](?:\.[0-9]+)?))?"
)
_DATE_WORDS = re.compile(r"%[aAwdbBmyYjUWcxGuVD]")


def read_clock(text: str, pattern: str | None = None) -> float:
    """Read a time of day, as seconds since midnight: by a strptime pattern, or else HH:MM[:SS].

    What is no time of day is NaN, and so is a date with a time. Digits of a second after the sixth
    are dropped.

    >>> read_clock("08:30"), read_clock("8:30:15.5"), read_clock("8.30", "%H.%M")
    (30600.0, 30615.5, 30600.0)
    """
    if pattern is not None:
        try:
            return clock_seconds(datetime.strptime(text, pattern).time())
        except ValueError:
            pass
    match = _PLAIN.fullmatch(text) if text.isascii() else None
    if match is None:
        return math.nan
    hour, minute, second = (int(part or 0) for part in match.groups()[:3])
    micro = int((match[4] or "")[:6].ljust(6, "0"))
    return hour * 3600 + minute * 60 + second + micro / 1e6


def clock_seconds(moment: time) -> float:
    """Return the seconds from midnight to a time of day.

    >>> clock_seconds(time(8, 30))
    30600.0
    """
    whole = moment.hour * 3600 + moment.minute * 60 + moment.second
    return whole + moment.microsecond / 1e6


def clock_of(seconds: float) -> time:
    """Return the time of day that many seconds after midnight, in whole seconds.

    >>> clock_of(30_600.0)
    datetime.time(8, 30)
    """
    whole = int(seconds)
    return time(whole // 3600, whole // 60 % 60, whole % 60)


def write_clock(seconds: float) -> str:
    """Write a time of day in ISO 8601.

    >>> write_clock(30_600)
    '08:30:00'
    """
    return clock_of(seconds).isoformat("seconds")


def clock_text(seconds: float) -> str:
    """Write a time of day for people: without seconds where there are none.

    >>> clock_text(30_600), clock_text(30_615)
    ('08:30', '08:30:15')
    """
    moment = clock_of(seconds)
    return moment.isoformat("seconds" if moment.second else "minutes")


def the_day(pattern: str | None) -> dict[str, time | None]:
    """Return the first and last time of day, to the second, or as far as a format can hold them.

    >>> the_day("%H:%M")
    {'minimum': datetime.time(0, 0), 'maximum': datetime.time(23, 59)}
    """
    last = time(23, 59, 59)
    if pattern is not None:
        last = datetime.strptime(last.strftime(pattern), pattern).time()
    return {"minimum": time(0), "maximum": last}


def is_clock_format(pattern: str) -> bool:
    """Tell whether a strptime pattern reads the time of day that it writes, and no date.

    >>> is_clock_format("%H.%M"), is_clock_format("%I:%M %p"), is_clock_format("%d.%m. %H:%M")
    (True, True, False)
    """
    if _DATE_WORDS.search(pattern):
        return False
    try:
        texts = [time(hour, 5).strftime(pattern) for hour in (3, 15)]
        return [datetime.strptime(text, pattern).hour for text in texts] == [3, 15]
    except (ValueError, LookupError, re.error):  # the last: a directive that occurs twice
        return False


def read_duration(text: str, pattern: str | None = None) -> float:
    """Read a duration, as whole seconds: ISO 8601, or hours and minutes, with days or without.

    Months and years are not equally long, so a text with them is NaN, as is what is no duration. A
    part of a second is rounded. There are no formats.

    >>> read_duration("P3DT4H"), read_duration("36:30"), read_duration("2 days 01:00:05")
    (273600.0, 131400.0, 176405.0)
    """
    match = _ISO_DURATION.fullmatch(text) or _HOURS_AND_MINUTES.fullmatch(text)
    if match is None or not text.isascii():
        return math.nan
    weeks, days, hours, minutes = (int(part or 0) for part in match.groups()[1:5])
    seconds = round(float(match[6] or 0))
    total = (7 * weeks + days) * _DAY + hours * 3600 + minutes * 60 + seconds
    return float(-total if match[1] else total) if total < _LONGEST else math.nan


def write_duration(seconds: float) -> str:
    """Write a duration in ISO 8601: days, hours, minutes and seconds, without parts that are zero.

    >>> write_duration(129_600), write_duration(-90), write_duration(0)
    ('P1DT12H', '-PT1M30S', 'PT0S')
    """
    days, rest = divmod(abs(int(seconds)), _DAY)
    clock = ((rest // 3600, "H"), (rest // 60 % 60, "M"), (rest % 60, "S"))
    day = f"{days}D" if days else ""
    time_part = "".join(f"{number}{unit}" for number, unit in clock if number)
    if not day and not time_part:
        return "PT0S"
    return f"{'-' if seconds < 0 else ''}P{day}{'T' if time_part else ''}{time_part}"


def duration_of(seconds: float) -> timedelta:
    """Return a duration of so many whole seconds.

    >>> duration_of(129_600.0)
    datetime.timedelta(days=1, seconds=43200)
    """
    return timedelta(seconds=int(seconds))


def duration_seconds(duration: timedelta) -> float:
    """Return how many seconds a duration has.

    >>> duration_seconds(timedelta(days=1))
    86400.0
    """
    return duration.total_seconds()
