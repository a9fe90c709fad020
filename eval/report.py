"""The internal report of an evaluation, and several evaluations side by side, each as one file.

Both pages hold statistics of real patients and say so on every screen and every sheet. They ask no
network for anything: styles, scripts and figures are in the file, and a policy in it forbids the
browser to fetch. Every text of a document is escaped, wherever it comes from.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from markupsafe import Markup

from dpsynth.eval import candidates, headline, sections_fidelity, sections_use, sections_whole
from dpsynth.eval.blocks import Section
from dpsynth.eval.sections_groups import subgroups
from dpsynth.eval.wording import counted, listed, shown

Document = Mapping[str, Any]
FORMAT, VERSION = "dpsynth-evaluation", 1


def internal_page(document: Document) -> str:
    """Return the page of one evaluation as HTML.

    Args:
        document: an evaluation as `evaluation.json` holds it.

    Raises:
        ValueError: the document is no evaluation, or one of a later version.
    """
    _check(document)
    measures = document.get("measures") or {}
    gates = list(document.get("gates") or [])
    made = sections(document)
    groups = headline.every(measures)
    notes = [str(note) for note in document.get("notes") or []] + _absent(document, made)
    after = [("measures", "All measures")] * bool(groups) + [("notes", "Notes")] * bool(notes)
    return _render(
        "internal.html",
        title=_title(document),
        version=document.get("dpsynth") or "",
        facts=_facts(document),
        summary=headline.summary(gates),
        failed=any(gate["passed"] is False for gate in gates),
        verdicts=headline.verdicts(gates),
        leading=headline.leading(measures),
        sections=made,
        every=groups,
        counts=counted(len(measures), "measure"),
        notes=notes,
        list=[("overview", "Overview"), *((one.id, one.title) for one in made), *after],
    )


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
    made = candidates.sections(documents, names)
    return _render(
        "comparison.html",
        title=f"{counted(len(names), 'table')}: {candidates.title(documents)}",
        version=documents[0].get("dpsynth") or "",
        warnings=candidates.warnings(documents, names),
        summary=candidates.summary(documents, names),
        overview=candidates.overview(documents, names),
        sections=made,
        list=[("overview", "Overview"), *((one.id, one.title) for one in made)],
    )


def sections(document: Document) -> list[Section]:
    """Return the sections of an evaluation; a part that was not computed has none."""
    parts = document.get("parts") or {}
    fidelity = parts.get("fidelity") or {}
    made = sections_fidelity.sections(fidelity) + sections_whole.sections(fidelity)
    made += sections_use.sections(parts.get("usefulness") or {})
    last = (
        subgroups(_list(parts, "subgroups")),
        sections_whole.rules(_list(parts, "rules")),
    )
    return made + [section for section in last if section is not None]


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


def _facts(document: Document) -> list[tuple[str, str, bool]]:
    """Say which tables and which run were judged: (name, value, whether it is a code)."""
    tables, run = document.get("tables") or {}, document.get("run")
    facts = [(name, _table(tables.get(name)), False) for name in ("source", "synthetic", "holdout")]
    facts[0] = ("Source (real)", facts[0][1], False)
    facts[1] = ("Synthetic table", facts[1][1], False)
    facts[2] = ("Holdout (real)", facts[2][1], False)
    if run is not None:
        privacy = f"epsilon {_number(run.get('epsilon'))}, delta {_number(run.get('delta'))}"
        facts.append(("Run", f"{run.get('model')}, {privacy}", False))
        if stamps := run.get("stamps"):
            facts.append(("Stamps of the run", listed(stamps, 9), False))
    else:
        facts.append(("Run", "none: a table of another tool, or of no known run", False))
    facts.append(("Seed of this evaluation", _number(document.get("seed")), False))
    if sha := (tables.get("synthetic") or {}).get("sha256"):
        facts.append(("SHA-256 of the synthetic table", str(sha), True))
    if sha := (document.get("schema") or {}).get("sha256"):
        facts.append(("SHA-256 of the schema", str(sha), True))
    return facts


def _table(one: Mapping[str, Any] | None) -> str:
    if one is None:
        return "none: figures stand without one"
    units = one.get("units")
    of = f" of {counted(units, 'unit')}" if units is not None and units != one["rows"] else ""
    return f"{one.get('name') or 'no name'}: {counted(one['rows'], 'row')}{of}"


def _number(value: Any) -> str:
    return (
        f"{value:g}" if isinstance(value, float) else "not known" if value is None else str(value)
    )


_PARTS = {
    "fidelity": ("columns", "how close the table is to the source"),
    "usefulness": ("models", "what models and analyses find in it"),
    "subgroups": ("subgroups", "measures by declared group"),
    "rules": ("rules", "declared rules"),
}


def _absent(document: Document, made: Sequence[Section]) -> list[str]:
    """Say in a line each what the page has not, and why, as far as the document says it."""
    there = {section.id for section in made}
    parts = document.get("parts") or {}
    notes = []
    for name, (section, words) in _PARTS.items():
        if parts.get(name) is None:
            notes.append(f"Not evaluated: {words}.")
        elif section not in there and not there & _ALSO.get(name, set()):
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


@dataclass
class _Drawings:
    """The pictures of a page, in the order in which the templates place them."""

    specs: list[dict[str, Any]] = field(default_factory=list)

    def add(self, spec: dict[str, Any]) -> int:
        self.specs.append(spec)
        return len(self.specs) - 1

    def json(self) -> Markup:
        """Return the specs as JSON that no text can end early."""
        text = json.dumps(self.specs, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        for mark in "<>&\u2028\u2029":
            text = text.replace(mark, f"\\u{ord(mark):04x}")
        return Markup(text)


def _render(template: str, **values: Any) -> str:
    return str(_environment().get_template(template).render(drawings=_Drawings(), **values))


@cache
def _environment() -> Any:
    from dpsynth.page_frame import environment, said

    made = environment("dpsynth.eval")
    made.filters |= {
        "said_plain": shown,
        "shown": shown,
        "cell": lambda cell: cell if isinstance(cell, Markup) else said(cell),
        "kind": lambda block: type(block).__name__,
        "anchor": _anchor,
    }
    made.globals |= {"plotly": _plotly}
    return made


def _anchor(key: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]", lambda found: f"-{ord(found[0]):x}-", key)


@cache
def _plotly() -> Markup:
    """Return the text of plotly's script; it holds nothing that ends a script early."""
    from plotly.offline import get_plotlyjs

    text = get_plotlyjs()
    if re.search(r"</script|<!--", text, re.IGNORECASE):
        raise ValueError("this version of plotly cannot be put into a page; install another")
    return Markup(text)
