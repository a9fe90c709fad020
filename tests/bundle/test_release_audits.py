"""Audits of the training travel along with a release; nothing else of an audit does."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth.bundle import release
from dpsynth.bundle.format import Audits, append_audit
from dpsynth.bundle.format.audits import PublicAudit
from dpsynth.errors import GateError
from dpsynth.synthesis import Run

from ..support.bundle_files import FILES, Files, manifest_of
from ..support.public_audit_example import CONTROLS, public_audit, seen


def test_all_audits_of_the_run_travel_along(
    run_folder: Path, tmp_path: Path, files_of: Files
) -> None:
    for seed in (7, 8):
        append_audit(run_folder, public_audit(seed))
    for name in ("one", "two"):
        release(run_folder, tmp_path / name, size=200, seed=2)
    files = files_of(tmp_path / "one")
    assert files == files_of(tmp_path / "two")
    assert sorted(files) == sorted([*FILES, "audit.json", "datapackage.json"])
    assert files["audit.json"] == (run_folder / "audit.json").read_bytes()
    [item] = [r for r in manifest_of(tmp_path / "one")["resources"] if r["path"] == "audit.json"]
    sha256 = hashlib.sha256(files["audit.json"]).hexdigest()
    assert item["hash"] == f"sha256:{sha256}"
    page = files["report.html"].decode()
    assert "Audit 2 of 2" in page and sha256 in page


def written_anew(run_folder: Path, document: Any) -> None:
    (run_folder / "audit.json").write_text(json.dumps(document))


def refused(run_folder: Path, tmp_path: Path, match: str) -> None:
    """Expect no bundle, and words that name the file and what to do."""
    with pytest.raises(GateError, match=match) as caught:
        release(run_folder, tmp_path / "bundle", size=200, seed=2)
    assert "run/audit.json" in str(caught.value) and "take the file away" in str(caught.value)
    assert os.listdir(tmp_path) == ["run"]


def test_audits_of_another_run_are_refused(run_folder: Path, tmp_path: Path) -> None:
    written_anew(run_folder, Audits("c" * 64, (public_audit(),)).to_dict())
    refused(run_folder, tmp_path, "has the audits of another run")


@pytest.mark.parametrize(
    ("audit", "words"),
    [
        (public_audit(model="tvae"), "audit 2: it is about another model"),
        (seen(public_audit(), 1, epsilon=0.5), "audit 2: view white: its bound on epsilon"),
    ],
)
def test_audits_that_do_not_fit_are_refused(
    run_folder: Path, made_run: Run, tmp_path: Path, audit: PublicAudit, words: str
) -> None:
    written_anew(run_folder, Audits(made_run.digest, (public_audit(), audit)).to_dict())
    refused(run_folder, tmp_path, words)


def test_damaged_audits_are_refused(run_folder: Path, made_run: Run, tmp_path: Path) -> None:
    document = Audits(made_run.digest, (public_audit(),)).to_dict()
    written_anew(run_folder, document | {"made": "today"})
    refused(run_folder, tmp_path, "'made' is unknown")
    (run_folder / "audit.json").write_text("{")
    refused(run_folder, tmp_path, "not strict JSON")


def test_an_internal_audit_in_the_place_of_a_public_one_is_refused(
    run_folder: Path, tmp_path: Path
) -> None:
    internal = {"format": "dpsynth-audit", "version": 1, "internal": True, "measures": {}}
    written_anew(run_folder, internal)
    refused(run_folder, tmp_path, "is an internal audit: it was computed from private rows")


def test_internal_audits_that_lie_around_change_nothing(
    run_folder: Path, tmp_path: Path, files_of: Files
) -> None:
    release(run_folder, tmp_path / "before", size=200, seed=2)
    for folder in (run_folder / "internal", tmp_path / "internal"):
        folder.mkdir()
        (folder / "audit.json").write_text('{"format": "dpsynth-audit", "measures": {"auc": 0.9}}')
    release(run_folder, tmp_path / "after", size=200, seed=2)
    assert files_of(tmp_path / "before") == files_of(tmp_path / "after")


@pytest.mark.parametrize(
    ("audit", "words"),
    [
        (seen(public_audit(), refuted=True), r"the claim is refuted"),
        (public_audit(controls=(replace(CONTROLS[2], passed=False),)), "control '.*' failed"),
    ],
)
def test_a_run_that_an_audit_speaks_against_is_not_released(
    run_folder: Path, tmp_path: Path, audit: PublicAudit, words: str
) -> None:
    append_audit(run_folder, audit)
    append_audit(run_folder, public_audit(8))
    with pytest.raises(GateError, match=f"stopped by checks that did not pass: .*{words}"):
        release(run_folder, tmp_path / "bundle", size=200, seed=2)
    assert os.listdir(tmp_path) == ["run"]
