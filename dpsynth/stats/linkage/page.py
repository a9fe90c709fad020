"""Linkage as a page of one file: how many pairs match, how good each threshold is, what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd
from markupsafe import Markup

from dpsynth._util.formatting import counted, figure, shown
from dpsynth.certificate import Certificate
from dpsynth.privacy import LinkCounts, counted_of
from dpsynth.stats.linkage.figures import RATIOS
from dpsynth.stats.linkage.request import LinkageRequest
from dpsynth.stats.page import rendered
from dpsynth.stats.pictures.panel import Curve, panel


def linkage_page(
    request: LinkageRequest,
    certificate: Certificate,
    stamps: Sequence[str],
    tables: Mapping[str, pd.DataFrame],
) -> bytes:
    """Return the page as HTML; it holds what the files beside it hold, and nothing else.

    Args:
        request: what was asked.
        certificate: of the numbers.
        stamps: reasons why they may not be released.
        tables: as `figures.tables_of` gives them.
    """
    return rendered(
        "linkage.html",
        certificate,
        stamps,
        title=request.title,
        names=[shown(name) for name in request.names],
        protected=protected_of(request, certificate),
        confidence=f"{100 * request.confidence:g} %",
        picture=_picture(tables["thresholds"]),
        noise=", ".join(
            f"{event.name} {figure(event.sigma)}"
            for event in certificate.events
            if isinstance(event, LinkCounts)
        ),
        tables=[_table(name, table) for name, table in tables.items()],
    ).encode()


def protected_of(request: LinkageRequest, certificate: Certificate) -> str:
    """Say whose presence the guarantee hides: the people of both registers."""
    people = [
        f"{counted_of(one.unit)} of {name} (column '{shown(one.unit.name or '')}')"
        for one, name in zip(certificate.registers, request.names, strict=True)
    ]
    matches = f"{request.cap_of_matches:,} {'match' if request.cap_of_matches == 1 else 'matches'}"
    caps = f"{matches} and {counted(request.cap_of_others, 'other pair')}"
    words = (
        f"The guarantee protects each {people[0]} and each {people[1]}, with all of their "
        f"candidate pairs together; at most {caps} of each record count at a threshold. "
    )
    if request.own_records is not None:
        words += (
            "The office declares that each pair follows from its own two records alone: whether "
            f"it is a candidate, its score and its review ({shown(request.own_records)}). "
        )
    if request.same_people:
        return words + "It covers a person who is in both registers, with both records."
    return words + (
        "It assumes that no person is in both registers, and nothing checks that: for whoever is, "
        "noise hides only half as much."
    )


def _picture(table: pd.DataFrame) -> Markup | None:
    """Draw precision, recall and F1 against the threshold."""
    x = table["threshold"].tolist()
    curves = []
    for name in RATIOS:
        known = table[name].notna()
        columns = [table.loc[known, label] for label in (name, f"{name}: lower", f"{name}: upper")]
        middle, low, high = (column.astype(float).tolist() for column in columns)
        if len(middle) > 1:
            curves.append(Curve(name, table.loc[known, "threshold"].tolist(), middle, low, high))
    if not curves:
        return None
    ends = [x[0], x[-1]] if len(x) > 8 else x
    ticks = [(one, f"{one:g}") for one in ends]
    title = "Precision, recall and F1 by threshold"
    return panel("linkage", title, curves, ticks, 1.0, before="from", percent=True)


def _table(name: str, table: pd.DataFrame) -> dict[str, Any]:
    """Return a table for the page, an interval beside each figure."""
    plain = [str(name) for name in table if not str(name).endswith((": lower", ": upper"))]
    rows = []
    for _, row in table.iterrows():
        cells = []
        for column in plain:
            words = _words(row[column])
            if f"{column}: lower" in table:
                ends = (_words(row[f"{column}: {end}"]) for end in ("lower", "upper"))
                words = f"{words} ({' to '.join(ends)})"
            cells.append({"words": words, "number": not isinstance(row[column], str)})
        rows.append(cells)
    return {"name": name, "columns": plain, "rows": rows}


def _words(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    if pd.isna(cell):
        return "unknown"
    return f"{cell:,.0f}" if float(cell).is_integer() and abs(cell) > 1 else f"{cell:g}"
