"""What a population and a budget can carry: a closed form, said before a fit and never after."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import dpsynth
from dpsynth.encoding import Codec
from dpsynth.forecasts.forecast import Setting, simulate_fit
from dpsynth.forecasts.rows import assumed
from dpsynth.models import silent
from dpsynth.models.histories.latent import ONE_WAY, TESTS
from dpsynth.schema import LinkedSchema, Schema
from dpsynth.synthesis import Capacity, capacity, prepare
from dpsynth.synthesis.capacity import (
    COLUMN_GATE,
    FEW_PATIENTS,
    PAIR_GATE,
    VALUE_GATE,
)

from ..support.clinic import clinic_schema
from ..support.forecast_table import forecast_rows, forecast_schema
from ..support.schema_fields import schema_field

BUDGET: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6}
GATES = Path(__file__).parents[2] / "eval" / "gates.yaml"


def wide_schema(units: int, columns: int = 30) -> Schema:
    """Return a schema of so many categories and numbers."""
    basis, size = {"bounds_basis": "made for this test"}, {"value": units, "basis": "this test"}
    fields = [
        schema_field(f"n{place}", "integer", basis, minimum=0, maximum=60)
        if place % 2
        else schema_field(f"c{place}", "string", basis, enum=["a", "b", "c", "d", "e"])
        for place in range(columns)
    ]
    facts = {"version": 1, "population": size, "rows": size}
    return Schema.from_dict({"name": "wide", "fields": fields, "dpsynth": facts})


def of(schema: Any, **changes: Any) -> Capacity:
    return capacity(prepare(schema, **{**BUDGET, "model": "auto", **changes}))


def few_of(patients: int) -> LinkedSchema:
    document = clinic_schema().to_dict()
    document["dpsynth"]["population"] = {"value": patients, "basis": "made for this test"}
    return LinkedSchema.from_dict(document)


def test_the_gates_are_those_of_an_evaluation() -> None:
    gates = {gate["key"]: gate for gate in yaml.safe_load(GATES.read_text())["gates"]}
    assert gates["tvd1"]["beyond_reference"] == COLUMN_GATE
    assert gates["tvd2"]["beyond_reference"] == PAIR_GATE
    assert gates["values"]["or_at_most"] == VALUE_GATE


def test_events_of_latent_bear_the_names_that_are_looked_for() -> None:
    plan = prepare(clinic_schema(), **BUDGET, model="latent").plan
    assert plan.has(ONE_WAY) and plan.has(TESTS)
    assert [one.tests for one in capacity(prepare(few_of(400), **BUDGET, model="latent")).tests]


@pytest.mark.parametrize("units", [1_000, 4_000])
def test_it_agrees_with_simulated_fits(units: int) -> None:
    schema = forecast_schema(units)
    setting = Setting(schema, **BUDGET, model="mixture")
    source = assumed(schema, Codec(schema))[0]
    fits = [simulate_fit(setting, source, seed, silent) for seed in range(3)]
    found = of(schema, model="mixture")
    assert found.error == pytest.approx(np.mean([one.mean_of_columns for one in fits]), rel=0.35)
    assert found.pairs == pytest.approx(np.mean([one.mean_of_pairs for one in fits]), rel=0.35)


def test_more_patients_and_more_epsilon_carry_more() -> None:
    by_size = [of(wide_schema(units)) for units in (300, 1_000, 5_000, 50_000)]
    by_budget = [of(wide_schema(1_000), epsilon=epsilon) for epsilon in (0.5, 1, 3, 10)]
    for row in (by_size, by_budget):
        assert [one.carried for one in row] == sorted(one.carried for one in row)
        for name in ("error", "pairs"):
            figures = [getattr(one, name) for one in row]
            assert figures == sorted(figures, reverse=True)
    assert by_size[0].carried < 5 and by_size[-1].carried == 30
    assert [one.group for one in by_budget] == sorted(one.group for one in by_budget)[::-1]


def test_few_patients_are_told_what_helps_with_figures() -> None:
    found = of(wide_schema(400))
    words = {one.what: one.words for one in found.remedies}
    assert list(words) == ["columns", "pooling", "stats", "holdout"]
    assert "Of the 10 columns that are easiest" in words["columns"]
    assert found.pair_noise and f"in place of {found.pair_noise:.2g}" in words["columns"]
    assert f"in place of {100 * found.pairs:.1f} %" in words["holdout"]
    assert "With 1,600" in words["pooling"]
    assert not of(wide_schema(20 * FEW_PATIENTS)).remedies


def test_a_table_of_one_column_has_no_pairs() -> None:
    found = of(wide_schema(30, 1))
    assert found.pairs == 0 and found.error > COLUMN_GATE
    assert any("of a column is" in one.words for one in found.remedies)


def test_a_table_that_is_carried_gets_no_warning() -> None:
    assert of(forecast_schema(20_000)).sentence == ""
    assert "carry about 0 of 30 columns well" in of(wide_schema(200)).sentence


@pytest.mark.parametrize("model", ["independent", "mixture", "distilled", "autoregressive"])
def test_every_generator_has_figures(model: str) -> None:
    found = of(wide_schema(500, 8), model=model)
    assert len(found.columns) == 8 and 0 < found.error < 1 and 0 < found.pairs < 1
    assert (found.pair_noise is None) == (model == "independent")


@pytest.mark.parametrize("model", ["auto", "latent", "cohort"])
def test_linked_tables_of_few_patients_are_warned_of(model: str) -> None:
    few, many = (of(few_of(patients), model=model) for patients in (60, 50_000))
    assert [one.table for one in few.tests] == ["visits", "labs"]
    assert not any(one.carried for one in few.tests) and all(one.carried for one in many.tests)
    assert "values in visits, labs are mostly noise" in few.sentence and not many.sentence
    assert few.remedies[0].what == "pooling" and not many.remedies


def test_rare_diagnoses_are_told_beforehand() -> None:
    """As many patients as three errors of the count: what a fit draws is within that, mostly."""
    few, many = (of(few_of(patients), model="latent").codes for patients in (400, 50_000))
    assert few is not None and many is not None
    assert few.number == many.number > 0 and few.noise == pytest.approx(many.noise, rel=0.2)
    assert 3 * few.noise <= few.group <= 3.3 * few.noise + 1
    assert of(few_of(400), model="cohort").codes is None


def test_a_fit_says_it_before_its_charge() -> None:
    said: list[str] = []
    schema = forecast_schema(60)
    settings: dict[str, Any] = {**BUDGET, "dataset": "this test", "model": "independent"}
    dpsynth.fit(forecast_rows(60, 1), schema, **settings, without_ledger=True, advise=said.append)
    assert len(said) == 2 and said[1] == of(schema, model="independent").sentence
    assert "run `dpsynth plan`" in said[1]


def test_the_document_is_json_and_reads_no_row() -> None:
    document = of(wide_schema(400)).to_dict()
    assert document["units"] == "rows" and document["carried"] <= 30
    assert {"name", "error", "pairs", "weakest", "carried"} <= set(document["columns"][0])
