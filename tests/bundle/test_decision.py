"""The decision on a release: gates stop it, a policy asks for more, a named person for less."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.strict_json import read_document
from dpsynth.bundle import release, verify
from dpsynth.bundle.format import append_audit
from dpsynth.bundle.gates import GateResult, decide, disputes
from dpsynth.certificate import Certificate, Overridden, Override
from dpsynth.certificate.charge import OVERRIDABLE
from dpsynth.errors import ArtifactError, BudgetError, GateError, InputError, VerificationError
from dpsynth.ledger import Ledger, adopt
from dpsynth.policy import Policy
from dpsynth.synthesis import Run

from ..support.forger import Forger
from ..support.public_audit_example import public_audit, seen

EXCUSE = Override("a false alarm: nine other audits were quiet", "A. Smith, data protection")


def verdict(key: str, passed: bool, stops: bool = True) -> GateResult:
    return GateResult(key, f"Gate {key}", passed, 1.0, 0.0, "a reason", stops)


GOOD = tuple(verdict(key, True) for key in ("cells", "rules", "accounting", "stamps", "audit"))


def test_what_passes_needs_nobody() -> None:
    assert decide(GOOD, (), None) == ()
    assert decide((*GOOD, verdict("epsilon", False, stops=False)), (), None) == ()


def test_a_gate_that_stops_can_be_overridden_in_public() -> None:
    bad = (*GOOD[:4], verdict("audit", False))
    with pytest.raises(GateError, match="Gate audit'; the person responsible can override"):
        decide(bad, (), None)
    assert decide(bad, (), EXCUSE) == (Overridden("audit", EXCUSE.reason, EXCUSE.by),)


@pytest.mark.parametrize("key", ["cells", "rules", "accounting", "stamps"])
def test_what_makes_a_bundle_false_cannot_be_overridden(key: str) -> None:
    assert key not in OVERRIDABLE
    bad = tuple(replace(one, passed=one.key != key) for one in GOOD)
    with pytest.raises(GateError, match=f"did not pass: 'Gate {key}'; they cannot be overridden$"):
        decide((*bad, verdict("epsilon", False)), (), EXCUSE)


def test_a_policy_makes_an_informing_gate_stop() -> None:
    text = (*GOOD, verdict("epsilon", False, stops=False))
    with pytest.raises(GateError, match="Gate epsilon"):
        decide(text, ("epsilon",), None)
    assert [one.gate for one in decide(text, ("epsilon",), EXCUSE)] == ["epsilon"]
    with pytest.raises(BudgetError, match="were not run on this run: membership"):
        decide(text, ("audit", "membership"), EXCUSE)


def test_nothing_is_overridden_in_advance() -> None:
    with pytest.raises(InputError, match="no gate stops this release"):
        decide(GOOD, (), EXCUSE)


@pytest.mark.parametrize(
    ("reason", "by"), [("", "A"), ("why", "  "), ("a\nb", "A"), ("x" * 1001, "A"), ("y", "\x1b[0m")]
)
def test_an_override_has_a_reason_and_a_name(reason: str, by: str) -> None:
    with pytest.raises(InputError, match="overr"):
        Override(reason, by)


def test_disputes_are_found_both_ways() -> None:
    bad = (*GOOD[:4], verdict("audit", False))
    excused = (Overridden("audit", "r", "b"),)
    assert disputes(bad, excused) == [] and disputes(GOOD, ()) == []
    assert disputes(bad, ()) == [
        "should have been stopped by a check that did not pass: 'Gate audit'"
    ]
    assert disputes(GOOD, excused) == ["overrides gate 'audit', which passed"]


# In a bundle.


@pytest.fixture
def refuted(run_folder: Path) -> Path:
    """A run with an audit that refutes its claim."""
    append_audit(run_folder, seen(public_audit(), 1, refuted=True))
    return run_folder


def test_a_refuted_run_is_released_only_with_a_name(refuted: Path, tmp_path: Path) -> None:
    with pytest.raises(GateError, match="--override REASON --by NAME"):
        release(refuted, tmp_path / "bundle", size=50, seed=1)
    assert not (tmp_path / "bundle").exists()
    bundle = release(refuted, tmp_path / "bundle", size=50, seed=1, override=EXCUSE)
    verify(bundle)
    [words] = read_document(bundle / "privacy.json")["overrides"]
    assert words == {"gate": "audit", "reason": EXCUSE.reason, "by": EXCUSE.by}
    for file in ("report.html", "CARD.md"):
        text = (bundle / file).read_text()
        assert "A. Smith, data protection" in text and "nine other audits were quiet" in text


def test_a_removed_or_invented_override_is_found(
    refuted: Path, tmp_path: Path, forger: Forger
) -> None:
    forger.bundle = release(refuted, tmp_path / "overridden", size=50, seed=1, override=EXCUSE)
    forger.edit("privacy.json", lambda d: d.update(overrides=[]))
    assert "privacy.json: should have been stopped" in forger.findings()
    other = {"gate": "constant", "reason": "r", "by": "b"}
    forger.edit("privacy.json", lambda d: d.update(overrides=[other]))
    assert "overrides gate 'constant', which passed" in forger.findings()
    forger.edit("privacy.json", lambda d: d.update(overrides=[other | {"gate": "cells"}]))
    assert "cannot be overridden" in forger.findings()


def test_a_required_gate_stops_a_release(run_folder: Path, tmp_path: Path) -> None:
    ledger = Ledger.present()
    adopt(ledger, _policy(gates=["audit"]))
    with pytest.raises(GateError, match="not audited"):
        release(run_folder, tmp_path / "bundle", size=50, seed=1)
    append_audit(run_folder, public_audit())
    verify(release(run_folder, tmp_path / "bundle", size=50, seed=1))


def test_a_run_has_no_overrides(run_folder: Path, tmp_path: Path) -> None:
    document = read_document(run_folder / "run.json")["certificate"]
    text = document | {"overrides": [{"gate": "audit", "reason": "r", "by": "b"}]}
    assert Certificate.from_dict(text).overrides
    replace(Run.load(run_folder), certificate=text).save(tmp_path / "forged")
    with pytest.raises(ArtifactError, match="a run has no overrides"):
        Run.load(tmp_path / "forged")


def test_the_twin_without_disputes_would_be_noticed(
    refuted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broken twin: a release that asks nobody, read by a verification that disputes nothing."""
    monkeypatch.setattr("dpsynth.bundle.writer.decide", lambda verdicts, gates, override: ())
    with pytest.raises(VerificationError, match="should have been stopped"):
        release(refuted, tmp_path / "bundle", size=50, seed=1)
    monkeypatch.setattr("dpsynth.bundle.verifier.disputes", lambda verdicts, overrides: [])
    assert release(refuted, tmp_path / "bundle", size=50, seed=1).is_dir()


def _policy(**changes: Any) -> Policy:
    document = {
        "dpsynth_policy": 1,
        "name": "office",
        "delta": 1e-3,
        "caps": {"total": {"epsilon": 100, "basis": "a test"}},
    }
    return Policy.from_dict(document | changes, "policy.yaml")
