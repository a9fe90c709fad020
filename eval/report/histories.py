"""Pages on histories of patients, for the office or for anybody.

The internal page holds statistics of real patients and says so. The public one is made from
`dpsynth.eval.longitudinal.synthetic_pictures` alone, so that no figure in it depends on a real row.
With the counts and curves of an evaluation, the same pictures show real patients beside synthetic
ones; those are internal.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from dpsynth._version import __version__
from dpsynth.errors import InputError
from dpsynth.eval.longitudinal import HistoryEvaluation, count_labels, gap_labels
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
    history_facts,
    key_figures,
    percent,
    present,
    render,
    sparklines,
)
from dpsynth.eval.report.formatting import decimals

Audience = Literal["internal", "public"]
Document = Mapping[str, Any]

UNDONE = "The histories could not be compared; the notes say why."
FORMAT, VERSION = "dpsynth-history-evaluation", 1
USE_WORDS = {
    "fit": ("✓", "Kept: fit for"),
    "with care": ("!", "Kept in part: with care, for"),
    "not fit": ("✗", "Lost: not fit for"),
    "not measured": ("?", "Not measured"),
}
FIGURE_GROUPS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("Leading figures", lambda key: ":" not in key),
    ("By series, column and event", lambda key: ":" in key),
)


def longitudinal_sections(
    evaluation: HistoryEvaluation | Document, audience: Audience = "internal"
) -> list[Section]:
    """Return the sections of a report on histories.

    Args:
        evaluation: as `dpsynth.eval.longitudinal.evaluate_histories` returns it, or its document.
        audience: "internal", or "public": pictures of synthetic patients, and nothing of real ones.

    Raises:
        InputError: it is no such evaluation, or there is no such audience.
    """
    document = _checked(evaluation, audience)
    if audience == "public":
        return _synthetic_sections(document["synthetic"])
    return _internal_sections(document)


def longitudinal_page(
    evaluation: HistoryEvaluation | Document, audience: Audience = "internal"
) -> str:
    """Return a report on histories as one page of HTML, which asks no network for anything.

    >>> page = longitudinal_page(evaluate_histories(codec, drawn, train))  # doctest: +SKIP

    Args and raises: as `longitudinal_sections`.
    """
    document = _checked(evaluation, audience)
    undone = document.get("not_done") is not None
    parts = [] if undone else longitudinal_sections(document, audience)
    places = [(one.id, one.title) for one in parts]
    title = str(document["schema"]["title"])
    if audience == "public":
        return render(
            "histories_public.html",
            title=title,
            version=__version__,
            intro=_intro(document["synthetic"]),
            sections=parts,
            list=[("", places)],
        )
    measures = document["measures"]
    uses = [
        (verdict, [one for one in document["uses"] if one["verdict"] == verdict])
        for verdict in USE_WORDS
    ]
    every = [
        (name, [key_figures.show(key, one) for key, one in measures.items() if belongs(key)])
        for name, belongs in FIGURE_GROUPS
    ]
    first = [("uses", "What is kept"), ("overview", "Figures")]
    rest = [*places, ("measures", "All figures"), *[("notes", "Notes")] * bool(document["notes"])]
    return render(
        "histories.html",
        title=title,
        version=__version__,
        verdict=UNDONE if undone else _verdict(uses),
        uses=[(verdict, ones) for verdict, ones in uses if ones],
        words=USE_WORDS,
        cohorts="" if undone else _cohorts(document["patients"]),
        gates=key_figures.summary(list(document["gates"])),
        verdicts=key_figures.verdicts(list(document["gates"])),
        worst=history_facts.failures(document),
        helps=history_facts.helps(document),
        leading=[] if undone else leading(document),
        sections=parts,
        every=[(name, group) for name, group in every if group],
        counts=counted(len(measures), "figure"),
        notes=document["notes"],
        list=[("", first), ("Details", rest)],
    )


def _verdict(uses: Sequence[tuple[str, Sequence[Document]]]) -> str:
    """Say in one sentence how many uses there are of each verdict."""
    words = {"fit": "kept", "with care": "kept in part", "not fit": "lost"}
    words["not measured"] = "not measured"
    whole = sum(len(ones) for _, ones in uses)
    parts = [f"{len(ones)} {words[verdict]}" for verdict, ones in uses if ones]
    return f"Of {whole} uses: {', '.join(parts)}."


def _intro(whole: Document) -> str:
    return (
        f"This page shows {counted(whole['patients'], 'synthetic patient')}. They were drawn from "
        "a model that was fitted with differential privacy, and no row of a real patient was read "
        "to make this page. It does not say how close they are to real patients. The certificate "
        "says what is kept private."
    )


def _cohorts(patients: Document) -> str:
    other = patients["holdout"]
    held = "no holdout" if other is None else f"{counted(other, 'patient')} of the holdout"
    return (
        f"{counted(patients['synthetic'], 'synthetic patient')}, "
        f"{counted(patients['source'], 'real patient')} whom the generator saw, and {held}; "
        f"{patients['compared']:,} of each are compared with those whom the generator saw."
    )


def _checked(evaluation: HistoryEvaluation | Document, audience: str) -> Document:
    if audience not in ("internal", "public"):
        raise InputError(f"there is no audience {audience!r}; write internal or public")
    if isinstance(evaluation, HistoryEvaluation):
        return evaluation.to_dict()
    if evaluation.get("format") != FORMAT or evaluation.get("version") != VERSION:
        raise InputError(
            f"the document is no evaluation of histories: its format is not {FORMAT} {VERSION}; "
            "make it with evaluate_histories"
        )
    return evaluation


Details = Mapping[str, Any]
GROUPED = 24  # curves of groups that are drawn


def _internal_sections(document: Details) -> list[Section]:
    """Return the sections of an evaluation of histories; what was not measured has none."""
    whole, parts = document["synthetic"], document["parts"]
    return present(
        (
            history_facts.section(document),
            samples(whole),
            _seen(document),
            _values(document),
            _courses(document),
            courses(whole, parts.get("bands") or ()),
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
        *distances(document, "Days between two rows, by series", "gaps"),
        *counts(part["counts"], "columns"),
    ]
    finding = _finding(document, ("rows_per_patient", "gaps", "calendar"))
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
    finding = _finding(document, ("row_values", "row_pairs", "values"))
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
        blocks += folded([curve(one) for one in whole], "curves", "curve")
    if grouped:
        blocks += [
            Heading(f"By group: the {min(GROUPED, len(grouped))} farthest of {len(grouped)}")
        ]
        figures = [curve(one) for one in grouped[:GROUPED]]
        blocks += folded(figures, "curves", "curve")
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
    ones = [(one["rule"][:1].upper() + one["rule"][1:], one) for one in rules]
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


FIRST_LINES = 12  # lines of a table before the others


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
    blocks: list[Block] = [ReportTable.of(caption, head, rows[:FIRST_LINES], key)]
    if rest := rows[FIRST_LINES:]:
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


SMALL_PICTURE = 230  # height of a small picture, in pixels
FIRST_PICTURES = 6  # pictures before the others


def samples(whole: Details) -> Section | None:
    """Return synthetic patients drawn by chance, a line each."""
    if not whole["samples"]:
        return None
    count = len(whole["samples"])
    text = (
        "Each line is a synthetic patient, drawn by chance. The grey bar is her follow-up"
        if whole["timed"]
        else "Each line is a synthetic patient, drawn by chance. The grey bar holds her rows"
    )
    text += ", a tick is a row, and another mark is an event. "
    text += "The rows of each table have a lane of their own, in the order of the legend. "
    text += "None of them is a real person."
    label = f"{counted(count, 'synthetic patient')} with the rows and events of each"
    height = 190 + charts.line_height(whole) * count
    title = counted(count, "synthetic patient")
    picture = Chart(title, label, charts.followed(whole), height)
    blocks: tuple[Block, ...] = (Paragraph(text), Pictures((picture,), "wide"))
    return Section("samples", "Sample patients", counted(count, "synthetic patient"), blocks)


def courses(whole: Details, bands: Sequence[Details] = ()) -> Section | None:
    """Return how values of synthetic patients develop; with quantiles of real ones if given."""
    real = {(one["series"], one["column"]): one["source"] for one in bands}
    figures = []
    for entry in whole["courses"]:
        band = real.get((entry["series"], entry["column"]))
        label = f"{entry['title']} of {counted(len(entry['lines']), 'synthetic patient')} in time"
        spec = charts.courses(entry, whole, band)
        figures.append(Chart(entry["title"], label, spec, 300))
    if not figures:
        return None
    text = "Thin lines are synthetic patients, drawn by chance among those with several rows. "
    text += "The strong line is the median of all synthetic patients."
    if whole.get("values", 0) > len(figures):
        text += f" These are {len(figures)} of {whole['values']} values that are numbers."
    if bands:
        text += " The dashed line is the median of real patients; 8 of 10 of their values lie in "
        text += "the shaded band. No real patient is drawn."
    blocks: tuple[Block, ...] = (Paragraph(text), Pictures(tuple(figures), "half"))
    return Section("courses-drawn", "Courses of values", counted(len(figures), "picture"), blocks)


def counts(entries: Sequence[Details], key: str = "") -> list[Block]:
    """Return histograms of rows per patient and of days between rows."""
    blocks: list[Block] = []
    for what, title, labels in (
        ("rows", "rows per patient", count_labels()),
        ("gaps", "days between two rows", gap_labels()),
    ):
        known = [one for one in entries if one.get(what)]
        figures = [
            Chart(
                f"{one['title']}: {title}",
                f"{one['title']}: shares by {title}",
                charts.histogram(labels, one[what]),
                SMALL_PICTURE,
            )
            for one in known
        ]
        blocks += folded(figures, key if not blocks else "", "histogram")
    return blocks


def folded(figures: Sequence[Chart], key: str, noun: str, size: str = "small") -> list[Block]:
    """Show the first pictures, and the others on demand."""
    if not figures:
        return []
    blocks: list[Block] = [Pictures(tuple(figures[:FIRST_PICTURES]), size, key)]
    if rest := tuple(figures[FIRST_PICTURES:]):
        blocks.append(Expandable(f"{counted(len(rest), noun)} more", (Pictures(rest, size),)))
    return blocks


def curve(entry: Details) -> Chart:
    """Return the picture of a Kaplan-Meier curve, with that of real patients if there is one."""
    event = str(entry["event"])
    group = f"{entry['group']} = {entry['level']}" if entry.get("group") else "all patients"
    years = [day / charts.YEAR for day in entry["times"]]
    spec = charts.survival({**entry, "times": years}, "years since day 0")
    lowest = min(entry["synthetic"] + (entry.get("source_low") or entry.get("source") or []))
    spec["layout"]["yaxis"] |= {"range": [max(0.0, lowest - 0.1 * (1 - lowest) - 0.005), 1.005]}
    spec["layout"]["yaxis"] |= {"title": {"text": ""}, "nticks": 5}
    spec["layout"]["yaxis"]["tickformat"] = ".0%" if lowest < 0.9 else ".1%"
    last = f"synthetic {percent(entry['synthetic'][-1])}"
    if entry.get("source"):
        last += f", source {percent(entry['source'][-1])}"
    label = f"Share without {event}, {group}; at the end {last}"
    return Chart(f"{event}, {group}", label, spec, SMALL_PICTURE)


def _synthetic_sections(whole: Details) -> list[Section]:
    """Return the sections of a page for anybody."""
    drawn: list[Block] = counts(whole["counts"])
    parts = [samples(whole), courses(whole)]
    if drawn:
        note = Paragraph("Shares of synthetic patients, and of the steps from one row to the next.")
        title = "Rows, and days between them"
        parts.append(
            Section("counts", title, counted(len(whole["counts"]), "series"), (note, *drawn))
        )
    if whole["curves"]:
        note = Paragraph(
            "Share of synthetic patients without the event, by Kaplan and Meier; of those who had "
            "not had it on day 0. The axis is cut."
        )
        figures = folded([curve(one) for one in whole["curves"]], "", "curve")
        title = "Time to events"
        parts.append(
            Section("events", title, counted(len(whole["curves"]), "curve"), (note, *figures))
        )
    return [part for part in parts if part is not None]
