"""A small cohort, and runs of it without a ledger."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.synthesis import Run

from .quick_fit import quick_fit
from .schema_fields import schema_field


def small(max_rows: int = 1) -> Schema:
    basis = "protocol"
    unit = {"max_rows": {"value": max_rows, "basis": basis}} if max_rows > 1 else {}
    key = [{"name": "key", "type": "string", "dpsynth": {"role": "unit"}}] if max_rows > 1 else []
    return Schema.from_dict(
        {
            "name": "small",
            "fields": [
                *key,
                schema_field("age", "integer", basis, minimum=18, maximum=60, required=True),
                {"name": "event", "type": "boolean", "constraints": {"required": True}},
                {"name": "treated", "type": "boolean", "constraints": {"required": True}},
            ],
            "dpsynth": {
                "version": 1,
                "population": {"value": 800, "basis": basis},
                "rows": {"value": 800, "basis": basis},
                **unit,
            },
        }
    )


def fitted(model: str, max_rows: int = 1) -> Run:
    rng = np.random.default_rng(1)
    age = rng.integers(18, 61, 800)
    table = pd.DataFrame(
        {
            "key": rng.integers(0, 500, 800).astype(str),
            "age": age,
            "event": rng.random(800) < age / 80,
            "treated": rng.random(800) < 0.25,
        }
    )
    return quick_fit(table, small(max_rows), model=model, entropy=SeededEntropy(1))
