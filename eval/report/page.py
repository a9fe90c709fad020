"""The internal report of an evaluation and its audit, and several evaluations side by side.

Each is one file. Both pages hold statistics of real patients and say so on every screen and every
sheet. They ask no network for anything: styles, scripts and figures are in the file, and a policy
in it forbids the browser to fetch. Every text of a document is escaped, wherever it comes from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report import comparison, key_figures
from dpsynth.eval.report.board import CAVEAT, answer
from dpsynth.eval.report.formatting import counted, listed, percent
from dpsynth.eval.report.rendering import Section, present, render
from dpsynth.eval.report.sections import audit as sections_audit
from dpsynth.eval.report.sections import fidelity as sections_fidelity
from dpsynth.eval.report.sections import rows, utility
from dpsynth.eval.report.sections.utility import subgroups

Document = Mapping[str, Any]
FORMAT, VERSION = "dpsynth-evaluation", 1
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
    parts = sections(document)
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
        "audit_warning": "" if document is None else sections_audit.other_table(audit, document),
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
        _check(document)
    parts = comparison.sections(documents, names)
    return render(
        "comparison.html",
        title=f"{counted(len(names), 'table')}: {comparison.title(documents)}",
        version=documents[0].get("dpsynth") or "",
        warnings=comparison.warnings(documents, names),
        summary=comparison.summary(documents, names),
        overview=comparison.overview(documents, names),
        sections=parts,
        list=[("", [("overview", "Overview"), *((part.id, part.title) for part in parts)])],
    )


def sections(document: Document) -> list[Section]:
    """Return the sections of an evaluation; a part that was not computed has none."""
    parts = document.get("parts") or {}
    fidelity = parts.get("fidelity") or {}
    last = (subgroups(_list(parts, "subgroups")), rows.rules(_list(parts, "rules")))
    return [
        *sections_fidelity.sections(fidelity),
        *rows.sections(fidelity),
        *utility.sections(parts.get("usefulness") or {}),
        *present(last),
    ]


def _list(parts: Mapping[str, Any], name: str) -> list[Any]:
    """Return a part that is one list, or a list under its own name."""
    part = parts.get(name) or []
    return list(part.get(name) or []) if isinstance(part, Mapping) else list(part)


def _check(document: Document) -> None:
    if document.get("format") != FORMAT:
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
