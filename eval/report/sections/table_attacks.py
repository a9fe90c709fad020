"""A section for each attack on a table, and the form of those that have none of their own.

Any attack can be shown from what every attack has: findings, powers, controls and measures. An
attack with pictures of its own has a line in `SPECIAL`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dpsynth.eval.attacks.registry import ATTACKS
from dpsynth.eval.report import (
    Block,
    Lines,
    Paragraph,
    Row,
    Section,
    audit_formatting,
    estimate,
    expected,
    present,
    sentence,
)
from dpsynth.eval.report.sections import inference, membership

Details = Mapping[str, Any]

SPECIAL: dict[str, Callable[[Details], Section | None]] = {
    "memorization": membership.memorization,
    "membership": membership.membership,
    "attribute": inference.attribute,
    "linkability": inference.linkability,
    "singling_out": inference.singling_out,
}


def sections(audit: Details, place: str) -> list[Section]:
    """Return the sections of dpsynth's attacks that stand before, or after, the training's."""
    return present(
        SPECIAL[one.key](audit) if one.key in SPECIAL else plain(audit, one.key, one.title)
        for one in ATTACKS
        if one.section == place
    )


def of_plugins(audit: Details) -> list[Section]:
    """Return the sections of other packages' attacks."""
    return present(
        plain(audit, plugin["key"], plugin["title"], f"{audit_formatting.origin(plugin)}.")
        for plugin in audit_formatting.plugins(audit)
    )


def plain(audit: Details, key: str, title: str, origin: str = "") -> Section | None:
    """Return the section of any attack: success, power, controls and measures.

    Args:
        audit: as in ``audit.json``.
        key: of the attack.
        title: of the section.
        origin: where the attack comes from, a sentence; empty for dpsynth's own.
    """
    if key not in (audit.get("parts") or {}):
        return None
    blocks: list[Block] = [Paragraph(origin, "warning")] if origin else []
    blocks += [Paragraph(inference.POPULATION)]
    blocks += _findings(audit, key) + _controls(audit, key) + _measures(audit, key)
    finding = audit_formatting.outcome(audit, key)
    return Section(key.replace("_", "-"), title, finding, tuple(blocks))


def _findings(audit: Details, key: str) -> list[Block]:
    powers = {test["key"]: test["sentence"] for test in audit.get("powers") or []}
    rows = []
    for test in audit_formatting.findings(audit, key):
        could = sentence(powers[test["key"]]) if test["key"] in powers else "Not known."
        word = "succeeded (beyond chance)" if test["found"] else "no success"
        cells = (test["title"], word, sentence(test["sentence"]), could)
        rows.append(Row(cells, bool(test["found"])))
    head = ("Attack", "Result", "What was seen", "Power of the attack")
    return [Lines("Success and power", head, tuple(rows))] if rows else []


def _controls(audit: Details, key: str) -> list[Block]:
    rows = []
    for control in audit.get("controls") or []:
        if str(control["attack"]).partition(":")[0] == key:
            cells = (
                control["title"],
                expected(control),
                "passed" if control["passed"] else "FAILED",
            )
            rows.append(Row((*cells, sentence(control["sentence"])), not control["passed"]))
    head = ("Control", "What is expected", "Result", "What was seen")
    return [Lines("Controls of this attack", head, tuple(rows))] if rows else []


def _measures(audit: Details, key: str) -> list[Block]:
    rows = [
        Row((one["title"], estimate(one), _figure(one), str(one["meaning"])))
        for name, one in (audit.get("measures") or {}).items()
        if str(name).partition(":")[0] == key
    ]
    head = ("Measure", "Value (interval)", "Without leak", "Meaning")
    return [Lines("Measures, with intervals of 95 %", head, tuple(rows))] if rows else []


def _figure(entry: Details) -> str:
    return estimate({"value": entry.get("reference", entry.get("best"))})
