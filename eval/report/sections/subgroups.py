"""The section of the internal report on subgroups: who is served worst."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dpsynth.eval.report import (
    Block,
    Cell,
    Paragraph,
    ReportTable,
    Row,
    Section,
    counted,
    figure,
    formatting,
    percent,
    sparklines,
)

Details = Mapping[str, Any]


def subgroups(groups: Sequence[Details]) -> Section | None:
    """Return every declared group with its size and its measures, the worst marked."""
    if not groups:
        return None
    names = list(dict.fromkeys(name for one in groups for name in one.get("tstr") or {}))
    maximum = max(one.get(k) or 0.0 for one in groups for k in ("tvd2", "chance_tvd2"))
    head = ["Group", "Rows: source / synthetic / holdout", "Share: source / synthetic"]
    head += ["Distance, one-way", "Distance, two-way [by chance]", "Picture"]
    head += [f"Model for {formatting.shown(name)} [trained on source]" for name in names]
    rows = [_row(group, names, maximum) for group in groups]
    worst = [one for one in groups if one.get("worst")]
    small = sum(one.get("tvd2") is None for one in groups)
    finding = counted(len(groups), "group")
    if worst:
        finding += "; worst: " + ", ".join(_name(one) for one in worst)
        if worst[0].get("tvd2") is not None:
            finding += f", two-way distance {_bracketed(worst[0])}"
    reading = (
        "The same measures within each declared group, in the same order everywhere. A small group "
        "is far from itself by chance alone: hold each distance against the one in brackets."
    )
    blocks: list[Block] = [Paragraph(reading), ReportTable.of("Measures by group", head, rows)]
    if small:
        text = f"{counted(small, 'group')} with too few rows: counted, and not measured."
        blocks.append(Paragraph(text, "quiet"))
    return Section("subgroups", "Subgroups", finding, tuple(blocks))


def _name(group: Details) -> str:
    return formatting.shown(group.get("title") or f"{group['column']} = {group['level']}")


def _row(group: Details, names: Sequence[str], maximum: float) -> Row:
    counts = [group.get(key) for key in ("n_source", "n_synthetic", "n_holdout")]
    shares = [group.get(key) for key in ("share_source", "share_synthetic")]
    marked = bool(group.get("worst"))
    title: Cell = _name(group)
    if marked:
        title = Markup('{} <strong class="worst">▲ worst</strong>').format(title)
    picture: Cell = "–"
    if group.get("tvd2") is not None:
        distance = {"value": group["tvd2"], "chance": group.get("chance_tvd2"), "best": 0.0}
        picture = sparklines.score(distance, maximum)
    cells: list[Cell] = [title, " / ".join(figure(n) for n in counts if n is not None)]
    cells += [" / ".join(percent(share) for share in shares), figure(group.get("tvd1"), 3)]
    cells += [_bracketed(group), picture]
    cells += [_model((group.get("tstr") or {}).get(name)) for name in names]
    return Row(tuple(cells), marked)


def _bracketed(group: Details) -> str:
    if group.get("tvd2") is None:
        return "–"
    chance = group.get("chance_tvd2")
    return figure(group["tvd2"], 3) + (f" [{figure(chance, 3)}]" if chance is not None else "")


def _model(entry: Details | None) -> str:
    if not entry or entry.get("value") is None:
        return "–"
    real = f" [{figure(float(entry['trtr']), 3)}]" if entry.get("trtr") is not None else ""
    return figure(float(entry["value"]), 3) + real
