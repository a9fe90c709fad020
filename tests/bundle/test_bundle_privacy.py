"""The certificate of a bundle: it adds up, fits the schema, and claims nothing more."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from dpsynth.bundle.checks import check_certificate
from dpsynth.bundle.checks.certificate import _charged
from dpsynth.certificate import Certificate, certify
from dpsynth.encoding import Codec
from dpsynth.models import Domain, generator_class
from dpsynth.privacy import JointHistograms, PrivacyBudget, PrivacyPlan, event_from_dict
from dpsynth.schema import Schema

from ..support.forger import Forger
from ..support.some_cases import each_generator

Document = dict[str, Any]
TABLE, TEXT = "data/synthetic.parquet", "data/synthetic.csv"


def lower_noise(document: Document) -> None:
    document["events"][0]["sigma"] /= 2


CERTIFICATE_CHANGES: dict[str, tuple[Callable[[Document], Any], str]] = {
    "a lowered epsilon": (lambda d: d.update(epsilon=1.0), "above the claim of 1"),
    "both epsilons lowered": (
        lambda d: d.update(epsilon=1.0, composed_epsilon=0.99),
        "above the claim of 1",
    ),
    "a lowered delta": (lambda d: d.update(delta=1e-9), "above the claim of 3"),
    "a delta nothing is proven for": (lambda d: d.update(delta=1e-12), "delta must be at least"),
    "less noise": (lower_noise, "above the claim of 3"),
    "more noise, the old epsilon": (
        lambda d: d["events"][0].update(sigma=100.0),
        "not to the stated",
    ),
    "no event": (lambda d: d.update(events=[]), "a list of events is expected"),
    "an event of another model": (lambda d: d.update(model="tvae"), "'DP-SGD steps', which model"),
    "an event's name": (lambda d: d["events"][0].update(name="x"), "which model independent runs"),
    "an unknown model": (lambda d: d.update(model="gan"), "model is not one of"),
    "an event twice": (lambda d: d["events"].append(d["events"][0]), "a name occurs twice"),
    "fewer histograms": (
        lambda d: d["events"][0].update(histograms=1),
        "is not the one that model",
    ),
    "fewer rows": (lambda d: d["events"][0].update(rows_per_unit=1), "is not the one that model"),
    "an unknown event": (lambda d: d["events"][0].update(kind="magic"), "event kind must be"),
    "noise that is no number": (lambda d: d["events"][0].update(sigma="10"), "sigma"),
    "rows as units": (lambda d: d["unit"].update(name=None, max_rows=1), "unit is not that of"),
    "another population": (lambda d: d.update(population=5000), "population is not that of"),
    "another schema": (lambda d: d.update(schema_sha256="0" * 64), "schema_sha256 is not that of"),
    "no ledger": (lambda d: d.update(ledger=None), "no ledger was charged"),
    "a ledger that forgot": (lambda d: d["ledger"].update(epsilon_total=0.5), "below what this"),
    "a ledger that forgot deltas": (
        lambda d: d["ledger"].update(delta_total=1e-9),
        "below what this",
    ),
    "an event more": (
        lambda d: d["events"].append(d["events"][0] | {"name": "x", "sigma": 1e6}),
        "does not run 1 of the events",
    ),
    "composed above the claim": (
        lambda d: d.update(epsilon=d["composed_epsilon"] * (1 - 1e-10)),
        "composed_epsilon is above epsilon",
    ),
    "no fit in the ledger": (lambda d: d["ledger"].update(fits=0), "at least 1 is expected"),
    "a bolder claim": (lambda d: d["exact"].append("everything"), "exact is not worded"),
    "a limit less": (lambda d: d["not_covered"].pop(0), "not_covered is not worded"),
    "a floating-point limit less": (
        lambda d: d.update(floating_point=[]),
        "floating_point is not worded",
    ),
    "another adjacency": (lambda d: d.update(adjacency="replace one row"), "adjacency is not"),
    "another accountant": (lambda d: d["accountant"].update(name="trust me"), "accountant.name"),
    "another version": (lambda d: d.update(version=10), "reads version 1"),
    "another format": (lambda d: d.update(format="x"), "is not a dpsynth-certificate"),
    "an unknown key": (lambda d: d.update(note="x"), "'note' is unknown"),
    "a missing key": (lambda d: d.pop("population"), "'population' is missing"),
    "an epsilon that is text": (lambda d: d.update(epsilon="3"), "a number above 0"),
    "an epsilon that is true": (lambda d: d.update(epsilon=True), "a number above 0"),
}


@pytest.mark.parametrize("name", CERTIFICATE_CHANGES)
def test_a_changed_certificate_is_found_although_every_digest_fits(
    forger: Forger, name: str
) -> None:
    change, message = CERTIFICATE_CHANGES[name]
    forger.recertify(change)
    findings = forger.findings()
    assert "privacy.json: " in findings and message in findings
    assert TABLE not in findings


def test_a_certificate_that_was_edited_by_hand_is_found(forger: Forger) -> None:
    forger.edit("privacy.json", lambda d: d["events"][0].update(sigma=11.0))
    assert "plan_sha256 does not fit" in forger.findings()


def test_a_changed_schema_is_found(forger: Forger) -> None:
    forger.edit("schema.json", lambda d: d["dpsynth"]["max_rows"].update(value=1))
    findings = forger.findings()
    assert "schema_sha256 is not that of schema.json" in findings
    assert "unit is not that of schema.json" in findings


@pytest.mark.parametrize("model", each_generator("ctgan"))
def test_the_events_a_model_must_pay_for_are_those_it_plans(model: str, every_type: Schema) -> None:
    generator = generator_class(model)(Domain.of(every_type, Codec(every_type)))
    shares = generator.shares(PrivacyBudget(epsilon=3.0, delta=1e-6))
    budget = PrivacyBudget(epsilon=3.0, delta=1e-6)
    plan = PrivacyPlan.calibrate(budget, shares)
    document = certify(every_type, plan, model=model, charge=None)

    def complaints(events: list[Document]) -> list[str]:
        read = tuple(event_from_dict(event) for event in events)
        certificate = replace(Certificate.from_dict(document), events=read)
        return [problem.message for problem in check_certificate(certificate, every_type, None)]

    assert not any("event" in text for text in complaints(document["events"]))
    for place in range(1, len(document["events"])):
        fewer = document["events"][:place] + document["events"][place + 1 :]
        assert any("is missing" in text for text in complaints(fewer))
    renamed = [document["events"][0] | {"rows_per_unit": 1, "unit_mass": 1}]
    assert any("is not the one" in text for text in complaints(renamed + document["events"][1:]))


def test_a_ledger_counts_what_a_fit_costs_whom_it_counts(forger: Forger) -> None:
    """A patient of three units pays more than epsilon: a total of epsilon is one that forgot."""
    certificate = Certificate.from_dict(forger.read("privacy.json"))
    several = replace(certificate.unit, person="patient", max_units=3, max_units_basis="form 7")
    certificate = replace(certificate, unit=several)
    charge = certificate.ledger
    assert charge is not None and charge.epsilon_total == certificate.epsilon
    epsilon, delta = certificate.cost
    assert epsilon == pytest.approx(3 * certificate.epsilon)
    paid = replace(charge, epsilon_total=epsilon, delta_total=delta)
    assert _charged(replace(certificate, ledger=paid)) == []
    for forgot in (charge, replace(paid, delta_total=charge.delta_total)):
        [message] = _charged(replace(certificate, ledger=forgot))
        assert "below what this fit alone has spent" in message


def test_a_certificate_survives_its_document(forger: Forger) -> None:
    document = forger.read("privacy.json")
    assert Certificate.from_dict(document).to_dict() == document


def test_a_whole_epsilon_is_certified_as_any_other(every_type: Schema) -> None:
    event = JointHistograms("one-way histograms", len(every_type.modelled), 2, 10.0)
    plan = PrivacyPlan(PrivacyBudget(epsilon=3, delta=1e-6), (event,), 2)
    document = certify(every_type, plan, model="independent", charge=None)
    read = json.loads(json.dumps(document))
    assert Certificate.from_dict(read).to_dict() == document
    assert document["ledger"] is None and "charged to no ledger" in document["not_covered"][0]
