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
    part = details.get("queries") or {}
    quantiles = {n: e for n, e in (part.get("error_quantiles") or {}).items() if e}
    if "synthetic" not in quantiles:
        return None
    levels = list(quantiles["synthetic"])
    rows = [
        Row(
            (
                fidelity_charts.quantile(level),
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
    spec = fidelity_charts.error_quantiles(part | {"error_quantiles": quantiles})
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
