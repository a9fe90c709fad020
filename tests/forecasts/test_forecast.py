"""The verb `forecast`: what it says, from what, and what it refuses."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsynth
from dpsynth import forecast
from dpsynth.encoding import Codec
from dpsynth.errors import InputError
from dpsynth.forecasts import Errors
from dpsynth.forecasts.forecast import Setting, simulate_fit
from dpsynth.forecasts.rows import earlier
from dpsynth.models import silent
from dpsynth.schema import Schema
from dpsynth.synthesis import Run, Sampler

from ..support.forecast_table import COLUMNS, forecast_rows, forecast_schema
from ..support.quick_fit import quick_fit

BUDGET: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-4, "model": "independent"}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    """A forecast of `independent`, from public facts."""
    return forecast(forecast_schema(), wanted_error=0.02, error_of="columns", **BUDGET)


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An earlier run on other patients of the same kind."""
    folder = tmp_path_factory.mktemp("earlier") / "run"
    quick_fit(forecast_rows(3000, 1), forecast_schema(3000), model="mixture", output=folder)
    return folder


def test_every_column_and_pair_has_an_error_within_its_range(found: dict[str, Any]) -> None:
    assert [column["name"] for column in found["columns"]["each"]] == list(COLUMNS)
    assert len(found["pairs"]["each"]) == 6
    for figures in (found["columns"], found["pairs"], *found["columns"]["each"]):
        assert 0 < figures["low"] <= figures["expected"] <= figures["high"] < 1
    assert found["assumptions"] == ["typical", "even", "narrow"] and found["like"] is None


def test_the_document_is_json_and_the_same_for_the_same_seed(found: dict[str, Any]) -> None:
    again = forecast(forecast_schema(), wanted_error=0.02, error_of="columns", **BUDGET)
    assert json.dumps(again) == json.dumps(found)


def test_more_epsilon_and_more_patients_give_less_error(found: dict[str, Any]) -> None:
    for curve in ("by_epsilon", "by_population"):
        errors = [point["error"] for point in found[curve]]
        assert errors == sorted(errors, reverse=True) and errors[-1] < errors[0]


def test_what_would_reach_a_wanted_error_was_simulated(found: dict[str, Any]) -> None:
    wanted = found["wanted"]
    assert wanted["epsilon"]["reached"] and wanted["population"]["reached"]
    for way in ("epsilon", "population"):
        assert 0.014 < wanted[way]["expected"] <= 0.02
        assert wanted[way]["value"] in [point[way] for point in found[f"by_{way}"]]


def test_an_error_out_of_reach_is_said_to_be(found: dict[str, Any]) -> None:
    """Independent columns have no relations, whatever the budget."""
    wanted = forecast(forecast_schema(), wanted_error=0.001, **BUDGET)["wanted"]
    assert not wanted["epsilon"]["reached"] and not wanted["population"]["reached"]
    assert wanted["population"]["value"] < 1 / BUDGET["delta"]


def test_no_data_and_no_ledger_are_opened(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.sqlite"
    monkeypatch.setenv("DPSYNTH_LEDGER", str(ledger))

    def opened(*_: object, **__: object) -> None:
        raise AssertionError("a forecast opened a table")

    monkeypatch.setattr("dpsynth.tables.table.open_table", opened)
    monkeypatch.setattr("dpsynth.encoding.cohort.read_cohort", opened)
    dpsynth.forecast(forecast_schema(), **BUDGET)
    assert not ledger.exists()


def test_a_forecast_from_an_earlier_release_meets_the_outcome(release: Path) -> None:
    """Other patients, another budget; within 40 % with one fit of each at this size."""
    schema = forecast_schema(2000)
    setting = Setting(schema, 1.0, 1e-4, "mixture")
    forecasts = [simulate_fit(setting, earlier(release, schema, seed=0), k, silent) for k in (0, 1)]
    real = forecast_rows(2000, 2)
    codec = Codec(schema)
    outcomes = []
    for _ in range(2):
        run = quick_fit(real, schema, epsilon=1.0, delta=1e-4, model="mixture")
        drawn = Sampler.of(run).codes(2000, seed=1)
        outcomes.append(Errors.between(codec.encode(real), drawn, codec))
    for pick in (Errors.mean_of_columns.fget, Errors.mean_of_pairs.fget):  # type: ignore[attr-defined]
        ratio = np.mean([pick(one) for one in forecasts]) / np.mean([pick(one) for one in outcomes])
        assert 0.6 < ratio < 1.4, ratio


@pytest.mark.long
def test_a_bundle_is_an_earlier_release_too(bundle: Path, every_type: Schema) -> None:
    found = forecast(every_type, like=bundle, **(BUDGET | {"delta": 1e-3}))
    assert found["like"] == "bundle" and found["assumptions"] is None
    assert len(found["columns"]["each"]) == len(Codec(every_type).names)


def test_a_release_of_other_columns_is_refused(release: Path) -> None:
    with pytest.raises(InputError, match="column 'visit_date' of schema demo is missing"):
        forecast("demo", like=release, **(BUDGET | {"delta": 1e-6}))


@pytest.mark.parametrize("stamp", ["not-private", "seeded-entropy"])
def test_a_run_that_could_reveal_patients_is_refused(
    release: Path, tmp_path: Path, stamp: str
) -> None:
    run, schema = Run.load(release), forecast_schema(200)
    certificate = None if stamp == "not-private" else run.certificate
    replace(run, stamps=(stamp,), certificate=certificate).save(tmp_path / "run")
    with pytest.raises(InputError, match=f"stamped {stamp}.*could reveal"):
        forecast(schema, like=tmp_path / "run", **BUDGET)
    assert run.stamps == ("no-ledger",)  # as many are that were fitted to try something
    assert earlier(release, schema, seed=0).pool.shape[1] == len(COLUMNS)


def test_what_is_no_release_is_refused(tmp_path: Path, release: Path) -> None:
    with pytest.raises(InputError, match="neither a run nor a bundle"):
        forecast(forecast_schema(), like=tmp_path, **BUDGET)
    damaged = shutil.copytree(release, tmp_path / "damaged")
    (damaged / "run.json").write_text("{")
    with pytest.raises(InputError):
        forecast(forecast_schema(), like=damaged, **BUDGET)


@pytest.mark.parametrize("error", [0.0, -0.1, 1.0, float("nan"), float("inf")])
def test_a_wanted_error_is_a_distance(error: float) -> None:
    with pytest.raises(InputError, match="above 0 and below 1"):
        forecast(forecast_schema(), wanted_error=error, **BUDGET)


def test_a_wanted_error_is_of_a_column_that_there_is() -> None:
    with pytest.raises(InputError, match="models no column 'agee'"):
        forecast(forecast_schema(), wanted_error=0.1, error_of="agee", **BUDGET)


def test_linked_tables_are_refused() -> None:
    with pytest.raises(InputError, match="single table"):
        forecast("nafld", epsilon=3, delta=1e-6)


def test_a_large_population_is_simulated_with_fewer_units_and_less_noise(
    monkeypatch: pytest.MonkeyPatch, release: Path
) -> None:
    schema = forecast_schema(4000)
    source = earlier(release, schema, seed=0)
    setting = Setting(schema, 0.5, 1e-4, "independent")
    whole = simulate_fit(setting, source, 0, silent).mean_of_columns
    monkeypatch.setattr("dpsynth.forecasts.forecast.MAX_UNITS", 1000)
    part = simulate_fit(setting, source, 0, silent).mean_of_columns
    alone = simulate_fit(replace(setting).of_population(1000), source, 0, silent).mean_of_columns
    assert part == pytest.approx(whole, rel=0.5) and alone > 1.5 * part
