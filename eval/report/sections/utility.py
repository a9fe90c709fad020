"""Sections of the internal report on usefulness: models, odds, means, survival, subgroups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dpsynth.eval.report import (
    Block,
    Cell,
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

FIRST = 20  # rows of a long table that are shown at once
TERMS = 25  # of a forest plot
Details = Mapping[str, Any]


def sections(details: Details) -> list[Section]:
    """Return the sections that the details allow; what is not there is left out."""
    return present(maker(details) for maker in (targets, effects, odds, means, survival))


def targets(details: Details) -> Section | None:
    """Return what models learn from the synthetic table, tested on real rows."""
    entries = details.get("targets") or []
    if not entries:
        return None
    blocks: list[Block] = [
        Paragraph(
            "A model is trained on the synthetic table (TSTR), the same model on the source "
            "(TRTR); both are tested on real rows that neither has seen."
        )
    ]
    scores = []
    for target in entries:
        blocks += _target(target)
        if models := target.get("models"):
            first = models[0]
            value = figure(float(first["tstr"]["value"]))
            real = figure(float(first["trtr"]["value"])) if first.get("trtr") else "–"
            name = formatting.shown(target.get("title") or target["name"])
            scores.append(f"{name} {value} [trained on source {real}]")
    finding = f"{_score(entries[0])} of models trained on it: {listed(scores, 2)}"
    return Section("models", "Models trained on it", finding, tuple(blocks))


def _score(target: Details) -> str:
    return "R²" if target["kind"] == "regression" else "area under the ROC curve"


def _target(target: Details) -> list[Block]:
    name = str(target.get("title") or target["name"])
    suffix = f", class {target['class']}" if target.get("class") is not None else ""
    rows, pictures = [], []
    for model in target.get("models") or []:
        rows.append(Row((model["model"], estimate(model.get("tstr")), estimate(model.get("trtr")))))
        pictures += _curves(name, model)
    blocks: list[Block] = [Heading(f"{name}{suffix}")]
    if rows:
        head = ("Model", "Trained on synthetic (interval)", "Trained on source (interval)")
        blocks.append(ReportTable.of(f"{_score(target)}; best is 1", head, rows))
    if terms := target.get("importance"):
        pictures.append(_importance(name, terms))
    if pictures:
        blocks.append(Pictures(tuple(pictures), "half", key="models"))
    return blocks


def _curves(name: str, model: Details) -> list[Chart]:
    pictures = []
    if model.get("roc"):
        label = f"ROC curves for {name}, {model['model']} models: areas are in the table above"
        pictures.append(Chart(f"ROC curve, {model['model']}", label, charts.roc(model["roc"]), 300))
    if model.get("calibration"):
        bins = model["calibration"]
        rows = [
            Row((f"trained on {n}", figure(b["predicted"]), figure(b["observed"]), figure(b["n"])))
            for n in ("synthetic", "source")
            for b in bins.get(n) or []
        ]
        title = f"Calibration, {model['model']}"
        label = f"{title} for {name}: observed against predicted; on the diagonal is best"
        table = ReportTable.of(title, ("Model", "Predicted", "Observed", "Rows"), rows)
        pictures.append(Chart(title, label, charts.calibration(bins), 300, table=table))
    return pictures


def _importance(name: str, terms: Sequence[Details]) -> Chart:
    terms = sorted(terms, key=lambda one: -(one.get("source") or 0.0))[:TERMS]
    rows = [Row((o["column"], figure(o["source"]), figure(o["synthetic"]))) for o in terms]
    table = ReportTable.of("Permutation importance", ("Column", "source", "synthetic"), rows)
    label = f"Importance of columns for {name}; most important to the source's model: " + listed(
        term["column"] for term in terms
    )
    height = 70 + 20 * len(terms)
    return Chart("Which columns matter", label, charts.importances(terms), height, table=table)


def effects(details: Details) -> Section | None:
    """Return the risk ratios of each target, the clearest in the source first."""
    entries = [one for one in details.get("effects") or [] if one["groups"]]
    if not entries:
        return None
    blocks: list[Block] = [
        Paragraph(
            "The risk of the outcome in a group over that of all other rows, with its interval of "
            "95 %: above 1 the outcome is more common in the group. A sign is wrong where one "
            "table is above 1 and the other below."
        )
    ]
    for one in entries:
        held = any(group.get("holdout") for group in one["groups"])
        head = ("Group", "Source", "Synthetic", *(("Holdout",) if held else ()), "Sign")
        rows = [
            Row(
                (
                    f"{formatting.shown(group['column'])}: {formatting.shown(group['group'])}",
                    estimate(group["source"]),
                    estimate(group["synthetic"]),
                    *((estimate(group["holdout"]),) if held else ()),
                    "✗ wrong" if _turned(group) else "kept",
                ),
                _turned(group),
            )
            for group in one["groups"]
        ]
        title = f"{one['target']}: {one['class']}"
        caption = f"Risk ratios, {title}; {len(rows)} of {counted(one['compared'], 'group')}"
        blocks.append(ReportTable.of(caption, head, rows))
    turned = sum(_turned(group) for one in entries for group in one["groups"])
    listed_groups = sum(len(one["groups"]) for one in entries)
    finding = f"{turned} of {counted(listed_groups, 'listed risk ratio')} with the other sign"
    return Section("effects", "Effects on targets", finding, tuple(blocks))


def _turned(group: Details) -> bool:
    """Whether a risk is higher in one table and lower in the other."""
    return bool((group["source"]["value"] - 1) * (group["synthetic"]["value"] - 1) < 0)


def odds(details: Details) -> Section | None:
    """Return logistic regressions on source and synthetic table, coefficient by coefficient."""
    fits = [fit for fit in details.get("odds_ratios") or [] if fit.get("terms")]
    if not fits:
        return None
    blocks: list[Block] = [
        Paragraph(
            "The same logistic regression on the source and on the synthetic table. An overlap of "
            "1 is the same interval; at 0 the two intervals are apart, and the term is marked."
        )
    ]
    for fit in fits:
        title = f"{fit['target']}" + (f" = {fit['class']}" if fit.get("class") is not None else "")
        blocks += [Heading(title), *_forest(title, fit["terms"], "odds ratio")]
    overlaps = ", ".join(f"{formatting.shown(o['target'])} {_overlap(o)}" for o in fits)
    return Section("odds", "Odds ratios", f"mean overlap of intervals: {overlaps}", tuple(blocks))


def _overlap(entry: Details) -> str:
    return figure(None if entry.get("overlap") is None else float(entry["overlap"]), 2)


def _forest(title: str, terms: Sequence[Details], kind: str) -> list[Block]:
    """Return a forest plot and its table; the terms that agree least are drawn where many."""
    plotted = sorted(terms, key=lambda term: _known(term.get("overlap")))[:TERMS]
    plotted = [term for term in terms if term in plotted]
    label = f"{kind} of {counted(len(plotted), 'term')} for {title}, source above synthetic"
    spec = charts.forest(plotted, kind)
    hidden = len(terms) - len(plotted)
    more = f" The picture shows the {TERMS} terms that agree least." if hidden else ""
    rows = [
        Row(
            (t["term"], estimate(t.get("source")), estimate(t.get("synthetic")), _overlap(t)),
            t.get("overlap") == 0,
        )
        for t in terms
    ]
    head = ("Term", "source (interval)", "synthetic (interval)", "Overlap")
    table = ReportTable.of(f"{kind.capitalize()} for {title}", head, rows)
    picture = Chart(f"{kind.capitalize()}s", label, spec, 90 + 34 * len(plotted), table=table)
    ends = [(t.get(n) or {}).get("value") or 1.0 for t in plotted for n in ("source", "synthetic")]
    far = charts.FAR_RATIO
    if not all(1 / far <= end <= far for end in ends):
        more += f" Ratios beyond {far:g}, or below 1/{far:g}, are in the table only."
    notes = [Paragraph(more.strip())] if more else []
    return [*notes, Pictures((picture,), "wide", key="pairs")]


def _known(overlap: float | None) -> float:
    return 1.0 if overlap is None else overlap


def means(details: Details) -> Section | None:
    """Return means by declared group."""
    entries = details.get("group_means") or []
    if not entries:
        return None
    order = sorted(entries, key=lambda one: -_far(one))
    rows = [_mean(one, entries) for one in order]
    head = ("Group and column", "source (interval)", "synthetic (interval)", "Rows", "Picture")
    caption = "Means by group; those that differ most, by their own intervals, come first"
    blocks: list[Block] = [ReportTable.of(caption, head, rows[:FIRST], key="pairs")]
    if rest := rows[FIRST:]:
        more = ReportTable.of("Means by group, the others", head, rest)
        blocks.append(
            Expandable(f"{counted(len(rest), 'mean')} more, closer to the source", (more,))
        )
    apart = sum(_far(entry) > 1 for entry in entries)
    finding = f"{counted(len(entries), 'mean')}; in {apart} of them the intervals do not meet"
    return Section("means", "Means by group", finding, tuple(blocks))


def _far(entry: Details) -> float:
    """Distance of two means in half-widths of their intervals together; above 1 they are apart."""
    a, b = entry["source"], entry["synthetic"]
    if a.get("value") is None or b.get("value") is None:
        return 0.0
    wide = sum((e["high"] - e["low"]) / 2 for e in (a, b) if e.get("low") is not None)
    away = abs(a["value"] - b["value"])
    return away / wide if wide else (2.0 if away else 0.0)


def _mean(entry: Details, entries: Sequence[Details]) -> Row:
    ends = [
        o[n][k]
        for o in entries
        if o["column"] == entry["column"]
        for n in ("source", "synthetic")
        for k in ("value", "low", "high")
        if o[n].get(k) is not None
    ]
    name = f"{entry['group']} = {entry['level']}: {entry['column']}"
    both = [entry["source"], entry["synthetic"]]
    places = formatting.decimals(e.get("value") for e in both)
    strip = sparklines.intervals(
        *both, minimum=min(ends, default=0.0), maximum=max(ends, default=1.0)
    )
    counts = " / ".join(figure(e.get("n")) for e in both)
    return Row((name, *(estimate(e, places) for e in both), counts, strip), _far(entry) > 1)


def survival(details: Details) -> Section | None:
    """Return survival curves and the terms of a Cox regression."""
    part = details.get("survival") or {}
    blocks: list[Block] = []
    figures = [_curve(curve, str(part["time"])) for curve in part.get("curves") or []]
    if figures:
        blocks.append(Pictures(tuple(figures), "half", key="curves"))
    if part.get("cox"):
        blocks += [Heading("Cox regression"), *_forest("event", part["cox"], "hazard ratio")]
    if not blocks:
        return None
    finding = f"{counted(len(figures), 'curve')} of {formatting.shown(part['event'])}"
    return Section("survival", "Survival", finding, tuple(blocks))


def _curve(curve: Details, time: str) -> Chart:
    title = f"{curve['group']} = {curve['level']}" if curve.get("group") else "All rows"
    step = max(1, len(curve["times"]) // 10)
    steps = list(zip(curve["times"], curve["source"], curve["synthetic"], strict=True))[::step]
    rows = [Row((figure(at), percent(a), percent(b))) for at, a, b in steps]
    table = ReportTable.of(f"{title}: without event", (time, "source", "synthetic"), rows)
    last = f"source {percent(curve['source'][-1])}, synthetic {percent(curve['synthetic'][-1])}"
    label = f"Survival, {title}: share without the event at the end, {last}"
    return Chart(title, label, charts.survival(curve, time), 280, table=table)


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
