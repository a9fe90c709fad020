"""The internal report of an evaluation and its audit, and several evaluations side by side.

Each is one file. Both pages hold statistics of real patients and say so on every screen and every
sheet. They ask no network for anything: styles, scripts and figures are in the file, and a policy
in it forbids the browser to fetch. Every text of a document is escaped, wherever it comes from.
Side by side, a page marks what is best in each row, and where that cannot be told.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from markupsafe import Markup

from dpsynth.eval.report import audit_formatting, charts, formatting, history_facts, key_figures
from dpsynth.eval.report.board import CAVEAT, answer
from dpsynth.eval.report.formatting import counted, figure, listed, percent, shown
from dpsynth.eval.report.key_figures import relations
from dpsynth.eval.report.rendering import (
    Block,
    Cell,
    Chart,
    Paragraph,
    Pictures,
    ReportTable,
    Row,
    Section,
    present,
    render,
)
from dpsynth.eval.report.sections import audit as sections_audit
from dpsynth.eval.report.sections import fidelity as sections_fidelity
from dpsynth.eval.report.sections import utility
from dpsynth.eval.report.sections.utility import subgroups

Document = Mapping[str, Any]
FORMAT, VERSION = "dpsynth-evaluation", 1
OF_HISTORIES = "dpsynth-history-evaluation"
USE_WORDS = {
    "fit": ("✓", "Fit for"),
    "with care": ("!", "With care, for"),
    "not fit": ("✗", "Not fit for"),
    "not measured": ("?", "Not measured"),
}


def internal_page(
    document: Document | None, audit: Document | None = None, *, histories: Document | None = None
) -> str:
    """Return the page of an evaluation, of an evaluation with its audit, or of an audit, as HTML.

    Args:
        document: an evaluation as `evaluation.json` holds it; None if there was none.
        audit: an audit as `audit.json` holds it; None if there was none.
        histories: an evaluation of whole histories, which has a page of its own; the answer takes
            it in the place of ``document``.

    Raises:
        ValueError: there is neither, or one is no such document, or one of a later version.
    """
    if document is not None:
        _check(document)
    if audit is not None:
        sections_audit.check(audit)
    either = document if document is not None else audit
    if either is None:
        raise ValueError("a page needs an evaluation or an audit")
    judged = _evaluation(document)
    attacked = _audit(document, audit)
    notes = [*judged["notes"], *attacked["notes"]]
    more = [*judged["details"], *attacked["details"], *[("notes", "Notes")] * bool(notes)]
    places = (
        ("", [("answer", "The answer"), *judged["quality"], *attacked["attacks"]]),
        ("Details for a statistician", [*more, ("facts", "What was judged")]),
    )
    page_facts = (
        facts(either, "evaluation" if document is not None else "audit") + attacked["facts"]
    )
    return render(
        "internal.html",
        **{**judged, **attacked, "notes": notes, "facts": page_facts},
        title=_title(either),
        kind=_kind(document, audit),
        version=either.get("dpsynth") or "",
        board=answer(document if histories is None else histories, audit),
        caveat=CAVEAT,
        kinds=USE_WORDS,
        list=[(name, group) for name, group in places if group],
    )


def _kind(document: Document | None, audit: Document | None) -> str:
    if audit is None:
        return "Evaluation of a synthetic table"
    if audit.get("histories"):
        return "Audit of synthetic histories: each row is one patient, summed up over all tables"
    noun = "a training" if audit.get("tables") is None else "a synthetic table"
    return f"Audit of {noun}" if document is None else "Evaluation and audit of a synthetic table"


def _evaluation(document: Document | None) -> dict[str, Any]:
    """Return what the template shows of an evaluation."""
    if document is None:
        nothing: dict[str, Any] = dict.fromkeys(("sections", "every", "notes", "quality"), [])
        return {"evaluated": False, "details": [], **nothing}
    measures = document.get("measures") or {}
    gates = list(document.get("gates") or [])
    parts = _evaluation_sections(document)
    groups = key_figures.every(measures)
    places = [(part.id, part.title) for part in parts]
    return {
        "evaluated": True,
        "summary": key_figures.summary(gates),
        "failed": any(gate["passed"] is False for gate in gates),
        "verdicts": key_figures.verdicts(gates),
        "leading": key_figures.leading(measures),
        "sections": parts,
        "every": groups,
        "counts": counted(len(measures), "measure"),
        "notes": [str(note) for note in document.get("notes") or []] + _absent(document, parts),
        "quality": [("overview", "Quality: overview")],
        "details": places + [("measures", "All measures")] * bool(groups),
    }


def _audit(document: Document | None, audit: Document | None) -> dict[str, Any]:
    """Return what the template shows of an audit."""
    if audit is None:
        return {"audit": None, "notes": [], "attacks": [], "details": [], "facts": []}
    parts = sections_audit.sections(audit)
    every = sections_audit.measures(audit)
    places = [(part.id, part.title) for part in parts]
    return {
        "audit": sections_audit.top(audit),
        "audit_warning": "" if document is None else audit_formatting.other_table(audit, document),
        "facts": [] if document is None else [("Seed of the audit", number(audit["seed"]), False)],
        "audit_sections": parts,
        "audit_every": every,
        "audit_counts": counted(len(audit.get("measures") or {}), "measure"),
        "notes": sections_audit.notes(audit),
        "attacks": [("audit", "Attacks at a glance")],
        "details": places + [("audit-measures", "All measures of the audit")] * bool(every),
    }


def comparison_page(documents: Sequence[Document], names: Sequence[str]) -> str:
    """Return a page that puts several evaluations side by side.

    Args:
        documents: evaluations of the same source, holdout and seed; a page of others warns.
        names: of the candidates, in the same order.

    Raises:
        ValueError: there is nothing to compare, a name is missing, or a document is no evaluation.
    """
    if not documents or len(documents) != len(names):
        raise ValueError("a comparison needs at least one evaluation, and a name for each")
    for document in documents:
        _check(document, FORMAT, OF_HISTORIES)
    parts = _comparison_sections(documents, names)
    return render(
        "comparison.html",
        title=f"{counted(len(names), 'table')}: {_compared_title(documents)}",
        version=documents[0].get("dpsynth") or "",
        warnings=_warnings(documents, names),
        summary=_comparison_summary(documents, names),
        overview=_overview(documents, names),
        sections=parts,
        list=[("", [("overview", "Overview"), *((part.id, part.title) for part in parts)])],
    )


def _evaluation_sections(document: Document) -> list[Section]:
    """Return the sections of an evaluation; a part that was not computed has none."""
    parts = document.get("parts") or {}
    fidelity = parts.get("fidelity") or {}
    last = (subgroups(_list(parts, "subgroups")), sections_fidelity.rules(_list(parts, "rules")))
    return [
        *sections_fidelity.sections(fidelity),
        *utility.sections(parts.get("usefulness") or {}),
        *present(last),
    ]


def _list(parts: Mapping[str, Any], name: str) -> list[Any]:
    """Return a part that is one list, or a list under its own name."""
    part = parts.get(name) or []
    return list(part.get(name) or []) if isinstance(part, Mapping) else list(part)


def _check(document: Document, *formats: str) -> None:
    if document.get("format") not in (formats or (FORMAT,)):
        raise ValueError(f"the document is no evaluation: its format is not {FORMAT}")
    if document.get("version") != VERSION:
        raise ValueError(f"the evaluation is not of version {VERSION}; use the dpsynth it is from")


def _title(document: Document) -> str:
    schema = document.get("schema") or {}
    return str(schema.get("title") or schema.get("name") or "A synthetic table")


_PARTS = {
    "fidelity": ("columns", "how close the table is to the source"),
    "usefulness": ("models", "what models and analyses find in it"),
    "subgroups": ("subgroups", "measures by declared group"),
    "rules": ("rules", "declared rules"),
}


def _absent(document: Document, shown_sections: Sequence[Section]) -> list[str]:
    """Say in a line each what the page has not, and why, as far as the document says it."""
    if document.get("not_done"):
        return []  # its one note says it
    anchors = {section.id for section in shown_sections}
    parts = document.get("parts") or {}
    notes = []
    for name, (section, words) in _PARTS.items():
        if parts.get(name) is None:
            notes.append(f"Not evaluated: {words}.")
        elif section not in anchors and not anchors & _ALSO.get(name, set()):
            notes.append(f"Nothing to show: {words}; the schema declares none of it.")
    if (document.get("tables") or {}).get("holdout") is None:
        notes.append(
            "No holdout was given, so that no figure is held against real people whom the "
            "generator has not seen; what chance makes is the only reference."
        )
    return notes


_ALSO = {
    "fidelity": {"pairs", "missing", "ends", "queries", "c2st", "sdmetrics", "embedding"},
    "usefulness": {"odds", "means", "survival"},
}


def facts(document: Document, kind: str) -> list[tuple[str, str, bool]]:
    """Say which tables and which run were judged: (name, value, whether it is a code)."""
    tables, run = document.get("tables") or {}, document.get("run")
    names = {"source": "Source (real)", "synthetic": "Synthetic table", "holdout": "Holdout (real)"}
    known = [(title, _table(tables.get(name)), False) for name, title in names.items()]
    if kind == "evaluation" and document.get("not_done"):
        known = [("Tables", "not compared; the notes say why", False)]
    if kind == "audit" and not tables:
        known = [("Tables", "none: the training alone was attacked", False)]
    if run is not None:
        privacy = f"epsilon {number(run.get('epsilon'))}, delta {number(run.get('delta'))}"
        known.append(("Run", f"{run.get('model')}, {privacy}", False))
        if fitness := run.get("fitness"):
            share = f"{percent(fitness['share'])} of {counted(fitness['cells'], 'measured cell')}"
            text = f"missed by more than 3 standard errors: {share} (0.27 % by chance)"
            known.append(("Goodness of fit of the run", text, False))
        if stamps := run.get("stamps"):
            known.append(("Stamps of the run", listed(stamps, 9), False))
    else:
        known.append(("Run", "none: a table of another tool, or of no known run", False))
    known.append((f"Seed of this {kind}", number(document.get("seed")), False))
    if sha := (tables.get("synthetic") or {}).get("sha256"):
        known.append(("SHA-256 of the synthetic table", str(sha), True))
    if sha := (document.get("schema") or {}).get("sha256"):
        known.append(("SHA-256 of the schema", str(sha), True))
    return known


def _table(table: Mapping[str, Any] | None) -> str:
    if table is None:
        return "none: figures stand without one"
    units = table.get("units")
    text = f"{table.get('name') or 'no name'}: {counted(table['rows'], 'row')}"
    if units is None or units == table["rows"]:
        return text
    return f"{text} of {counted(units, 'unit')}"


def number(value: Any) -> str:
    """Write a number of a run, or say that there is none."""
    return (
        f"{value:g}" if isinstance(value, float) else "not known" if value is None else str(value)
    )


Estimates = Sequence[Mapping[str, Any] | None]

BEST = Markup('<span class="best-mark">★ best</span>')
CLOSE = Markup('<span class="close-mark">≈ not told from best</span>')


def _compared_title(documents: Sequence[Document]) -> str:
    """Say what was compared."""
    schema = documents[0].get("schema") or {}
    return str(schema.get("title") or schema.get("name") or "synthetic tables")


def _warnings(documents: Sequence[Document], names: Sequence[str]) -> list[str]:
    """Say where evaluations differ in what they are held against, so that figures mislead."""
    tasks = [
        {
            "the schema": (document.get("schema") or {}).get("sha256"),
            "the source": _real(document, "source"),
            "the holdout": _real(document, "holdout"),
            "the seed of the evaluation": document.get("seed"),
            "the version of dpsynth": document.get("dpsynth"),
        }
        for document in documents
    ]
    sentences = []
    for aspect, first in tasks[0].items():
        if other := [n for n, task in zip(names, tasks, strict=True) if task[aspect] != first]:
            sentences.append(
                f"Not the same as of {shown(names[0])}: {aspect}, in {listed(other)}. Figures of "
                "different tasks cannot be compared."
            )
    return sentences


def _real(document: Document, name: str) -> Any:
    table = (document.get("tables") or {}).get(name)
    return table and (table.get("name"), table.get("rows"), table.get("units"))


def _comparison_summary(documents: Sequence[Document], names: Sequence[str]) -> str:
    """Say which candidate is clearly best most often among the leading measures.

    A measure counts where no other's interval meets that of the best.
    """
    rows = [_row(documents, key) for key in _leading(documents)]
    clear = [best_of(row) for row in rows if not close_to(row, best_of(row))]
    wins = [sum(place in best for best in clear if len(best) == 1) for place in range(len(names))]
    top = max(wins)
    if not top:
        return "No table is clearly better than the others in any headline measure."
    first = listed(name for name, count in zip(names, wins, strict=True) if count == top)
    return (
        f"Clearly best most often: {first}, in {top} of {counted(len(rows), 'headline measure')}."
    )


def _ranks(documents: Sequence[Document]) -> list[tuple[int, int]]:
    """Count for each candidate in how many leading measures it is best, or not told from best."""
    rows = [_row(documents, key) for key in _leading(documents)]
    best = [best_of(row) for row in rows]
    close = [close_to(row, places) for row, places in zip(rows, best, strict=True)]
    return [
        (sum(place in places for places in best), sum(place in places for places in close))
        for place in range(len(documents))
    ]


def best_of(row: Estimates) -> set[int]:
    """Return the places of the figures that are nearest to best; none where fewer than two are.

    >>> best_of([{"value": 0.2, "best": 0.0}, {"value": 0.1, "best": 0.0}, None])
    {1}
    """
    known = {place for place, one in enumerate(row) if one is not None}
    minimum = min((_away(row[place]) for place in known), default=0.0)
    return {p for p in known if _away(row[p]) == minimum} if len(known) > 1 else set()


def close_to(row: Estimates, best: set[int]) -> set[int]:
    """Return the other places whose intervals meet that of one of the best."""
    tops = [estimate for place in best if (estimate := row[place]) is not None]
    return {
        place
        for place, estimate in enumerate(row)
        if place not in best and estimate is not None and any(_meet(estimate, top) for top in tops)
    }


def _away(estimate: Mapping[str, Any] | None) -> float:
    return float("inf") if estimate is None else abs(estimate["value"] - estimate["best"])


def _meet(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    if any(one.get(end) is None for one in (a, b) for end in ("low", "high")):
        return bool(a["value"] == b["value"])
    return bool(a["low"] <= b["high"] and b["low"] <= a["high"])


def _overview(documents: Sequence[Document], names: Sequence[str]) -> list[Block]:
    """Return the candidates, their gates, the leading measures, and pictures of them."""
    keys = _leading(documents)
    blocks: list[Block] = [_candidates(documents, names)]
    if keys:
        text = (
            "Each figure has its interval of 95 % in round brackets and its references in square "
            "ones. ★ is the figure nearest to the best that can be; ≈ marks those whose intervals "
            "meet its own, so that the order may be chance."
        )
        blocks += [Paragraph(text), _measures_table("Headline measures", documents, names, keys)]
        blocks += _relations(documents, names)
        blocks += _differences(documents, names)
        blocks += _pictures(documents, names, keys)
    return blocks


def _relations(documents: Sequence[Document], names: Sequence[str]) -> list[Block]:
    """List the strongest relations by name, with their strength in each table."""
    listed_relations = [relations(document) for document in documents]
    titles = [[one.title for one in entries] for entries in listed_relations]
    if not titles[0] or any(one != titles[0] for one in titles):  # of different sources
        return []
    first = listed_relations[0]
    held = any(one.holdout is not None for one in first)
    rows = [
        Row(
            (
                one.title,
                figure(one.source),
                *(figure(entries[place].synthetic) for entries in listed_relations),
                *((figure(one.holdout),) if held else ()),
            )
        )
        for place, one in enumerate(first)
    ]
    head = ("Relation", "Real rows", *names, *(("Holdout",) if held else ()))
    return [ReportTable.of("The strongest relations, Cramér's V", head, rows)]


def _differences(documents: Sequence[Document], names: Sequence[str]) -> list[Block]:
    """Name the largest differences of each cohort, of the facts whose gates fail."""
    rows = [
        Row((name, title, text))
        for name, document in zip(names, documents, strict=True)
        for title, _, text in history_facts.failures(document)
    ]
    head = ("Candidate", "Facts", "Largest difference")
    return [ReportTable("Where histories differ most", head, tuple(rows))] if rows else []


def _comparison_sections(documents: Sequence[Document], names: Sequence[str]) -> list[Section]:
    """Return all other measures, in groups."""
    every: dict[str, Any] = {}
    for document in documents:
        every = {**(document.get("measures") or {}), **every}
    leading = set(_leading(documents))
    parts = []
    for place, (name, group) in enumerate(key_figures.every(every)):
        if keys := [one.key for one in group if one.key not in leading]:
            blocks = (_measures_table(f"{name}: other measures", documents, names, keys),)
            text = counted(len(keys), "measure")
            parts.append(Section(f"group-{place}", f"{name}: other measures", text, blocks))
    meanings = {one["title"]: one.get("meaning") or "" for one in every.values()}
    rows = tuple(Row((name, text)) for name, text in meanings.items() if text)
    if rows:
        words = ReportTable("What each measure means", ("Measure", "Meaning"), rows)
        parts.append(Section("glossary", "How to read this", "each measure's meaning", (words,)))
    return parts


def _leading(documents: Sequence[Document]) -> list[str]:
    keys: dict[str, None] = {}
    for document in documents:
        measures = document.get("measures") or {}
        if document["format"] == OF_HISTORIES:  # whose other figures are of single columns
            keys |= dict.fromkeys(key for key in measures if ":" not in key)
        for _, group in key_figures.leading(measures):
            keys |= dict.fromkeys(one.key for one in group)
    if documents[0]["format"] == OF_HISTORIES:
        return list(keys)
    order = [family for families in key_figures.LEADING.values() for family in families]
    return sorted(keys, key=lambda key: order.index(formatting.family(key)))


def _row(documents: Sequence[Document], key: str) -> list[Mapping[str, Any] | None]:
    return [(document.get("measures") or {}).get(key) for document in documents]


def _measures_table(
    caption: str, documents: Sequence[Document], names: Sequence[str], keys: Sequence[str]
) -> ReportTable:
    """Return measures as lines and candidates as columns, the best of each line marked."""
    rows = []
    for key in keys:
        row = _row(documents, key)
        best = best_of(row)
        close = close_to(row, best)
        name = next(one["title"] for one in row if one is not None)
        cells = [_cell(key, one, p in best, p in close) for p, one in enumerate(row)]
        rows.append(Row((name, *cells)))
    return ReportTable.of(caption, ("Measure", *names), rows)


def _cell(key: str, estimate: Mapping[str, Any] | None, best: bool, close: bool) -> Cell:
    if estimate is None:
        return "–"
    value, references = formatting.measure(key, estimate)
    mark = BEST if best else CLOSE if close else ""
    strong = Markup("<strong>{}</strong>").format(value) if best else value
    return Markup('{}<span class="references">{}</span>{}').format(strong, references, mark)


def _candidates(documents: Sequence[Document], names: Sequence[str]) -> ReportTable:
    rows = []
    for name, document, rank in zip(names, documents, _ranks(documents), strict=True):
        run, synthetic = document.get("run") or {}, (document.get("tables") or {}).get("synthetic")
        gates = document.get("gates") or []
        failed = sum(gate["passed"] is False for gate in gates)
        text = f"✗ {failed} of {len(gates)} failed" if failed else f"✓ none of {len(gates)} failed"
        cells = (name, str(run.get("model") or "another tool"), _plain(run.get("epsilon")))
        patients = (document.get("patients") or {}).get("synthetic")
        size = figure((synthetic or {}).get("rows", patients))
        sha = str((synthetic or {}).get("sha256") or "–")[:12]
        counts = (figure(rank[0]), figure(rank[1]), text if gates else "no gates")
        rows.append(Row((*cells, size, *counts, sha)))
    size_of = "Patients" if documents[0]["format"] == OF_HISTORIES else "Rows"
    head = ["Candidate", "Model", "Epsilon", size_of, "Best in", "Not told from best in"]
    head += ["Internal gates", "SHA-256, first 12"]
    return ReportTable.of("Candidates", head, rows)


def _plain(value: float | None) -> str:
    return "none known" if value is None else f"{value:g}"


def _pictures(
    documents: Sequence[Document], names: Sequence[str], keys: Sequence[str]
) -> list[Block]:
    """Return error against epsilon where it varies within a model, else marks side by side."""
    runs = [document.get("run") or {} for document in documents]
    epsilons = {run.get("epsilon") for run in runs} - {None}
    figures = []
    lines = len(epsilons) > 1 and all(run.get("epsilon") for run in runs)
    for key in keys:
        row = _row(documents, key)
        known = [place for place, one in enumerate(row) if one is not None]
        name = next(one["title"] for one in row if one is not None)
        values = ", ".join(f"{shown(names[p])} {formatting.estimate(row[p])}" for p in known)
        label = f"{name}: {values}"
        if lines:
            spec = charts.against_epsilon(_lines(runs, names, row))
            figures.append(Chart(name, f"Against epsilon, {label}", spec, 270))
        else:
            height = 60 + 30 * len(names)
            figures.append(Chart(name, label, charts.candidates(names, row), height))
    marks = "what they are held against: a holdout, or a model trained on the source"
    text = f"Circles are the candidates with their intervals, open diamonds {marks}."
    if lines:
        text = f"Each measure against epsilon, with intervals; the dotted line is {marks}."
    return [Paragraph(text), Pictures(tuple(figures), "small")]


def _lines(
    runs: Sequence[Mapping[str, Any]], names: Sequence[str], row: Estimates
) -> dict[str, list[tuple[float, str, Mapping[str, Any]]]]:
    """Group figures by model, in the order of epsilon."""
    lines: dict[str, list[tuple[float, str, Mapping[str, Any]]]] = {}
    for run, name, estimate in zip(runs, names, row, strict=True):
        if estimate is not None:
            lines.setdefault(str(run.get("model")), []).append((run["epsilon"], name, estimate))
    return {model: sorted(points, key=lambda point: point[0]) for model, points in lines.items()}
