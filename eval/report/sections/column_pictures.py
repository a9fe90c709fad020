"""Pictures of single columns in the internal report: one distribution in every table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report import (
    Block,
    Chart,
    Expandable,
    Pictures,
    ReportTable,
    Row,
    counted,
    fidelity_charts,
    formatting,
    percent,
)

FIRST = 12  # columns that are shown at once; the others are to be opened
Details = Mapping[str, Any]


def title_of(column: Details) -> str:
    """Name a column for people."""
    return str(column.get("title") or column["name"])


def pictures_of(figures: Sequence[Chart]) -> list[Block]:
    """Return the first pictures, and the others to be opened."""
    blocks: list[Block] = [Pictures(tuple(figures[:FIRST]), key="columns")] if figures else []
    if rest := figures[FIRST:]:
        title = f"{counted(len(rest), 'column')} more, closer to the source"
        blocks.append(Expandable(title, (Pictures(tuple(rest), key="columns"),)))
    return blocks


def picture_of(column: Details) -> Chart:
    """Draw the distribution of a column in every table, with its figures."""
    title, unit = title_of(column), column.get("unit")
    tables = [n for n in ("source", "synthetic", "holdout") if column.get(n) is not None]
    top = {n: column["bins"][max(range(len(column[n])), key=column[n].__getitem__)] for n in tables}
    label = f"{title}: shares of {counted(len(column['bins']), 'bin')}; most common: " + ", ".join(
        f"{name} {top[name]}" for name in tables
    )
    rows = [
        Row((str(name), *(percent(column[table][place]) for table in tables)))
        for place, name in enumerate(column["bins"])
    ]
    lost = column.get("missing") or {}
    if any(lost.get(name) for name in tables):
        rows.append(Row(("missing (of all rows)", *(percent(lost.get(name)) for name in tables))))
    caption = f"{title}: share of rows"
    tvd = column.get("tvd") or {}
    figures = " ".join(formatting.measure("tvd1", tvd)) if tvd.get("value") is not None else ""
    height = 170
    if column["kind"] != "numeric":
        height = 58 + (19 if len(column["bins"]) <= 10 else 14) * len(column["bins"])
    return Chart(
        f"{title} ({unit})" if unit else title,
        label,
        fidelity_charts.distribution(column),
        height,
        figures=figures,
        table=ReportTable.of(caption, ("Value", *tables), rows),
    )
