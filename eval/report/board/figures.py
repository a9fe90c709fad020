"""Reading an evaluation for a board: its measures, its parts, and its distances in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dpsynth.eval.report.formatting import counted, percent

Details = Mapping[str, Any]

FEW = 100  # compared rows, below which there is no verdict


def beyond(entry: Details) -> float | None:
    """Return how much farther a distance is than its reference; None without a reference.

    >>> beyond({"value": 0.10, "reference": 0.03, "chance": 0.02}) == 0.10 - 0.03
    True
    """
    reference = entry.get("reference")
    reference = entry.get("chance") if reference is None else reference
    return None if reference is None else float(entry["value"]) - float(reference)


def part(document: Details, name: str) -> Details:
    """Return a part of an evaluation that is a mapping."""
    entries = (document.get("parts") or {}).get(name) or {}
    return entries if isinstance(entries, Mapping) else {}


def single_columns(document: Details) -> list[Details]:
    """Return the columns that are compared one by one: modelled, derived, parts of the calendar."""
    fidelity = part(document, "fidelity")
    return [*(fidelity.get("columns") or []), *(fidelity.get("followed") or [])]


def listing(document: Details, name: str) -> list[Details]:
    """Return a part of an evaluation that is a list, or a list under its own name."""
    entries = (document.get("parts") or {}).get(name) or []
    return list(entries.get(name) or []) if isinstance(entries, Mapping) else list(entries)


def measure(document: Details, key: str) -> Details | None:
    """Return a measure that has a value."""
    entry = (document.get("measures") or {}).get(key)
    return entry if entry and entry.get("value") is not None else None


def every(document: Details, family: str) -> Iterator[tuple[str, Details]]:
    """Yield the measures of a family: what each is of, and the measure."""
    for key, entry in (document.get("measures") or {}).items():
        name, mark, rest = key.partition(":")
        if mark and name == family and entry.get("value") is not None:
            yield rest, entry


def few(entry: Details) -> str:
    """Say that too few rows were compared; empty where they were enough."""
    count = entry.get("n")
    if count is None or count >= FEW:
        return ""
    return f"Only {counted(count, 'row')} could be compared; no verdict below {FEW}."


def held(entry: Details) -> float:
    """Return what a distance is held against."""
    reference = entry.get("reference")
    return float(entry["chance"] if reference is None else reference)


def reference_of(entry: Details) -> str:
    """Name what a distance is held against."""
    return "by chance" if entry.get("reference") is None else "other real people"


def distance(entry: Details) -> str:
    """Say a distance, and what it is held against, in plain words."""
    return (
        f"{percent(float(entry['value']))} of the rows would have to change to match the real ones "
        f"({reference_of(entry)}: {percent(held(entry))})"
    )
