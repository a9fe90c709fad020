"""Tables of figures of histories: distances beside references, and numbers in plain units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report import (
    Block,
    Expandable,
    ReportTable,
    Row,
    counted,
    estimate,
    figure,
    key_figures,
    percent,
    sparklines,
)
from dpsynth.eval.report.formatting import decimals

Details = Mapping[str, Any]
FIRST = 12  # lines of a table before the others


def distances(document: Details, caption: str, family: str) -> list[Block]:
    """Return the figures of a family by column or series, the farthest first."""
    ones = [
        (entry["title"], entry, key)
        for key, entry in document["measures"].items()
        if key.startswith(f"{family}:")
    ]
    ones.sort(key=lambda one: -one[1]["value"])
    reach = max((max(e["value"], e["high"] or 0.0) for _, e, _ in ones), default=0.0)
    rows = []
    for title, entry, key in ones:
        told = key_figures.show(key, entry)
        picture = sparklines.score(entry, reach)
        cells = (title, told.value, told.references.strip("[]"), told.verdict or "–", picture)
        rows.append(Row(cells))
    head = (
        "Figure",
        "Distance (interval)",
        "Held against",
        "From best, beside a holdout",
        "Picture",
    )
    return lined(caption, head, rows, "figure")


def spoken(caption: str, ones: Sequence[tuple[str, Details]]) -> list[Block]:
    """Return numbers in plain units: source and synthetic with intervals, and the holdout."""
    rows = []
    for name, one in ones:
        sides = [one["source"], one["synthetic"]]
        ends = [side[key] for side in sides for key in ("value", "low", "high")]
        known = [end for end in ends if end is not None] or [0.0, 1.0]
        room = 0.1 * (max(known) - min(known) or 1.0)
        strip = sparklines.intervals(*sides, minimum=min(known) - room, maximum=max(known) + room)
        rows.append(Row((name, *(_said(side, one["unit"]) for side in sides),
                         _number(one["holdout"], one["unit"]), strip)))  # fmt: skip
    head = ("Figure", "source (interval)", "synthetic (interval)", "holdout", "Picture")
    return lined(caption, head, rows, "figure", key="pairs")


def lined(
    caption: str, head: Sequence[str], rows: Sequence[Row], noun: str, key: str = ""
) -> list[Block]:
    """Return a table whose later lines open on demand."""
    if not rows:
        return []
    blocks: list[Block] = [ReportTable.of(caption, head, rows[:FIRST], key)]
    if rest := rows[FIRST:]:
        more = ReportTable.of(f"{caption}, the others", head, rest)
        blocks.append(Expandable(f"{counted(len(rest), noun)} more", (more,)))
    return blocks


def _said(side: Details, unit: str) -> str:
    """Write a number with its interval and unit; shares as percentages."""
    if side["value"] is None:
        return "–"
    if unit != "share":
        numbers = [side[key] for key in ("value", "low", "high")]
        return f"{estimate(side, _places(numbers))} {unit}".strip()
    if side["low"] is None:
        return percent(side["value"])
    ends = "–".join(f"{100 * max(0.0, side[key]):.1f}" for key in ("low", "high"))
    return f"{100 * side['value']:.1f} ({ends}) %"


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "share":
        return f"{100 * value:.1f} %"
    return f"{figure(float(value), _places([value]))} {unit}".strip()


def _places(numbers: Sequence[float | None]) -> int:
    return min(2, decimals(numbers))
