"""Fixtures of the whole run: a small table, an office, and one that is done."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest

from dpsynth.tables import simulate

from ..support.workflow_office import Office, office_in


@pytest.fixture(scope="session")
def cohort() -> pd.DataFrame:
    return simulate(60, seed=1)


@pytest.fixture
def office(cohort: pd.DataFrame, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Office:
    return office_in(tmp_path, cohort, monkeypatch, holdout=0.4, rows=200, canaries=60)


@pytest.fixture
def finished(office: Office) -> Office:
    office.run()
    return office
