"""Epsilon in an audit: as claimed, as attacks prove it, and as they would have seen it.

The claim is an upper bound and comes from accounting. What attacks prove are lower bounds. They
stand on one axis, with marks of their own, and are never made one number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth._util.formatting import at_most
from dpsynth.eval.report import (
    Block,
    Chart,
    Heading,
    Lines,
    Paragraph,
    Pictures,
    Row,
    attack_charts,
    audit_formatting,
)

Audit = Mapping[str, Any]


def leak(audit: Audit) -> list[Block]:
    """Return epsilon on one axis: as claimed, as proved by attacks, as it would have been seen."""
    claimed = _claim(audit)
    them = _leaks(audit)
    if not them:
        return []
    rows = []
    if claimed is not None:
        words = "the proof, in the certificate: at most this"
        if claimed["delta"] is not None:
            words += f" (delta {figure_of(claimed['delta'])})"
        rows.append(Row(("Claimed", audit_formatting.epsilon(claimed["epsilon"]), words)))
    for one in them:
        rows += _leak_rows(one, claimed)
    table = Lines(
        "Epsilon, as claimed and as attacked", ("What", "Epsilon", "What it says"), tuple(rows)
    )
    value = None if claimed is None else float(claimed["epsilon"])
    label = "Epsilon claimed, proved by attacks and visible to them: the figures are in the table"
    height = 96 + 34 * (len(them) + (value is not None))
    picture = Chart("Epsilon on one axis", label, attack_charts.leaks(value, them), height)
    said = (
        "Epsilon measures a leak: 0 is none, and at epsilon e the odds that somebody is in the "
        "data change for an attacker by a factor of 2.72 to the power of e at most. The claim "
        "is an upper bound, and proved. Attacks prove lower bounds, with a confidence of 95 %: the "
        "truth lies between if the claim holds, and a low bound may mean a weak attack."
    )
    return [
        Heading("Epsilon: claimed, proved by attacks, and visible to them"),
        Paragraph(said),
        Pictures((picture,), "wide", key="leaks"),
        table,
    ]


def figure_of(value: float) -> str:
    """Write a small number as people write it.

    >>> figure_of(1e-06)
    '1e-6'
    """
    return f"{value:g}".replace("e-0", "e-")


def _leak_rows(one: attack_charts.Leak, claimed: Mapping[str, Any] | None) -> list[Row]:
    rows = []
    if one.proved is not None:
        above = claimed is not None and one.proved > claimed["epsilon"]
        words = "proved by the attack: at least this" if one.proved else "the attack proved nothing"
        words += "; above the claim" if above else ""
        rows.append(Row((one.name, f"≥ {audit_formatting.at_least(one.proved)}", words), above))
    if one.seen is not None:
        words = "least leak that the attack would have seen, with a probability of 90 %"
        rows.append(Row((one.name, at_most(one.seen), words)))
    return rows


def _claim(audit: Audit) -> Mapping[str, Any] | None:
    """Return epsilon and delta as claimed: of the run, else as the attacks were told."""
    parts = audit.get("parts") or {}
    for one in (
        audit.get("run"),
        (parts.get("training") or {}).get("claim"),
        (parts.get("membership") or {}).get("ceiling"),
    ):
        if one and one.get("epsilon") is not None:
            return {"epsilon": one["epsilon"], "delta": one.get("delta")}
    return None


def _leaks(audit: Audit) -> list[attack_charts.Leak]:
    """Return what each attack proves of epsilon, and the least that it would have seen."""
    parts = audit.get("parts") or {}
    proved: dict[str, tuple[str, float]] = {}
    for one in (parts.get("membership") or {}).get("attacks") or []:
        if one["group"] == "everyone" and one.get("epsilon"):
            proved[f"membership:{one['key']}"] = (
                f"Membership: {one['key']}",
                one["epsilon"]["value"],
            )
    for one in (parts.get("training") or {}).get("views") or []:
        if one.get("epsilon") is not None:
            proved[f"training:{one['view']}"] = (f"Canaries, {one['view']} box", one["epsilon"])
    if (parts.get("shadows") or {}).get("epsilon") is not None:
        proved["shadows"] = ("Shadow models", parts["shadows"]["epsilon"])
    seen = {
        one["key"]: float(one["least"])
        for one in audit.get("powers") or []
        if one["unit"] == "epsilon" and one.get("least") is not None
    }
    made = [attack_charts.Leak(name, v, seen.get(key)) for key, (name, v) in proved.items()]
    rest = [key for key in seen if key not in proved]
    return made + [
        attack_charts.Leak(audit_formatting.named(audit, k), None, seen[k]) for k in rest
    ]
