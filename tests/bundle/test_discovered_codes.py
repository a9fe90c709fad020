"""Runs and bundles whose codes were found by the fit: what they hold, and what is checked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest

import dpsynth
from dpsynth._util.strict_json import read_document
from dpsynth.bundle import release, verify
from dpsynth.bundle.checks import check_certificate
from dpsynth.bundle.files import profiles_of
from dpsynth.bundle.pages.report import facts_of
from dpsynth.certificate import Certificate, budget_lines, json_schema
from dpsynth.errors import InputError
from dpsynth.ledger import Ledger
from dpsynth.models import DISCOVERY
from dpsynth.privacy import CodeDiscovery, quality_event
from dpsynth.schema import Schema, with_found
from dpsynth.synthesis import Run

from ..support.discovered_ward import discovered_ward, ward
from ..support.quick_fit import quick_fit


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return Ledger.create(tmp_path_factory.mktemp("office") / "ledger.sqlite")


@pytest.fixture(scope="module")
def run(ledger: Ledger) -> Run:
    return quick_fit(ward(), discovered_ward(), epsilon=8.0, ledger=ledger)


def certificate(run: Run) -> Certificate:
    assert run.certificate is not None
    return Certificate.from_dict(run.certificate)


def faults(run: Run, stated: Certificate) -> str:
    return "; ".join(map(str, check_certificate(stated, run.schema, None)))


def test_a_run_holds_the_codes_and_the_digest_of_the_declaration(
    run: Run, ledger: Ledger, tmp_path: Path
) -> None:
    declared = discovered_ward()
    assert run.certificate is not None
    assert run.schema != declared and run.schema.hash() == declared.hash()
    assert run.certificate["schema_sha256"] == declared.hash()
    assert [entry.schema_hash for entry in ledger.entries()] == [declared.hash()]
    again = Run.load(run.save(tmp_path / "run"))
    assert again.schema == run.schema and again.digest == run.digest
    assert again.sample(200, seed=1).equals(run.sample(200, seed=1))


def test_the_certificate_states_the_event_and_its_threshold(run: Run) -> None:
    stated = certificate(run)
    event = stated.events[0]
    assert isinstance(event, CodeDiscovery) and event.name == DISCOVERY
    assert (event.columns, event.rows_per_unit, event.delta) == (2, 2, 1e-7)
    assert any("a threshold that follows from the part of delta" in line for line in stated.exact)
    jsonschema.validate(stated.to_dict(), json.loads(json_schema()))
    line = budget_lines(stated, quality=False)[0]
    assert "which codes occur" in line.purpose and "1e-7" in line.purpose and "sd" in line.noise


def test_the_event_cannot_be_left_out_or_made_smaller(run: Run) -> None:
    stated = certificate(run)
    assert faults(run, stated) == ""
    first, *others = stated.events
    assert isinstance(first, CodeDiscovery)
    assert f"'{DISCOVERY}'" in faults(run, replace(stated, events=tuple(others)))
    for smaller in (replace(first, columns=1), replace(first, delta=1e-9)):
        assert "is not the one" in faults(run, replace(stated, events=(smaller, *others)))
    quieter = replace(first, noise_multiplier=first.noise_multiplier / 2)
    assert "above the claim" in faults(run, replace(stated, events=(quieter, *others)))
    toy = replace(stated, model="dpsynth-toy==0.1:toy", events=tuple(others))
    assert "which found the codes of a column, is missing" in faults(run, toy)


def test_a_bundle_verifies_and_its_dictionary_says_what_was_found(
    run: Run, ledger: Ledger, tmp_path: Path
) -> None:
    folder, bundle = run.save(tmp_path / "run"), tmp_path / "bundle"
    release(folder, bundle, size=3000, seed=3, ledger=ledger)
    assert verify(bundle)
    schema = read_document(bundle / "schema.json")
    assert schema["fields"][2]["dpsynth"]["codes"]["found"] == ["A001", "B002"]
    facts = {
        profile.column.name: {fact.name: fact.value for fact in facts_of(profile)}
        for profile in profiles_of(bundle, run.schema)[0].columns
    }
    assert facts["device"]["Categories"] == "1 declared, 2 found"
    assert "ICD-9-CM, grouped by chapter" in facts["diagnosis"]["Codes"]


def test_a_second_fit_of_a_run_s_schema_finds_its_codes_anew(run: Run) -> None:
    other = ward().replace({"A001": "C003"})
    again = quick_fit(other, run.schema, epsilon=8.0)
    assert set(again.schema.column("device").levels) == {"B002", "C003", "other"}


def test_without_privacy_no_code_is_found() -> None:
    with pytest.raises(InputError, match="codes are discovered under a privacy budget only"):
        dpsynth.fit_not_private(ward(), discovered_ward())


@pytest.mark.parametrize("found", [(), ("A001",), ("A001", "B002")])
def test_the_event_of_public_quality_is_the_same_whatever_was_found(found: tuple[str, ...]) -> None:
    """A target without a list has one category before the fit, and several after it."""
    document = discovered_ward().to_dict()
    next(one for one in document["fields"] if one["name"] == "device")["dpsynth"]["role"] = "target"
    declared = Schema.from_dict(document)
    complete = with_found(declared, {"diagnosis": (), "device": found})
    assert quality_event(complete) == quality_event(declared)
    assert quality_event(declared).most == quality_event(discovered_ward()).most + 1
