"""A small table of which fits are forecast: its schema, and rows that follow one hidden number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpsynth.schema import Schema

from .schema_fields import schema_field

BASIS = {"bounds_basis": "made for this test"}
WARDS = ["medicine", "surgery", "cardiology", "obstetrics"]
COLUMNS = ("age", "stay", "ward", "smoker")


def forecast_schema(units: int = 400, **own: Any) -> Schema:
    """Return the public facts of a table in which every row is a unit."""
    size = {"value": units, "basis": "made for this test"}
    fields = [
        schema_field("age", "integer", BASIS, minimum=18, maximum=99, required=True),
        schema_field("stay", "integer", BASIS, minimum=1, maximum=30),
        schema_field("ward", "string", BASIS, enum=WARDS),
        {"name": "smoker", "type": "boolean"},
    ]
    facts = {"version": 1, "population": size, "rows": size}
    return Schema.from_dict({"name": "ward", "fields": fields, "dpsynth": facts | own})


def forecast_rows(rows: int, seed: int) -> pd.DataFrame:
    """Draw rows of that table."""
    rng = np.random.default_rng(seed)
    hidden = rng.standard_normal(rows)
    age = np.clip(60 + 12 * hidden + 6 * rng.standard_normal(rows), 18, 99).astype(int)
    stay = np.clip(1 + rng.exponential(3 + 2 * (hidden > 0)), 1, 30).astype(int)
    ward = np.clip(np.floor(1.5 + hidden + rng.standard_normal(rows)), 0, 3).astype(int)
    return pd.DataFrame(
        {
            "age": age,
            "stay": stay,
            "ward": np.array(WARDS, dtype=object)[ward],
            "smoker": rng.random(rows) < 0.2 + 0.1 * (hidden > 1),
        }
    )
