"""A small audit in the format of audit.json, made up: what the internal report is tested with.

No figure comes from data: people and scores are invented, and what is said of them is computed by
the classes that audits use, so that rates, intervals, curves and findings agree with each other.
`audit` finds nothing, `found` does, `failed` has a control that did not pass, and `hostile` puts
markup wherever a text of a schema can stand.
"""

from __future__ import annotations

import copy
from functools import cache
from typing import Any

from .audit_parts import CLAIM, Draft, Json, guesses, membership, memorization, shadows, training
from .evaluation_example import NASTY


def controls(passed: bool) -> list[Json]:
    """Return controls; without ``passed`` one leak that was not found, and one false alarm."""
    missed = "AUC 0.512 for everyone: no more than chance allows"
    rows = [
        ("copied", "One row in ten copied", "positive", "memorization:copies", True)
        + ("it is repeated for 9.80% of those in the data and 0.75% of others", False),
        ("jittered", "Every row a source row, moved", "positive", "membership:density", passed)
        + ("AUC 0.771 for everyone: more than chance allows" if passed else missed, False),
        ("overfitted", "A generator without noise", "positive", "training:white", True)
        + ("all of 200 guesses were right", True),
        ("fresh", "Other people's rows", "negative", "membership", passed)
        + ("nothing was found, as it must be" if passed else "AUC 0.581 for everyone", False),
    ]
    names = ("key", "title", "kind", "attack", "passed", "sentence", "cached")
    return [dict(zip(names, row, strict=True)) for row in rows]


@cache
def _document(copied: int, apart: float, passed: bool) -> Json:
    draft = Draft()
    parts = {
        "memorization": memorization(draft, copied),
        "membership": membership(draft, apart),
        "training": training(draft),
        **guesses(draft),
        "shadows": shadows(draft),
    }
    hits = any(finding["found"] for finding in draft.findings)
    return {
        "format": "dpsynth-audit",
        "version": 1,
        "internal": True,
        "dpsynth": "0.1.0",
        "schema": {"name": "demo", "title": "A demo cohort", "sha256": "ab" * 32},
        "tables": {
            "source": {"name": "source.csv", "rows": 8000, "units": 5000},
            "synthetic": {"name": "out.parquet", "rows": 4000, "sha256": "cd" * 32},
            "holdout": {"name": "holdout.csv", "rows": 6100, "units": 3900},
        },
        "run": {"model": "tvae", "epsilon": CLAIM[0], "delta": CLAIM[1], "stamps": []},
        "seed": 11,
        "settings": {
            "attacks": list(parts),
            "canaries": {"count": 1000, "background": "run"},
            "deep": True,
            "budget_minutes": 60.0,
        },
        "verdict": "failed" if not passed else "found" if hits else "quiet",
        "measures": draft.measures,
        "findings": draft.findings,
        "powers": draft.powers,
        "controls": controls(passed),
        "parts": parts,
        "notes": ["2000 synthetic rows were drawn and judged"],
        "seconds": {"memorization": 14.2, "membership": 75.0, "shadows": 3504.0},
    }


def audit(**changed: Any) -> Json:
    """Return an audit that finds nothing, with some top-level entries replaced."""
    return {**copy.deepcopy(_document(11, 0.0, True)), **changed}


def found() -> Json:
    """Return an audit of a table that repeats people and tells who was in the data."""
    return copy.deepcopy(_document(143, 0.9, True))


def failed() -> Json:
    """Return an audit whose controls did not pass."""
    return copy.deepcopy(_document(11, 0.0, False))


def hostile() -> Json:
    """Return an audit all of whose texts are hostile."""
    fixed = {"format", "verdict", "kind", "key", "attack", "view", "group", "unit", "sha256"}
    fixed |= {"background", "dpsynth"}

    def spoiled(value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {name: spoiled(one, name) for name, one in value.items()}
        if isinstance(value, list):
            return [spoiled(one, key) for one in value]
        return f"{value}{NASTY}" if isinstance(value, str) and key not in fixed else value

    return dict(spoiled(found()))
