"""The strongest relations by name, and pairs of values that no real row has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth.eval.report import (
    Block,
    Paragraph,
    ReportTable,
    Row,
    Section,
    counted,
    figure,
    percent,
)
from dpsynth.eval.report.first_facts import Relation, never_seen
from dpsynth.eval.report.first_facts import relations as read_relations

Details = Mapping[str, Any]


def relations(details: Details) -> Section | None:
    """Return the strongest relations with their strength in each table, and unseen pairs."""
    document = {"parts": {"fidelity": details}}
    entries, unseen = read_relations(document), never_seen(document)
    levels = details.get("undeclared_levels") or []
    if not entries and not unseen and not levels:
        return None
    blocks: list[Block] = []
    if entries:
        text = (
            "Cramér's V of two columns, corrected for bias: 0 is no relation, 1 is one column that "
            "follows from the other. The source alone decides which relations are listed."
        )
        blocks += [Paragraph(text), relations_table("The strongest relations", entries)]
    if unseen:
        rows = [Row((text,)) for text in unseen]
        caption = "Pairs of values that synthetic rows have and no real row has"
        blocks.append(ReportTable(caption, ("Columns and values",), tuple(rows)))
    if levels:
        rows = [Row((one["column"], percent(one["synthetic"]))) for one in levels]
        caption = "Cells with a level that is neither declared nor real, share of rows"
        blocks.append(ReportTable.of(caption, ("Column", "Synthetic"), rows))
    lost = sum(one.kept < 0.95 for one in entries)
    finding = f"{lost} of {counted(len(entries), 'strong relation')} lost a twentieth or more"
    return Section("relations", "The strongest relations", finding, tuple(blocks))


def relations_table(caption: str, entries: list[Relation]) -> ReportTable:
    """List relations with their strength in each table."""
    held = any(one.holdout is not None for one in entries)
    head = ("Relation", "Source", "Synthetic", *(("Holdout",) if held else ()), "Kept")
    rows = [
        Row(
            (
                one.title,
                figure(one.source),
                figure(one.synthetic),
                *((figure(one.holdout),) if held else ()),
                percent(one.kept),
            )
        )
        for one in entries
    ]
    return ReportTable.of(caption, head, rows)
