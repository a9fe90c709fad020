"""Canary patients of linked tables: an audit of the training that reads a run and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsynth.assessment import attack_audit, training_audit
from dpsynth.assessment.training_audit import (
    PlantedHistories,
    canary_histories,
    claim_of,
    trial,
    views_of,
)
from dpsynth.bundle import release, verify
from dpsynth.bundle.format import read_audits
from dpsynth.encoding import NEVER
from dpsynth.errors import InputError
from dpsynth.eval.attacks import training
from dpsynth.ledger import Ledger
from dpsynth.models import histories_class, spec_of
from dpsynth.models.auditing import Transcript
from dpsynth.models.histories import CohortGenerator
from dpsynth.models.histories.steps import rows as table_rows
from dpsynth.models.histories.steps.table import MASS, Steps
from dpsynth.models.registry import LINKED
from dpsynth.privacy import ObservedPlan, PrivacyBudget, PrivacyPlan, SeededEntropy, mechanisms
from dpsynth.schema import LinkedSchema
from dpsynth.synthesis import fit

from ..support.audited_office import PASSED
from ..support.clinic import clinic_schema, clinic_tables
from ..support.evaluated_office import call
from ..support.made_histories import domain_of, histories_of
from ..support.short_training import shorten_histories, shorten_networks
from ..support.some_cases import some_of

BUDGET = PrivacyBudget(epsilon=1.0, delta=1e-5)
PATIENTS, CANARIES = 300, 120
DOMAIN = domain_of(PATIENTS)


@pytest.fixture(autouse=True, scope="module")
def quick() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        shorten_histories(patch)
        shorten_networks(patch)
        patch.setattr(attack_audit, "fitted_controls", lambda *_: [PASSED])
        patch.setattr(training_audit, "DRAWN", 300)
        yield


def plan_of() -> PrivacyPlan:
    return PrivacyPlan.calibrate(BUDGET, CohortGenerator(DOMAIN).shares(BUDGET))


def planted(seed: int = 1) -> Any:
    strangers = canary_histories(DOMAIN, CANARIES, np.random.default_rng(seed))
    nothing: Any = None
    plants = PlantedHistories(histories_of(PATIENTS), strangers, nothing, nothing, 0)
    object.__setattr__(plants, "black", lambda fitted: np.zeros(CANARIES))
    return plants


def refuted(plan: PrivacyPlan, seed: int = 1) -> bool:
    """Whether the white-box attacker refutes the claim of the honest plan."""
    played = trial(
        CohortGenerator(DOMAIN),
        plan,
        planted(seed),
        rng=np.random.default_rng(seed),
        entropy=SeededEntropy(seed),
    )
    heard = training(claim_of(plan_of()), {"white": views_of(played)["white"]}, {}, 1.0, {})
    finding = heard.finding("training:white")
    assert finding is not None
    return finding.found


def test_canaries_are_histories_that_a_reader_could_have_read() -> None:
    some = canary_histories(DOMAIN, 400, np.random.default_rng(2))
    assert (some.baseline < [feature.size for feature in DOMAIN.baseline]).all()
    assert DOMAIN.end is not None
    assert np.array_equal(some.ends, DOMAIN.end.days_of(some.baseline[:, 2]))
    happened = some.onsets != NEVER
    assert 0.4 < happened.mean() < 0.6
    assert (some.onsets <= some.ends[:, None])[happened].all()
    for table, own in zip(DOMAIN.tables, some.rows, strict=True):
        numbers = np.stack([rows.counts(400) for rows in own])
        assert (numbers[:, 1::2] == table.series[0].max_rows).all()
        assert (numbers[:, ::2].sum(axis=0) == 2).all()
        for series, rows in zip(table.series, own, strict=True):
            assert (rows.values < [value.size for value in series.values]).all()
            assert (np.diff(rows.patients) >= 0).all()
            within = np.diff(rows.patients) == 0
            assert (np.diff(rows.days)[within] >= 0).all()
            assert (rows.values[1:][within] == rows.values[:-1][within]).all()
            if table.timed:
                assert (rows.days <= some.ends[rows.patients]).all()
                assert (rows.days >= DOMAIN.first).all()


def test_patients_are_taken_and_joined_with_all_their_rows() -> None:
    whole = histories_of(50)
    parts = [whole.take(np.arange(20)), whole.take(np.arange(20, 50))]
    joined = parts[0].beside(parts[1])
    assert np.array_equal(joined.baseline, whole.baseline)
    for table, same in zip(whole.rows, joined.rows, strict=True):
        for one, other in zip(table, same, strict=True):
            assert np.array_equal(one.patients, other.patients)
            assert np.array_equal(one.values, other.values)
            assert np.array_equal(one.days, other.days)


def test_only_canaries_whose_coins_say_so_are_in() -> None:
    plants, included = planted(), np.arange(CANARIES) % 3 == 0
    data = plants.data(included)
    assert len(data) == PATIENTS + included.sum()
    assert np.array_equal(data.baseline[PATIENTS:], plants.planted.baseline[included])


@pytest.mark.parametrize("model", some_of(LINKED, every=2))
def test_a_watched_fit_is_the_same_fit(model: str) -> None:
    kind, plants = histories_class(model), planted()
    plan = PrivacyPlan.calibrate(BUDGET, kind(DOMAIN).shares(BUDGET))
    data = plants.data(np.arange(CANARIES) < 9)
    plain = kind(DOMAIN).fit(data, plan, SeededEntropy(7)).arrays()
    generator = kind(DOMAIN)
    heard = plants.observer(generator, Transcript)
    watched = generator.fit(data, ObservedPlan(plan, heard), SeededEntropy(7)).arrays()
    assert plain.keys() == watched.keys()
    assert all(np.array_equal(plain[name], watched[name]) for name in plain)
    assert heard.counts.gram.any() and heard.steps.gram.any() == spec_of(model).neural


def test_every_release_of_a_fit_is_heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """As many noisy cells as the mechanisms drew noise for."""
    heard, drawn = [], []
    weighed, noise = Transcript.weighed, SeededEntropy.discrete_gaussian

    def listening(self: Transcript, noisy: Any, *rest: Any) -> None:
        heard.extend(table.size for table in noisy)
        weighed(self, noisy, *rest)

    def drawing(self: SeededEntropy, sigma: float, size: int) -> Any:
        drawn.append(size)
        return noise(self, sigma, size)

    monkeypatch.setattr(Transcript, "weighed", listening)
    monkeypatch.setattr(SeededEntropy, "discrete_gaussian", drawing)
    assert not refuted(plan_of())
    assert sum(heard) == sum(drawn)


def test_a_twentieth_of_the_noise_is_refuted_and_the_honest_plan_is_not() -> None:
    plan = plan_of()
    louder = tuple(event.with_mu(event.mu() * 20) for event in plan.events)
    assert refuted(replace(plan, events=louder))
    assert not refuted(plan)


def by_rows(steps: list[Steps], patients: int) -> list[np.ndarray]:
    """Each step weighs as much as a patient may, in each series."""
    return [np.full(len(part.patients), MASS) for part in steps]


def test_a_patient_counted_by_rows_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where neither the weights nor the check of the mechanism bound her."""
    monkeypatch.setattr(table_rows, "weights_of", by_rows)
    with pytest.raises(InputError, match="weigh more"):
        refuted(plan_of())
    unchecked: Callable[..., None] = lambda *_: None  # noqa: E731
    monkeypatch.setattr(mechanisms, "_check_weighted", unchecked)
    assert refuted(plan_of())


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger and a run that is charged to it."""
    place = tmp_path_factory.mktemp("clinic")
    document = clinic_schema().to_dict()
    document["dpsynth"]["population"]["value"] = 1_000
    ledger = Ledger.create(place / "ledger.sqlite")
    fit(
        clinic_tables(),
        LinkedSchema.from_dict(document),
        epsilon=3,
        delta=1e-5,
        dataset="clinic",
        ledger=ledger,
        output=place / "run",
    )
    return place


@pytest.fixture
def folder(office: Path) -> Path:
    return office / "run"


@pytest.mark.long
def test_a_run_of_linked_tables_is_audited_by_itself(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("audit", str(folder), "--canaries", "60", "--repeats", "0", "--json")
    assert call(*words) in (0, 3)
    result = json.loads(capsys.readouterr().out)
    assert result["tables"] is None
    keys = {"training:black", "training:white"}
    assert {finding["key"] for finding in result["findings"]} == keys
    audits = read_audits(folder)
    assert audits is not None
    (audit,) = audits.audits
    assert (audit.model, audit.canaries, audit.background) == ("latent", 60, "run")
    assert audit.background_units == 1000  # the population
    assert not any(view.refuted for view in audit.views)


def test_what_does_not_go_together_is_refused(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = {
        ("audit", str(folder), "--no-training"): "give DATA, --synthetic and --holdout",
        ("audit", str(folder), "--background", "real"): "is for a single table",
        ("audit", "clinic"): "for a SCHEMA, give",
        ("audit", str(folder), "--holdout", "x"): "also give DATA",
    }
    for words, message in cases.items():
        assert call(*words) == 2
        assert message in capsys.readouterr().err


@pytest.mark.long
def test_a_bundle_takes_the_audit_along(folder: Path, tmp_path: Path) -> None:
    if read_audits(folder) is None:
        call("audit", str(folder), "--canaries", "60", "--repeats", "0", "--quiet")
    assert call("sample", str(folder), "--patients", "40", "--seed", "1", "-q", "-o",
                str(tmp_path / "drawn")) == 0  # fmt: skip
    bundle = release(
        str(folder),
        tmp_path / "bundle",
        table=str(tmp_path / "drawn"),
        ledger=Ledger(folder.parent / "ledger.sqlite"),
    )
    verify(bundle)
    assert json.loads((bundle / "audit.json").read_text())["audits"][0]["model"] == "latent"
