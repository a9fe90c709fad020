"""A policy with caps, tiers and datasets, and requests to judge by it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from dpsynth.policy import ConstraintCheck, Past, Policy, Request, judge
from dpsynth.privacy import Spend
from dpsynth.privacy.unit import EACH_ROW

NOW = datetime(2026, 7, 1, 12, tzinfo=UTC)
DOCUMENT: dict[str, Any] = {
    "dpsynth_policy": 1,
    "name": "office",
    "delta": 1e-5,
    "caps": {
        "release": {"epsilon": 0.405, "basis": "the law"},
        "year": {"epsilon": 0.5, "basis": "ethics board"},
        "total": {"epsilon": 1, "basis": "the board"},
    },
    "tiers": {
        "rare": {
            "caps": {
                "release": {"epsilon": 0.3, "basis": "rare release"},
                "year": {"epsilon": 0.35, "basis": "rare year"},
                "total": {"epsilon": 0.6, "basis": "rare total"},
            },
            "least": {"epsilon": 0.17, "basis": "accuracy"},
        },
        "standard": {},
    },
    "datasets": {"diabetes": ["diabetes-2019", "diabetes-2020"]},
    "models": ["mixture", "tvae"],
    "minimum_population": {"value": 5000, "basis": "small cohorts"},
    "allow_refuse": False,
}
POLICY = Policy.from_dict(DOCUMENT, "test")
PLAIN = Policy.from_dict(
    {key: DOCUMENT[key] for key in ("dpsynth_policy", "name", "delta", "caps")}, "test"
)
REQUEST = Request("diabetes-2019", "rare", "tvae", 9000, False, Spend(0.2, 1e-7, ()), EACH_ROW)
NAMES = [
    "tier",
    "model",
    "minimum population",
    "cells may refuse",
    "delta",
    "epsilon a release",
    "epsilon in 365 days",
    "epsilon in all",
    "tier rare: epsilon a release",
    "tier rare: epsilon in 365 days",
    "tier rare: epsilon in all",
    "tier rare: least epsilon",
]


def past(
    epsilon: float,
    days: float = 10,
    dataset: str = "diabetes-2020",
    tier: str | None = "rare",
    delta: float = 1e-7,
) -> Past:
    return Past(NOW - timedelta(days=days), dataset, tier, Spend(epsilon, delta, ()), EACH_ROW)


def asking(epsilon: float = 0.2, delta: float = 1e-7, **changes: Any) -> Request:
    return replace(REQUEST, spend=Spend(epsilon, delta, ()), **changes)


def refused(request: Request, *entries: Past, policy: Policy = POLICY) -> list[str]:
    verdicts = judge(policy, entries, request, NOW)
    return [verdict.constraint for verdict in verdicts if not verdict.allowed]


def verdict_on(name: str, request: Request, *entries: Past) -> ConstraintCheck:
    return next(v for v in judge(POLICY, entries, request, NOW) if v.constraint == name)
