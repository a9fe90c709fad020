"""Runs from the time when the autoregressive network was called `tvae`: they stay what they were.

`tests/models/runs/tvae_without_latent` was written by the code before the change: 300 simulated
rows, epsilon 3, a small network. Nothing in it may be edited: its digest and its ledger say so.
"""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth.bundle.checks.certificate import check_certificate
from dpsynth.bundle.format.provenance import Provenance
from dpsynth.bundle.verifier import verify
from dpsynth.bundle.writer import release
from dpsynth.certificate.certificate import Certificate
from dpsynth.errors import ArtifactError, BudgetError
from dpsynth.ledger.ledger import Ledger
from dpsynth.models import registry
from dpsynth.models.earlier_names import generator_of
from dpsynth.models.generators.autoregressive import Autoregressive
from dpsynth.models.presets import shares_of
from dpsynth.policy.policy import Policy
from dpsynth.synthesis import fitting
from dpsynth.synthesis.artifact import run_digest
from dpsynth.synthesis.drawing.sampler import Sampler
from dpsynth.synthesis.run import Run

EARLIER = Path(__file__).parents[1] / "models" / "runs" / "tvae_without_latent"


class Tvae(Autoregressive):
    """The network under the name that it had."""

    name = "tvae"


@pytest.fixture(scope="module")
def run() -> Run:
    return Run.load(EARLIER)


def test_it_loads_under_the_word_that_was_certified(run: Run) -> None:
    """What was charged and sealed is not rewritten; the generator is named as it is."""
    assert run.model == "tvae" and run.generator == "autoregressive"
    assert run.certificate is not None and run.certificate["model"] == "tvae"
    assert run.digest == run_digest(EARLIER)
    assert "model autoregressive" in repr(run)


def test_it_samples_as_the_network_that_it_holds(run: Run) -> None:
    assert type(Sampler.of(run).generator) is Autoregressive
    drawn = run.sample(4000, seed=1)
    agrees = ((drawn["sex"] == "F") == (drawn["ward"] == "A"))[drawn["ward"] != "C"].mean()
    assert agrees > 0.8  # in the source, without noise: always
    pd.testing.assert_frame_equal(drawn, run.sample(4000, seed=1))


@pytest.mark.long
def test_it_refits_for_replicates(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpsynth.models.generators.training.WARM_BATCH", 20)
    assert [len(table) for table in run.replicates(2, 50, seed=2)] == [50, 50]


def test_its_certificate_verifies_as_it_stands(run: Run) -> None:
    certificate = Certificate.from_dict(run.certificate)
    for model in ("tvae", "autoregressive"):
        drawing = Provenance(model, run.digest, rows=300, seed=1)
        assert check_certificate(certificate, run.schema, drawing) == []
    (problem,) = check_certificate(
        certificate, run.schema, Provenance("mixture", run.digest, rows=300, seed=1)
    )
    assert "model is not that of datapackage.json" in str(problem)


def test_a_new_certificate_is_not_taken_for_an_earlier_one(run: Run) -> None:
    """The earlier word stands for the new one, never the other way round."""
    certificate = replace(Certificate.from_dict(run.certificate), model="autoregressive")
    drawing = Provenance("tvae", run.digest, rows=300, seed=1)
    found = [str(problem) for problem in check_certificate(certificate, run.schema, drawing)]
    assert any("model is not that of datapackage.json" in problem for problem in found)


@pytest.mark.parametrize(
    ("model", "config", "name"),
    [
        ("tvae", {"preset": {"latent": 0}}, "autoregressive"),
        ("tvae", {"preset": {"latent": 8}}, "tvae"),
        ("tvae", {"preset": {}}, "tvae"),
        ("tvae", {"preset": None}, "tvae"),
        ("tvae", {}, "tvae"),
        ("ctgan", {"preset": {"latent": 0}}, "ctgan"),
        ("autoregressive", {"preset": {"latent": 0}}, "autoregressive"),
    ],
)
def test_only_a_network_without_a_latent_vector_is_the_earlier_one(
    model: str, config: dict[str, Any], name: str
) -> None:
    assert generator_of(model, config) == name


def test_a_run_that_is_neither_is_refused(run: Run) -> None:
    """The earlier network with a latent vector: no release of dpsynth ever fitted one."""
    config = json.loads(json.dumps(run.config))
    config["preset"]["latent"] = 8
    with pytest.raises(ArtifactError, match="not that of model 'tvae'"):
        Sampler.of(replace(run, config=config))


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory, run: Run) -> Path:
    """A fit, charged, and released under the earlier name, as the code before wrote it."""
    place = tmp_path_factory.mktemp("office")
    with pytest.MonkeyPatch.context() as before:
        before.setenv("XDG_STATE_HOME", str(place / "state"))
        ledger = Ledger.create(place / "ledger.sqlite")
        real = registry._attribute
        before.setattr(
            registry, "_attribute", lambda path: Tvae if path.endswith(":Tvae") else real(path)
        )
        before.setattr("dpsynth.models.generators.training.WARM_BATCH", 100)
        before.setattr("dpsynth.models.training_settings.variational_training", small)
        frame = run.sample(300, seed=4)
        settings: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6, "dataset": "tiny"}
        fitting.fit(
            frame, run.schema, model="tvae", ledger=ledger, output=place / "run", **settings
        )
        before.setattr(Run, "generator", property(lambda self: self.model))
        release(place / "run", place / "bundle", seed=5, ledger=ledger)
    return place


def small(level: int, units: int) -> dict[str, Any]:
    """The earlier settings of the network, with fewer warm steps."""
    from dpsynth.models.training_settings import autoregressive_training

    return autoregressive_training(level, units) | {"warm_steps": 5, "hidden": 128}


def test_ledger_run_and_bundle_of_before_verify_as_they_stand(office: Path) -> None:
    ledger = Ledger(office / "ledger.sqlite")
    (entry,) = ledger.entries()
    assert entry.model == "tvae"
    assert json.loads((office / "bundle" / "privacy.json").read_text())["model"] == "tvae"
    assert verify(office / "bundle") is not None


def test_a_bundle_made_now_names_the_network_and_keeps_the_certificate(office: Path) -> None:
    ledger = Ledger(office / "ledger.sqlite")
    release(office / "run", office / "again", seed=6, ledger=ledger)
    assert json.loads((office / "again" / "privacy.json").read_text())["model"] == "tvae"
    card = (office / "again" / "CARD.md").read_text()
    assert "`autoregressive`: noisy counts, then a network trained with noise" in card
    assert "variational" not in card + (office / "again" / "report.html").read_text()
    verify(office / "again")
    shutil.rmtree(office / "again")


def test_a_policy_means_the_generator_that_it_names(tmp_path: Path, run: Run) -> None:
    """Allowing `tvae` does not allow the network that had the name: the list says what may run."""
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "dpsynth_policy: 1\nname: office\ndelta: 1.0e-6\nmodels: [tvae]\n"
        "caps: {total: {epsilon: 10, basis: a decision of the board}}\n"
    )
    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    settings: dict[str, Any] = {"epsilon": 3.0, "delta": 1e-6, "dataset": "tiny"}
    with pytest.raises(BudgetError, match="was called 'tvae'"):
        fitting.fit(
            run.sample(300, seed=4),
            run.schema,
            model="autoregressive",
            ledger=ledger,
            policy=Policy.load(policy),
            **settings,
        )
    assert not ledger.entries()


def test_the_events_of_both_generators_are_the_same(run: Run) -> None:
    """What lets an earlier certificate verify: any change of one must think of the other."""
    sampler = Sampler.of(run)
    domain = sampler.generator.domain  # type: ignore[attr-defined]
    certificate = Certificate.from_dict(run.certificate)
    from dpsynth.privacy.plan import PrivacyBudget

    for epsilon in (0.5, 1.0, 3.0, 10.0):
        budget = PrivacyBudget(epsilon, certificate.delta)
        events = [
            [share.event for share in shares_of(model, domain, budget)]
            for model in ("autoregressive", "tvae")
        ]
        assert events[0] == events[1]
