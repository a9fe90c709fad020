"""Values beyond the source's range in the internal report: which columns, and what it means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report import Block, Heading, Paragraph, ReportTable, Row, formatting, percent

Details = Mapping[str, Any]
SHOWN = 0.001  # share of a column's values from which it is named


def beyond(entries: Sequence[Details]) -> tuple[str, list[Block]]:
    """Return a finding and blocks on the columns with values beyond the source's range."""
    concerned = sorted(
        (entry for entry in entries if entry["synthetic"] > max(SHOWN, entry["holdout"] or 0.0)),
        key=lambda entry: -entry["synthetic"],
    )
    blocks: list[Block] = [Heading("Values beyond the source's range")]
    if not concerned:
        text = (
            f"In no numeric column are more than {percent(SHOWN)} of the synthetic values, and "
            "more than of the holdout's, below the lowest or above the highest value of the source."
        )
        return "hardly any values beyond the source's range", [*blocks, Paragraph(text)]
    worst = concerned[0]
    known = worst["holdout"] is not None
    text = (
        f"{percent(worst['synthetic'])} of the synthetic values of {_name(worst)} are where no "
        "real row is. They come from noise in cells that hold no rows, so do not use the extreme "
        "values of these columns. A bound closer to what can occur, an interval in place of two "
        "dates, or more epsilon makes them fewer."
    )
    head = ("Column", "Below", "Above", *(("Holdout, both",) if known else ()))
    rows = [
        Row(
            (
                _name(entry),
                percent(entry["below"]),
                percent(entry["above"]),
                *((percent(entry["holdout"]),) if known else ()),
            )
        )
        for entry in concerned
    ]
    caption = "Values beyond the source's range, share of values"
    finding = f"{percent(worst['synthetic'])} of {_name(worst)} beyond the source's range"
    return finding, [*blocks, Paragraph(text), ReportTable.of(caption, head, rows)]


def _name(entry: Details) -> str:
    return formatting.shown(str(entry["title"]))
