"""The kinds of findings that single tables do not have, with their limits."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpsynth.inspection.findings import Limits

STRANGERS, NO_ROWS, TWICE, VARYING, WRITTEN = (
    *("strangers", "no-rows", "twice", "varying", "written-differently"),
)
NO_ORIGIN, TIMELESS, EARLY, LATE = "no-origin", "timeless", "early", "late"
NOT_LAST = "not-last"
CROWD, AGAIN, LONG_GAP, UNLINKED = "crowd", "again", "long-gap", "unlinked"

# docs/cohorts.md lists them.
LINKED_LIMITS: Mapping[str, Limits] = {
    STRANGERS: Limits(0.01, 0.05),  # of the rows with a key
    NO_ROWS: Limits(0.50, math.inf),  # of the patients; serious where it is all of them
    TWICE: Limits(0.0, 0.0),  # of the patients; a fit stops
    VARYING: Limits(0.10, 0.50),  # of the patients with several rows
    WRITTEN: Limits(0.0, math.inf),  # of the patients; a question about `key`
    NO_ORIGIN: Limits(0.01, 0.05),  # of the patients
    TIMELESS: Limits(0.01, 0.05),  # of the rows of a patient
    EARLY: Limits(0.01, 0.10),  # of the rows with a day
    LATE: Limits(0.01, 0.10),
    NOT_LAST: Limits(0.01, 0.10),  # of the patients with the event
    CROWD: Limits(0.0, math.inf),  # of the patients
    AGAIN: Limits(0.10, 0.50),  # of the events of a patient
    LONG_GAP: Limits(0.01, 0.10),  # of the gaps between two rows of a patient
    UNLINKED: Limits(0.01, math.inf),  # of the rows that point to a row; it is not modelled
}
LINKED_KINDS = tuple(LINKED_LIMITS)


def bracket(count: int) -> str:
    """Say a largest count by its power of ten only: the exact one is about one patient.

    >>> bracket(7), bracket(340), bracket(10_000)
    ('below 10', 'between 100 and 999', 'between 10,000 and 99,999')
    """
    if count < 10:
        return "below 10"
    low = 10 ** (len(str(count)) - 1)
    return f"between {low:,} and {10 * low - 1:,}"
