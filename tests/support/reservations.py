"""Reservations in a ledger that say nothing of interest but what a test changes."""

from __future__ import annotations

from typing import Any

from dpsynth.ledger import Ledger
from dpsynth.ledger.ledger import Entry
from dpsynth.policy import Policy
from dpsynth.privacy.unit import EACH_ROW


def reserve(ledger: Ledger, dataset: str = "cardio", **changes: Any) -> Entry:
    """Reserve a fit of 9000 rows; keyword arguments are those of `Ledger.reserve`."""
    settings: dict[str, Any] = {
        "purpose": "",
        "plan": {"events": []},
        "epsilon": 0.7,
        "delta": 1e-6,
        "model": "independent",
        "schema_hash": "f" * 64,
        "unit": EACH_ROW,
        "allow_refuse": False,
        "population": 9000,
    }
    return ledger.reserve(dataset, **(settings | changes))


def capped(epsilon: float, delta: float = 1e-3, **more: Any) -> Policy:
    """Make a policy with a cap on everything, and other keys as given."""
    document = {
        "dpsynth_policy": 1,
        "name": "test",
        "delta": delta,
        "caps": {"total": {"epsilon": epsilon, "basis": "test"}},
    }
    return Policy.from_dict(document | more, "test")
