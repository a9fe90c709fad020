"""The check of the private table before the charge: it stops, is accepted, and is done once."""

from __future__ import annotations

import stat
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth._util.strict_json import read_document
from dpsynth.errors import GateError, InputError
from dpsynth.ledger import Ledger
from dpsynth.schema import Schema
from dpsynth.workflow import Settings, subjects

from ..support.workflow_office import Office, states


def spoil(office: Office, column: str = "sex", rows: int = 20, cell: str = "Quokka7") -> None:
    """Write a cell that its column does not know into the first rows."""
    frame = pd.read_csv(office.path("cohort.csv"), dtype=str, keep_default_na=False)
    frame.loc[: rows - 1, column] = cell
    frame.to_csv(office.path("cohort.csv"), index=False)


def test_a_serious_finding_stops_before_anything_is_charged(office: Office) -> None:
    spoil(office)
    for _ in range(2):
        with pytest.raises(GateError, match=r"1 serious finding \(sex:unknown\)") as stopped:
            office.run()
        message = str(stopped.value)
        assert "Nothing was charged" in message and "Quokka7" not in message
        assert "%" not in message and "20" not in message  # no figure
    assert Ledger().entries() == []
    assert not office.path("bundle").exists() and not (office.work / "split").exists()
    path = office.work / "check.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert read_document(path)["internal"] is True and "Quokka7" not in path.read_text()


def test_what_is_accepted_does_not_stop(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil(office)
    with pytest.raises(GateError):
        office.run()
    with monkeypatch.context() as patch:  # the table is not read a second time
        patch.setattr(subjects, "check", lambda *_, **__: pytest.fail("read again"))
        outcome = office.run(accept=("sex:unknown",))
    assert states(outcome)["check"] == "kept" and office.statuses == ["charged"]
    office.run(accept=("sex:unknown",))
    office.run()  # after the charge there is nothing left to protect
    assert office.statuses == ["charged"]


def test_a_corrected_table_or_schema_goes_on_in_the_same_folder(office: Office) -> None:
    spoil(office)
    with pytest.raises(GateError):
        office.run()
    document = Schema.load(office.settings.schema).to_dict()
    (sex,) = [field for field in document["fields"] if field["name"] == "sex"]
    sex["constraints"]["enum"].append("Quokka7")
    Schema.from_dict(document).save(office.settings.schema)
    assert states(office.run())["check"] == "done"


def test_a_passed_check_is_repeated_for_another_table(office: Office) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at="split")
    assert office.statuses == []
    spoil(office)
    with pytest.raises(GateError, match="sex:unknown"):
        office.run()


def test_units_that_opted_out_do_not_stop_it(office: Office) -> None:
    frame = pd.read_csv(office.path("cohort.csv"), dtype=str, keep_default_na=False)
    spoil(office, rows=20)
    gone = frame["patient_id"].head(20).unique()
    kept = frame["patient_id"].isin(gone).sum()
    office.path("gone.txt").write_text("\n".join(gone))
    assert kept >= 20
    office.run(opt_out=office.path("gone.txt"))
    assert office.statuses == ["charged"]


def test_a_run_of_an_earlier_dpsynth_goes_on(finished: Office) -> None:
    """Its work folder knows no check, and its fit is charged."""
    import json

    path = finished.work / "stages.json"
    document = json.loads(path.read_text())
    del document["stages"]["check"]
    path.write_text(json.dumps(document))
    (finished.work / "check.json").unlink()
    finished.run()
    assert finished.statuses == ["charged"]


def test_an_unreadable_table_is_refused_before_the_charge(office: Office) -> None:
    with office.path("cohort.csv").open("a") as file:
        file.write('Quokka7,"open')
    with pytest.raises(GateError, match="table:quotes") as found:
        office.run(holdout=0.0)
    with pytest.raises(InputError, match="the quotes do not match") as refused:
        office.run(holdout=0.0, accept=("table:quotes",))  # which no fit can read
    assert "Quokka7" not in f"{found.value} {refused.value}" and Ledger().entries() == []


@pytest.mark.parametrize("entry", ["sex", "sx:unknown", "sex:unknwon"])
def test_a_setting_that_accepts_nothing_is_refused_first(office: Office, entry: str) -> None:
    with pytest.raises(InputError, match="accept"):
        office.run(accept=(entry,))
    assert not office.work.exists()


def test_the_setting_is_a_list_in_the_file(tmp_path: Path) -> None:
    options: dict[str, Any] = {"schema": "demo", "data": "d.csv", "dataset": "d", "output": "b"}
    settings = Settings.of(**options, epsilon=1, delta=1e-6, accept=["a:clipped", "b:unknown"])
    assert settings.accept == ("a:clipped", "b:unknown")
    settings.save(tmp_path / "dpsynth.yaml")
    assert "accept:\n- a:clipped\n- b:unknown\n" in (tmp_path / "dpsynth.yaml").read_text()
    assert Settings.load(tmp_path / "dpsynth.yaml").accept == settings.accept
    assert "accept" not in Settings.of(**options, epsilon=1, delta=1e-6).to_dict()
