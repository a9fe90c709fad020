"""Units that a budget may count, a policy with one cap, and a clinic whose fits count them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pandas as pd

from dpsynth.ledger import Ledger
from dpsynth.ledger.ledger import Entry
from dpsynth.policy import Policy
from dpsynth.privacy import Unit
from dpsynth.privacy.unit import EACH_ROW
from dpsynth.schema import Schema

from ..support import reservations
from ..support.quick_fit import quick_fit

ROW = EACH_ROW
KEYED = replace(ROW, name="patient_id", max_rows=4)
STAY = replace(ROW, name="encounter_id")
PATIENT = replace(KEYED, person="patient")
NUMBERED = replace(PATIENT, name="patient_nbr")
ROWS_OF_ONE = replace(ROW, person="patient", max_units=5, max_units_basis="form 7")


def policy(epsilon: float = 1.0, **keys: Any) -> Policy:
    caps = {name: {"epsilon": epsilon, "basis": "test"} for name in ("year", "total")}
    document = {"dpsynth_policy": 1, "name": "t", "delta": 1e-4, "caps": caps}
    return Policy.from_dict(document | keys, "test")


def reserve(ledger: Ledger, unit: Unit, epsilon: float = 0.5, **changes: Any) -> Entry:
    settings = {"dataset": "ward", "policy": policy(), "unit": unit, "epsilon": epsilon}
    return reservations.reserve(ledger, **(settings | changes))


def past_now() -> Any:
    from datetime import UTC, datetime

    return datetime.now(UTC)


def clinic(key: str | None = None, **facts: Any) -> Schema:
    basis = {"bounds_basis": "form"}
    fields: list[dict[str, Any]] = [
        {"name": name, "type": "string", "dpsynth": {"role": "unit" if name == key else "drop"}}
        for name in ("patient_id", "encounter_id")
    ]
    fields += [
        {"name": "sex", "type": "string", "constraints": {"enum": ["F", "M"]}, "dpsynth": basis}
    ]
    own: dict[str, Any] = {"version": 1, **facts}
    own |= {name: {"value": 900, "basis": "report"} for name in ("population", "rows")}
    if key is not None:
        own["max_rows"] = {"value": 3, "basis": "choice"}
    return Schema.from_dict({"name": "clinic", "fields": fields, "dpsynth": own})


def visits() -> pd.DataFrame:
    keys = [f"p{number // 2}" for number in range(60)]
    stays = [f"s{number}" for number in range(60)]
    return pd.DataFrame({"patient_id": keys, "encounter_id": stays, "sex": ["F", "M", "F"] * 20})


def fit(ledger: Ledger, schema: Schema, **settings: Any) -> Any:
    return quick_fit(
        visits(),
        schema,
        epsilon=settings.pop("epsilon", 0.5),
        dataset="ward",
        ledger=ledger,
        **settings,
    )
