"""What stages find: internal verdicts, public gates, overrides and paid figures."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dpsynth._util.strict_json import read_document, written
from dpsynth.certificate import Certificate, Override
from dpsynth.errors import (
    BudgetError,
    GateError,
    InputError,
)
from dpsynth.ledger import Ledger
from dpsynth.ledger import sign as sign_entry
from dpsynth.workflow import ResolvedSettings, run_stages, stages, subjects
from dpsynth.workflow.runner import KEPT

from ..support.workflow_office import Office, interrupt, states


def test_internal_verdicts_do_not_decide_but_are_told(office: Office) -> None:
    office.gates += [{"key": "c2st", "passed": False}, {"key": "tvd1", "passed": True}]
    office.gates += [{"key": "cox", "passed": None}]
    office.findings += [{"key": "membership:density", "found": True}, {"key": "x", "found": False}]
    office.controls += [{"key": "fresh", "title": "Other people's rows", "kind": "negative"}]
    office.controls[0] |= {"attack": "membership", "passed": False}
    for _ in range(2):  # the same command gives the same answer
        outcome = office.run()
        assert outcome.gates == ("c2st",) and outcome.attacks == ("membership:density",)
        with pytest.raises(GateError) as refused:
            outcome.require_quiet()
        message = str(refused.value)
        assert "1 internal gate failed (c2st)" in message and "1 attack succeeded" in message
        assert "the audit proves nothing: “Other people's rows” was accused" in message
        assert "was still written" in message and "internal.html before you publish" in message
    bundle = b"".join(p.read_bytes() for p in office.path("bundle").rglob("*") if p.is_file())
    assert b"density" not in bundle


def test_an_attack_that_missed_a_leak_voids_only_itself(office: Office) -> None:
    """Others could have seen one: exit code 0; where none could, exit code 3."""
    keys = ("membership:density", "memorization:copies")
    office.controls += [
        {"key": key, "title": key, "kind": "positive", "attack": key, "passed": key == keys[1]}
        for key in keys
    ]
    office.findings += [{"key": key, "found": False} for key in keys]
    office.run().require_quiet()
    office.controls[1]["passed"] = False
    office.path("bundle.internal/audit.json").unlink()
    with pytest.raises(GateError, match="no attack could have seen a leak here"):
        office.run().require_quiet()


def test_a_quiet_run_is_quiet(finished: Office) -> None:
    finished.run().require_quiet()


def test_a_public_gate_stops_the_bundle(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise GateError("a public gate")

    with monkeypatch.context() as patch:
        patch.setattr("dpsynth.workflow.stages.release", stop)
        with pytest.raises(GateError, match="a public gate") as refused:
            office.run()
    assert any("no bundle was written" in note for note in refused.value.__notes__)
    assert not office.path("bundle").exists() and office.path("bundle.internal").exists()
    office.run()
    assert office.path("bundle").exists() and office.statuses == ["charged"]


def test_a_gate_can_be_overridden_by_name(office: Office, monkeypatch: pytest.MonkeyPatch) -> None:
    excuse, overrides = Override("the ward treats women", "Dr. Miller"), []
    release = stages.release

    def gated(*words: Any, override: Override | None, **more: Any) -> Path:
        if override is None:
            raise GateError("it stops")
        overrides.append(override)
        return release(*words, **more)

    monkeypatch.setattr(stages, "release", gated)
    with pytest.raises(GateError, match="it stops"):
        office.run()
    done = states(run_stages(office.settings, override=excuse))
    assert overrides == [excuse] and done["audit"] == KEPT and done["release"] == "done"


def test_an_override_of_a_bundle_that_has_none_is_refused(finished: Office) -> None:
    excuse = Override("the ward treats women", "Dr. Miller")
    with pytest.raises(InputError, match="without this override"):
        run_stages(finished.settings, override=excuse)
    certificate = Certificate.from_dict(read_document(finished.path("bundle/privacy.json")))
    for reason, refused in (("the ward treats women", False), ("no reason", True)):
        overridden = Override(reason, "Dr. Miller").of(["audit"])
        document = replace(certificate, overrides=overridden).to_dict()
        finished.path("bundle/privacy.json").write_bytes(written(document))
        with pytest.raises(InputError) if refused else nullcontext():
            stages._require_written(excuse, finished.path("bundle"))


def test_a_policy_that_wants_signatures_lets_it_go_on_when_they_are_there(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    careful = tmp_path / "careful.yaml"
    careful.write_text(
        "dpsynth_policy: 1\nname: Careful\ndelta: 1.0e-5\nsign_off: {people: 1}\n"
        'caps: {total: {epsilon: 9, basis: "b"}}\n'
    )
    with pytest.raises(BudgetError, match="1 more person to sign") as refused:
        office.run(policy=careful)
    assert any("run the same command again to continue" in note for note in refused.value.__notes__)
    monkeypatch.setenv("DPSYNTH_USER", "somebody else")
    sign_entry(Ledger(), Ledger().entries()[0].id)
    done = states(office.run(policy=careful))
    assert (done["audit"], done["release"]) == (KEPT, "done")
    assert office.statuses == ["charged"]


def test_public_figures_are_paid_before_anything_else_is_known(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    publish = subjects.publish_quality

    def noted(*words: Any, **more: Any) -> Any:
        office.calls.append(("publish", {"data": words[2]}))
        return publish(*words, **more)

    monkeypatch.setattr(subjects, "publish_quality", noted)
    with pytest.raises(KeyboardInterrupt):  # between the figures and the evaluation
        with monkeypatch.context() as patch:
            patch.setattr(subjects, "evaluate", interrupt)
            office.run(publish_quality=0.2)
    office.run(publish_quality=0.2)
    assert [name for name, _ in office.calls] == ["publish", "evaluate", "audit"]
    assert office.calls[0][1]["data"] == office.work / "split" / "holdout.csv"
    assert (office.path("bundle") / "quality.json").is_file()


def test_a_share_that_was_spent_in_vain_is_said(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("dpsynth.assessment.published_quality.ask", interrupt)
        with pytest.raises(KeyboardInterrupt):
            office.run(publish_quality=0.2)
    with pytest.raises(GateError, match="quality figures that the budget paid for"):
        office.run(publish_quality=0.2)
    assert not office.path("bundle").exists()
    order = ResolvedSettings.of(replace(office.settings, publish_quality=0.2))
    outcome = run_stages(order, override=Override("a power cut", "A. Person"))
    assert not (office.path("bundle") / "quality.json").exists()
    privacy = read_document(outcome.order.bundle / "privacy.json")
    assert [override["gate"] for override in privacy["overrides"]] == ["quality"]
