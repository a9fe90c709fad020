"""Guesses about people in the internal report: attributes, links, and singling out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpsynth.eval.report import (
    Block,
    Chart,
    Lines,
    Paragraph,
    Pictures,
    Row,
    Section,
    attack_charts,
    audit_formatting,
    counted,
    listed,
    percent,
)
from dpsynth.eval.report.sections.membership import BEYOND, SIDES, success

Details = Mapping[str, Any]

POPULATION = (
    "What succeeds as often for other people, who are not in the data, is an inference about the "
    "population, not a leak: it would be known without them too. Only what succeeds more often "
    "for people in the data comes from their records."
)
_KINDS = {"one": "By one column", "many": "By several columns"}


def attribute(audit: Details) -> Section | None:
    """Return how often sensitive columns are guessed."""
    entries = _part(audit, "attribute", "columns")
    if not entries:
        return None
    text = (
        "The attacker has the synthetic table, knows some columns of somebody, and tries to guess "
        "a sensitive one."
    )
    lines = [
        (
            f"{entry['column']}: {entry['attack']}, {len(entry['known'])} known",
            f"by {entry['title']}; known: {listed(entry['known'], 9)}{_baseline(entry)}",
            f"attribute:{entry['column']}",
            entry["success"],
        )
        for entry in entries
    ]
    title = "Guessing sensitive columns (attribute inference)"
    return _section(audit, "attribute", title, text, lines)


def _baseline(entry: Details) -> str:
    """Say how often the commonest value is right, which needs no attack."""
    rate = entry.get("baseline")
    return f"; the commonest value is right for {percent(rate['value'])}" if rate else ""


def linkability(audit: Details) -> Section | None:
    """Return how often two halves of a record are brought together."""
    entries = _part(audit, "linkability", "splits")
    if not entries:
        return None
    text = (
        "The attacker has the synthetic table and two registers of the same people with different "
        "columns, and tries to tell which two records are of one person."
    )
    halves = [f"{listed(entry['first'], 9)} with {listed(entry['second'], 9)}" for entry in entries]
    splits = list(dict.fromkeys(halves))
    lines = [
        (
            f"Split {splits.index(both) + 1}, {counted(one['neighbours'], 'neighbour')}",
            both,
            "linkability",
            one["success"],
        )
        for one, both in zip(entries, halves, strict=True)
    ]
    return _section(audit, "linkability", "Linking records of two registers", text, lines)


def singling_out(audit: Details) -> Section | None:
    """Return how often descriptions fit one person."""
    entries = _part(audit, "singling_out", "kinds")
    if not entries:
        return None
    text = (
        "The attacker has the synthetic table alone, and tries to write descriptions that fit "
        "exactly one person."
    )
    lines = [
        (
            _KINDS.get(str(entry["kind"]), str(entry["title"])),
            f"{counted(entry['predicates'], 'description')} tried",
            f"singling_out:{entry['kind']}",
            entry["success"],
        )
        for entry in entries
    ]
    return _section(audit, "singling_out", "Singling out", text, lines)


def _part(audit: Details, name: str, inner: str) -> list[Details]:
    details = (audit.get("parts") or {}).get(name) or {}
    return list(details.get(inner) or [])


def _section(
    audit: Details,
    family: str,
    title: str,
    text: str,
    lines: Sequence[tuple[str, str, str, Details]],
) -> Section:
    """Make a section of one kind of guess: a picture, a table, and how to read them."""
    rows = []
    for name, how, key, entry in lines:
        hit = audit_formatting.found(audit, key) and (entry["excess"].get("low") or 0) > 0
        first = audit_formatting.below(f"{name} (beyond chance)" if hit else name, how)
        rows.append(Row((first, *success(entry)), hit))
    names = [name for name, *_ in lines]
    rates = [entry for *_, entry in lines]
    label = f"{title}: rates of success for people in the data and for others, as in the table"
    height = 84 + 42 * len(lines)
    picture = Chart("How often it succeeds", label, attack_charts.successes(names, rates), height)
    table = Lines.of("Success, with intervals of 95 %", ("Attack", *SIDES, BEYOND), rows)
    blocks: tuple[Block, ...] = (
        Paragraph(text),
        Paragraph(POPULATION),
        Pictures((picture,), "wide", key="people"),
        table,
    )
    finding = audit_formatting.outcome(audit, family)
    return Section(family.replace("_", "-"), title, finding, blocks)
