"""Sections of the internal report that judge rows as a whole: told apart, scored, mapped, ruled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report import (
    Chart,
    Paragraph,
    Pictures,
    ReportTable,
    Row,
    Section,
    charts,
    counted,
    figure,
    formatting,
    listed,
    percent,
    present,
)
from dpsynth.eval.report.sections.fidelity import compared

Details = Mapping[str, Any]


def sections(details: Details) -> list[Section]:
    """Return the sections that the details of fidelity allow."""
    return present(maker(details) for maker in (told_apart, scorer, embedding))


def told_apart(details: Details) -> Section | None:
    """Return how well a classifier tells the tables apart, and by which columns."""
    part = details.get("c2st") or {}
    if (auc := part.get("auc")) is None:
        return None
    value, references = formatting.measure("c2st", auc)
    telling = [one for one in part.get("telling") or [] if one.get("importance") is not None]
    blocks: list[Any] = [
        Paragraph(
            "A classifier that is trained to tell synthetic rows from the source's reaches an "
            f"area under the ROC curve of {value} {references}. At 0.5 it guesses; at 1 it is "
            "never wrong. It sees every difference, also those that no analysis would mind."
        )
    ]
    finding = f"area under the curve {value} {references}"
    if telling:
        names = [str(one["column"]) for one in telling]
        finding += f"; most telling: {listed(names, 2)}"
        values = [one["importance"] for one in telling]
        label = f"Columns by which the tables are told apart, most telling first: {listed(names)}"
        rows = [Row((n, figure(float(v)))) for n, v in zip(names, values, strict=True)]
        table = ReportTable.of("Importance of columns", ("Column", "Importance"), rows)
        spec = charts.ranking(names, values)
        title = "What gives the synthetic table away"
        picture = Chart(title, label, spec, 70 + 24 * len(names), table=table)
        blocks.append(Pictures((picture,), "half"))
    return Section("c2st", "Can the tables be told apart?", finding, tuple(blocks))


_SCORES = {
    "quality": "Quality, over all",
    "shapes": "Column shapes",
    "pairs": "Column pair trends",
    "diagnostic": "Diagnostic: types, bounds, categories",
}


def scorer(details: Details) -> Section | None:
    """Return the scores of sdmetrics, with what they do not see."""
    scores = details.get("sdmetrics") or {}
    names = [name for name in _SCORES if scores.get(name) is not None]
    if not names:
        return None
    real = scores.get("holdout") or {}
    rows = [Row((_SCORES[n], figure(float(scores[n])), _held(real.get(n)), "1.000")) for n in names]
    size = scores.get("rows")
    caption = "Scores of sdmetrics"
    caption += f", from {counted(size, 'row')} of each table" if size else ""
    warning = (
        "Read these scores with care: a table whose correlations are broken can score above real "
        "data. They are here because other tools report them."
    )
    finding = ", ".join(
        f"{_SCORES[n].partition(',')[0].partition(':')[0].lower()} {figure(float(scores[n]))}"
        + (f" [holdout {figure(float(real[n]))}]" if real.get(n) is not None else "")
        for n in names
        if n in ("quality", "diagnostic")
    )
    head = ("Score", "synthetic", "holdout", "Best")
    blocks = (Paragraph(warning, "warning"), ReportTable.of(caption, head, rows))
    return Section("sdmetrics", "Scores of sdmetrics", finding, blocks)


def _held(value: float | None) -> str:
    return "–" if value is None else figure(float(value))


def embedding(details: Details) -> Section | None:
    """Return maps of where rows lie in two dimensions."""
    maps = details.get("embedding") or {}
    if not maps.get("source") or not maps.get("synthetic"):
        return None
    explained = maps.get("explained") or [None, None]
    axes = [
        f"direction {place + 1}" + (f" ({percent(share)} of variance)" if share else "")
        for place, share in enumerate(explained)
    ]
    tables = [n for n in ("source", "synthetic", "holdout") if maps.get(n)]
    maximum = max(one or 0.0 for n in tables for row in maps[n] for one in row)
    figures = []
    for name in tables:
        label = f"Density map of the {name} table; {_spread(maps[name])}"
        spec = charts.density(maps["x"], maps["y"], maps[name], maximum, axes)
        figures.append(Chart(f"Map: {name}", label, spec, 340))
    together = _overlap(maps["source"], maps["synthetic"])
    text = (
        "All columns of a row pressed into the two directions in which the source varies most; "
        "darker squares (brighter on a dark screen) hold more rows. Both maps have one scale. "
        f"{percent(together)} of the rows lie alike on the two maps."
    )
    finding = f"{percent(together)} of the rows lie alike on both maps"
    return Section(
        "embedding",
        "Maps of all rows",
        finding,
        (Paragraph(text), Pictures(tuple(figures), "half")),
    )


def _spread(shares: Sequence[Sequence[float | None]]) -> str:
    filled = sum(1 for row in shares for one in row if one)
    return f"rows in {counted(filled, 'square')} of {len(shares) * len(shares[0]):,}"


def _overlap(
    source: Sequence[Sequence[float | None]], synthetic: Sequence[Sequence[float | None]]
) -> float:
    """Return the mass that two maps share."""
    cells = zip(source, synthetic, strict=True)
    return sum(min(a or 0.0, b or 0.0) for pair in cells for a, b in zip(*pair, strict=True))


def rules(details: Sequence[Details]) -> Section | None:
    """Return declared rules with the shares of rows that break them."""
    entries = [detail for detail in details if detail.get("rule") or detail.get("text")]
    if not entries:
        return None
    entries = sorted(entries, key=lambda one: -(one.get("synthetic") or 0.0))
    broken = [entry for entry in entries if entry.get("synthetic")]
    ones = [(_rule(one), one) for one in entries]
    finding = f"{counted(len(entries), 'rule')}, none broken in the synthetic table"
    if broken:
        share = percent(broken[0]["synthetic"])
        count = counted(len(entries), "rule")
        finding = f"{len(broken)} of {count} broken; most by {share} of rows"
    text = "What the schema says cannot be. A rule that the source breaks too may be a wrong rule."
    table = compared("Rows that break a rule, share of the rows that it applies to", "Rule", ones)
    return Section("rules", "Impossible records", finding, (Paragraph(text), table))


def _rule(entry: Details) -> str:
    text, plain = str(entry.get("rule") or entry.get("text")), entry.get("plain")
    return f"{plain} ({text})" if plain and plain != text else text
