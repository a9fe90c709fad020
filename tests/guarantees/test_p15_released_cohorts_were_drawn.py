"""P15: tables of real patients in the place of a drawn cohort are refused: no run drew them."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpsynth.bundle import release
from dpsynth.errors import GateError
from dpsynth.ledger import Ledger
from dpsynth.schema import published_tables
from dpsynth.synthesis import Run, Sample, record_sample
from dpsynth.tables import write_linked

from ..support.clinic_office import clinic_office


def test_tables_of_real_patients_are_not_released_as_a_cohort(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They fit the schema and agree with each other; what is missing is that the run drew them."""
    office = clinic_office(tmp_path)
    ledger, run = Ledger(office / "ledger.sqlite"), Run.load(office / "run")
    real = run.sample(20, seed=99)  # stands for real patients: no record says that it was drawn
    drawn = run.sample(20, seed=1)
    write_linked([drawn], office / "drawn", published_tables(run.schema))
    record_sample(office / "run", office / "drawn", size=20, seed=1)
    digests = write_linked([real], office / "real", published_tables(run.schema))
    with pytest.raises(GateError, match=r"is not recorded in .*samples\.json"):
        release(office / "run", office / "bundle", table=office / "real", ledger=ledger)
    assert not (office / "bundle").exists()
    # Broken twin: a release that takes any tables that fit the schema lets them out.
    recorded = Sample("real", digests, ".csv", size=20, seed=1)
    monkeypatch.setattr("dpsynth.bundle.writer.recorded_as", lambda folder, *rest: recorded)
    release(office / "run", office / "bundle", table=office / "real", ledger=ledger)
    for name in digests:
        private = (office / f"real/synthetic-{name}.csv").read_bytes()
        assert (office / f"bundle/data/synthetic-{name}.csv").read_bytes() == private
