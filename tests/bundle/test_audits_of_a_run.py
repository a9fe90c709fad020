"""Audits are added to those of a run, in order and whole, or not at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpsynth.bundle.format import Audits, append_audit, read_audits
from dpsynth.errors import ArtifactError, InputError
from dpsynth.synthesis import run_digest

from ..support.public_audit_example import public_audit, seen

QUIET = Audits("c" * 64, (public_audit(),))


def test_audits_are_added_in_order(run_folder: Path) -> None:
    assert read_audits(run_folder) is None
    for seed in (7, 9, 8):
        assert append_audit(run_folder, public_audit(seed)) == run_folder / "audit.json"
    audits = read_audits(run_folder)
    assert audits is not None and audits.run_sha256 == run_digest(run_folder)
    assert audits.audits == tuple(public_audit(seed) for seed in (7, 9, 8))


def test_the_same_audits_give_the_same_bytes(run_folder: Path) -> None:
    path = append_audit(run_folder, public_audit())
    before = path.read_bytes()
    path.unlink()
    assert append_audit(run_folder, public_audit()).read_bytes() == before


@pytest.mark.parametrize(
    ("there", "words"),
    [
        (json.dumps(QUIET.to_dict()), "belongs to another run; move it away"),
        ('{"format": "dpsynth-audit"}', "internal audit"),
        ('{"format": "dpsynth-audits", ', "not strict JSON"),
    ],
)
def test_a_file_of_others_is_left_as_it_is(run_folder: Path, there: str, words: str) -> None:
    (run_folder / "audit.json").write_text(there)
    with pytest.raises(InputError, match=words):
        append_audit(run_folder, public_audit())
    assert (run_folder / "audit.json").read_text() == there


def test_an_audit_that_could_not_be_released_is_not_added(run_folder: Path) -> None:
    append_audit(run_folder, public_audit())
    before = (run_folder / "audit.json").read_bytes()
    for wrong in (
        public_audit(model="tvae"),
        seen(public_audit(), epsilon=2.0),
        public_audit(controls=public_audit().controls * 17),
        public_audit(seed=8, dpsynth="x" * 1001),
    ):
        with pytest.raises(ArtifactError):
            append_audit(run_folder, wrong)
    assert (run_folder / "audit.json").read_bytes() == before


def test_an_interrupted_addition_changes_nothing(
    run_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = append_audit(run_folder, public_audit())
    before = path.read_bytes()

    def interrupted(*paths: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        append_audit(run_folder, public_audit(8))
    assert path.read_bytes() == before
    assert not list(run_folder.glob(".tmp-*"))


def test_a_run_without_a_claim_is_not_audited(
    run_folder: Path,
) -> None:
    document = json.loads((run_folder / "run.json").read_text())
    (run_folder / "run.json").write_text(json.dumps(document | {"certificate": None}))
    with pytest.raises(ArtifactError, match="there is no claim to audit"):
        append_audit(run_folder, public_audit())
