"""The section of the internal report on counting queries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth.eval.report import (
    Chart,
    Paragraph,
    Pictures,
    ReportTable,
    Row,
    Section,
    fidelity_charts,
    figure,
    percent,
)

Details = Mapping[str, Any]


def queries(details: Details) -> Section | None:
    """Return errors of counting queries."""
    them = details.get("queries") or {}
    found = {n: e for n, e in (them.get("error_quantiles") or {}).items() if e}
    if "synthetic" not in found:
        return None
    levels = list(found["synthetic"])
    rows = [
        Row(
            (
                fidelity_charts.quantile(level),
                *(percent(errors.get(level)) for errors in found.values()),
            )
        )
        for level in levels
    ]
    said = {"chance": "by chance"}
    caption = "Error of counting queries, share of rows"
    table = ReportTable.of(caption, ("Quantile of queries", *(said.get(n, n) for n in found)), rows)
    label = f"Errors of {figure(them.get('count'))} counting queries, by quantile: in the table"
    spec = fidelity_charts.error_quantiles(them | {"error_quantiles": found})
    ways = f" over {them['ways']} columns each" if them.get("ways") else ""
    half = percent(found["synthetic"].get("0.5"))
    blocks = (
        Paragraph(
            f"{figure(them.get('count'))} random questions of the kind “how many rows have "
            f"this and that”{ways}; the error is the difference of the synthetic table's answer "
            "to the source's, as a share of all rows."
        ),
        Pictures((Chart("Errors of queries", label, spec, 210),), "half", key="errors"),
        table,
    )
    return Section("queries", "Counting queries", f"half of them err by at most {half}", blocks)
