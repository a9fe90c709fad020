"""Several date formats of one column, and the pairs of them that read one text as two dates.

The first format that reads a cell wins. That is safe only where no later format would read the same
text as another date, so an ambiguous pair, such as ``%d/%m/%Y`` and ``%m/%d/%Y``, is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cache
from itertools import permutations

from dpsynth.schema.types import ColumnType

DEFAULT = "default"  # ISO 8601
_DAYS_PROBED = 366
_YEARS_PROBED = range(1969, 2069)  # those that a year of two digits can mean


def pattern_of(text: str) -> str | None:
    """Return a format as a strptime pattern, None for ISO 8601."""
    return None if text == DEFAULT else text


@cache
def ambiguous(formats: tuple[str, ...], kind: ColumnType) -> tuple[str, str] | None:
    """Return the first pair of formats that read one text as two dates; None if there is none.

    Every day of one year, and one day of each year from 1969 to 2068, is written in each format,
    also without leading zeros, and read by the others.

    >>> from dpsynth.schema.types import TYPES
    >>> ambiguous(("%d/%m/%Y", "%m/%d/%Y"), TYPES["date"])
    ('%d/%m/%Y', '%m/%d/%Y')
    >>> ambiguous(("%d.%m.%Y", "default"), TYPES["date"])
    """
    assert kind.read is not None
    for first, second in permutations(formats, 2):
        for text in _texts(first):
            value = kind.read(text, pattern_of(first))
            other = kind.read(text, pattern_of(second))
            if value == value and other == other and value != other:
                pair = sorted((first, second), key=formats.index)
                return pair[0], pair[1]
    return None


def _texts(pattern: str) -> Iterator[str]:
    start = datetime(2012, 1, 1, 4, 5, 6)
    moments = [start + timedelta(days=day, hours=day % 19) for day in range(_DAYS_PROBED)]
    moments += [datetime(year, 2, 3, 17, 8, 9) for year in _YEARS_PROBED]
    for moment in moments:
        if pattern == DEFAULT:
            yield moment.date().isoformat()
            yield moment.isoformat()
            continue
        yield moment.strftime(pattern)
        yield _bare(moment, pattern)


def _bare(moment: datetime, pattern: str) -> str:
    """Write a date without leading zeros of day, month, hour, minute and second."""
    numbers = {"%d": moment.day, "%m": moment.month, "%H": moment.hour}
    numbers |= {"%M": moment.minute, "%S": moment.second}
    for directive, number in numbers.items():
        pattern = pattern.replace(directive, str(number))
    return moment.strftime(pattern)
