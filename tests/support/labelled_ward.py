"""A ward whose patients are ill by their age: to be labelled by teachers."""

from __future__ import annotations

import numpy as np
import pandas as pd

import dpsynth
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.stats import Answers

BUDGET = {"epsilon": 2.0, "delta": 1e-6, "dataset": "cohort"}
FIELDS = [
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
    {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
    {"name": "ill", "type": "string", "constraints": {"enum": ["no", "yes"]}},
]
COUNT = {"value": 2000, "basis": "declared"}
WARD = Schema.from_dict(
    {
        "name": "ward",
        "fields": [
            field | {"dpsynth": {"bounds_basis": "declared", "role": "sensitive"}}
            for field in FIELDS
        ],
        "dpsynth": {"version": 1, "population": COUNT, "rows": COUNT},
    }
)


def patients(count: int, seed: int, *, label: bool = True) -> pd.DataFrame:
    """Who is over 50 is ill, but one in ten."""
    rng = np.random.default_rng(seed)
    age = rng.integers(0, 100, count)
    ill = (age > 50) ^ (rng.random(count) < 0.1)
    found = pd.DataFrame({"age": age.astype(str), "sex": rng.choice(["f", "m"], count)})
    return found.assign(ill=np.where(ill, "yes", "no")) if label else found


def labelled_ward() -> Answers:
    """300 public rows, labelled without a ledger."""
    queries = patients(300, 2, label=False)
    seeded = {"without_ledger": True, "entropy": SeededEntropy(1)}
    return dpsynth.labels(patients(2000, 1), queries, WARD, "ill", **BUDGET, teachers=60, **seeded)
