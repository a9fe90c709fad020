"""The verbs end to end, from the Python API: any source gives valid tables of the public size."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pandas.testing
import pytest

import dpsynth
from dpsynth.encoding import Codec
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Declared, Schema
from dpsynth.synthesis import Run, prepare

from ..support.patients_of_every_type import UNITS
from ..support.short_training import shorten_training
from ..support.some_cases import each_generator


@pytest.mark.smoke
@pytest.mark.parametrize("source", ["DataFrame", "csv", "csv.gz", "parquet"])
def test_a_fit_from_any_source_gives_valid_rows(
    fit: Callable[..., Run],
    sources: dict[str, Any],
    source: str,
    every_type: Schema,
) -> None:
    run = fit(sources[source])
    drawn = run.sample(50, seed=1)
    assert len(drawn) == 50
    assert list(drawn.columns) == [column.name for column in every_type.modelled]
    assert Codec(every_type).conforms(drawn) == []
    pd.testing.assert_frame_equal(drawn, dpsynth.sample(run, 50, seed=1))
    assert {name: str(kind) for name, kind in drawn.dtypes.items()} == {
        "age": "int64",
        "weight": "float64",
        "grade": "Int64",
        "sex": "object",
        "smoker": "boolean",
        "admitted": "datetime64[s]",
        "discharged": "datetime64[s]",
        "measured": "datetime64[s]",
        "born": "Int64",
    }


@pytest.mark.parametrize("source", ["csv", "csv.gz", "parquet"])
def test_every_source_is_read_alike(
    fit: Callable[..., Run], sources: dict[str, Any], source: str
) -> None:
    """With the same seeded noise, the same table learns the same numbers, whatever its format."""
    first, second = (fit(sources[kind], entropy=SeededEntropy(5)) for kind in ("DataFrame", source))
    np.testing.assert_array_equal(first.arrays["shares"], second.arrays["shares"])


def test_a_generous_budget_gives_the_columns_back(
    fit: Callable[..., Run], patients: pd.DataFrame
) -> None:
    """At epsilon 100 the noise is a few rows of 700; at most two rows of a unit count."""
    drawn = fit(patients, epsilon=100.0).sample(20_000, seed=2)
    kept = patients.groupby("key").head(2)
    for name in ("grade", "sex", "smoker"):
        true = kept[name].astype(object).fillna("missing").value_counts(normalize=True)
        found = drawn[name].astype(object).fillna("missing").value_counts(normalize=True)
        assert abs(true - found).max() < 0.08, name
    assert drawn["weight"].isna().mean() == pytest.approx(0.1, abs=0.05)


@pytest.mark.smoke
@pytest.mark.parametrize("model", each_generator("autoregressive"))
def test_a_fit_of_any_model_gives_valid_rows(
    fit: Callable[..., Run],
    patients: pd.DataFrame,
    every_type: Schema,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
) -> None:
    """And the same ones when it is read back from its folder."""
    shorten_training(monkeypatch)
    run = fit(patients, model=model, output=tmp_path / "run")
    drawn = run.sample(500, seed=3)
    assert Codec(every_type).conforms(drawn) == []
    pd.testing.assert_frame_equal(Run.load(tmp_path / "run").sample(500, seed=3), drawn)


def test_a_fit_without_a_model_takes_the_one_that_auto_chooses(every_type: Schema) -> None:
    budget = {"epsilon": 3.0, "delta": 1e-6}
    assert prepare(every_type, **budget).model == "distilled"  # few for 12 columns
    many = replace(every_type, population=Declared(1_000_000, "a test"))
    assert prepare(many, **budget).model == "autoregressive"


def test_a_schema_may_be_a_path(
    fit: Callable[..., Run], patients: pd.DataFrame, every_type: Schema, tmp_path: Path
) -> None:
    every_type.save(tmp_path / "mine.schema.yaml")
    assert fit(patients, tmp_path / "mine.schema.yaml").schema == every_type
    assert fit(patients, str(tmp_path / "mine.schema.yaml")).schema == every_type


def test_a_schema_may_be_a_shipped_name(fit: Callable[..., Run]) -> None:
    from dpsynth.tables import simulate

    run = fit(simulate(100, seed=1), "demo")
    assert run.schema.name == "demo"
    assert Codec(run.schema).conforms(run.sample(200, seed=1)) == []


def test_columns_outside_the_schema_change_nothing(
    fit: Callable[..., Run], patients: pd.DataFrame
) -> None:
    bare = patients.drop(columns="note")
    first, second = (fit(table, entropy=SeededEntropy(6)) for table in (patients, bare))
    np.testing.assert_array_equal(first.arrays["shares"], second.arrays["shares"])


def test_the_source_is_left_as_it_was(fit: Callable[..., Run], patients: pd.DataFrame) -> None:
    before = patients.copy(deep=True)
    fit(patients)
    pd.testing.assert_frame_equal(patients, before)


def test_a_wrong_population_costs_accuracy_only(
    fit: Callable[..., Run], patients: pd.DataFrame, every_type: Schema
) -> None:
    for population in (UNITS // 10, UNITS * 10):
        wrong = replace(every_type, population=replace(every_type.population, value=population))
        run = fit(patients, wrong)
        assert Codec(wrong).conforms(run.sample(100, seed=1)) == []
        assert run.certificate["population"] == population


def test_sample_draws_the_public_number_of_rows(made_run: Run) -> None:
    assert len(made_run.sample(seed=1)) == made_run.schema.rows.value == 700
    assert len(dpsynth.sample(made_run)) == 700
    pd.testing.assert_index_equal(made_run.sample(5, seed=1).index, pd.RangeIndex(5))


def test_without_a_seed_each_table_is_another(made_run: Run) -> None:
    assert not made_run.sample(100).equals(made_run.sample(100))


def test_privacy_parameters_have_no_default(patients: pd.DataFrame, every_type: Schema) -> None:
    call: Any = dpsynth.fit
    for left_out in ("epsilon", "delta", "dataset"):
        settings = {"epsilon": 1.0, "delta": 1e-6, "dataset": "cohort"}
        del settings[left_out]
        with pytest.raises(TypeError, match=left_out):
            call(patients, every_type, **settings)
