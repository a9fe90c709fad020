"""The verb audit and its command: what is asked for is done, and what is internal stays so."""

from __future__ import annotations

import json
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.assessment import attack_audit as verbs
from dpsynth.assessment import training_audit
from dpsynth.assessment.evaluation import Candidate
from dpsynth.bundle.format.audits import read_audits
from dpsynth.bundle.verifier import verify
from dpsynth.bundle.writer import release
from dpsynth.cli import main
from dpsynth.errors import BudgetError, InputError
from dpsynth.eval.attack_stats.result import Attack, Finding, Power
from dpsynth.eval.attacks import audit as documents
from dpsynth.eval.attacks.controls import Control
from dpsynth.eval.core.result import Measure, PartResult
from dpsynth.ledger.charging import Use
from dpsynth.ledger.ledger import Ledger
from dpsynth.privacy.entropy import SeededEntropy
from dpsynth.schema.schema import Schema
from dpsynth.synthesis.fitting import fit, fit_not_private
from dpsynth.synthesis.run import Run
from dpsynth.tables.simulated import simulate

DEMO = Schema.load("demo")
PASSED = Control("copied", "Copies", "positive", "memorization:copies", True, "seen")


def call(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@dataclass(frozen=True)
class Office:
    """A folder with a fitted run, its table, and the rows on both sides of a split."""

    folder: Path

    def path(self, name: str) -> str:
        return str(self.folder / name)

    @property
    def tables(self) -> list[str]:
        return [self.path("train.csv"), "--synthetic", self.path("out.parquet"), "--holdout",
                self.path("holdout.csv")]  # fmt: skip


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    folder = tmp_path_factory.mktemp("office")
    everyone = simulate(500, seed=1)
    keys = everyone["patient_id"].unique()
    inside = everyone["patient_id"].isin(keys[np.random.default_rng(1).random(len(keys)) < 0.6])
    everyone[inside].to_csv(folder / "train.csv", index=False)
    everyone[~inside].to_csv(folder / "holdout.csv", index=False)
    fit(
        folder / "train.csv",
        DEMO,
        epsilon=2.0,
        delta=1e-6,
        dataset="demo",
        model="independent",
        ledger=Ledger.create(folder / "ledger.sqlite"),
        output=folder / "run",
    )
    assert call("sample", str(folder / "run"), "--rows", "900", "-o", str(folder / "out.parquet"),
                "--quiet") == 0  # fmt: skip
    return Office(folder)


def make_quick(monkeypatch: pytest.MonkeyPatch, office: Office) -> None:
    """Keep the controls that need a fit for their own test; use the office's ledger."""
    monkeypatch.setattr(verbs, "fitted_controls", lambda *_: [PASSED])
    monkeypatch.setattr(training_audit, "BACKGROUND", 300)
    monkeypatch.setenv("DPSYNTH_LEDGER", office.path("ledger.sqlite"))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, office: Office) -> None:
    make_quick(monkeypatch, office)


def quiet_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verbs, "attacked", lambda *_, **__: ({}, [PASSED]))


def test_a_run_alone_is_audited_without_a_real_row(
    office: Office, capsys: pytest.CaptureFixture[str]
) -> None:
    (office.folder / "run" / "audit.json").unlink(missing_ok=True)
    hidden = [(office.folder / name) for name in ("train.csv", "holdout.csv")]
    for path in hidden:
        path.rename(path.with_suffix(".gone"))
    try:
        assert call("audit", office.path("run"), "--canaries", "60", "--json") == 0
    finally:
        for path in hidden:
            path.with_suffix(".gone").rename(path)
    result = json.loads(capsys.readouterr().out)
    assert result["verdict"] == "quiet" and result["tables"] is None
    assert {one["key"] for one in result["findings"]} == {"training:black", "training:white"}
    kept = read_audits(office.folder / "run")
    assert kept is not None and len(kept.audits) == 1
    assert kept.audits[0].canaries == 60 and kept.audits[0].claim.epsilon == 2.0


@pytest.fixture(scope="module")
def audited(office: Office) -> bytes:
    """Audit the run and its table, with noise of seed 5, into `internal`; return what is public."""
    path = office.folder / "run" / "audit.json"
    path.unlink(missing_ok=True)
    arguments = ["audit", office.path("run"), *office.tables, "--canaries", "60", "--quiet"]
    with pytest.MonkeyPatch.context() as patch:
        make_quick(patch, office)
        patch.setattr(training_audit, "OsEntropy", lambda: SeededEntropy(5))
        assert call(*arguments, "-o", office.path("internal")) in (0, 3)
    return path.read_bytes()


def test_the_bundle_takes_the_public_audit_along_and_nothing_internal(
    office: Office, tmp_path: Path, audited: bytes
) -> None:
    (office.folder / "run" / "audit.json").write_bytes(audited)
    bundle = release(
        office.path("run"),
        tmp_path / "bundle",
        table=office.path("out.parquet"),
        ledger=Ledger(office.path("ledger.sqlite")),
    )
    verify(bundle)
    document = json.loads((bundle / "audit.json").read_text())
    assert document["format"] == "dpsynth-audits"
    words = (bundle / "audit.json").read_text() + (bundle / "report.html").read_text()
    internal = json.loads((office.folder / "internal" / "audit.json").read_text())
    sentences = [
        one["sentence"]
        for one in (*internal["findings"], *internal["powers"])
        if not one["key"].startswith("training")
    ]
    assert len(sentences) > 20
    for word in ("singling", "holdout.csv", "train.csv", *sentences):
        assert word not in words
    assert internal["internal"] is True and "membership" in internal["parts"]
    assert internal["tables"]["synthetic"]["sha256"] and internal["run"]["epsilon"] == 2.0


def test_the_public_audit_does_not_depend_on_the_tables(
    office: Office, monkeypatch: pytest.MonkeyPatch, audited: bytes
) -> None:
    """Same seed and noise: with and without real tables the same file is written."""
    path = office.folder / "run" / "audit.json"
    path.unlink(missing_ok=True)
    monkeypatch.setattr(training_audit, "OsEntropy", lambda: SeededEntropy(5))
    assert call("audit", office.path("run"), "--canaries", "60", "--quiet") in (0, 3)
    assert path.read_bytes() == audited


def test_results_are_for_their_owner_and_share_a_folder_with_an_evaluation(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quiet_table(monkeypatch)
    folder = tmp_path / "internal"
    arguments = [office.path("run"), *office.tables, "-o", str(folder), "--quiet"]
    assert call("audit", *arguments, "--no-training") == 0
    assert {path.name for path in folder.iterdir()} == {"audit.json", "internal.html"}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    assert call("audit", *arguments, "--no-training") == 2  # not replaced unless asked
    assert call("audit", *arguments, "--no-training", "--force") == 0
    assert call("evaluate", *arguments) in (0, 3)
    names = {"audit.json", "evaluation.json", "internal.html"}
    assert {path.name for path in folder.iterdir()} == names
    assert call("audit", *arguments, "--no-training", "--force") == 0
    assert {path.name for path in folder.iterdir()} == names
    other = tmp_path / "other.parquet"
    assert call("sample", office.path("run"), "--rows", "300", "-o", str(other), "--quiet") == 0
    arguments[arguments.index("--synthetic") + 1] = str(other)
    assert call("audit", *arguments, "--no-training", "--force") == 2  # about another table


def attack(found: bool) -> Attack:
    from dpsynth.eval.core.estimate import Estimate

    measure = Measure("auc:distance", "AUC", Estimate(0.5, 0.4, 0.6, 9), 0.5, "words")
    finding = Finding("membership:distance", "Distance", found, "seen")
    return Attack(
        PartResult((measure,), {"attacks": []}, ("a note",)),
        (finding,),
        (Power("membership:distance", 0.6, "auc", "would"),),
    )


@pytest.mark.parametrize(
    ("found", "passed", "verdict", "code"),
    [(False, True, "quiet", 0), (True, True, "found", 3), (False, False, "quiet", 3),
     (True, False, "found", 3)],
)  # fmt: skip
def test_a_success_or_a_failed_control_ends_with_exit_code_3(
    office: Office,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    found: bool,
    passed: bool,
    verdict: str,
    code: int,
) -> None:
    control = Control("copied", "Copies", "positive", "memorization:copies", passed, "seen")
    results: Any = ({"membership": attack(found)}, [control])
    monkeypatch.setattr(verbs, "attacked", lambda *_, **__: results)
    assert call("audit", "demo", *office.tables, "--json") == code
    output = capsys.readouterr()
    assert json.loads(output.out)["verdict"] == verdict
    if verdict == "found":
        assert "1 attack succeeded: membership:distance" in output.err
    elif not passed:
        assert "1 control failed (copied)" in output.err


def test_tables_of_other_tools_are_attacked_whole(office: Office, tmp_path: Path) -> None:
    """All attacks and all controls on a table by schema; copies are found."""
    train = pd.read_csv(office.path("train.csv"))
    train.sample(900, random_state=1, replace=True).to_csv(tmp_path / "theirs.csv", index=False)
    document = verbs.audit_run(
        DEMO,
        real=verbs.Real(
            office.path("train.csv"),
            Candidate("theirs", str(tmp_path / "theirs.csv")),
            office.path("holdout.csv"),
        ),
    )
    successes = {one["key"] for one in document["findings"] if one["found"]}
    assert {"memorization:copies", "membership:distance", "singling_out:many"} <= successes
    assert document["verdict"] in ("found", "failed")
    parts = {"memorization", "membership", "attribute", "linkability", "singling_out"}
    assert set(document["parts"]) == parts
    keys = {one["key"] for one in document["findings"]}
    assert {one["key"] for one in document["powers"]} == keys
    assert document["format"] == documents.FORMAT and document["internal"] is True
    json.dumps(document, allow_nan=False)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["RUN", "TRAIN"], "also give --synthetic, --holdout"),
        (["RUN", "TRAIN", "--synthetic", "OUT"], "also give --holdout"),
        (["demo", "TRAIN"], "give --synthetic"),
        (["demo"], "give --synthetic, --train and --holdout"),
        (["RUN", "--no-training"], "to attack a table"),
        (["RUN", "--deep"], "to attack a table"),
        (["RUN", "TRAIN", "--train", "TRAIN"], "give only one"),
        (["RUN", "--dataset", "demo"], "nothing else is charged"),
        (["RUN", "--background", "real"], "give a RUN, DATA and --dataset"),
        (["RUN", "--canaries", "10"], "canaries must be 50 to"),
        (["TRAIN"], "is a table; the order is"),
        (["RUN", "--budget-minutes", "5"], "needs --deep"),
        (["RUN", "--force"], "--force needs -o"),
        (["RUN", "--seed", "-1"], "whole number from 0"),
        (["RUN", "TRAIN", "--background", "real", "--dataset", "demo"], "give a folder"),
        (["demo", "TRAIN", "--synthetic", "nope.csv", "--holdout", "TRAIN"], "nope.csv"),
    ],
    ids=lambda value: "-".join(value).replace("--", "") if isinstance(value, list) else "",
)
def test_what_does_not_go_together_is_refused_in_words(
    office: Office, capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    names = {"RUN": "run", "TRAIN": "train.csv", "OUT": "out.parquet"}
    words_given = [office.path(names[one]) if one in names else one for one in arguments]
    assert call("audit", *words_given) == 2
    assert words in capsys.readouterr().err.replace("\n", " ")


def test_a_run_without_privacy_has_no_claim_to_audit(
    office: Office, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from dpsynth.synthesis.run import DOCUMENT

    run = Run.load(office.path("run"))
    bare = Run(run.schema, run.model, run.config, run.arrays, None, ("not-private",))
    bare.save(tmp_path / "bare")
    assert (tmp_path / "bare" / DOCUMENT).is_file() and fit_not_private
    assert call("audit", str(tmp_path / "bare")) == 2
    assert "fitted without privacy" in capsys.readouterr().err


def test_canaries_among_real_rows_are_charged_before_a_row_is_read(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpsynth.assessment import charged_audit

    ledger = Ledger.create(tmp_path / "ledger.sqlite")
    statuses: list[str] = []
    read = charged_audit.read_cohort

    def reading(*arguments: Any, **named: Any) -> Any:
        statuses.append(ledger.entries()[-1].status)
        return read(*arguments, **named)

    monkeypatch.setattr(charged_audit, "read_cohort", reading)
    run = Run.load(office.path("run"))
    before = sorted(path.name for path in (office.folder / "run").iterdir())
    attack = charged_audit.audited_on_real(
        run, office.path("train.csv"), Use("demo", "audit"), ledger=ledger, count=60
    )
    assert statuses == ["reading"]
    assert [one["view"] for one in attack.part.details["views"]] == ["black"]
    assert attack.part.details["background"] == "real"
    assert sorted(path.name for path in (office.folder / "run").iterdir()) == before

    def refuse(*_: Any, **__: Any) -> Any:
        raise BudgetError("the cap")

    monkeypatch.setattr(Ledger, "reserve", refuse)
    with pytest.raises(BudgetError):
        charged_audit.audited_on_real(
            run, office.path("train.csv"), Use("demo"), ledger=ledger, count=60
        )
    assert len(statuses) == 1  # no row was read


def test_earlier_audits_that_were_changed_are_refused_before_any_work(
    office: Office, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = office.folder / "run" / "audit.json"
    path.unlink(missing_ok=True)
    assert call("audit", office.path("run"), "--canaries", "60", "--quiet") == 0
    document = json.loads(path.read_text())
    document["audits"][0]["claim"]["epsilon"] = 1.0
    path.write_text(json.dumps(document))
    monkeypatch.setattr(verbs, "audited_training", None)
    assert call("audit", office.path("run"), "--canaries", "60") == 2
    assert "audit.json was changed" in capsys.readouterr().err
    path.write_text("{")
    assert call("audit", office.path("run"), "--canaries", "60") in (2, 5)
    path.unlink()


def test_a_real_audit_is_charged_last_and_written(office: Office, tmp_path: Path) -> None:
    folder, ledger = tmp_path / "internal", Ledger(office.path("ledger.sqlite"))
    before = len(ledger.entries())
    arguments = ["audit", office.path("run"), office.path("train.csv"), "--background", "real"]
    arguments += ["--dataset", "demo", "--quiet", "-o", str(folder)]
    assert call(*arguments, "--canaries", "10") == 2
    (tmp_path / "taken").mkdir()
    assert call(*arguments[:-1], str(tmp_path / "taken"), "--canaries", "60") == 2
    assert len(ledger.entries()) == before  # nothing was spent on what cannot end well
    assert call(*arguments, "--canaries", "60") == 0
    assert len(ledger.entries()) == before + 1
    document = json.loads((folder / "audit.json").read_text())
    assert document["parts"]["training"]["background"] == "real"
    assert document["settings"]["canaries"] == 60
    assert [one["key"] for one in document["findings"]] == ["training:black"]


def test_nothing_to_audit_is_refused() -> None:
    with pytest.raises(InputError, match="nothing to audit"):
        verbs.audit_run(DEMO)
