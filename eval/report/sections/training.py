"""Attacks on the training in the internal report: canaries in one run, and shadow models."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dpsynth.eval.report import (
    Block,
    Lines,
    Paragraph,
    ReportTable,
    Row,
    Section,
    auc,
    audit_formatting,
    charts,
    counted,
    formatting,
    level,
    present,
)
from dpsynth.eval.report.sections.table_attacks import named_at, rates_at, roc

Details = Mapping[str, Any]

_POINTS = 60  # of the curve that a claim allows
_MAX_EPSILON = 500.0  # epsilon, above which a claim allows everything that can be drawn
_BACKGROUND = {
    "run": "rows sampled from the run, so that no real person was read",
    "simulator": "rows of a simulator, so that no real person was read",
    "real": "real rows, in a training of its own that was charged to the ledger",
}


def sections(audit: Details) -> list[Section]:
    """Return the sections of the attacks on the training."""
    return present((training(audit), shadows(audit)))


def training(audit: Details) -> Section | None:
    """Return what canaries show about the training."""
    details = (audit.get("parts") or {}).get("training") or {}
    views = details.get("views") or []
    if not views:
        return None
    blocks: list[Block] = [
        Paragraph(
            "The attacker has planted invented patients (canaries), each put into the training or "
            "left out by the toss of a coin, and guesses from what the training gives away which "
            "of them were in: from what a run keeps (black box), or from every noisy step of the "
            "training (white box), which no real attacker sees."
        ),
        Paragraph(_about(details)),
        _bounds(audit, views),
        Paragraph(
            "Both epsilons are lower bounds, with a confidence of 95 %: the first holds for any "
            "training that keeps to (epsilon, delta); the second is sharper and also uses how the "
            "noise is spread (its trade-off curve). A twin is the same training with less noise, "
            "made to leak on purpose, so that it is seen how well the attack sees."
        ),
    ]
    out = max(1, int(details.get("canaries") or 0) - int(details.get("included") or 0))
    ones = [
        charts.RocLine(_name(view), view["roc"]["fpr"], view["roc"]["tpr"], 1 / out)
        for view in views
        if (view.get("roc") or {}).get("fpr")
    ]
    if ones:
        blocks.append(roc("Canaries", ones, _allowed(details.get("claim"), 1 / out), _rates(views)))
    finding = audit_formatting.outcome(audit, "training")
    return Section("training", "Attacks on the training: canaries", finding, tuple(blocks))


def _about(details: Details) -> str:
    """Say how many canaries there were, and among whom."""
    among = _BACKGROUND.get(str(details.get("background")), str(details.get("background")))
    text = f"{details['canaries']:,} canaries, {details['included']:,} of them in, among {among}."
    if details.get("model"):
        text += f" The generator is {formatting.shown(details['model'])}."
    if claim := details.get("claim"):
        text += f" It claims epsilon {audit_formatting.epsilon(claim['epsilon'])}."
    return text


def _name(view: Details) -> str:
    return {"black": "Black box", "white": "White box"}.get(str(view["view"]), str(view["title"]))


def _bounds(audit: Details, views: list[Details]) -> ReportTable:
    rows = []
    for view in views:
        hit = audit_formatting.found(audit, f"training:{view['view']}")
        name = _name(view) + (" (the claim is refuted)" if hit else "")
        curve = _proved(*map(view.get, ("epsilon_fdp", "curve_correct", "curve_guesses")))
        first = _proved(*map(view.get, ("epsilon", "correct", "guesses")))
        rows.append(Row((name, first, curve, auc(view.get("auc")), _twin(view.get("twin"))), hit))
    head = (
        "Attacker",
        "Epsilon proved by (epsilon, delta)",
        "Epsilon proved by the trade-off curve",
        "AUC (interval)",
        "Twin that leaks on purpose",
    )
    return Lines.of("What right guesses about canaries prove", head, rows)


def _proved(value: float | None, correct: int | None, guesses: int | None) -> Any:
    if value is None:
        return "–"
    if correct is None or guesses is None:
        return f"≥ {audit_formatting.at_least(value)}"
    return audit_formatting.below(
        f"≥ {audit_formatting.at_least(value)}", f"{correct:,} of {guesses:,} guesses right"
    )


def _twin(twin: Details | None) -> Any:
    if not twin:
        return "none was made"
    leaked, proved = (
        audit_formatting.epsilon(twin["epsilon"]),
        audit_formatting.at_least(twin["proved"]),
    )
    return audit_formatting.below(
        f"leaks epsilon {leaked}: proved ≥ {proved}", f"AUC {auc(twin.get('auc'))}"
    )


def _rates(views: list[Details]) -> ReportTable | None:
    alarms = rates_at(views)
    if not alarms:
        return None
    rows = [Row((_name(view), *(named_at(view, alarm) for alarm in alarms))) for view in views]
    head = ("Attacker", *(f"Named at {level(alarm)} false alarms" for alarm in alarms))
    return Lines.of("Canaries named, with intervals of 95 %", head, rows)


def _allowed(claim: Details | None, minimum: float) -> Details | None:
    """Return the highest curve that a claim allows."""
    if not claim or claim.get("epsilon") is None or claim["epsilon"] > _MAX_EPSILON:
        return None
    import numpy as np

    from dpsynth.eval.attack_stats import ceiling

    grid = np.geomspace(min(0.5, minimum), 1.0, _POINTS)
    maximum = ceiling(float(claim["epsilon"]), float(claim.get("delta") or 0.0), grid)
    return {"fpr": grid.tolist(), "tpr": maximum.tolist()}


def shadows(audit: Details) -> Section | None:
    """Return what attackers learn who train the generator themselves, many times."""
    details = (audit.get("parts") or {}).get("shadows") or {}
    if not details.get("auc"):
        return None
    proved = details.get("epsilon")
    blocks: list[Block] = [
        Paragraph(
            "The attacker has the generator and rows of other people, trains it many times with "
            "and without somebody, learns from the tables what that somebody's presence looks "
            "like, and tells by it which further tables somebody was in."
        ),
        Paragraph(
            f"{counted(details['targets'], 'person').replace('persons', 'people')} and "
            f"{counted(details['models'], 'trained generator')}, in {details['minutes']:,.0f} "
            f"minutes: AUC {auc(details['auc'])}, where 0.5 is guessing and 1 never wrong."
            + (
                ""
                if proved is None
                else f" Epsilon proved: at least {audit_formatting.at_least(proved)}."
            )
        ),
    ]
    if (curve := details.get("roc") or {}).get("fpr"):
        minimum = min((rate for rate in curve["fpr"] if rate > 0), default=1.0)
        line = charts.RocLine("Shadow models", curve["fpr"], curve["tpr"], minimum)
        blocks.append(roc("Shadow models", [line], None))
    finding = audit_formatting.outcome(audit, "shadows")
    return Section("shadows", "Attacks by shadow models", finding, tuple(blocks))
