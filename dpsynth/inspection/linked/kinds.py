"""The kinds of findings that single tables do not have, with their limits."""

from __future__ import annotations

import math
from collections.abc import Mapping

from dpsynth.inspection.findings import Limits

STRANGERS, NO_ROWS, TWICE, VARYING = "strangers", "no-rows", "twice", "varying"
NO_ORIGIN, TIMELESS, EARLY, LATE = "no-origin", "timeless", "early", "late"
NOT_LAST = "not-last"
AGAIN, LONG_GAP, UNLINKED = "again", "long-gap", "unlinked"

# docs/cohorts.md lists them.
LINKED_LIMITS: Mapping[str, Limits] = {
    STRANGERS: Limits(0.01, 0.05),  # of the rows with a key
    NO_ROWS: Limits(0.50, math.inf),  # of the patients; serious where it is all of them
    TWICE: Limits(0.0, 0.0),  # of the patients; a fit stops
    VARYING: Limits(0.10, 0.50),  # of the patients with several rows
    NO_ORIGIN: Limits(0.01, 0.05),  # of the patients
    TIMELESS: Limits(0.01, 0.05),  # of the rows of a patient
    EARLY: Limits(0.01, 0.10),  # of the rows with a day
    LATE: Limits(0.01, 0.10),
    NOT_LAST: Limits(0.01, 0.10),  # of the patients with the event
    AGAIN: Limits(0.10, 0.50),  # of the events of a patient
    LONG_GAP: Limits(0.01, 0.10),  # of the gaps between two rows of a patient
    UNLINKED: Limits(0.01, math.inf),  # of the rows that point to a row; it is not modelled
}
LINKED_KINDS = tuple(LINKED_LIMITS)
