"""Small schemas and tables that the tests of an evaluation's parts share."""

from __future__ import annotations

from typing import Any

import pandas as pd

from dpsynth.eval.core.tables import Tables
from dpsynth.schema.schema import Schema

BASIS = "made for this test"


def number(name: str, low: int, high: int, **more: Any) -> dict[str, Any]:
    limits = {"minimum": low, "maximum": high, **more}
    return {
        "name": name,
        "type": "integer",
        "constraints": limits,
        "dpsynth": {"bounds_basis": BASIS},
    }


def words(name: str, *levels: str, **more: Any) -> dict[str, Any]:
    limits = {"enum": list(levels), **more}
    return {
        "name": name,
        "type": "string",
        "constraints": limits,
        "dpsynth": {"bounds_basis": BASIS},
    }


def tables(
    fields: list[dict[str, Any]],
    source: pd.DataFrame,
    synthetic: pd.DataFrame,
    holdout: pd.DataFrame | None = None,
    **more: Any,
) -> Tables:
    size = {"value": 1000, "basis": BASIS}
    document = {"version": 1, "population": size, "rows": size, **more}
    schema = Schema.from_dict({"fields": fields, "dpsynth": document})
    return Tables.read(schema, source, synthetic, holdout)
