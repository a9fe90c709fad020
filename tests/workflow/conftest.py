"""Fixtures of the whole run: a small table, an office, and one that is done."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpsynth.tables.simulated import simulate
from dpsynth.workflow import assessment_stages
from dpsynth.workflow.settings import Settings

from ..support.workflow_office import Office, small_schema


@pytest.fixture(scope="session")
def cohort() -> pd.DataFrame:
    return simulate(60, seed=1)


@pytest.fixture
def office(cohort: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    cohort.to_csv(tmp_path / "cohort.csv", index=False)
    settings = Settings.of(
        schema=str(small_schema(tmp_path / "small.schema.yaml")),
        data=tmp_path / "cohort.csv",
        dataset="demo",
        epsilon=3.0,
        delta=1e-6,
        model="independent",
        output=tmp_path / "bundle",
        holdout=0.4,
        rows=200,
        canaries=60,
    )
    new_office = Office(tmp_path, settings)
    monkeypatch.setattr(assessment_stages, "evaluate", new_office.evaluate)
    monkeypatch.setattr(assessment_stages, "audit_run", new_office.audit)
    monkeypatch.setattr(assessment_stages, "read_audits", lambda run: ())
    return new_office


@pytest.fixture
def finished(office: Office) -> Office:
    office.run()
    return office
