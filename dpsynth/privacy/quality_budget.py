"""The event that pays for public quality figures: reserved in the plan, spent once after the fit.

Whether a table is good is known only by looking at real rows, so a public figure about it costs
budget like anything else. ``--publish-quality SHARE`` sets a share of a fit's budget aside for
`dpsynth.privacy.noisy_queries`; the certificate lists the event from then on, spent or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from dpsynth.errors import InputError
from dpsynth.privacy.events import UNDECIDED, ChosenHistograms, Event
from dpsynth.privacy.plan import Share
from dpsynth.schema import Column, Schema, coded_schema

QUALITY = "quality"
MIN_SHARE, MAX_SHARE = 0.005, 0.5  # of a plan's mu squared

_TOTAL, _PAIRS, _TRIPLES = 1, 1, 1  # statistics beside those of columns and targets


def targets(schema: Schema) -> tuple[Column, ...]:
    """Return the columns whose prediction is measured: targets with two categories or more.

    A target whose codes are discovered counts, however many a fit has found: the plan is older.
    """
    return tuple(
        column
        for column in schema.modelled
        if "target" in column.roles and (column.discovers or len(column.levels) > 1)
    )


def quality_event(schema: Schema) -> ChosenHistograms:
    """Return the event of a schema's public figures, before its noise is set.

    A figure is a histogram of rows, or a number that moves no more than one (see
    `dpsynth.privacy.noisy_queries`): a unit of r rows moves each by r at most.
    """
    columns = len(coded_schema(schema).modelled)
    statistics = _TOTAL + _PAIRS + _TRIPLES + columns + len(targets(schema))
    return ChosenHistograms(QUALITY, statistics, schema.unit.max_rows, UNDECIDED)


def with_quality(shares: Sequence[Share], schema: Schema, fraction: float) -> tuple[Share, ...]:
    """Set a fraction of a plan aside for quality; the other shares shrink in proportion.

    Raises:
        InputError: the fraction is out of range.
    """
    if isinstance(fraction, bool) or not MIN_SHARE <= fraction <= MAX_SHARE:
        raise InputError(
            f"the share for publishing quality must be from {MIN_SHARE:g} to {MAX_SHARE:g}"
        )
    rest = [replace(share, fraction=share.fraction * (1 - fraction)) for share in shares]
    return (*rest, Share(quality_event(schema), fraction))


def reserved(events: Iterable[Event]) -> ChosenHistograms | None:
    """Return a plan's event for quality figures; None if nothing was set aside."""
    for event in events:
        if event.name == QUALITY and isinstance(event, ChosenHistograms):
            return event
    return None
