"""Cohorts: as many patients as asked, repeatable by block, with keys that agree, by the rules."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.errors import ArtifactError, InputError
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import Run, Sampler
from dpsynth.synthesis import sampler as samplers
from dpsynth.synthesis.workers import Drawing

from ..support.clinic import clinic_run

ONE_BLOCK = 50


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplers, "BLOCK_OF_PATIENTS", ONE_BLOCK)


def with_rules(**rules: list[str]) -> Run:
    """Return the run under a schema with rules of some tables: a matter of drawing alone."""
    run = clinic_run()
    document = run.schema.to_dict()
    for resource in document["resources"]:
        if resource["name"] in rules:
            resource.setdefault("dpsynth", {})["rules"] = rules[resource["name"]]
    schema = LinkedSchema.from_dict(document)
    return Run(schema, run.model, run.config, run.arrays, run.certificate, run.stamps)


def test_keys_agree_and_count_from_one() -> None:
    cohort = clinic_run().sample(120, seed=1)
    keys = cohort["patients"]["patient"].tolist()
    assert keys == [f"synthetic-{number}" for number in range(1, 121)]
    for name in ("visits", "labs", "events"):
        assert set(cohort[name]["patient"]) <= set(keys)
        order = cohort[name]["patient"].str.removeprefix("synthetic-").astype(int)
        assert order.is_monotonic_increasing


def test_histories_keep_what_the_schema_says() -> None:
    cohort = clinic_run().sample(300, seed=2)
    patients = cohort["patients"].set_index("patient")
    first, last = pd.to_datetime(patients["included"]), patients["followed"]
    for name in ("visits", "labs", "events"):
        table = cohort[name]
        days = (table["date"] - first[table["patient"]].to_numpy()).dt.days
        assert (days >= 0).all()
        assert (days <= last[table["patient"]].to_numpy()).all()
    assert cohort["visits"].groupby("patient").size().max() <= 24
    assert cohort["labs"].groupby(["patient", "test"]).size().max() <= 16
    assert not cohort["events"].duplicated(["patient", "event"]).any()


def test_any_block_can_be_drawn_again_by_itself() -> None:
    sampler = Sampler.of(clinic_run())
    blocks = list(sampler.frames(120, seed=5))
    assert [len(block["patients"]) for block in blocks] == [50, 50, 20]
    again = sampler.block(50, seed=5, number=1)
    for name, table in blocks[1].items():
        pd.testing.assert_frame_equal(again[name], table)
    other = sampler.block(50, seed=6, number=1)
    assert not other["visits"].equals(again["visits"])


def test_no_row_of_a_patient_breaks_a_rule() -> None:
    run = with_rules(
        patients=["age >= 60 implies followed <= 1700"],
        visits=["drugs == 3 implies systolic <= 170"],
    )
    cohort = run.sample(130, seed=1)
    assert cohort["patients"]["patient"].tolist() == [f"synthetic-{n}" for n in range(1, 131)]
    old = cohort["patients"][cohort["patients"]["age"] >= 60]
    assert (old["followed"] <= 1700).all()
    treated = cohort["visits"][cohort["visits"]["drugs"] == 3]
    assert (treated["systolic"].dropna() <= 170).all()


def test_rules_that_leave_nobody_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(samplers, "SPARSEST", 100)
    with pytest.raises(InputError, match="fewer than one drawn patient in 100"):
        with_rules(patients=["age >= 91 or age < 40"]).sample(10, seed=1)


@pytest.mark.parametrize(("patients", "seed"), [(0, 1), (-1, 1), (5, -1)])
def test_numbers_out_of_range_are_refused(patients: int, seed: int) -> None:
    with pytest.raises(InputError, match="must (be|lie)"):
        clinic_run().sample(patients, seed=seed)


def test_arrays_of_another_schema_are_refused() -> None:
    run = clinic_run()
    arrays = {name: array for name, array in run.arrays.items() if "shares" not in name}
    broken = Run(run.schema, run.model, run.config, arrays, run.certificate, run.stamps)
    with pytest.raises(ArtifactError, match="not that of model 'latent'"):
        broken.sample(5, seed=1)
    assert np.isfinite(run.sample(5, seed=1)["visits"]["weight"].dropna()).all()


def test_each_block_has_a_stream_of_its_own() -> None:
    sampler = Sampler.of(clinic_run())
    first, second = (sampler.block(ONE_BLOCK, seed=5, number=number) for number in (0, 1))
    own = [block["patients"].drop(columns="patient") for block in (first, second)]
    assert not own[0].equals(own[1])


def test_workers_draw_independent_patients_where_one_process_does() -> None:
    run = clinic_run()
    sampler = Sampler.of(run, plain=True)
    block = Drawing.of(run, sampler, 2 * ONE_BLOCK, 5)(1).content
    for name, table in sampler.block(ONE_BLOCK, seed=5, number=1).items():
        pd.testing.assert_frame_equal(block[name], table)
    even = Sampler.of(run).block(ONE_BLOCK, seed=5, number=1)
    assert not block["patients"].equals(even["patients"])


def test_no_patient_breaks_a_temporal_rule() -> None:
    run = clinic_run()
    document = run.schema.to_dict()
    document["dpsynth"]["rules"] = ["count(visits) >= 3"]
    schema = LinkedSchema.from_dict(document)
    ruled = Run(schema, run.model, run.config, run.arrays, run.certificate, run.stamps)
    cohort = ruled.sample(60, seed=1)
    visits = cohort["visits"].groupby("patient").size()
    assert (visits.reindex(cohort["patients"]["patient"], fill_value=0) >= 3).all()
    plain = run.sample(60, seed=1)
    without = plain["visits"].groupby("patient").size()
    assert (without.reindex(plain["patients"]["patient"], fill_value=0) < 3).any()
