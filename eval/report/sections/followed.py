"""Derived columns, dates of intervals and the calendar in the internal report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report import (
    Block,
    Paragraph,
    ReportTable,
    Row,
    Section,
    estimate,
    figure,
    formatting,
)
from dpsynth.eval.report.sections.column_pictures import picture_of, pictures_of, title_of

WORST = 10  # pairs in the table
Details = Mapping[str, Any]


def followed(details: Details) -> Section | None:
    """Return derived columns, dates of intervals and the calendar, the farthest first."""
    if not (entries := details.get("followed")):
        return None
    order = sorted(entries, key=lambda column: -((column.get("tvd") or {}).get("value") or 0.0))
    figures = [picture_of(column) for column in order if column.get("source") is not None]
    text = (
        "These are not modelled, they follow from columns that are: derived columns by their "
        "formula, a date from its interval, and hour, weekday and month from a date. Unless the "
        "schema keeps them (calendar), weekdays and hours are only as good as the dates."
    )
    blocks: tuple[Block, ...] = (Paragraph(text), *pictures_of(figures))
    if pairs := details.get("followed_pairs"):
        blocks = (*blocks, _pairs(pairs))
    worst = order[0]
    far = f"farthest: {formatting.shown(title_of(worst))}, distance {estimate(worst.get('tvd'))}"
    return Section("followed", "Derived columns and the calendar", far, blocks)


def _pairs(entries: Sequence[Details]) -> ReportTable:
    """Return the correlations of derived columns that differ most."""
    order = sorted(entries, key=lambda one: -abs(one["synthetic"] - one["source"]))
    rows = [
        Row(
            (
                formatting.shown(one["column"]),
                formatting.shown(one["with"]),
                figure(float(one["source"]), 2),
                figure(float(one["synthetic"]), 2),
            )
        )
        for one in order[:WORST]
    ]
    head = ("Derived column", "With", "Source", "Synthetic")
    return ReportTable.of("Correlations of derived columns that differ most", head, rows)
