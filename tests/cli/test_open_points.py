"""`dpsynth sign` names what is open; the public page and the internal one judge by one rule."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.strict_json import file_digest
from dpsynth.assessment import Candidate, open_points
from dpsynth.assessment.open_points import OpenPoints
from dpsynth.bundle.format.audits import PublicAudit
from dpsynth.bundle.pages.audit_cards import MANY, attackers
from dpsynth.eval.attacks import sights

from ..support import audit_example, evaluation_example
from ..support.clinic import clinic_schema, write_clinic
from ..support.public_audit_example import public_audit

Json = dict[str, Any]


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    """A folder with the files of a bundle that are looked at."""
    folder = tmp_path / "bundle"
    (folder / "data").mkdir(parents=True)
    (folder / "data" / "synthetic.parquet").write_bytes(b"a table")
    override = {"gate": "audit", "reason": "a false alarm", "by": "Dr N."}
    (folder / "privacy.json").write_text(json.dumps({"overrides": [override]}))
    return folder


def internal(bundle: Path, **about: Any) -> Path:
    """Internal results beside it; of its table, unless ``about`` says otherwise."""
    place = bundle.with_name("bundle.internal")
    place.mkdir()
    sha256 = about.get("sha256") or file_digest(bundle / "data" / "synthetic.parquet")
    for name, document in (
        ("evaluation.json", evaluation_example.document()),
        ("audit.json", audit_example.found()),
    ):
        document["tables"]["synthetic"]["sha256"] = sha256
        (place / name).write_text(json.dumps(document))
    return place


def test_overrides_and_internal_reasons_are_named(bundle: Path) -> None:
    place = internal(bundle)
    points = OpenPoints.of(bundle, None)
    assert points.public[0] == "the gate 'audit' was overridden by Dr N.: a false alarm"
    assert points.public[1] == "the training was not audited"
    assert points.internal[0] == f"Do not release ({place / 'internal.html'})"
    assert points.internal[1].startswith("6 attacks succeeded")
    assert points.lines()[0] == "Open before signing:" and points.to_dict()["public"]


def test_results_of_another_table_are_not_used(bundle: Path) -> None:
    place = internal(bundle, sha256="ab" * 32)
    assert OpenPoints.of(bundle, place).internal == (
        f"{place} is about another table than the bundle's",
    )


def test_no_results_and_no_bundle(bundle: Path, tmp_path: Path) -> None:
    assert "--internal" in OpenPoints.of(bundle, None).internal[0]
    assert OpenPoints.of(tmp_path / "nowhere", None).lines() == []
    place = bundle.with_name("bundle.internal")
    place.mkdir()
    (place / "audit.json").write_text("{")
    assert "could not be read" in OpenPoints.of(bundle, None).internal[0]


def as_internal(audit: PublicAudit) -> Json:
    """The same audit, as the internal page reads it."""
    views = [(f"training:{view.view}", view) for view in audit.views]
    return {
        "findings": [{"key": k, "title": k, "found": v.refuted, "sentence": ""} for k, v in views],
        "powers": [
            {"key": k, "least": v.power.least, "unit": "epsilon", "sentence": v.power.sentence}
            for k, v in views
        ],
        "controls": [
            {"kind": c.kind, "attack": c.attack, "passed": c.passed, "title": c.title}
            for c in audit.controls
        ],
        "parts": {"training": {"canaries": audit.canaries}},
    }


@pytest.mark.parametrize("change", ["nothing", "no power", "failed control", "most canaries"])
def test_public_and_internal_page_agree(change: str) -> None:
    audit = public_audit()
    if change == "no power":
        power = replace(audit.views[0].power, least=None)
        audit = replace(audit, views=(replace(audit.views[0], power=power), *audit.views[1:]))
    if change == "failed control":
        own = f"training:{audit.views[0].view}"
        failed = replace(audit.controls[0], attack=own, kind="positive", passed=False)
        audit = replace(audit, controls=(failed, *audit.controls[1:]))
    if change == "most canaries":
        audit = replace(audit, canaries=MANY)
    inside = sights(as_internal(audit))
    outside = attackers(audit)
    assert [one.blind for one in inside] == [bool(one.blind) for one in outside]
    for one, other in zip(inside, outside, strict=True):
        assert not other.blind or one.remedy in other.blind
    if change in ("no power", "failed control"):
        assert outside[0].blind and outside[0].blind in " ".join(open_points._audits_of(audit))


def test_results_of_a_cohort_are_known_by_all_of_its_files(tmp_path: Path) -> None:
    """An evaluation names the tables that were drawn; the bundle holds the same files."""
    drawn = write_clinic(tmp_path / "bundle" / "data")
    candidate = Candidate.of(clinic_schema(), drawn)
    assert candidate.sha256 in open_points._digests(tmp_path / "bundle")
    (drawn / "labs.csv").write_text("patient,date,test,value\n")
    assert candidate.sha256 not in open_points._digests(tmp_path / "bundle")
