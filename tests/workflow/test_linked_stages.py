"""A whole run of linked tables: the same stages, folders in the place of files."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from dpsynth.assessment import attack_audit, repeated_audits, training_audit
from dpsynth.bundle import verify
from dpsynth.errors import GateError, InputError, TableError
from dpsynth.ledger import Ledger
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis.checkpoints import FitCheckpoints
from dpsynth.tables import simulate_cohort
from dpsynth.workflow import ResolvedSettings, Settings, run_stages
from dpsynth.workflow.stages import CHECKPOINTS

from ..support.audited_office import PASSED
from ..support.clinic import write_clinic
from ..support.history_cohorts import grow_few_trees
from ..support.short_training import (
    shorten_histories,
    shorten_networks,
    take_steps_of_histories,
)

PATIENTS = 200


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested is the order of stages, so each fit is short, and an audit made once."""
    shorten_histories(monkeypatch)
    grow_few_trees(monkeypatch)
    monkeypatch.setattr(attack_audit, "fitted_controls", lambda *_: [PASSED])
    monkeypatch.setattr(repeated_audits, "canaries_needed", lambda *_, **__: None)
    monkeypatch.setattr(training_audit, "DRAWN", PATIENTS)


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    document = LinkedSchema.load("clinic").to_dict()
    document["dpsynth"]["population"]["value"] = PATIENTS
    LinkedSchema.from_dict(document).save(tmp_path / "small.package.yaml")
    return Settings.of(
        schema=str(tmp_path / "small.package.yaml"),
        data=write_clinic(tmp_path / "source", simulate_cohort(PATIENTS, seed=3)),
        dataset="clinic",
        epsilon=3.0,
        delta=1e-5,
        output=tmp_path / "bundle",
        rows=150,
        attacks=False,
        canaries=100,
    )


@pytest.mark.long
def test_linked_tables_go_the_whole_way_and_are_charged_once(settings: Settings) -> None:
    settings = replace(settings, model="distilled")  # so short that gates fail
    outcome = run_stages(settings)
    order = outcome.order
    assert [state.state for state in outcome.states] == [
        *("done", "done", "done", "done", "done", "done", "done"),
    ]
    assert any("keys agree" in check for check in verify(order.bundle))
    manifest = json.loads((order.bundle / "datapackage.json").read_text())
    assert manifest["dpsynth"]["drawing"]["size"] == 150
    histories = json.loads((order.internal / "histories.json").read_text())
    assert histories["patients"]["synthetic"] == 150
    names = {"histories.json", "histories.html", "audit.json", "internal.html"}
    assert {path.name for path in order.internal.iterdir()} == names
    assert (order.bundle / "audit.json").exists()  # of the training, among synthetic patients
    unfit = {use["key"] for use in histories["uses"] if use["verdict"] == "not fit"}
    failed = {gate["key"] for gate in histories["gates"] if gate["passed"] is False}
    assert set(outcome.gates) == unfit | failed and failed
    if outcome.gates:
        with pytest.raises(GateError, match="of the histories failed"):
            outcome.require_quiet()
    assert len(Ledger.default().state().entries) == 1

    again = run_stages(settings)  # nothing is done twice
    assert {state.state for state in again.states} == {"kept"}
    assert len(Ledger.default().state().entries) == 1


@pytest.mark.long
def test_cohorts_that_cannot_be_compared_change_no_bundle(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsynth.assessment import evaluation

    def broken(*_: object, **__: object) -> None:
        raise InputError("too few patients")

    monkeypatch.setattr(evaluation, "evaluate_histories", broken)
    outcome = run_stages(settings)
    assert verify(outcome.order.bundle)
    assert outcome.not_done == ("evaluation: too few patients",)
    page = (outcome.order.internal / "histories.html").read_text()
    assert "too few patients" in page


def test_a_network_that_was_stopped_goes_on_within_its_entry(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten_networks(monkeypatch)
    take_steps_of_histories(monkeypatch, 5)
    monkeypatch.setattr(FitCheckpoints, "every", 2)

    def stop(stage: str, fraction: float) -> None:
        if stage == "fit: training" and fraction >= 3 / 5:
            raise KeyboardInterrupt

    def ends(stage: str, _: float) -> None:
        if stage.startswith("sample"):
            raise ZeroDivisionError  # what comes after the fit is the same for all generators

    settings = replace(settings, model="autoregressive")
    with pytest.raises(KeyboardInterrupt) as stopped:
        run_stages(settings, progress=stop)
    assert any("goes on from there" in note for note in stopped.value.__notes__)
    (entry,) = Ledger.default().state().entries
    assert entry.status == "reading" and entry.checkpoint is not None
    assert (entry.checkpoint.step, len(entry.resumed)) == (2, 0)
    with pytest.raises(ZeroDivisionError):
        run_stages(settings, progress=ends)
    (entry,) = Ledger.default().state().entries
    assert (entry.status, len(entry.resumed)) == ("charged", 1)
    assert not (settings.work_folder / CHECKPOINTS).exists()


def test_what_is_for_a_single_table_is_refused(settings: Settings) -> None:
    base = {name: getattr(settings, name) for name in ("schema", "data", "dataset", "epsilon")}
    base |= {"delta": settings.delta, "output": settings.output}
    for changes, message in (
        ({"publish_quality": 0.1}, "single table"),
        ({"model": "ctgan"}, "single table"),
    ):
        with pytest.raises(InputError, match=message):
            ResolvedSettings.of(Settings.of(**base, **changes))


def test_a_missing_table_stops_before_anything_is_written(settings: Settings) -> None:
    (Path(str(settings.data)) / "labs.csv").unlink()
    with pytest.raises(TableError, match="no file for table labs"):
        run_stages(settings)
    assert not settings.output.exists()
    assert not settings.work_folder.exists()
    assert Ledger.default().state().entries == ()
