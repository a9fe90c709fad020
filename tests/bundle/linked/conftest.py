"""A bundle of the simulated clinic, and somebody who forges it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dpsynth.bundle import release
from dpsynth.ledger import Ledger

from ...support.clinic_office import TableForger, clinic_office

PATIENTS, SEED = 60, 7


@pytest.fixture(scope="session")
def _clinic(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = clinic_office(tmp_path_factory.mktemp("clinic"))
    ledger = Ledger(folder / "ledger.sqlite")
    release(folder / "run", folder / "bundle", size=PATIENTS, seed=SEED, ledger=ledger)
    return folder


@pytest.fixture
def office(_clinic: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of the test's own with run, ledger and bundle; the ledger is at hand."""
    folder = Path(shutil.copytree(_clinic, tmp_path / "office"))
    monkeypatch.setenv("DPSYNTH_LEDGER", str(folder / "ledger.sqlite"))
    return folder


@pytest.fixture
def cohort_bundle(office: Path) -> Path:
    """A verified bundle of the test's own, 60 patients."""
    return office / "bundle"


@pytest.fixture
def table_forger(cohort_bundle: Path) -> TableForger:
    """Somebody who edits the test's own bundle."""
    return TableForger(cohort_bundle)
