"""Patients of linked tables under a condition, and in equal numbers of a category."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner

from dpsynth.cli.group import commands
from dpsynth.errors import InputError
from dpsynth.synthesis import Sampler, Support, read_samples

from ..support.clinic import clinic_run


def test_patients_in_equal_numbers_with_their_rows() -> None:
    run = clinic_run()
    cohort = run.sample(61, seed=1, balance="sex", where="age > 50")
    patients = cohort["patients"]
    assert patients["patient"].tolist() == [f"synthetic-{number}" for number in range(1, 62)]
    assert sorted(patients["sex"].value_counts()) in ([30, 31], [20, 20, 21])  # the noise decides
    assert (patients["age"] > 40).all()
    order = (patients["sex"] == patients["sex"].iloc[0]).to_numpy()
    assert not order[: order.sum()].all(), "in random order"
    for name in ("visits", "labs", "events"):
        keys = cohort[name]["patient"].str.removeprefix("synthetic-").astype(int).to_numpy()
        assert (np.diff(keys) >= 0).all() and set(keys) <= set(range(1, 62))
    again = run.sample(61, seed=1, balance="sex", where="age > 50")
    for name, frame in cohort.items():
        pd.testing.assert_frame_equal(frame, again[name])


def test_a_column_of_another_table_is_refused() -> None:
    with pytest.raises(InputError, match="patients can be balanced by a column with categories"):
        clinic_run().sample(10, seed=1, balance="systolic")


def test_the_share_of_a_condition_is_told() -> None:
    run = clinic_run()
    support = Support.of(Sampler.of(run, where="sex == 'female'"), run)
    ages = run.sample(2_000, seed=2)["patients"]["sex"]
    assert abs(support.share - (ages == "female").mean()) < 0.1
    assert "of the patients, about" in support.words and support.proposals is None


def test_the_command_records_a_condition_and_no_balance(tmp_path: Path) -> None:
    run = clinic_run().save(tmp_path / "run")

    def sampled(name: str, *options: str) -> Any:
        line = ["sample", str(run), "--patients", "20", "--seed", "1", "-o", str(tmp_path / name)]
        result = CliRunner().invoke(commands, [*line, *options, "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    assert sampled("some", "--where", "age > 50")["condition"]["share"] > 0
    assert (pd.read_csv(tmp_path / "some/synthetic-patients.csv")["age"] > 50).all()
    [record] = read_samples(run)
    assert (record.name, record.size, record.condition) == ("some", 20, "age > 50")
    assert "on-request" in sampled("even", "--balance", "sex")["stamps"]
    assert read_samples(run) == (record,)
