"""P11: the exact number of patients leaks through delta = 1/n, q = B/n, or the default size.

Sizes come from the schema's declared population. The check: for a table and the same table less one
unit, everything that a plan, a certificate and the defaults say is the same, byte for byte.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.privacy import JointHistograms, PoissonSgd, PrivacyBudget, PrivacyPlan, Share
from dpsynth.privacy.events import UNDECIDED
from dpsynth.schema import Schema
from dpsynth.synthesis import default_size, prepare

from ..support.quick_fit import quick_fit
from ..support.schema_fields import schema_field
from ..support.short_training import shorten_training


def schema(population: int = 400) -> Schema:
    def column(name: str, categories: list[str]) -> dict[str, Any]:
        return schema_field(name, "string", "admission form", enum=categories, required=True)

    return Schema.from_dict(
        {
            "fields": [
                {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
                column("sex", ["F", "M"]),
                column("ward", ["A", "B", "C"]),
            ],
            "dpsynth": {
                "version": 1,
                "max_rows": {"value": 3, "basis": "office policy"},
                "population": {"value": population, "basis": "annual report"},
                "rows": {"value": 800, "basis": "annual report"},
            },
        }
    )


def table(units: int) -> pd.DataFrame:
    """Units of one to four rows; a smaller table is the beginning of a larger one."""
    rng = np.random.default_rng(4)
    rows = []
    for unit in range(units):
        for _ in range(int(rng.integers(1, 5))):
            rows.append((f"p{unit}", "FM"[rng.integers(2)], "ABC"[rng.integers(3)]))
    return pd.DataFrame(rows, columns=["patient", "sex", "ward"])


def certificate_of_a_fit(data: pd.DataFrame, model: str) -> str:
    run = quick_fit(data, schema(), epsilon=1.0, delta=1e-5, model=model)
    assert default_size(run) == 800
    return json.dumps(run.certificate, sort_keys=True)


def plan_from_the_data(data: pd.DataFrame) -> str:
    """Broken twin: delta = 1/n and q = B/n, from the file."""
    units = data["patient"].nunique()
    shares = [
        Share(JointHistograms("counts", 2, 3, UNDECIDED), 0.3),
        Share(PoissonSgd("steps", 40 / units, 50, UNDECIDED), 0.7),
    ]
    plan = PrivacyPlan.calibrate(PrivacyBudget(1.0, 1 / units), shares)
    return json.dumps(plan.to_dict(), sort_keys=True)


@pytest.mark.parametrize("model", ["independent", "tvae"])
def test_certificate_and_defaults_are_the_same_without_one_unit(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_training(monkeypatch)
    full, less = table(300), table(299)
    assert len(full) > len(less)
    assert certificate_of_a_fit(full, model) == certificate_of_a_fit(less, model)


def test_sizes_from_the_file_are_caught() -> None:
    assert plan_from_the_data(table(300)) != plan_from_the_data(table(299))


def test_a_wrong_population_costs_no_privacy() -> None:
    """A declared size off by a factor of ten either way leaves the plan within its budget."""
    plans = {
        declared: prepare(schema(declared), epsilon=1.0, delta=1e-5, model="tvae").plan
        for declared in (40, 400, 4000)
    }
    assert all(plan.epsilon <= 1.0 and plan.budget.delta == 1e-5 for plan in plans.values())


def test_calibration_has_no_door_for_data() -> None:
    assert list(inspect.signature(PrivacyPlan.calibrate).parameters) == ["budget", "shares"]
    assert "data" not in inspect.signature(prepare).parameters
    source = Path(inspect.getfile(PrivacyPlan)).read_text()
    assert "pandas" not in source and "cohort" not in source
