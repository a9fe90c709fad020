"""A messy extract of a hospital goes the whole way, from its own cells to a verified bundle."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth import inspection
from dpsynth.bundle import verify
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.workflow import Settings, run_stages

from ..support.hospital_extract import Extract, hospital_extract

SCHEMA = Path(__file__).parents[1] / "support" / "hospital.schema.yaml"


@pytest.fixture(scope="module")
def extract() -> Extract:
    return hospital_extract()


@pytest.mark.long
def test_every_cell_of_the_extract_is_read(extract: Extract, tmp_path: Path) -> None:
    """What cannot be known is known to be missing; only heights in metres are out of bounds."""
    check = inspection.check(extract.write(tmp_path / "extract.csv"), Schema.load(SCHEMA))
    shares = check.cells
    assert {name for name, row in shares.items() if row.unknown or row.bad} == set()
    assert shares["Größe"].clipped == pytest.approx(0.014, abs=0.005)
    assert {name for name, row in shares.items() if row.clipped > 0.004} == {"Größe"}
    causes = {
        finding.place: finding.causes
        for finding in check.findings
        if finding.causes and finding.kind != "replaced"  # what a fit rounds or maps
    }
    assert list(causes) == ["Größe"]


@pytest.mark.long
def test_the_whole_way_ends_in_a_verified_bundle(extract: Extract, tmp_path: Path) -> None:
    settings = Settings.of(
        schema=str(SCHEMA),
        data=extract.write(tmp_path / "extract.csv"),
        dataset="hospital",
        epsilon=3.0,
        delta=1e-6,
        output=tmp_path / "bundle",
    )
    run_stages(settings, ledger=Ledger.create(tmp_path / "ledger.sqlite"))
    assert len(verify(settings.output)) > 5
    evaluation: Any = json.loads((settings.internal_folder / "evaluation.json").read_text())
    assert evaluation["measures"]
    synthetic = pd.read_parquet(tmp_path / "bundle" / "data" / "synthetic.parquet")
    discharged, admitted = (
        pd.to_datetime(synthetic[name]) for name in ("Entlassdatum", "Aufnahmedatum")
    )
    stay = (discharged - admitted).dt.days
    assert stay.between(0, 90).all()
    assert stay.median() == extract.truth["stay"].median()
    # of 120 fits, 119 had a mean from 3.4 to 4.7 and one of 7.4 (noise far out was taken for rows)
    assert 0.8 < stay.mean() / extract.truth["stay"].mean() < 2.5
    low = (synthetic["CRP_status"] == "low").mean()
    present = ~extract.cells["CRP"].isin(["", "n.d."])
    assert low == pytest.approx((present & (extract.truth["crp"] < 5)).mean(), abs=0.05)
    assert (synthetic.loc[synthetic["CRP_status"] == "low", "CRP"] == 5).all()
    assert synthetic["Hauptdiagnose"].nunique() > 5
