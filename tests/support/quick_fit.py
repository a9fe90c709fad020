"""A fit with settings that a test can change: a small budget, a quick model, no ledger."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dpsynth
from dpsynth.schema import Schema
from dpsynth.synthesis import Run


def quick_fit(data: Any, schema: Schema | str | Path, **changes: Any) -> Run:
    """Fit `independent` with epsilon 3; charged only if a ``ledger`` is given."""
    settings: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6, "dataset": "demo"}
    settings |= {"model": "independent", "without_ledger": "ledger" not in changes}
    return dpsynth.fit(data, schema, **settings | changes)
