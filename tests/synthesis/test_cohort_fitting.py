"""Linked tables are fitted under one charge, and the run is kept, read and described."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pandas as pd
import pytest

from dpsynth.certificate import Certificate, bounds_of, json_schema
from dpsynth.errors import ArtifactError, BudgetError, InputError, TableError
from dpsynth.ledger import Ledger
from dpsynth.policy import Policy
from dpsynth.schema import LinkedSchema, Schema
from dpsynth.synthesis import Run, fit, prepare, readers
from dpsynth.tables import simulate_cohort

from ..support.clinic import clinic_run, clinic_schema, clinic_tables, write_clinic
from ..support.short_training import shorten_histories

BUDGET = {"epsilon": 3.0, "delta": 1e-5, "dataset": "clinic"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    shorten_histories(monkeypatch)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "own.sqlite")


def test_a_saved_run_is_read_as_it_was(tmp_path: Path) -> None:
    run = clinic_run()
    loaded = Run.load(run.save(tmp_path / "run"))
    assert isinstance(loaded.schema, LinkedSchema)
    assert loaded.schema == run.schema
    assert loaded.certificate == run.certificate
    before, after = run.sample(200, seed=3), loaded.sample(200, seed=3)
    for name, table in before.items():
        pd.testing.assert_frame_equal(table, after[name])


def test_a_run_of_either_kind_is_read(tmp_path: Path, run_folder: Path) -> None:
    folder = clinic_run().save(tmp_path / "cohort")
    assert isinstance(Run.load(folder).schema, LinkedSchema)
    assert isinstance(Run.load(run_folder).schema, Schema)


def test_a_cohort_meets_a_condition_on_the_row_of_each_patient() -> None:
    cohort = clinic_run().sample(40, seed=3, where="sex == 'female'")
    assert set(cohort["patients"]["sex"]) == {"female"} and len(cohort["patients"]) == 40
    assert set(cohort["visits"]["patient"]) <= set(cohort["patients"]["patient"])
    with pytest.raises(InputError, match="no column 'drug'"):
        clinic_run().sample(5, where="drug == 'x'")
    with pytest.raises(InputError, match="cannot|no row|can be"):
        clinic_run().sample(5, where="sex == 'female' and sex == 'male'")


def test_the_certificate_says_of_each_table_what_counts() -> None:
    run = clinic_run()
    assert run.certificate is not None
    jsonschema.Draft202012Validator(json.loads(json_schema())).validate(run.certificate)
    certificate = Certificate.from_dict(run.certificate)
    assert certificate.to_dict() == run.certificate
    assert certificate.tables == bounds_of(run.schema)
    assert [(one.name, one.kind, one.series, one.max_rows) for one in certificate.tables] == [
        ("patients", "patients", 1, 1),
        ("visits", "wide", 1, 24),
        ("labs", "long", 2, 16),
        ("events", "once", 3, 1),
    ]
    assert certificate.tables[1].last_day == 1826
    assert certificate.model == "latent"


@pytest.mark.parametrize(
    "change",
    [
        lambda document: document.pop("tables"),
        lambda document: document.update(version=7),
        lambda document: document["tables"][1].update(max_rows=0),
        lambda document: document["tables"][1].update(kind="other"),
        lambda document: document["tables"][1].update(first_day=None),
        lambda document: document["tables"][1].update(more=1),
    ],
)
def test_a_certificate_that_says_otherwise_is_none(change: object) -> None:
    document = json.loads(json.dumps(clinic_run().certificate))
    change(document)  # type: ignore[operator]
    with pytest.raises(ArtifactError):
        Certificate.from_dict(document)


def test_a_run_whose_certificate_names_no_tables_does_not_load(tmp_path: Path) -> None:
    run = clinic_run()
    assert run.certificate is not None
    replace(run, certificate=run.certificate | {"tables": []}).save(tmp_path / "run")
    with pytest.raises(ArtifactError, match="about another schema or model"):
        Run.load(tmp_path / "run")


def test_one_fit_is_one_charge(tmp_path: Path, ledger: Ledger) -> None:
    folder = write_clinic(tmp_path / "tables", simulate_cohort(300, seed=2))
    run = fit(folder, "clinic", ledger=ledger, output=tmp_path / "run", **BUDGET)
    assert run.stamps == ()
    assert run.certificate is not None
    assert run.certificate["ledger"]["fits"] == 1
    (entry,) = ledger.state().entries
    assert (entry.model, entry.unit.name, entry.population) == ("latent", "patient", 8000)
    assert Run.load(tmp_path / "run").digest == run.digest


def test_what_can_be_seen_beforehand_is_charged_nothing(tmp_path: Path, ledger: Ledger) -> None:
    tables = clinic_tables()
    folder = write_clinic(tmp_path / "tables")
    (folder / "labs.csv").unlink()
    cases: list[tuple[object, dict[str, object], type[Exception], str]] = [
        (folder, {}, TableError, "no file for table labs"),
        (tmp_path / "nowhere", {}, TableError, "does not exist"),
        (
            tables["patients"],
            {},
            TableError,
            "in place of a folder, database or workbook",
        ),
        ({**tables, "labs": tables["labs"].drop(columns="value")}, {}, TableError, "value"),
        (tables, {"model": "ctgan"}, InputError, "for a single table"),
        (tables, {"epsilon": -1.0}, InputError, "epsilon must be"),
        (tables, {"delta": 0.01}, InputError, "not below 1 over the population"),
    ]
    for data, changes, error, message in cases:
        with pytest.raises(error, match=message):
            fit(data, "clinic", ledger=ledger, **{**BUDGET, **changes})  # type: ignore[arg-type]
    assert ledger.state().entries == ()


def test_a_fit_that_has_read_rows_stays_charged(ledger: Ledger) -> None:
    tables = dict(clinic_tables())
    tables["patients"] = pd.concat([tables["patients"], tables["patients"].iloc[:1]])
    with pytest.raises(TableError, match="has several rows"):
        fit(tables, "clinic", ledger=ledger, **BUDGET)
    (entry,) = ledger.state().entries
    assert entry.epsilon == 3.0


def test_a_budget_beyond_the_policy_is_refused_before_reading(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def read(*_: object, **__: object) -> None:
        raise AssertionError("rows were read")

    monkeypatch.setattr(readers, "read_histories", read)
    policy = Policy.from_dict(
        {
            "dpsynth_policy": 1,
            "name": "strict",
            "delta": 1e-4,
            "caps": {"release": {"epsilon": 1, "basis": "the board"}},
            "models": ["cohort"],
        },
        "test",
    )
    with pytest.raises(BudgetError, match="epsilon"):
        fit(clinic_tables(), "clinic", ledger=ledger, policy=policy, **BUDGET)


def test_a_plan_holds_every_event_of_the_generator() -> None:
    prepared = prepare(clinic_schema(), epsilon=3, delta=1e-5)
    names = [event.name for event in prepared.plan.events]
    assert names == [event["name"] for event in clinic_run().certificate["events"]]  # type: ignore[index]
    assert prepared.plan.epsilon <= 3
    run = clinic_run()
    assert sum(array.nbytes for array in run.arrays.values()) < prepared.room()


def test_a_schema_of_one_table_is_not_fitted_as_linked_ones() -> None:
    with pytest.raises(InputError):
        fit(clinic_tables(), "demo", without_ledger=True, **BUDGET)
    assert isinstance(LinkedSchema.load("clinic"), LinkedSchema)
    assert np.isfinite(clinic_schema().population.value)
