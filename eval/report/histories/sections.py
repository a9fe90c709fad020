"""What the internal report says about histories, section by section."""

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
    key_figures,
    percent,
    present,
    sparklines,
)
from dpsynth.eval.report.formatting import decimals
from dpsynth.eval.report.histories import shown

Details = Mapping[str, Any]
GROUPED = 24  # curves of groups that are drawn


def sections(document: Details) -> list[Section]:
    """Return the sections of an evaluation of histories; what was not measured has none."""
    whole, parts = document["synthetic"], document["parts"]
    return present(
        (
            shown.samples(whole),
            _seen(document),
            _values(document),
            _courses(document),
            shown.courses(whole, parts.get("bands") or ()),
            _patients(document),
            _events(document),
            _prediction(document),
            _told_apart(document),
            _broken(document),
        )
    )


def _seen(document: Details) -> Section | None:
    part = document["parts"].get("timing") or {}
    if not part.get("spoken"):
        return None
    ones = [
        (f"{series['title']}: {one['name']}", one)
        for series in part["spoken"]
        for one in series["figures"]
    ]
    blocks = [
        *spoken("In plain units", ones),
        Heading("Distances"),
        *distances(document, "Rows per patient, by series", "rows_per_patient"),
        *distances(document, "Day of the first row, by series", "first_days"),
        *distances(document, "Days between two rows, by series", "gaps"),
        *shown.counts(part["counts"], "columns"),
    ]
    finding = _finding(document, ("rows_per_patient", "first_days", "gaps", "gaps_by_step"))
    return Section("seen", "How often patients are seen, and when", finding, tuple(blocks))


def _values(document: Details) -> Section | None:
    part = document["parts"].get("rows") or {}
    if not part.get("means"):
        return None
    ones = [(one["name"], one) for one in part["means"]]
    blocks = [
        *spoken("Means and shares, each patient once", ones),
        Heading("Distances"),
        *distances(document, "Values of rows, by column", "row_values"),
    ]
    finding = _finding(document, ("row_values", "row_pairs"))
    return Section("values", "Values of rows", finding, tuple(blocks))


def _courses(document: Details) -> Section | None:
    entries = (document["parts"].get("courses") or {}).get("columns") or []
    if not entries:
        return None
    order = sorted(entries, key=lambda one: -one["transition"])
    rows = [
        Row((one["title"], figure(one["transition"]), *_pair(one["icc"]), *_pair(one["lag"])))
        for one in order
    ]
    head = ("Column", "Steps apart", "ICC, source", "synthetic", "lag 1, source", "synthetic")
    text = (
        "ICC is the part of the variation that lies between patients; lag 1 is the correlation of "
        "a patient's consecutive values, or kappa of categories. Intervals are over patients."
    )
    blocks = [
        Paragraph(text),
        *lined("How values of a patient follow each other", head, rows, "column"),
    ]
    finding = _finding(document, ("transitions", "within_icc", "within_lag"))
    return Section("courses", "How a patient's values develop", finding, tuple(blocks))


def _patients(document: Details) -> Section | None:
    part = document["parts"].get("groups") or {}
    ones = [
        (one["name"], one) for one in sorted(part.get("means") or [], key=lambda o: -o["apart"])
    ]
    apart = [(f"{one['name']} ({one['verdict']})", one) for one in part.get("differences") or []]
    text = (
        "A difference is that between the patients of a group and all others: of the mean of a "
        "value in standard deviations (SD), of the rate of an event as the logarithm of the ratio. "
        "The word in brackets compares both columns: kept, too small, too large, lost, turned "
        "round, or uncertain where the intervals allow no word."
    )
    blocks = [
        *([Paragraph(text)] if apart else []),
        *spoken("Clear differences between groups, the farthest apart first", apart),
        *spoken("Mean values of rows by group, the farthest first", ones),
        *distances(document, "Columns of patients", "baseline1"),
        *distances(document, "Patients and values of rows together", "baseline_rows"),
    ]
    if not blocks:
        return None
    finding = _finding(document, ("baseline2", "baseline_rows", "group_differences"))
    return Section("patients", "Patients, and how they belong to rows", finding, tuple(blocks))


def _events(document: Details) -> Section | None:
    part = document["parts"].get("events") or {}
    if not part.get("rates"):
        return None
    ones = [
        (f"{entry['event']}: {one['name']}", one)
        for entry in part["rates"]
        for one in entry["figures"]
    ]
    whole = [one for one in part["curves"] if not one["group"]]
    grouped = sorted((one for one in part["curves"] if one["group"]), key=lambda c: -c["distance"])
    blocks: list[Block] = spoken("How many had an event, and how often it came", ones)
    if whole:
        text = (
            "Share of patients without the event, by Kaplan and Meier; of those who had not had it "
        )
        text += "on day 0. The axis is cut."
        blocks += [Heading("All patients"), Paragraph(text)]
        blocks += shown.folded([shown.curve(one) for one in whole], "curves", "curve")
    if grouped:
        blocks += [
            Heading(f"By group: the {min(GROUPED, len(grouped))} farthest of {len(grouped)}")
        ]
        figures = [shown.curve(one) for one in grouped[:GROUPED]]
        blocks += shown.folded(figures, "curves", "curve")
    finding = _finding(document, ("event_curves", "event_rates"))
    return Section("events", "Time to events", finding, tuple(blocks))


def _prediction(document: Details) -> Section | None:
    tasks = (document["parts"].get("prediction") or {}).get("tasks") or []
    if not tasks:
        return None
    rows = [
        Row(
            (
                one["task"],
                estimate(one["auc"], 3),
                figure(one["auc"]["reference"], 3),
                figure(one["auc"]["chance"], 3),
                sparklines.score({**one["auc"], "best": 1.0}),
            )
        )
        for one in tasks
    ]
    head = ("Task", "from synthetic (interval)", "from source", "from a bootstrap", "Picture")
    text = (
        "Area under the ROC curve on the same real patients, of models that learned from synthetic "
        "patients, from as many real ones, and from a bootstrap of those. 0.5 is guessing."
    )
    table = ReportTable.of("Models that predict the next row, or an outcome", head, rows)
    finding = _finding(document, ("tstr_next", "tstr_outcome"))
    return Section("prediction", "Prediction models", finding, (Paragraph(text), table))


def _told_apart(document: Details) -> Section | None:
    entry = document["measures"].get("trajectory_c2st")
    if entry is None:
        return None
    telling = (document["parts"].get("told_apart") or {}).get("telling") or []
    text = f"{entry['meaning']} Here it is {estimate(entry, 3)}."
    blocks: list[Block] = [Paragraph(text)]
    if telling:
        names = [one["feature"] for one in telling]
        spec = charts.telling(names, [one["importance"] for one in telling])
        label = "Traits by which the classifier tells histories apart"
        blocks.append(
            Pictures((Chart(label, label, spec, 80 + 30 * len(names), most=820),), "wide")
        )
    finding = _finding(document, ("trajectory_c2st",))
    return Section("told-apart", "Can histories be told apart?", finding, tuple(blocks))


def _broken(document: Details) -> Section | None:
    rules = (document["parts"].get("broken") or {}).get("rules") or []
    if not rules:
        return None
    ones = [(one["rule"].capitalize(), one) for one in rules]
    sides = ("source", "synthetic", "holdout")
    rows = [Row((name, *(percent(one.get(side)) for side in sides))) for name, one in ones]
    table = ReportTable.of("Patients with a history that cannot be", ("Rule", *sides), rows)
    finding = _finding(document, ("broken_histories",))
    return Section("broken", "Histories that cannot be", finding, (table,))


def _pair(one: Details) -> tuple[str, str]:
    return estimate(one["source"], 2), estimate(one["synthetic"], 2)


def _finding(document: Details, keys: Sequence[str]) -> str:
    """Say the leading figures of a section in one line."""
    words = []
    for key in keys:
        entry = document["measures"].get(key)
        if entry is not None:
            told = key_figures.show(key, entry)
            title = entry["title"][0].lower() + entry["title"][1:]
            words.append(f"{title} {figure(entry['value'])} {told.references}")
    return "; ".join(words) or "not measured"


def leading(document: Details) -> list[tuple[str, Any]]:
    """Return the figures of the first look, and which use each belongs to."""
    found = []
    for key, entry in document["measures"].items():
        if ":" not in key:
            found.append((key, key_figures.show(key, entry)))
    return found


FIRST = 12  # lines of a table before the others


def distances(document: Details, caption: str, family: str) -> list[Block]:
    """Return the figures of a family by column or series, the farthest first."""
    ones = [
        (entry["title"], entry, key)
        for key, entry in document["measures"].items()
        if key.startswith(f"{family}:")
    ]
    ones.sort(key=lambda one: -one[1]["value"])
    reach = max((max(e["value"], e["high"] or 0.0) for _, e, _ in ones), default=0.0)
    rows = []
    for title, entry, key in ones:
        told = key_figures.show(key, entry)
        picture = sparklines.score(entry, reach)
        cells = (title, told.value, told.references.strip("[]"), told.verdict or "–", picture)
        rows.append(Row(cells))
    head = (
        "Figure",
        "Distance (interval)",
        "Held against",
        "From best, beside a holdout",
        "Picture",
    )
    return lined(caption, head, rows, "figure")


def spoken(caption: str, ones: Sequence[tuple[str, Details]]) -> list[Block]:
    """Return numbers in plain units: source and synthetic with intervals, and the holdout."""
    rows = []
    for name, one in ones:
        sides = [one["source"], one["synthetic"]]
        ends = [side[key] for side in sides for key in ("value", "low", "high")]
        known = [end for end in ends if end is not None] or [0.0, 1.0]
        room = 0.1 * (max(known) - min(known) or 1.0)
        strip = sparklines.intervals(*sides, minimum=min(known) - room, maximum=max(known) + room)
        rows.append(Row((name, *(_said(side, one["unit"]) for side in sides),
                         _number(one["holdout"], one["unit"]), strip)))  # fmt: skip
    head = ("Figure", "source (interval)", "synthetic (interval)", "holdout", "Picture")
    return lined(caption, head, rows, "figure", key="pairs")


def lined(
    caption: str, head: Sequence[str], rows: Sequence[Row], noun: str, key: str = ""
) -> list[Block]:
    """Return a table whose later lines open on demand."""
    if not rows:
        return []
    blocks: list[Block] = [ReportTable.of(caption, head, rows[:FIRST], key)]
    if rest := rows[FIRST:]:
        more = ReportTable.of(f"{caption}, the others", head, rest)
        blocks.append(Expandable(f"{counted(len(rest), noun)} more", (more,)))
    return blocks


def _said(side: Details, unit: str) -> str:
    """Write a number with its interval and unit; shares as percentages."""
    if side["value"] is None:
        return "–"
    if unit != "share":
        numbers = [side[key] for key in ("value", "low", "high")]
        return f"{estimate(side, _places(numbers))} {unit}".strip()
    if side["low"] is None:
        return percent(side["value"])
    ends = "–".join(f"{100 * max(0.0, side[key]):.1f}" for key in ("low", "high"))
    return f"{100 * side['value']:.1f} ({ends}) %"


def _number(value: float | None, unit: str) -> str:
    if value is None:
        return "–"
    if unit == "share":
        return f"{100 * value:.1f} %"
    return f"{figure(float(value), _places([value]))} {unit}".strip()


def _places(numbers: Sequence[float | None]) -> int:
    return min(2, decimals(numbers))
