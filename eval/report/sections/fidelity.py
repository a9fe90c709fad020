"""Sections of the internal report on fidelity: columns, pairs, missing values, whole rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report import (
    Block,
    Chart,
    Expandable,
    Heading,
    Paragraph,
    Pictures,
    ReportTable,
    Row,
    Section,
    charts,
    counted,
    estimate,
    figure,
    formatting,
    listed,
    percent,
    present,
    sparklines,
)
from dpsynth.eval.report.formatting import value_text
from dpsynth.eval.report.key_figures import Relation, never_seen
from dpsynth.eval.report.key_figures import relations as read_relations

WORST = 10  # pairs in the table
Details = Mapping[str, Any]


def sections(details: Details) -> list[Section]:
    """Return the sections that the details allow; what is not there is left out."""
    columns_and_pairs = (columns, followed, relations, pairs, missing, ends, queries)
    whole_rows = (told_apart, scorer, embedding)
    return present(maker(details) for maker in (*columns_and_pairs, *whole_rows))


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
        spec = charts.matrix(
            names, part["tvd"], scale="$sequential", low=0, high=charts.reach(part["tvd"])
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
    change = charts.difference(maps["source"], maps["synthetic"])
    spread = charts.reach(change)
    scale, low = ("$diverging", -1.0) if diverging else ("$sequential", 0.0)
    top = 1.0 if diverging else max(charts.reach(maps[n]) for n in ("source", "synthetic"))
    pictures = []
    for name, values in (("source", maps["source"]), ("synthetic", maps["synthetic"])):
        spec = charts.matrix(names, values, scale=scale, low=low, high=top)
        label = f"{title} of {counted(len(names), 'column')} in pairs, {name} table"
        pictures.append(Chart(name.capitalize(), label, spec, *_size(names, 0.6)))
    spec = charts.matrix(names, change, scale="$diverging", low=-spread, high=spread)
    worst = _worst(names, change)
    label = f"{title}, synthetic minus source; the largest differences are in the table below"
    pictures.append(Chart("Synthetic minus source", label, spec, *_size(names, 0.6)))
    meaning = {
        True: "Pearson's correlation of numeric columns, from −1 to 1.",
        False: "Mutual information over the larger entropy of the two: 0 is independent, 1 is the "
        "same. It sees relations between categories too.",
    }[diverging]
    caption = f"{title}: the largest differences"
    return [
        Heading(title),
        Paragraph(meaning + " The third picture has a scale of its own."),
        Pictures(tuple(pictures), "small" if len(names) <= 14 else "half"),
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


FIRST = 12  # columns that are shown at once; the others are to be opened


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
        charts.distribution(column),
        height,
        figures=figures,
        table=ReportTable.of(caption, ("Value", *tables), rows),
    )


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
        blocks = (*blocks, _followed_pairs(pairs))
    worst = order[0]
    far = f"farthest: {formatting.shown(title_of(worst))}, distance {estimate(worst.get('tvd'))}"
    return Section("followed", "Derived columns and the calendar", far, blocks)


def _followed_pairs(entries: Sequence[Details]) -> ReportTable:
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


FIRST_MEANS = 10  # columns that are shown at once
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
        ReportTable.of(caption, HEAD, rows[:FIRST_MEANS]),
    ]
    if len(rows) > FIRST_MEANS:
        more = ReportTable.of(caption, HEAD, rows[FIRST_MEANS:])
        title = f"{counted(len(rows) - FIRST_MEANS, 'column')} more, closer to the source"
        blocks.append(Expandable(title, (more,)))
    worst = order[0]
    finding = (
        f"mean farthest in {_mean_name(worst)}, by {estimate(worst['mean'])} standard deviations"
    )
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


def _mean_name(entry: Details) -> str:
    return formatting.shown(str(entry.get("title") or entry["column"]))


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


def queries(details: Details) -> Section | None:
    """Return errors of counting queries."""
    part = details.get("queries") or {}
    quantiles = {n: e for n, e in (part.get("error_quantiles") or {}).items() if e}
    if "synthetic" not in quantiles:
        return None
    levels = list(quantiles["synthetic"])
    rows = [
        Row(
            (
                charts.quantile(level),
                *(percent(errors.get(level)) for errors in quantiles.values()),
            )
        )
        for level in levels
    ]
    titles = {"chance": "by chance"}
    caption = "Error of counting queries, share of rows"
    head = ("Quantile of queries", *(titles.get(n, n) for n in quantiles))
    table = ReportTable.of(caption, head, rows)
    label = f"Errors of {figure(part.get('count'))} counting queries, by quantile: in the table"
    spec = charts.error_quantiles(part | {"error_quantiles": quantiles})
    ways = f" over {part['ways']} columns each" if part.get("ways") else ""
    half = percent(quantiles["synthetic"].get("0.5"))
    blocks = (
        Paragraph(
            f"{figure(part.get('count'))} random questions of the kind “how many rows have "
            f"this and that”{ways}; the error is the difference of the synthetic table's answer "
            "to the source's, as a share of all rows."
        ),
        Pictures((Chart("Errors of queries", label, spec, 210),), "half", key="errors"),
        table,
    )
    return Section("queries", "Counting queries", f"half of them err by at most {half}", blocks)


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
