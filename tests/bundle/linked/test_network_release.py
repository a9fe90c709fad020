"""The networks of linked tables, from files to a signed bundle, by the commands of `cohort`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth.assessment import attack_audit, training_audit
from dpsynth.bundle import verify
from dpsynth.bundle.checks import check_certificate
from dpsynth.certificate import Certificate, budget_lines, certify
from dpsynth.errors import InputError
from dpsynth.forecasts.plan_words import describe_event
from dpsynth.models.histories import planned_histories
from dpsynth.models.histories.networks import shares_of_linked
from dpsynth.privacy import PrivacyBudget, PrivacyPlan
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import Run, prepare
from dpsynth.tables import simulate_cohort

from ...support.audited_office import PASSED
from ...support.clinic import clinic_schema, write_clinic
from ...support.short_training import (
    shorten_histories,
    shorten_networks,
)


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Learn little, in few steps."""
    shorten_histories(monkeypatch)
    shorten_networks(monkeypatch)
    monkeypatch.setattr(attack_audit, "fitted_controls", lambda *_: [PASSED])
    monkeypatch.setattr(training_audit, "DRAWN", 300)


@pytest.mark.long
@pytest.mark.usefixtures("quick")
def test_a_network_goes_all_the_way(
    tmp_path: Path, command_line: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = "autoregressive"
    monkeypatch.chdir(tmp_path)
    write_clinic(tmp_path / "tables", simulate_cohort(300, seed=2))
    document = clinic_schema().to_dict()
    document["dpsynth"]["population"]["value"] = 1_000  # an audit draws as many
    (tmp_path / "clinic.json").write_text(json.dumps(document))
    budget = ("--epsilon", "3", "--delta", "1e-5", "--dataset", "clinic")
    fit = ("fit", "clinic.json", "tables", *budget, "--model", model, "-o", "run")
    outcome = command_line(*fit)
    assert outcome.code == 0, outcome.err
    run = Run.load(tmp_path / "run")
    assert run.model == model and run.certificate is not None
    names = [event["name"] for event in run.certificate["events"]]
    assert names[-1] == "DP-SGD steps"
    size = sum(array.nbytes for array in run.arrays.values())
    prepared = prepare(run.schema, epsilon=3, delta=1e-5, model=model)
    assert size < prepared.room() and prepared.plan.epsilon <= 3
    outcome = command_line("audit", "run", "--canaries", "60", "--repeats", "0", "--quiet")
    assert outcome.code == 0, outcome.err
    outcome = command_line("release", "run", "--patients", "40", "--seed", "7", "-o", "bundle")
    assert outcome.code == 0, outcome.err
    verify(tmp_path / "bundle")
    for line in (
        ("keygen", "office.key", "--no-passphrase"),
        ("sign", "bundle", "--key", "office.key"),
        ("verify", "bundle", "--key", "office.key.pub"),
    ):
        outcome = command_line(*line)
        assert outcome.code == 0, outcome.err
    assert f'"{model}"' in (tmp_path / "bundle/privacy.json").read_text()


def test_auto_follows_the_public_rule() -> None:
    """A wide table is trained on where patients are many: of those who may have a later row."""
    document = clinic_schema().to_dict()
    for table in document["resources"]:
        if table["name"] == "visits":
            table["schema"]["fields"] += [
                {
                    "name": f"drug{place}",
                    "type": "string",
                    "constraints": {"enum": ["no", "yes"]},
                    "dpsynth": {"bounds_basis": "the form"},
                }
                for place in range(8)
            ]
    chosen = {}
    for patients in (8_000, 800_000):
        document["dpsynth"]["population"]["value"] = patients
        chosen[patients] = prepare(LinkedSchema.from_dict(document), epsilon=3, delta=1e-7)
    assert chosen[8_000].model == "distilled" and "been shown to pay" in chosen[8_000].reason
    assert chosen[800_000].model == "autoregressive" and "adds what" in chosen[800_000].reason


@pytest.mark.parametrize("model", ["mixture", "tvae"])
def test_what_learns_no_histories_is_refused(model: str) -> None:
    message = (
        f"model '{model}' is for a single table; linked tables are learned by distilled, "
        "autoregressive, cohort, latent (or 'auto', which chooses one)"
    )
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        prepare(clinic_schema(), epsilon=3, delta=1e-6, model=model)


def test_a_network_of_the_patients_alone_may_be_trained() -> None:
    """Where no table has rows of one kind, such as visits."""
    document = clinic_schema().to_dict()
    document["resources"] = [one for one in document["resources"] if one["name"] != "visits"]
    document["dpsynth"].pop("rules", None)
    schema = LinkedSchema.from_dict(document)
    prepared = prepare(schema, epsilon=3, delta=1e-6, model="autoregressive")
    assert prepared.model == "autoregressive"
    assert prepared.plan.events[-1].name == "DP-SGD steps"


def test_where_rows_are_not_of_many_codes_facts_are_chosen() -> None:
    """However many patients there are."""
    document = clinic_schema().to_dict()
    for patients in (1_000, 17_000, 1_000_000):
        document["dpsynth"]["population"]["value"] = patients
        prepared = prepare(LinkedSchema.from_dict(document), epsilon=3, delta=1e-7)
        assert prepared.model == "latent", patients
    assert "no table has rows of 8 columns" in prepared.reason


@pytest.mark.parametrize("steps", [1, 400])
def test_only_a_certificate_of_all_events_as_they_run_verifies(steps: int) -> None:
    schema, budget = clinic_schema(), PrivacyBudget(epsilon=3.0, delta=1e-5)
    *counts, score = shares_of_linked("autoregressive", planned_histories(schema), budget)
    event = replace(score.event, steps=steps)
    plan = PrivacyPlan.calibrate(budget, (*counts, replace(score, event=event)))
    certificate = Certificate.from_dict(certify(schema, plan, model="autoregressive", charge=None))
    found = [str(problem) for problem in check_certificate(certificate, schema, None)]
    faults = [fault for fault in found if "no ledger was charged" not in fault]
    assert bool(faults) == (event != score.event), faults


def test_a_single_step_is_said_in_words() -> None:
    """Where all patients fit in memory, one step reads them all: the clinic's."""
    schema, budget = clinic_schema(), PrivacyBudget(epsilon=3.0, delta=1e-5)
    shares = shares_of_linked("autoregressive", planned_histories(schema), budget)
    plan = PrivacyPlan.calibrate(budget, shares)
    certificate = Certificate.from_dict(certify(schema, plan, model="autoregressive", charge=None))
    lines = {line.name: line for line in budget_lines(certificate, quality=False)}
    assert lines["DP-SGD steps"].purpose == "training the network: 1 step, with all patients"
    assert describe_event(certificate.events[-1]).startswith("1 step, sampling rate 1, noise")
