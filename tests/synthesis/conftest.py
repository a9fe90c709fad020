"""Patients with cells of every type, sources of them, and runs of small cohorts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpsynth
from dpsynth.ledger import Ledger
from dpsynth.models import Generator
from dpsynth.models.generators import Independent
from dpsynth.privacy import SeededEntropy
from dpsynth.schema import Schema
from dpsynth.synthesis import Run
from dpsynth.tables import simulate

from ..support.patients_of_every_type import table_of_every_type
from ..support.quick_fit import quick_fit
from ..support.small_cohort import fitted


@pytest.fixture(scope="module")
def patients() -> pd.DataFrame:
    return table_of_every_type()


@pytest.fixture(scope="module")
def sources(
    patients: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, pd.DataFrame | Path]:
    """The same table four times."""
    folder = tmp_path_factory.mktemp("sources")
    found: dict[str, pd.DataFrame | Path] = {"DataFrame": patients}
    for suffix in ("csv", "csv.gz"):
        found[suffix] = folder / f"table.{suffix}"
        patients.to_csv(folder / f"table.{suffix}", index=False, date_format="%Y-%m-%dT%H:%M:%S")
    found["parquet"] = folder / "table.parquet"
    patients.to_parquet(folder / "table.parquet")
    return found


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    (tmp_path / "state").mkdir()
    return Ledger.create(tmp_path / "state" / "ledger.sqlite")


@pytest.fixture
def fit(every_type: Schema, ledger: Ledger) -> Callable[..., Run]:
    """`dpsynth.fit` of `independent` with the test's ledger; keywords replace what is given."""

    def call(data: Any, schema: Any = every_type, **changes: Any) -> Run:
        settings: dict[str, Any] = {
            "epsilon": 3.0,
            "delta": 1e-6,
            "dataset": "cohort",
            "model": "independent",
            "ledger": ledger,
        }
        return dpsynth.fit(data, schema, **settings | changes)

    return call


@pytest.fixture(scope="module")
def independent() -> Run:
    return fitted("independent")


@pytest.fixture(scope="module")
def mixture() -> Run:
    return fitted("mixture")


@pytest.fixture(scope="session")
def demo_run() -> Run:
    """A mixture of the simulated cohort of the demo."""
    rows, noise = simulate(5000, seed=1), SeededEntropy(1)
    return quick_fit(rows, Schema.load("demo"), model="mixture", epsilon=6.0, entropy=noise)


class Opaque:
    """A generator that can only draw rows."""

    name = "opaque"

    def __init__(self, generator: Generator) -> None:
        self.sample = generator.sample


@pytest.fixture
def opaque(independent: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """A run of a generator that cannot be conditioned."""
    restore = Independent.restore
    monkeypatch.setattr(Independent, "restore", lambda *how: Opaque(restore(*how)))
    return independent
