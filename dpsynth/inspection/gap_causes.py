"""Why the gap between two dates is outside its bounds, or cannot be computed from its own date."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from typing import Any

from dpsynth.inspection.findings import Cause
from dpsynth.schema import Column
from dpsynth.schema.relations import SECONDS, WORDS, Interval, plural


def gap_causes(interval: Interval, texts: Counter[str]) -> tuple[Cause, ...]:
    """Explain gaps that are too short, and gaps that are too long.

    Args:
        interval: the declaration.
        texts: the gaps, in its unit.

    >>> for cause in gap_causes(Interval("admitted", "d", 90), Counter({"-3": 2, "400": 1})):
    ...     print(cause.cells, cause.message)
    2 lie before admitted
    1 lie more than 90 days after admitted
    """
    gaps = {text: float(text) for text in texts}
    short = {text: "" for text, gap in gaps.items() if gap < interval.shortest}
    long = {text: "" for text, gap in gaps.items() if gap > interval.longest}
    side, other = ("before", "after") if interval.before else ("after", "before")
    if interval.shortest:
        less = f"lie less than {plural(interval.shortest, interval.unit)} {side} {interval.base}"
    else:
        less = f"lie {other} {interval.base}"
    sides = [
        (
            "order",
            short,
            less,
            "correct them in the source; or, if they are right, declare the shortest gap in "
            f"{WORDS[interval.unit]}s, less than 0 for the other side: dpsynth: {{shortest: ...}}",
        ),
        (
            "long-gap",
            long,
            f"lie more than {plural(interval.longest, interval.unit)} {side} {interval.base}",
            "compare longest with its source (bounds_basis), and correct the dates in the source",
        ),
    ]
    causes = [
        Cause(key, sum(texts[text] for text in found), message, remedy, found)
        for key, found, message, remedy in sides
        if found
    ]
    return tuple(sorted(causes, key=lambda cause: -cause.cells))


def date_of_gap(column: Column, base: Column) -> Column:
    """Return the later date of an interval as a date with bounds, to try formats with.

    Its bounds are those of the date that it leans on, as far apart as the interval allows.
    """
    assert column.interval is not None
    interval, bounds = column.interval, dict[str, Any]()
    gap = max(abs(interval.shortest), abs(interval.longest)) * SECONDS[interval.unit]
    for name, bound, side in (("minimum", base.minimum, -1), ("maximum", base.maximum, 1)):
        own: Any = bound
        if column.kind.in_days and isinstance(bound, datetime):
            own = bound.date()
        elif (
            not column.kind.in_days and isinstance(bound, date) and not isinstance(bound, datetime)
        ):
            own = datetime.combine(bound, time())
        bounds[name] = own + side * timedelta(seconds=gap)
    return replace(column, interval=None, **bounds)
