"""Sections of the internal report on usefulness: models, odds, means, survival, subgroups."""

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
    counted,
    estimate,
    figure,
    formatting,
    listed,
    percent,
    sparklines,
)
from dpsynth.eval.report import utility_charts as charts

FIRST = 20  # rows of a long table that are shown at once
TERMS = 25  # of a forest plot
Details = Mapping[str, Any]


def sections(details: Details) -> list[Section]:
    """Return the sections that the details allow; what is not there is left out."""
    made = [maker(details) for maker in (targets, odds, means, survival)]
    return [section for section in made if section is not None]


def targets(details: Details) -> Section | None:
    """Return what models learn from the synthetic table, tested on real rows."""
    them = details.get("targets") or []
    if not them:
        return None
    blocks: list[Block] = [
        Paragraph(
            "A model is trained on the synthetic table (TSTR), the same model on the source "
            "(TRTR); both are tested on real rows that neither has seen."
        )
    ]
    found = []
    for target in them:
        blocks += _target(target)
        if models := target.get("models"):
            first = models[0]
            value = figure(float(first["tstr"]["value"]))
            real = figure(float(first["trtr"]["value"])) if first.get("trtr") else "–"
            name = formatting.shown(target.get("title") or target["name"])
            found.append(f"{name} {value} [trained on source {real}]")
    finding = f"{_score(them[0])} of models trained on it: {listed(found, 2)}"
    return Section("models", "Models trained on it", finding, tuple(blocks))


def _score(target: Details) -> str:
    return "R²" if target["kind"] == "regression" else "area under the ROC curve"


def _target(target: Details) -> list[Block]:
    name = str(target.get("title") or target["name"])
    of = f", class {target['class']}" if target.get("class") is not None else ""
    rows, pictures = [], []
    for model in target.get("models") or []:
        rows.append(Row((model["model"], estimate(model.get("tstr")), estimate(model.get("trtr")))))
        pictures += _curves(name, model)
    blocks: list[Block] = [Heading(f"{name}{of}")]
    if rows:
        head = ("Model", "Trained on synthetic (interval)", "Trained on source (interval)")
        blocks.append(ReportTable.of(f"{_score(target)}; best is 1", head, rows))
    if them := target.get("importance"):
        pictures.append(_importance(name, them))
    if pictures:
        blocks.append(Pictures(tuple(pictures), "half", key="models"))
    return blocks


def _curves(name: str, model: Details) -> list[Chart]:
    made = []
    if model.get("roc"):
        label = f"ROC curves for {name}, {model['model']} models: areas are in the table above"
        made.append(Chart(f"ROC curve, {model['model']}", label, charts.roc(model["roc"]), 300))
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
        made.append(Chart(title, label, charts.calibration(bins), 300, table=table))
    return made


def _importance(name: str, them: Sequence[Details]) -> Chart:
    them = sorted(them, key=lambda one: -(one.get("source") or 0.0))[:TERMS]
    rows = [Row((o["column"], figure(o["source"]), figure(o["synthetic"]))) for o in them]
    table = ReportTable.of("Permutation importance", ("Column", "source", "synthetic"), rows)
    label = f"Importance of columns for {name}; most important to the source's model: " + listed(
        one["column"] for one in them
    )
    height = 70 + 20 * len(them)
    return Chart("Which columns matter", label, charts.importances(them), height, table=table)


def odds(details: Details) -> Section | None:
    """Return logistic regressions on source and synthetic table, coefficient by coefficient."""
    them = [one for one in details.get("odds_ratios") or [] if one.get("terms")]
    if not them:
        return None
    blocks: list[Block] = [
        Paragraph(
            "The same logistic regression on the source and on the synthetic table. An overlap of "
            "1 is the same interval; at 0 the two intervals are apart, and the term is marked."
        )
    ]
    for one in them:
        title = f"{one['target']}" + (f" = {one['class']}" if one.get("class") is not None else "")
        blocks += [Heading(title), *_forest(title, one["terms"], "odds ratio")]
    said = ", ".join(f"{formatting.shown(o['target'])} {_overlap(o)}" for o in them)
    return Section("odds", "Odds ratios", f"mean overlap of intervals: {said}", tuple(blocks))


def _overlap(one: Details) -> str:
    return figure(None if one.get("overlap") is None else float(one["overlap"]), 2)


def _forest(title: str, terms: Sequence[Details], kind: str) -> list[Block]:
    """Return a forest plot and its table; the terms that agree least are drawn where many."""
    drawn = sorted(terms, key=lambda term: _known(term.get("overlap")))[:TERMS]
    drawn = [term for term in terms if term in drawn]
    label = f"{kind} of {counted(len(drawn), 'term')} for {title}, source above synthetic"
    spec = charts.forest(drawn, kind)
    left = len(terms) - len(drawn)
    more = f" The picture shows the {TERMS} terms that agree least." if left else ""
    rows = [
        Row(
            (t["term"], estimate(t.get("source")), estimate(t.get("synthetic")), _overlap(t)),
            t.get("overlap") == 0,
        )
        for t in terms
    ]
    head = ("Term", "source (interval)", "synthetic (interval)", "Overlap")
    table = ReportTable.of(f"{kind.capitalize()} for {title}", head, rows)
    picture = Chart(f"{kind.capitalize()}s", label, spec, 90 + 34 * len(drawn), table=table)
    ends = [(t.get(n) or {}).get("value") or 1.0 for t in drawn for n in ("source", "synthetic")]
    if not all(1 / charts.FAR <= end <= charts.FAR for end in ends):
        more += f" Ratios beyond {charts.FAR:g}, or below 1/{charts.FAR:g}, are in the table only."
    said = [Paragraph(more.strip())] if more else []
    return [*said, Pictures((picture,), "wide", key="pairs")]


def _known(overlap: float | None) -> float:
    return 1.0 if overlap is None else overlap


def means(details: Details) -> Section | None:
    """Return means by declared group."""
    them = details.get("group_means") or []
    if not them:
        return None
    order = sorted(them, key=lambda one: -_far(one))
    rows = [_mean(one, them) for one in order]
    head = ("Group and column", "source (interval)", "synthetic (interval)", "Rows", "Picture")
    caption = "Means by group; those that differ most, by their own intervals, come first"
    blocks: list[Block] = [ReportTable.of(caption, head, rows[:FIRST], key="pairs")]
    if rest := rows[FIRST:]:
        more = ReportTable.of("Means by group, the others", head, rest)
        blocks.append(
            Expandable(f"{counted(len(rest), 'mean')} more, closer to the source", (more,))
        )
    apart = sum(_far(one) > 1 for one in them)
    finding = f"{counted(len(them), 'mean')}; in {apart} of them the intervals do not meet"
    return Section("means", "Means by group", finding, tuple(blocks))


def _far(one: Details) -> float:
    """Distance of two means in half-widths of their intervals together; above 1 they are apart."""
    a, b = one["source"], one["synthetic"]
    if a.get("value") is None or b.get("value") is None:
        return 0.0
    wide = sum((e["high"] - e["low"]) / 2 for e in (a, b) if e.get("low") is not None)
    away = abs(a["value"] - b["value"])
    return away / wide if wide else (2.0 if away else 0.0)


def _mean(one: Details, them: Sequence[Details]) -> Row:
    ends = [
        o[n][k]
        for o in them
        if o["column"] == one["column"]
        for n in ("source", "synthetic")
        for k in ("value", "low", "high")
        if o[n].get(k) is not None
    ]
    name = f"{one['group']} = {one['level']}: {one['column']}"
    both = [one["source"], one["synthetic"]]
    places = formatting.decimals(e.get("value") for e in both)
    strip = sparklines.intervals(
        *both, minimum=min(ends, default=0.0), maximum=max(ends, default=1.0)
    )
    counts = " / ".join(figure(e.get("n")) for e in both)
    return Row((name, *(estimate(e, places) for e in both), counts, strip), _far(one) > 1)


def survival(details: Details) -> Section | None:
    """Return survival curves and the terms of a Cox regression."""
    them = details.get("survival") or {}
    blocks: list[Block] = []
    figures = [_curve(one, str(them["time"])) for one in them.get("curves") or []]
    if figures:
        blocks.append(Pictures(tuple(figures), "half", key="curves"))
    if them.get("cox"):
        blocks += [Heading("Cox regression"), *_forest("event", them["cox"], "hazard ratio")]
    if not blocks:
        return None
    finding = f"{counted(len(figures), 'curve')} of {formatting.shown(them['event'])}"
    return Section("survival", "Survival", finding, tuple(blocks))


def _curve(one: Details, time: str) -> Chart:
    title = f"{one['group']} = {one['level']}" if one.get("group") else "All rows"
    step = max(1, len(one["times"]) // 10)
    rows = [
        Row((figure(one["times"][p]), percent(one["source"][p]), percent(one["synthetic"][p])))
        for p in range(0, len(one["times"]), step)
    ]
    table = ReportTable.of(f"{title}: without event", (time, "source", "synthetic"), rows)
    last = f"source {percent(one['source'][-1])}, synthetic {percent(one['synthetic'][-1])}"
    label = f"Survival, {title}: share without the event at the end, {last}"
    return Chart(title, label, charts.survival(one, time), 280, table=table)
