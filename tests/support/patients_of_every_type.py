"""Typed cells for the schema of every type."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

UNITS = 400


def table_of_every_type() -> pd.DataFrame:
    """Typed cells for the schema of every type: 400 units with 1 to 3 rows, and a column more."""
    rng = np.random.default_rng(1)
    keys = np.repeat([f"P{unit:04d}" for unit in range(UNITS)], rng.integers(1, 4, UNITS))
    rows = len(keys)
    admitted = pd.Timestamp("2015-01-01") + pd.to_timedelta(rng.integers(0, 1000, rows), "D")
    seconds = pd.to_timedelta(rng.integers(0, 31 * 1440, rows) * 60, "s")

    def sometimes(values: Any) -> pd.Series[Any]:
        """Leave out one cell of ten."""
        return pd.Series(values).mask(pd.Series(rng.random(rows) < 0.1))

    return pd.DataFrame(
        {
            "key": keys,
            "age": rng.integers(18, 100, rows),
            "weight": sometimes(rng.integers(300, 2001, rows) / 10),
            "grade": sometimes(pd.array(rng.integers(1, 4, rows), dtype="Int64")),
            "sex": sometimes(rng.choice(["F", "M, or other"], rows)),
            "smoker": sometimes(pd.array(rng.random(rows) < 0.3, dtype="boolean")),
            "admitted": sometimes(admitted),
            "discharged": admitted + pd.to_timedelta(rng.integers(0, 30, rows), "D"),
            "measured": sometimes(pd.Timestamp("2015-01-01") + seconds),
            "born": sometimes(pd.array(rng.integers(1900, 2001, rows), dtype="Int64")),
            "note": "never read",
        }
    )
