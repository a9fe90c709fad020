"""What is rare in the source: its share there, and in the table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from dpsynth.eval.report.board.figures import part
from dpsynth.eval.report.formatting import shown

Details = Mapping[str, Any]

RARE, RARE_ROWS = 0.01, 10  # what is rare has at most this share, and is judged from so many rows
TIMES = 2.0  # what is rare is kept if it is neither so many times as frequent, nor as rare


def kept(source: float, synthetic: float) -> bool:
    """Whether a rare share is neither twice as large, nor half as large.

    >>> kept(0.01, 0.015), kept(0.01, 0.13), kept(0.01, 0.0)
    (True, False, False)
    """
    return source / TIMES <= synthetic <= source * TIMES


def rare_shares(document: Details) -> Iterator[tuple[str, float, float]]:
    """Yield rare categories and the ends of numbers: name, share in the source, in the table."""
    fidelity, tables = part(document, "fidelity"), document.get("tables") or {}
    rows = min(float((tables.get(n) or {}).get("rows") or 0) for n in ("source", "synthetic"))
    for column in fidelity.get("columns") or []:
        if column.get("kind") != "category" or not column.get("source"):
            continue
        present = rows * (1 - float((column.get("missing") or {}).get("source") or 0.0))
        for label, source, table in _levels(column):
            if source <= RARE and source * present >= RARE_ROWS:
                yield f"{shown(column['name'])} = {shown(label)}", source, table
    for tail in fidelity.get("tails") or []:
        source, table = tail.get("source"), tail.get("synthetic")
        if source and table is not None and source * rows >= RARE_ROWS and source <= 2 * RARE:
            side = "lowest" if tail.get("tail") == "low" else "highest"
            yield f"{side} values of {shown(tail['column'])}", float(source), float(table)


def _levels(column: Details) -> Iterator[tuple[str, float, float]]:
    synthetic: Sequence[float] = column.get("synthetic") or []
    for label, source, table in zip(column["bins"], column["source"], synthetic, strict=False):
        if str(label) != "all others":
            yield str(label), float(source), float(table)
