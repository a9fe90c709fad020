"""Usefulness of synthetic tables that are known: the source, a shuffled target, other people."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import PartResult, Tables
from dpsynth.eval.utility import usefulness
from dpsynth.schema import Schema
from dpsynth.tables import simulate

from ...support.schema_fields import schema_field

BASIS = "choice: for this test"
FIELDS: list[dict[str, Any]] = [
    schema_field("age", "integer", BASIS, minimum=0, maximum=99),
    schema_field("dose", "number", {"step": 0.1, "bounds_basis": BASIS}, minimum=0, maximum=10),
    schema_field("site", "string", BASIS, enum=["a", "b", "c"]),
    {"name": "ill", "type": "boolean", "dpsynth": {"role": "target"}},
]


def schema(**role: str) -> Schema:
    """The fields above, with other roles for some of them."""
    fields = [
        {**field, "dpsynth": {**field["dpsynth"], "role": role[field["name"]]}}
        if field["name"] in role
        else field
        for field in FIELDS
    ]
    number = {"value": 500, "basis": BASIS}
    return Schema.from_dict(
        {"fields": fields, "dpsynth": {"version": 1, "population": number, "rows": number}}
    )


def cohort(rows: int, seed: int) -> pd.DataFrame:
    """People who are ill by age above all, then by site; dose follows age."""
    rng = np.random.default_rng(seed)
    age = rng.integers(20, 90, rows)
    site = rng.choice(["a", "b", "c"], rows)
    ill = rng.random(rows) < 1 / (1 + np.exp(-(age - 60) / 8 - 1.0 * (site == "b")))
    dose = np.clip(age / 12 + rng.normal(0, 1, rows), 0, 10).round(1)
    return pd.DataFrame({"age": age, "dose": dose, "site": site, "ill": ill})


def measured(part: PartResult) -> dict[str, Any]:
    json.dumps(part.details, allow_nan=False)
    assert len({measure.key for measure in part.measures}) == len(part.measures)
    return {measure.key: measure.estimate for measure in part.measures}


def useful(
    source: pd.DataFrame, synthetic: pd.DataFrame, holdout: Any = None, made: Any = None
) -> PartResult:
    tables = Tables.read(made or schema(), source, synthetic, holdout)
    return usefulness(tables, np.random.default_rng(0))


def test_the_source_itself_loses_nothing() -> None:
    source = cohort(600, 1)
    part = useful(source, source, cohort(400, 2))
    figures = measured(part)
    assert figures["tstr:ill"].value == pytest.approx(figures["tstr:ill"].reference, abs=0.02)
    assert 0.75 < figures["tstr:ill"].low < figures["tstr:ill"].high < 1
    assert abs(figures["tstr_linear_gap:ill"].value) < 1e-6  # the same rows give the same model
    assert figures["importance:ill"].value > 0.4
    assert figures["calibration:ill"].value == pytest.approx(figures["calibration:ill"].reference,
                                                           abs=0.03)  # fmt: skip
    target = part.details["targets"][0]
    assert target["class"] == "true" and target["kind"] == "classification"
    assert target["importance"][0]["column"] == "age"
    assert [model["model"] for model in target["models"]] == ["boosting", "linear"]
    assert target["models"][0]["tstr"]["value"] == pytest.approx(
        figures["tstr:ill"].value, rel=1e-5
    )
    bins = target["models"][1]["calibration"]["synthetic"]
    assert sum(entry["n"] for entry in bins) == 400
    assert part.details["survival"] is None


@pytest.mark.long
def test_a_shuffled_target_teaches_nothing() -> None:
    source = cohort(600, 1)
    shuffled = cohort(600, 3)
    shuffled["ill"] = np.random.default_rng(5).permutation(shuffled["ill"])
    figures = measured(useful(source, shuffled, cohort(1000, 2)))
    assert figures["tstr:ill"].value == pytest.approx(0.5, abs=0.15)
    for model in ("tstr", "tstr_linear"):  # a linear one may be anywhere: few slopes, by chance
        assert figures[f"{model}_gap:ill"].low > 0.05
        assert figures[f"{model}:ill"].chance > 0.8
    assert figures["odds:ill"].value < figures["odds:ill"].reference
    assert figures["calibration:ill"].value > 1.5 * figures["calibration:ill"].reference


def test_a_number_is_regressed() -> None:
    part = useful(
        cohort(500, 1), cohort(500, 3), cohort(300, 2), schema(dose="target", ill="sensitive")
    )
    figures = measured(part)
    assert figures["tstr:dose"].value == pytest.approx(figures["tstr:dose"].reference, abs=0.1)
    assert figures["tstr_linear:dose"].low > 0.5
    assert "calibration:dose" not in figures and "odds:dose" not in figures
    target = part.details["targets"][0]
    assert target["class"] is None and target["kind"] == "regression"
    assert target["models"][0]["roc"] is None and target["models"][0]["calibration"] is None


def test_the_demo_cohort_goes_through_with_holdout() -> None:
    holdout = simulate(200, seed=2)
    holdout["patient_id"] = holdout["patient_id"].astype(str) + "h"
    part = useful(simulate(400, seed=1), simulate(300, seed=3), holdout, Schema.load("demo"))
    figures = measured(part)
    assert {"tstr:readmitted_30d", "odds:readmitted_30d", "group_means"} <= set(figures)
    assert figures["group_means"].reference is not None
    assert any("no survival curves" in note for note in part.notes)


def test_no_target_is_said_and_nothing_measured() -> None:
    part = useful(cohort(50, 1), cohort(50, 2), made=schema(ill="sensitive"))
    assert part.measures == () and part.details["targets"] == []
    assert any("role target" in note for note in part.notes)


def test_a_synthetic_target_of_one_class_scores_as_a_constant() -> None:
    part = useful(cohort(300, 1), cohort(300, 3).assign(ill=True), cohort(200, 2))
    figures = measured(part)
    assert figures["tstr:ill"].value == figures["tstr_linear:ill"].value == 0.5
    assert "importance:ill" not in figures and figures["odds:ill"].value == 0
    assert any("ill: its value is the same" in note for note in part.notes)


def test_a_real_target_of_one_class_is_left_out() -> None:
    for source, holdout in (
        (cohort(300, 1).assign(ill=False), cohort(200, 2)),
        (cohort(300, 1), cohort(200, 2).assign(ill=False)),
    ):
        part = useful(source, cohort(300, 3), holdout)
        assert not any(key.startswith("tstr") for key in measured(part))
        assert any("fewer than 5 rows of a class" in note for note in part.notes)


@pytest.mark.long
@pytest.mark.parametrize("broken", [{"dose": np.nan}, {"dose": 3.0}, {"site": "a"}, {"site": ""}])
def test_missing_constant_and_absent_values_are_borne(broken: dict[str, Any]) -> None:
    part = useful(cohort(300, 1), cohort(300, 3).assign(**broken), cohort(200, 2))
    assert measured(part)["tstr:ill"].value > 0.7
    whole = useful(cohort(300, 1).assign(**broken), cohort(300, 3), cohort(200, 2))
    assert measured(whole)["tstr:ill"].reference > 0.7


def test_few_rows_are_left_out_with_a_note() -> None:
    part = useful(cohort(8, 1), cohort(8, 3), cohort(8, 2))
    assert not any(key.startswith("tstr") for key in measured(part))
    assert any("fewer than 10 rows" in note for note in part.notes)
