"""Audits that warn, are refused or are paid for: exit codes, words, the ledger before any row."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpsynth.assessment import attack_audit as verbs
from dpsynth.assessment import audited_on_real, repeated_audits
from dpsynth.errors import BudgetError
from dpsynth.eval.attack_stats import Attack, Finding, Power
from dpsynth.eval.attacks import Control
from dpsynth.eval.core import Measure, PartResult
from dpsynth.ledger import Ledger, Use
from dpsynth.synthesis import Run

from ..support.audited_office import Office, fitted_office, make_quick
from ..support.evaluated_office import call


@pytest.fixture(scope="module")
def office(tmp_path_factory: pytest.TempPathFactory) -> Office:
    return fitted_office(tmp_path_factory.mktemp("office"))


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, office: Office) -> None:
    make_quick(monkeypatch, office)


def attack(found: bool) -> Attack:
    from dpsynth.eval.core import Estimate

    measure = Measure("auc:distance", "AUC", Estimate(0.5, 0.4, 0.6, 9), 0.5, "words")
    finding = Finding("membership:distance", "Distance", found, "seen")
    return Attack(
        PartResult((measure,), {"attacks": []}, ("a note",)),
        (finding,),
        (Power("membership:distance", 0.6, "auc", "would"),),
    )


@pytest.mark.parametrize(
    ("found", "passed", "verdict", "code"),
    [(False, True, "quiet", 0), (True, True, "found", 3), (False, False, "quiet", 0),
     (True, False, "found", 3)],
)  # fmt: skip
def test_a_success_ends_with_exit_code_3_and_a_leak_that_one_attack_missed_does_not(
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


def test_an_audit_in_which_no_attack_could_see_a_leak_ends_with_exit_code_3(
    office: Office, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    control = Control("jittered", "Moved", "positive", "membership:distance", False, "seen")
    results: Any = ({"membership": attack(False)}, [control])
    monkeypatch.setattr(verbs, "attacked", lambda *_, **__: results)
    assert call("audit", "demo", *office.tables) == 3
    output = capsys.readouterr()
    assert "no attack could have seen a leak here" in output.err
    assert "NOT SEEN    Moved (membership:distance)" in output.out


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
    words_given = [
        office.path(names[argument]) if argument in names else argument for argument in arguments
    ]
    assert call("audit", *words_given) == 2
    assert words in capsys.readouterr().err.replace("\n", " ")


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
    attack = audited_on_real(
        run, office.path("train.csv"), Use("demo", "audit"), ledger=ledger, count=60
    )
    assert statuses == ["reading"]
    assert [view["view"] for view in attack.part.details["views"]] == ["black"]
    assert attack.part.details["background"] == "real"
    assert sorted(path.name for path in (office.folder / "run").iterdir()) == before

    def refuse(*_: Any, **__: Any) -> Any:
        raise BudgetError("the cap")

    monkeypatch.setattr(Ledger, "reserve_all", refuse)
    with pytest.raises(BudgetError):
        audited_on_real(run, office.path("train.csv"), Use("demo"), ledger=ledger, count=60)
    assert len(statuses) == 1  # no row was read


def test_earlier_audits_that_were_changed_are_refused_before_any_work(
    office: Office, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = office.folder / "run" / "audit.json"
    path.unlink(missing_ok=True)
    once = ("--canaries", "60", "--repeats", "0", "--quiet")
    assert call("audit", office.path("run"), *once) == 0
    document = json.loads(path.read_text())
    document["audits"][0]["claim"]["epsilon"] = 1.0
    path.write_text(json.dumps(document))
    monkeypatch.setattr(repeated_audits, "audited_training", None)
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
    assert [finding["key"] for finding in document["findings"]] == ["training:black"]
