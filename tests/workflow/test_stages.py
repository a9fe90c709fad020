"""A whole run: every stage can be interrupted and resumed, and the budget is never spent twice.

The evaluation and the audit are stood in for by ones that only write their documents, except where
they are what is tested.
"""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from dpsynth._util.strict_json import file_digest
from dpsynth.assessment import attack_audit as audit_verbs
from dpsynth.assessment import training_audit
from dpsynth.assessment.results_folder import EVALUATION
from dpsynth.bundle import close_entry, verify
from dpsynth.errors import (
    BudgetError,
    DpsynthWarning,
    InputError,
    TableError,
)
from dpsynth.eval.attacks import Control
from dpsynth.ledger import Ledger
from dpsynth.synthesis import Run
from dpsynth.workflow import ResolvedSettings, Settings, planned, run_stages
from dpsynth.workflow.runner import KEPT

from ..support.workflow_office import NAMES, Office, small_schema, states

PASSED = Control("copied", "Copies", "positive", "memorization:copies", True, "seen")


def test_the_whole_way(
    tmp_path: Path, cohort: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the real evaluation and audit; the attacks on tables have tests of their own."""
    monkeypatch.setattr(audit_verbs, "fitted_controls", lambda *_: [PASSED])
    monkeypatch.setattr(audit_verbs, "attacked", lambda *_, **__: ({}, [PASSED]))
    monkeypatch.setattr(training_audit, "BACKGROUND", 200)
    cohort.to_csv(tmp_path / "cohort.csv", index=False)
    gone = cohort["patient_id"].unique()[:5].tolist()
    (tmp_path / "gone.txt").write_text("\n".join(gone))
    settings = Settings.of(
        **{"schema": str(small_schema(tmp_path / "small.schema.yaml")), "dataset": "demo"},
        **{"data": tmp_path / "cohort.csv"},
        **{"epsilon": 3.0, "delta": 1e-6, "model": "independent", "output": tmp_path / "bundle"},
        **{"opt_out": tmp_path / "gone.txt", "canaries": 60},
        **{"publish_quality": 0.2, "about": {"publisher": "A hospital"}},
    )
    outcome = run_stages(settings)
    assert states(outcome) == dict.fromkeys(NAMES, "done")
    bundle, work, internal = (tmp_path / f"bundle{end}" for end in ("", ".work", ".internal"))
    assert verify(bundle)
    files = {path.relative_to(bundle).as_posix() for path in bundle.rglob("*") if path.is_file()}
    assert {"audit.json", "quality.json", "CARD.md"} <= files
    assert "datapackage.json.sig" not in files  # somebody reads the internal page first
    manifest = json.loads((bundle / "datapackage.json").read_text())
    assert manifest["dpsynth"]["about"] == {"publisher": "A hospital"}

    certificate = json.loads((bundle / "privacy.json").read_text())
    assert certificate["population"] == 80  # 0.8 of the schema's 100
    assert certificate["epsilon"] == 3.0 and certificate["ledger"]["dataset"] == "demo"
    assert "held out" in (bundle / "schema.json").read_text()

    sides = [pd.read_csv(work / "split" / f"{name}.csv") for name in ("train", "holdout")]
    kept = set(pd.concat(sides)["patient_id"])
    assert kept == set(cohort["patient_id"]) - set(gone)
    assert any("5 keys were read" in note for note in outcome.notes)

    evaluation = json.loads((internal / EVALUATION).read_text())
    assert evaluation["tables"]["synthetic"]["sha256"] == file_digest(work / "synthetic.parquet")
    assert evaluation["tables"]["holdout"]["name"] == "holdout.csv"
    public_audit = json.loads((bundle / "audit.json").read_text())
    assert [audit["canaries"] for audit in public_audit["audits"]] == [60]

    for folder in (work, internal):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for name in ("settings.yaml", "stages.json", "fitted.schema.yaml", "synthetic.parquet"):
        assert stat.S_IMODE((work / name).stat().st_mode) == 0o600
    assert (work / ".gitignore").read_text() == "*\n"

    private_digests = [
        file_digest(path) for path in (tmp_path / "cohort.csv", *work.glob("split/*"))
    ]
    private_digests.append(file_digest(tmp_path / "gone.txt"))
    for path in (*bundle.rglob("*.*"), work / "settings.yaml"):
        if path.is_file():
            content = path.read_bytes()
            assert not any(digest.encode() in content for digest in private_digests), path
    assert len(private_digests) == 4

    again = run_stages(settings)
    assert states(again) == dict.fromkeys(NAMES, KEPT)
    assert (again.gates, again.attacks) == (outcome.gates, outcome.attacks)
    assert [entry.status for entry in Ledger().entries()] == ["charged"]
    assert len(Ledger().entries()[0].releases) == 1


@pytest.mark.parametrize("stage", NAMES)
def test_a_run_that_was_interrupted_before_a_stage_goes_on(office: Office, stage: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at=stage)
    place = NAMES.index(stage)
    marks = [one.state for one in planned(ResolvedSettings.of(office.settings))]
    assert marks == ["done"] * place + ["to do"] * (len(NAMES) - place)
    done = states(office.run())
    assert [done[name] for name in NAMES] == [KEPT] * place + ["done"] * (len(NAMES) - place)
    assert office.statuses == ["charged"]
    assert verify(office.path("bundle"))
    assert [name for name, _ in office.calls] == ["evaluate", "audit"]


@pytest.mark.parametrize(
    ("within", "stage"),
    [
        ("split: reading", "split"),
        ("sample: drawing", "sample"),
        ("release: bundle", "release"),
    ],
)
def test_a_stage_that_was_interrupted_is_made_again(
    office: Office, within: str, stage: str
) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at=within)
    assert states(office.run())[stage] == "done"
    assert office.statuses == ["charged"]
    assert not list(office.folder.rglob(".tmp-*"))


def test_an_interrupted_fit_is_charged_and_not_made_again_unless_told(office: Office) -> None:
    with pytest.raises(KeyboardInterrupt) as stopped:
        office.run(at="fit: reading")
    assert any("--fit-again" in note for note in stopped.value.__notes__)
    assert office.statuses == ["failed"]
    for _ in range(2):
        with pytest.raises(BudgetError) as refused:
            office.run()
        entry = Ledger().entries()[0]
        message = str(refused.value)
        assert entry.id[:12] in message and "'demo'" in message and "epsilon 3" in message
        assert "--fit-again" in message and refused.value.exit_code == 4
    assert office.statuses == ["failed"]
    with pytest.raises(KeyboardInterrupt):
        office.run(at="fit: reading", again=True)
    with pytest.raises(BudgetError, match="2 fits"):
        office.run()
    assert states(office.run(again=True))["fit"] == "done"
    assert office.statuses == ["failed", "failed", "charged"]
    assert states(office.run(again=True))["fit"] == KEPT  # where there is a run, nothing is fitted
    assert len(office.statuses) == 3


def test_a_fit_whose_process_was_killed_counts(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could close its entry: it stays at `reading`."""
    with monkeypatch.context() as patch:
        patch.setattr("dpsynth.ledger.charging._fail", lambda *_: None)
        with pytest.raises(KeyboardInterrupt):
            office.run(at="fit: histograms")
    assert office.statuses == ["reading"]
    with pytest.raises(BudgetError, match="--fit-again"):
        office.run()
    assert states(office.run(again=True))["fit"] == "done"


def test_a_run_that_was_written_when_its_fit_was_interrupted_is_put_aside(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its entry says failed, so that it could never be released."""
    save = Run.save

    def interrupted(self: Run, folder: str | Path) -> Path:
        save(self, folder)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Run, "save", interrupted)
        with pytest.raises(KeyboardInterrupt):
            office.run()
    assert (office.work / "run").is_dir() and office.statuses == ["failed"]
    with pytest.raises(BudgetError, match="--fit-again"):
        office.run()
    office.run(again=True)
    assert (office.work / "run-interrupted-1" / "run.json").is_file()
    assert office.statuses == ["failed", "charged"]


def test_a_run_whose_entry_could_not_be_closed_is_kept(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", stop)
        with pytest.raises(KeyboardInterrupt):
            office.run()
    assert office.statuses == ["reading"]
    with pytest.warns(DpsynthWarning, match="dpsynth ledger close"):
        with pytest.raises(BudgetError, match="still open"):
            office.run()
    monkeypatch.setenv("DPSYNTH_USER", "somebody")
    close_entry(Ledger(), office.work / "run")
    assert states(office.run())["fit"] == KEPT
    assert office.statuses == ["charged"]


def test_a_fit_that_was_refused_before_it_read_needs_no_word(
    office: Office, tmp_path: Path
) -> None:
    strict = tmp_path / "strict.yaml"
    strict.write_text(
        'dpsynth_policy: 1\nname: Strict\ndelta: 1.0e-5\ncaps: {total: {epsilon: 1, basis: "b"}}\n'
    )
    with pytest.raises(BudgetError, match="Strict"):
        office.run(policy=strict)
    assert office.statuses == []
    assert states(office.run())["split"] == KEPT
    assert office.statuses == ["charged"]


def test_a_file_that_is_not_the_table_is_refused_before_the_charge(office: Office) -> None:
    office.path("other.csv").write_text("a,b\n1,2\n")
    with pytest.raises(TableError, match="lacks"):
        office.run(data=office.path("other.csv"), holdout=0.0)
    assert office.statuses == []
    office.run(holdout=0.0)
    assert office.statuses == ["charged"]


def test_a_reservation_that_read_nothing_is_named(
    office: Office, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: Any) -> None:
        raise BudgetError("the ledger is lost")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "begin", stop)
        with pytest.raises(BudgetError, match="lost") as refused:
            office.run()
        assert not any("--fit-again" in note for note in refused.value.__notes__)
    first = Ledger().entries()[0]
    with pytest.warns(DpsynthWarning, match=f"read no row.*void {first.id[:12]}"):
        office.run()
    assert office.statuses == ["reserved", "charged"]


def test_another_ledger_is_not_charged_in_its_place(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyboardInterrupt):
        office.run(at="fit: reading")
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "new.sqlite"))
    with pytest.raises(InputError, match="there is no ledger at"):
        office.run(again=True)
    Ledger.create()
    with pytest.raises(BudgetError, match="is another ledger; set DPSYNTH_LEDGER"):
        office.run(again=True)
    assert Ledger().entries() == []


def test_an_older_copy_of_the_ledger_is_not_gone_on_with(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the work folder saw is not in it: the fit that was charged would be forgotten."""
    old = tmp_path / "old.sqlite"
    old.write_bytes(Path(Ledger().place).read_bytes())
    office.run()
    monkeypatch.setenv("DPSYNTH_LEDGER", str(old))
    with pytest.raises(BudgetError, match=r"not as .* saw it: it ends at record 0, but had"):
        office.run()
