"""Which tables and which run a report is about, and its seed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth.eval.report.formatting import counted, listed, percent

Document = Mapping[str, Any]


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


_PARTS = {
    "fidelity": ("columns", "how close the table is to the source"),
    "usefulness": ("models", "what models and analyses find in it"),
    "subgroups": ("subgroups", "measures by declared group"),
    "rules": ("rules", "declared rules"),
}
