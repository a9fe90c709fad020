"""The way of an office through the command line: policy, plan, fit, signatures, release, checks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsynth.errors import BudgetError
from dpsynth.ledger import Ledger

from ..support.office_commands import POLICY, Cli, fit
from ..support.reservations import reserve


def test_an_office_from_policy_to_release(cli: Cli) -> None:
    Path("ledger.sqlite").unlink()
    for looking in ("policy", "show", "verify"):
        output = cli("ledger", looking)
        assert output.code == 2 and "there is no ledger at" in output.err
    assert not Path("ledger.sqlite").exists()
    created = cli("ledger", "create")
    assert created.code == 0 and "new ledger: " in created.out
    again = cli("ledger", "create")
    assert again.code == 2 and "is a ledger already" in again.err
    assert "no cap applies" in cli("ledger", "policy").out
    adopted = cli("ledger", "policy", "office.policy.yaml", user="chair")
    assert adopted.code == 0 and "by chair" in adopted.out
    assert "rare-disease: 0.17, 1 a year" in adopted.out  # what satisfies everything
    assert fit(cli, "run").code == 0
    assert fit(cli, "second", dataset="ward-2020").code == 0  # the same patients
    refused = fit(cli, "third", epsilon=0.4)
    assert refused.code == 4 and "epsilon in 365 days" in refused.err
    assert not Path("third").exists()
    assert fit(cli, "rare", epsilon=0.17, tier="rare-disease").code == 0

    unsigned = cli("release", "run", "-o", "bundle")
    assert unsigned.code == 4 and "requires 2 more people to sign" in unsigned.err
    assert not Path("bundle").exists()
    entry = Ledger().entries()[0].id[:12]
    assert cli("ledger", "sign", entry, user="fitter").code == 4
    for person in ("curie", "meitner"):
        assert cli("ledger", "sign", entry, "--note", "board", user=person).code == 0
    assert cli("release", "run", "-o", "bundle").code == 0
    ended = cli("ledger", "show", "--dataset", "ward")
    assert "charged, 2 signed, released" in ended.out
    assert "epsilon in 365 days" in ended.out and "2 signed" in ended.out
    checked = cli("ledger", "verify", "--against", "bundle", "--against", "rare")
    assert checked.code == 0 and checked.out.count("ok  ") == 3
    assert cli("release", "rare", "-o", "unsigned").code == 4
    Path("bundle/datapackage.json").write_text(
        Path("bundle/datapackage.json").read_text().replace("synthetic", "Synthetic", 1)
    )
    changed = cli("ledger", "verify", "--against", "bundle")
    assert changed.code == 5 and "has no release of this bundle" in changed.err
    charge = json.loads(Path("bundle/privacy.json").read_text())["ledger"]
    assert (charge["scope"], charge["fits"]) == (["ward", "ward-2019", "ward-2020"], 1)
    assert charge["policy"] == Ledger().state().policy.digest  # type: ignore[union-attr]


def test_a_run_under_a_policy_needs_its_ledger(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    cli("ledger", "policy", "office.policy.yaml")
    fit(cli, "run")
    monkeypatch.setenv("DPSYNTH_LEDGER", str(tmp_path / "none.sqlite"))
    refused = cli("release", "run", "-o", "bundle")
    assert refused.code == 4 and "set DPSYNTH_LEDGER to it" in refused.err
    assert not (tmp_path / "none.sqlite").exists()  # looking for a ledger makes none
    Ledger.create()
    assert cli("release", "run", "-o", "bundle").code == 4


def test_plan_says_which_constraint_binds_and_what_would_do(cli: Cli) -> None:
    plan = ["plan", "ward.schema.json", "--delta", "1e-6", "--policy", "office.policy.yaml"]
    fine = cli(*plan, "--model", "mixture", "--epsilon", "0.2", "--tier", "standard")
    assert fine.code == 0 and "allows this" in fine.out and "tightest    epsilon" in fine.out
    much = cli(*plan, "--model", "independent", "--epsilon", "0.9", "--tier", "standard")
    assert much.code == 4 and "would refuse" in much.err
    assert "stopped by  epsilon a release, epsilon in 365 days" in much.out
    assert "try         epsilon 0.405, which satisfies every constraint" in much.out
    assert (
        cli(*plan, "--model", "independent", "--epsilon", "0.405", "--tier", "standard").code == 0
    )
    wrong = cli(*plan, "--model", "tvae", "--epsilon", "0.2", "--json")
    assert wrong.code == 4
    answer = json.loads(wrong.out)["policy"]
    assert answer["binding"] == ["tier", "model"] and answer["largest_epsilon"] is None
    assert Ledger().records() == []  # a plan writes nothing


def test_plan_advises_nothing_that_the_floor_forbids(cli: Cli) -> None:
    plan = ["plan", "ward.schema.json", "--delta", "1e-6", "--policy", "office.policy.yaml"]
    plan += ["--model", "independent", "--tier", "rare-disease", "--epsilon"]
    little = cli(*plan, "0.1")
    assert little.code == 4 and "try  " not in little.out
    Path("office.policy.yaml").write_text(POLICY.replace("0.405", "0.16"))
    contradiction = cli(*plan, "0.2")
    assert contradiction.code == 4 and "try  " not in contradiction.out


def test_plan_checks_names_as_a_fit_does(cli: Cli) -> None:
    plan = ["plan", "ward.schema.json", "--delta", "1e-6", "--epsilon", "0.1"]
    refused = cli(*plan, "--dataset", "two words")
    assert refused.code == 2 and "a dataset's name has" in refused.err


def test_plan_says_which_policy_a_fit_would_keep(cli: Cli) -> None:
    cli("ledger", "policy", "office.policy.yaml")
    Path("other.policy.yaml").write_text(POLICY.replace("0.405", "0.3"))
    plan = ["plan", "ward.schema.json", "--delta", "1e-6", "--epsilon", "0.2", "--dataset", "ward"]
    plan += ["--model", "independent", "--tier", "standard", "--policy", "other.policy.yaml"]
    assert "has adopted the policy 'Office', which applies to fits" in cli(*plan).err


def test_plan_asks_the_ledger_about_a_dataset(cli: Cli) -> None:
    cli("ledger", "policy", "office.policy.yaml")
    fit(cli, "one", epsilon=0.4)
    plan = ["plan", "ward.schema.json", "--delta", "1e-6", "--model", "independent"]
    plan += ["--epsilon", "0.3", "--tier", "standard", "--dataset"]
    assert cli(*plan, "other-ward").code == 0
    assert cli(*plan, "ward-2020").code == 4


def test_a_policy_may_be_named_without_being_adopted(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert fit(cli, "run", epsilon=0.45, policy="office.policy.yaml").code == 4
    monkeypatch.setenv("DPSYNTH_POLICY", "office.policy.yaml")
    assert fit(cli, "run", epsilon=0.45).code == 4
    assert fit(cli, "run").code == 0
    cli("ledger", "policy", "office.policy.yaml")
    Path("office.policy.yaml").write_text(POLICY.replace("0.405", "3.0"))
    changed = fit(cli, "again")
    assert changed.code == 4 and "has adopted the policy 'Office'" in changed.err


def test_a_policy_with_mistakes_lists_them_and_changes_nothing(cli: Cli) -> None:
    Path("bad.policy.yaml").write_text(POLICY.replace("0.405", "-1").replace("models", "modles"))
    refused = cli("ledger", "policy", "bad.policy.yaml")
    assert refused.code == 2
    assert "caps.release" in refused.err and "did you mean 'models'" in refused.err
    assert Ledger().records() == []


def test_the_same_file_under_another_name_is_told(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DPSYNTH_LEDGER")  # the user's own ledger is made by the first fit
    first = fit(cli, "one").err
    assert "a new ledger was created" in first and "the same data" not in first
    output = fit(cli, "two", dataset="elsewhere")
    assert (
        output.code == 0 and "dpsynth: warning: the same data were fitted as dataset" in output.err
    )
    assert "'ward-2019'" in output.err
    assert "THE SAME FILE AS ward-2019" in cli("ledger", "show").out  # for whoever signs
    assert "warning" not in fit(cli, "three", dataset="elsewhere", data="other.csv").err
    cli("ledger", "policy", "office.policy.yaml")
    assert "'elsewhere'" in fit(cli, "four", dataset="ward-2020").err
    assert "ward-2019" not in fit(cli, "five", dataset="ward-2020", epsilon=0.01).err  # one group


def test_an_open_entry_is_closed_before_a_release(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(*_: object, **__: object) -> None:
        raise BudgetError("the server is gone")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "charge", lost)
        ended = fit(cli, "run")
    assert ended.code == 0 and "dpsynth ledger close RUN" in ended.err
    refused = cli("release", "run", "-o", "bundle")
    assert refused.code == 4 and "still open" in refused.err
    closed = cli("ledger", "close", "run")
    assert closed.code == 0 and "is charged" in closed.out
    assert cli("release", "run", "-o", "bundle").code == 0


def test_the_state_of_a_killed_fit_is_explained(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    book = Ledger()
    with monkeypatch.context() as patch:
        patch.setattr("os.getpid", lambda: 2**22 + 1)  # of no process
        entry = reserve(book, "ward")
    output = cli("ledger", "show").out
    assert "its process ended before it read any data, so you can void it" in output
    voided = cli("ledger", "void", entry.id[:8], "--reason", "killed while starting")
    assert voided.code == 0 and "no longer counts" in voided.out
    assert "ward: 0 fits" in cli("ledger", "show").out
