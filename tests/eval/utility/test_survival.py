"""Kaplan-Meier curves and hazard ratios, against a handful of times."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import Tables
from dpsynth.eval.utility.survival import curve_distance, kaplan_meier, survival
from dpsynth.schema import Schema

from ...support.schema_fields import schema_field

BASIS = "choice: for this test"


def schema(time: str = "time", event: str = "event") -> Schema:
    fields: list[dict[str, Any]] = [
        schema_field(
            "months",
            "number",
            {"role": time, "step": 0.1, "bounds_basis": BASIS},
            minimum=0,
            maximum=60,
        ),
        {"name": "died", "type": "boolean", "dpsynth": {"role": event}},
        schema_field(
            "treated",
            "string",
            {"role": "group", "on_unknown": "no", "bounds_basis": BASIS},
            enum=["no", "yes"],
            required=True,
        ),
        schema_field("age", "integer", BASIS, minimum=0, maximum=99, required=True),
    ]
    number = {"value": 500, "basis": BASIS}
    return Schema.from_dict(
        {"fields": fields, "dpsynth": {"version": 1, "population": number, "rows": number}}
    )


def cohort(rows: int, seed: int, *, effect: float = 1.0) -> pd.DataFrame:
    """Exponential times, the treated with a hazard exp(-effect) times as high; end after 40."""
    rng = np.random.default_rng(seed)
    treated = rng.random(rows) < 0.5
    age = rng.integers(30, 90, rows)
    hazard = 0.05 * np.exp(-effect * treated + 0.02 * (age - 60))
    times = rng.exponential(1 / hazard)
    return pd.DataFrame(
        {
            "months": np.minimum(times, 40).round(1),
            "died": times < 40,
            "treated": np.where(treated, "yes", "no"),
            "age": age,
        }
    )


def test_kaplan_meier_by_hand() -> None:
    times, events = np.array([1.0, 2, 2, 3, 4]), np.array([1.0, 1, 0, 1, 0])
    value, low, high = kaplan_meier(times, events, np.array([0, 1, 1.5, 2, 3, 9]))
    # 4/5, then 3/4 of it, then (two at risk) half of that
    assert value == pytest.approx([1, 0.8, 0.8, 0.6, 0.3, 0.3])
    assert (low <= value).all() and (value <= high).all() and low[4] < 0.1 < high[4]


def test_the_area_between_curves_by_hand() -> None:
    one = (np.array([1.0, 2]), np.array([1.0, 1]))  # 1, then 1/2, then 0
    other = (np.array([2.0, 2]), np.array([1.0, 1]))  # 1 until 2
    assert curve_distance(one, other, 2.0) == pytest.approx(0.5 * 1 / 2)
    assert curve_distance(one, one, 2.0) == 0
    # beyond the last time a curve goes on as it ends
    assert curve_distance(one, other, 4.0) == pytest.approx(0.5 * 1 / 4)


def test_curves_of_the_source_itself_do_not_differ() -> None:
    source = cohort(400, 1)
    tables = Tables.read(schema(), source, source, cohort(300, 2))
    found, details, notes = survival(tables, np.random.default_rng(0))
    by_key = {measure.key: measure.estimate for measure in found}
    assert set(by_key) == {"survival", "cox"}
    assert by_key["survival"].value < 0.03  # 300 rows of it, as many as the holdout has
    assert by_key["survival"].reference is not None and by_key["cox"].reference is not None
    assert by_key["cox"].value > 0.7
    assert details is not None and details["time"] == "months" and details["event"] == "died"
    assert [curve["level"] for curve in details["curves"]] == [None, "no", "yes"]
    assert all(len(c["times"]) == len(c["source_low"]) == 101 for c in details["curves"])
    json.dumps(details, allow_nan=False)


@pytest.mark.long
def test_hazard_ratios_are_those_of_the_process_and_a_lost_effect_is_seen() -> None:
    source, synthetic = cohort(2000, 1), cohort(2000, 2, effect=0.0)
    tables = Tables.read(schema(), source, synthetic)
    found, details, _ = survival(tables, np.random.default_rng(0))
    assert details is not None
    term = next(entry for entry in details["cox"] if entry["term"].startswith("treated"))
    ratio = np.exp(-1.0) if term["term"] == "treated = yes" else np.exp(1.0)
    assert term["source"]["low"] < ratio < term["source"]["high"]
    assert term["synthetic"]["low"] < 1 < term["synthetic"]["high"]
    assert term["overlap"] == 0
    by_key = {measure.key: measure.estimate for measure in found}
    assert by_key["survival"].value > 2 * (by_key["survival"].chance or 0)
    assert by_key["cox"].value < (by_key["cox"].chance or 0)


@pytest.mark.parametrize(("time", "event"), [("time", "sensitive"), ("sensitive", "event")])
def test_without_both_roles_there_are_no_curves(time: str, event: str) -> None:
    tables = Tables.read(schema(time, event), cohort(100, 1), cohort(100, 2))
    found, details, notes = survival(tables, np.random.default_rng(0))
    assert found == [] and details is None and len(notes) == 1 and "role event" in notes[0]


def test_few_rows_and_missing_cells_give_no_curves() -> None:
    source = cohort(100, 1)
    for broken in (cohort(20, 2), cohort(100, 2).assign(months=np.nan)):
        tables = Tables.read(schema(), source, broken)
        found, details, notes = survival(tables, np.random.default_rng(0))
        assert found == [] and details is None and "fewer than 50 rows" in notes[0]


def test_no_event_at_all_gives_curves_without_a_cox_model() -> None:
    source = cohort(100, 1).assign(died=False)
    found, details, notes = survival(Tables.read(schema(), source, source),
                                     np.random.default_rng(0))  # fmt: skip
    assert [measure.key for measure in found] == ["survival"]
    assert found[0].estimate.value == 0
    assert details is not None and details["cox"] == []
    assert any("too few events" in note for note in notes)
