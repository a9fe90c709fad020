"""Small schemas and tables that the tests of an evaluation's parts share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from dpsynth.eval.attack_stats import People
from dpsynth.eval.core import Tables
from dpsynth.schema import Schema

from .schema_fields import schema_field

BASIS = "made for this test"


def number(name: str, low: int, high: int, **more: Any) -> dict[str, Any]:
    limits = {"minimum": low, "maximum": high, **more}
    return schema_field(name, "integer", BASIS, **limits)


def words(name: str, *levels: str, **more: Any) -> dict[str, Any]:
    limits = {"enum": list(levels), **more}
    return schema_field(name, "string", BASIS, **limits)


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


def looks_at_players_only(attack: Any, cohort: Tables) -> bool:
    """Whether an attack gives the same with members, non-members and the synthetic table alone.

    The other tables are taken away from the cohort.
    """
    people = People.of(cohort, np.random.default_rng(0))
    expected = attack(cohort, people, np.random.default_rng(0))
    for name in ("fresh", "reference", "others"):
        object.__setattr__(people, name, None)
    for name in ("source", "holdout"):
        object.__setattr__(cohort, name, None)
    return bool(attack(cohort, people, np.random.default_rng(0)) == expected)
