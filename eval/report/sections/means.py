"""Mean and outer percentiles of each numeric column in the internal report, the farthest first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report import (
    Block,
    Expandable,
    Heading,
    Paragraph,
    ReportTable,
    Row,
    counted,
    estimate,
    formatting,
)
from dpsynth.eval.report.formatting import value_text

Details = Mapping[str, Any]
FIRST = 10  # columns that are shown at once
HEAD = (
    "Column",
    "Mean",
    "Median",
    "1st percentile",
    "99th percentile",
    "Mean off by",
    "Reach off by",
)


def means(entries: Sequence[Details]) -> tuple[str, list[Block]]:
    """Return a finding and blocks on means and outer percentiles, source and synthetic."""
    order = sorted(entries, key=lambda entry: -_away(entry))
    rows = [_row(entry) for entry in order]
    caption = "Means and outer percentiles: real → synthetic"
    blocks: list[Block] = [
        Heading("Means and outer percentiles"),
        Paragraph(
            "Each cell has the value of the source and then that of the synthetic table. “Mean off "
            "by” is in standard deviations of the source. “Reach off by” is in doublings of the "
            "way from the median to the mean of the lowest or highest twentieth of the values; in "
            "brackets is the interval of 95 %."
        ),
        ReportTable.of(caption, HEAD, rows[:FIRST]),
    ]
    if len(rows) > FIRST:
        more = ReportTable.of(caption, HEAD, rows[FIRST:])
        title = f"{counted(len(rows) - FIRST, 'column')} more, closer to the source"
        blocks.append(Expandable(title, (more,)))
    worst = order[0]
    finding = f"mean farthest in {_name(worst)}, by {estimate(worst['mean'])} standard deviations"
    return finding, blocks


def _away(entry: Details) -> float:
    away = []
    for name in ("mean", "reach"):
        one = entry[name]
        expected = one["chance"] if one.get("reference") is None else one["reference"]
        away.append(one["value"] - (expected or 0.0))
    return float(max(away[0], away[1] / 2))


def _row(entry: Details) -> Row:
    cells = [
        " → ".join(value_text(entry, entry[side][name]) for side in ("source", "synthetic"))
        for name in ("mean", "median", "p01", "p99")
    ]
    name = formatting.with_unit(str(entry.get("title") or entry["column"]), entry.get("unit"))
    figures = (estimate(entry["mean"]), estimate(entry["reach"]))
    return Row((name, *cells, *figures))


def _name(entry: Details) -> str:
    return formatting.shown(str(entry.get("title") or entry["column"]))
