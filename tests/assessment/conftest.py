"""Fixtures that several tests of assessments share."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpsynth.eval.core import Tables
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.tables import simulate

from ..support.evaluated_office import DEMO, Office, call
from ..support.quick_fit import quick_fit
from ..support.shadow_bench import PATIENTS
from ..support.short_training import shorten_mixture


@pytest.fixture(scope="module")
def tables() -> Tables:
    everyone = simulate(PATIENTS, seed=7)
    keys = everyone["patient_id"].unique()
    inside = everyone["patient_id"].isin(keys[: PATIENTS // 2])
    schema = Schema.load("demo")
    synthetic = everyone[inside].drop(columns="patient_id")
    return Tables.read(schema, everyone[inside], synthetic, everyone[~inside])


@pytest.fixture(scope="session")
def shared_office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    folder = tmp_path_factory.mktemp("office")
    simulate(400, seed=1).to_csv(folder / "source.csv", index=False)
    holdout = simulate(150, seed=2)
    holdout["patient_id"] = holdout["patient_id"].astype(str) + "h"
    holdout.to_csv(folder / "holdout.csv", index=False)
    with pytest.MonkeyPatch.context() as patch:
        shorten_mixture(patch)
        quick_fit(
            folder / "source.csv",
            DEMO,
            epsilon=20.0,
            model="mixture",
            publish_quality=0.2,
            ledger=Ledger.create(folder / "ledger.sqlite"),
            output=folder / "run",
        )
    assert call("sample", str(folder / "run"), "--rows", "500", "--seed", "1", "-q", "-o",
                str(folder / "out.parquet")) == 0  # fmt: skip
    return Office(folder)


@pytest.fixture
def office(
    shared_office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Office]:
    """A copy of its own, ledger included."""
    shutil.copytree(shared_office.folder, tmp_path / "office")
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "office" / "ledger.sqlite"))
    yield Office(tmp_path / "office")
