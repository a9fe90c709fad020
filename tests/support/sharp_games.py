"""Games of `make audit` at a claim that few runs refute: epsilon 10, where the programs take 3.

The less noise a claim needs, the fewer runs tell a mechanism from one that has half of it. What is
played, and how rarely its bounds fail, stays the same.
"""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from dpsynth.models.generators import pair_settling, warm_started
from dpsynth.privacy import PrivacyBudget

from .bench_programs import BENCH

CLAIM = PrivacyBudget(epsilon=10.0, delta=1e-5)
MANY, FEW = 400, 300  # runs that show most of a claim, and that show a broken twin


def sharpen(patch: pytest.MonkeyPatch, *names: str) -> None:
    """Put the games into reach, and let those of these names claim `CLAIM`."""
    patch.syspath_prepend(str(BENCH))
    # all of them before the first changes: some take the claim of another when they are imported
    for program in sorted(BENCH.glob("audit_*.py")):
        import_module(program.stem)
    rows = import_module("audit_fit").UNITS  # what a network learns before its private steps
    patch.setattr(warm_started, "REHEARSAL", rows)
    patch.setattr(pair_settling, "ROWS", rows)
    for name in names:
        stated = "BUDGET" if name == "fit" else "CLAIM"
        patch.setattr(import_module(f"audit_{name}"), stated, CLAIM)


def sharpen_steps(patch: pytest.MonkeyPatch) -> None:
    """Let a private step have as little noise, in a network that is wide enough to measure it."""
    sgd = import_module("audit_sgd")
    patch.setattr(sgd, "WIDTH", 160)
    for name in ("ONE", "ROWS"):
        patch.setattr(sgd, name, replace(getattr(sgd, name), noise=0.5))
