"""The bounds of dates and datetimes as a document writes them."""

from __future__ import annotations

import re
from datetime import datetime

_CLOCK = re.compile(r"[T _-]+%H.*$")


def moment_text(text: str, pattern: str | None, kind: str, *, last: bool) -> str:
    """Return a bound of a datetime that names the day only with its time; others as they stand.

    Args:
        text: as written; empty for none.
        pattern: of the column's dates, ``default`` for ISO 8601, None if it is not known.
        kind: ``date`` or ``datetime``.
        last: whether it is the maximum, which holds its whole day.

    >>> moment_text("31/12/2024", "%d/%m/%Y %H:%M", "datetime", last=True)
    '2024-12-31T23:59:00'
    >>> moment_text("2023-01-01", "default", "datetime", last=False)
    '2023-01-01T00:00:00'
    >>> moment_text("soon", "%d/%m/%Y %H:%M", "datetime", last=False)
    'soon'
    """
    if kind != "datetime" or not text or pattern is None:
        return text
    days = "%Y-%m-%d" if pattern == "default" else _CLOCK.sub("", pattern)
    try:
        day = datetime.strptime(text.strip(), days)
    except ValueError:
        return text
    return f"{day:%Y-%m-%d}T{'23:59:00' if last else '00:00:00'}"
