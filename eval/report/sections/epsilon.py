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
    attacks = _leaks(audit)
    if not attacks:
        return []
    rows = []
    if claimed is not None:
        words = "the proof, in the certificate: at most this"
        if claimed["delta"] is not None:
            words += f" (delta {figure_of(claimed['delta'])})"
        rows.append(Row(("Claimed", audit_formatting.epsilon(claimed["epsilon"]), words)))
    for attack in attacks:
        rows += _leak_rows(attack, claimed)
    table = Lines(
        "Epsilon, as claimed and as attacked", ("What", "Epsilon", "What it says"), tuple(rows)
    )
    value = None if claimed is None else float(claimed["epsilon"])
    label = "Epsilon claimed, proved by attacks and visible to them: the figures are in the table"
    height = 96 + 34 * (len(attacks) + (value is not None))
    picture = Chart("Epsilon on one axis", label, attack_charts.leaks(value, attacks), height)
    text = (
        "Epsilon measures a leak: 0 is none, and at epsilon e the odds that somebody is in the "
        "data change for an attacker by a factor of 2.72 to the power of e at most. The claim "
        "is an upper bound, and proved. Attacks prove lower bounds, with a confidence of 95 %: the "
        "truth lies between if the claim holds, and a low bound may mean a weak attack."
    )
    return [
        Heading("Epsilon: claimed, proved by attacks, and visible to them"),
        Paragraph(text),
        Pictures((picture,), "wide", key="leaks"),
        table,
    ]


def figure_of(value: float) -> str:
    """Write a small number as people write it.

    >>> figure_of(1e-06)
    '1e-6'
    """
    return f"{value:g}".replace("e-0", "e-")


def _leak_rows(leak: attack_charts.Leak, claimed: Mapping[str, Any] | None) -> list[Row]:
    rows = []
    if leak.proved is not None:
        above = claimed is not None and leak.proved > claimed["epsilon"]
        words = "proved by the attack: at least this" + "; above the claim" * above
        words = words if leak.proved else "the attack proved nothing"
        rows.append(Row((leak.name, f"≥ {audit_formatting.at_least(leak.proved)}", words), above))
    if leak.seen is not None:
        words = "least leak that the attack would have seen, with a probability of 90 %"
        rows.append(Row((leak.name, at_most(leak.seen), words)))
    return rows


def _claim(audit: Audit) -> Mapping[str, Any] | None:
    """Return epsilon and delta as claimed: of the run, else as the attacks were told."""
    parts = audit.get("parts") or {}
    for source in (
        audit.get("run"),
        (parts.get("training") or {}).get("claim"),
        (parts.get("membership") or {}).get("ceiling"),
    ):
        if source and source.get("epsilon") is not None:
            return {"epsilon": source["epsilon"], "delta": source.get("delta")}
    return None


def _leaks(audit: Audit) -> list[attack_charts.Leak]:
    """Return what each attack proves of epsilon, and the least that it would have seen."""
    parts = audit.get("parts") or {}
    proved: dict[str, tuple[str, float]] = {}
    for view in (parts.get("membership") or {}).get("attacks") or []:
        if view["group"] == "everyone" and view.get("epsilon"):
            proved[f"membership:{view['key']}"] = (
                f"Membership: {view['key']}",
                view["epsilon"]["value"],
            )
    for view in (parts.get("training") or {}).get("views") or []:
        if view.get("epsilon") is not None:
            proved[f"training:{view['view']}"] = (f"Canaries, {view['view']} box", view["epsilon"])
    if (parts.get("shadows") or {}).get("epsilon") is not None:
        proved["shadows"] = ("Shadow models", parts["shadows"]["epsilon"])
    least = {
        view["key"]: float(view["least"])
        for view in audit.get("powers") or []
        if view["unit"] == "epsilon" and view.get("least") is not None
    }
    leaks = [attack_charts.Leak(name, v, least.get(key)) for key, (name, v) in proved.items()]
    rest = [key for key in least if key not in proved]
    return leaks + [
        attack_charts.Leak(audit_formatting.named(audit, k), None, least[k]) for k in rest
    ]
