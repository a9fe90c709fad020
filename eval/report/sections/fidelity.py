"""Sections of the internal report on fidelity: columns, pairs, what is missing, ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report import (
    Block,
    Chart,
    Heading,
    Paragraph,
    Pictures,
    ReportTable,
    Row,
    Section,
    counted,
    estimate,
    fidelity_charts,
    figure,
    formatting,
    listed,
    percent,
    present,
    sparklines,
)
from dpsynth.eval.report.sections.column_pictures import picture_of, pictures_of, title_of
from dpsynth.eval.report.sections.followed import followed
from dpsynth.eval.report.sections.means import means
from dpsynth.eval.report.sections.outside import beyond
from dpsynth.eval.report.sections.queries import queries
from dpsynth.eval.report.sections.relations import relations

WORST = 10  # pairs in the table
Details = Mapping[str, Any]


def sections(details: Details) -> list[Section]:
    """Return the sections that the details allow; what is not there is left out."""
    return present(
        maker(details) for maker in (columns, followed, relations, pairs, missing, ends, queries)
    )


def columns(details: Details) -> Section | None:
    """Return distributions side by side, the farthest column first."""
    if not (entries := details.get("columns")):
        return None
    order = sorted(entries, key=lambda column: -((column.get("tvd") or {}).get("value") or 0.0))
    empty = [c for c in order if c.get("source") is None and c.get("synthetic") is None]
    figures = [picture_of(column) for column in order if column not in empty]
    blocks: list[Block] = [
        Paragraph(
            "One picture for each column, the farthest from the source first. Shares are of rows "
            "that are not missing; the figure over each picture is the total variation distance "
            "(0 is the same, 1 has nothing in common), with its references in brackets."
        ),
    ]
    blocks += pictures_of(figures)
    if empty:
        names = listed((title_of(column) for column in empty), len(empty))
        blocks.append(
            Paragraph(f"Without a value in source and synthetic table, and not drawn: {names}")
        )
    worst = order[0]
    far = f"farthest: {formatting.shown(title_of(worst))}, distance {estimate(worst.get('tvd'))}"
    finding = f"{counted(len(entries), 'column')}; {far}"
    return Section("columns", "Columns, one by one", finding, tuple(blocks))


def pairs(details: Details) -> Section | None:
    """Return heat maps of distance, correlation and information over pairs of columns."""
    part = details.get("pairs") or {}
    names = part.get("names") or []
    if len(names) < 2:
        return None
    blocks: list[Block] = []
    finding = counted(len(names) * (len(names) - 1) // 2, "pair")
    if part.get("tvd"):
        worst = _worst(names, part["tvd"])
        finding += f"; farthest: {_pair(worst[0])}, distance {figure(worst[0][2])}" if worst else ""
        table = _pairs("Pairs farthest from the source", "Distance", worst)
        spec = fidelity_charts.matrix(
            names, part["tvd"], scale="$sequential", low=0, high=fidelity_charts.reach(part["tvd"])
        )
        label = f"Distance of {counted(len(names), 'column')} in pairs; the table lists the worst"
        picture = Chart("By pair", label, spec, *_size(names))
        blocks += [
            Heading("Distance of pairs"),
            Paragraph(
                "Total variation distance of two columns together, numbers cut at the source's "
                "deciles. A row that stands out is a column that is far in all its pairs."
            ),
            Pictures((picture,), "wide"),
            table,
        ]
    if (maps := part.get("correlation")) and len(maps.get("names") or []) > 1:
        blocks += _compared("Correlation", maps["names"], maps, diverging=True)
    if maps := part.get("information"):
        blocks += _compared("Shared information", names, maps, diverging=False)
    return Section("pairs", "Pairs of columns", finding, tuple(blocks))


def _compared(title: str, names: Sequence[str], maps: Details, *, diverging: bool) -> list[Block]:
    """Return a matrix of the source, of the synthetic table, and their difference."""
    change = fidelity_charts.difference(maps["source"], maps["synthetic"])
    spread = fidelity_charts.reach(change)
    scale, low = ("$diverging", -1.0) if diverging else ("$sequential", 0.0)
    top = 1.0 if diverging else max(fidelity_charts.reach(maps[n]) for n in ("source", "synthetic"))
    charts = []
    for name, values in (("source", maps["source"]), ("synthetic", maps["synthetic"])):
        spec = fidelity_charts.matrix(names, values, scale=scale, low=low, high=top)
        label = f"{title} of {counted(len(names), 'column')} in pairs, {name} table"
        charts.append(Chart(name.capitalize(), label, spec, *_size(names, 0.6)))
    spec = fidelity_charts.matrix(names, change, scale="$diverging", low=-spread, high=spread)
    worst = _worst(names, change)
    label = f"{title}, synthetic minus source; the largest differences are in the table below"
    charts.append(Chart("Synthetic minus source", label, spec, *_size(names, 0.6)))
    meaning = {
        True: "Pearson's correlation of numeric columns, from −1 to 1.",
        False: "Mutual information over the larger entropy of the two: 0 is independent, 1 is the "
        "same. It sees relations between categories too.",
    }[diverging]
    caption = f"{title}: the largest differences"
    return [
        Heading(title),
        Paragraph(meaning + " The third picture has a scale of its own."),
        Pictures(tuple(charts), "small" if len(names) <= 14 else "half"),
        _pairs(caption, "Synthetic minus source", worst),
    ]


def _worst(
    names: Sequence[str], values: Sequence[Sequence[float | None]]
) -> list[tuple[str, str, float]]:
    pairs = [
        (names[i], names[j], value)
        for i in range(len(names))
        for j in range(i)
        if (value := values[i][j]) is not None
    ]
    return sorted(pairs, key=lambda one: -abs(one[2]))[:WORST]


def _pair(pair: tuple[str, str, float]) -> str:
    return f"{formatting.shown(pair[1])} with {formatting.shown(pair[0])}"


def _pairs(caption: str, head: str, worst: Sequence[tuple[str, str, float]]) -> ReportTable:
    rows = [Row((_pair(one), figure(one[2], 3))) for one in worst]
    return ReportTable.of(caption, ("Pair", head), rows)


def _size(names: Sequence[str], share: float = 1.0) -> tuple[int, int, int]:
    """Return height, least and largest width of a matrix, in pixels; so wide as it is high."""
    side = int(max(190, min(640, len(names) * 34)) * (share if len(names) > 9 else 1))
    minimum = int(260 + (len(names) - 12) * 11 * share) if len(names) > 12 else 0
    return side + 100, minimum, side + 210


def missing(details: Details) -> Section | None:
    """Return shares of missing cells by column, and which columns are missing together."""
    holes = [c for c in details.get("columns") or [] if any((c.get("missing") or {}).values())]
    patterns = details.get("missing_patterns") or []
    if not holes and not patterns:
        return None
    blocks: list[Block] = []
    finding = "no column has missing values"
    if holes:
        holes = sorted(holes, key=lambda c: -_apart(c["missing"]))
        finding = f"{counted(len(holes), 'column')} with missing values; largest difference: "
        finding += f"{formatting.shown(title_of(holes[0]))}, {percent(_apart(holes[0]['missing']))}"
        ones = [(title_of(c), c["missing"]) for c in holes]
        blocks.append(compared("Missing cells, share of rows", "Column", ones))
    if patterns:
        ones = [(listed(p["columns"], 6) or "nothing is missing", p) for p in patterns]
        caption = "Columns that are missing together, share of rows"
        blocks.append(compared(caption, "Missing together", ones))
    return Section("missing", "Missing values", finding, tuple(blocks))


def _apart(entry: Details) -> float:
    return abs(float(entry.get("synthetic") or 0.0) - float(entry.get("source") or 0.0))


def compared(caption: str, head: str, ones: Sequence[tuple[str, Details]]) -> ReportTable:
    """Return shares of source, synthetic table and holdout with a picture each."""
    tables = ("source", "synthetic", "holdout")
    known = [n for n in tables if any(one.get(n) is not None for _, one in ones)]
    maximum = max((one[n] for _, one in ones for n in known if one.get(n) is not None), default=1.0)
    rows = [
        Row(
            (
                name,
                *(percent(one.get(table)) for table in known),
                sparklines.shares(*(one.get(table) for table in tables), maximum=maximum),
            )
        )
        for name, one in ones
    ]
    return ReportTable.of(caption, (head, *known, "Picture"), rows, key="marks")


def ends(details: Details) -> Section | None:
    """Return round numbers and the ends of distributions."""
    heaps, tails = details.get("heaping") or [], details.get("tails") or []
    blocks: list[Block] = []
    findings = []
    if heaps:
        ones = [(f"{heap['column']}: {_base(heap['base'])}", heap) for heap in heaps]
        far = max(ones, key=lambda one: _apart(one[1]))
        findings.append(f"round numbers farthest at {far[0]}, by {percent(_apart(far[1]))}")
        blocks += [
            Heading("Round numbers"),
            Paragraph("People round what they read off: the share of values on a round number."),
            compared("Values on round numbers, share of values", "Column", ones),
        ]
    if tails:
        ones = [(_tail(one), one) for one in tails]
        far = max(ones, key=lambda one: _apart(one[1]))
        findings.append(f"ends farthest at {far[0]}, by {percent(_apart(far[1]))}")
        blocks += [
            Heading("Ends of distributions"),
            Paragraph(
                "Share of rows beyond the source's own 1st or 99th percentile. The source can be "
                "off 1 % where many rows share a value."
            ),
            compared("Rows in the tails, share of rows", "Column and end", ones),
        ]
    if entries := details.get("location") or []:
        finding, more = means(entries)
        findings.insert(0, finding)
        blocks = [*more, *blocks]
    if entries := details.get("outside") or []:
        finding, more = beyond(entries)
        findings.append(finding)
        blocks += more
    if not blocks:
        return None
    return Section("ends", "Means, round numbers and tails", "; ".join(findings), tuple(blocks))


def _base(base: Any) -> str:
    return f"multiples of {base:g}" if isinstance(base, int | float) else str(base)


def _tail(entry: Details) -> str:
    side = "below" if entry["tail"] == "low" else "above"
    return f"{entry['column']}: {side} the {100 * entry['quantile']:g}th percentile".replace(
        "1th", "1st"
    )
