"""The events that read a table's steps, by name, and the public settings of what follows them."""

from __future__ import annotations

from dataclasses import dataclass

from dpsynth.models.histories.domain import HistoryTable

LINES = "where the next value lies"
GAPS = "days between rows"
ONE_WAY = "one-way histograms"
PAIRS = "two-way histograms"
AGAIN = "two-way histograms that stand out"

MIN_MASS = 150
"""Patients with a step in a series; with fewer, its columns are drawn one by one."""


def event_name(table: HistoryTable, kind: str) -> str:
    """Name an event of a table's steps."""
    return f"{table.name}, steps: {kind}"


@dataclass(frozen=True)
class StepSettings:
    """Settings of the fit of a step table; public.

    Attributes:
        bins: that a smooth value is cut into, about.
        components: of each mixture.
        steps: of a round of its fit.
        tie: as in `fit_products`.
    """

    bins: int
    components: int
    steps: int
    tie: float
