"""Labels end to end: charged before reading, derived anew on disk, and learned from the votes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpsynth
from dpsynth._util.strict_json import written
from dpsynth.errors import BudgetError, InputError
from dpsynth.ledger import Ledger
from dpsynth.privacy import PaidEntropy, SeededEntropy
from dpsynth.schema import Schema
from dpsynth.stats import Answers, LabelsRequest, Queries, what_if

from ..support.labelled_ward import BUDGET, WARD, labelled_ward, patients


@pytest.fixture(scope="module")
def found() -> Answers:
    return labelled_ward()


def test_the_student_learns_what_the_patients_tell(found: Answers) -> None:
    table = found.table("labelled")
    assert list(table.columns) == ["age", "sex", "ill"]
    right = (table["ill"] == "yes") == (table["age"].astype(int) > 50)
    assert right.mean() > 0.8
    shares = found.table("votes")
    assert list(shares.columns[:3]) == ["row", "teachers", "student"]
    assert ((shares["share: yes"] > 0.5) == (table["ill"] == "yes")).mean() > 0.95
    assert (shares[["share: no", "share: yes"]].sum(axis=1) - 1).abs().max() < 1e-3


def test_rows_that_are_not_asked_are_labelled_too() -> None:
    seeded = {"without_ledger": True, "entropy": SeededEntropy(1)}
    queries = patients(80, 2, label=False)
    some = dpsynth.labels(
        patients(500, 1), queries, WARD, "ill", **BUDGET, teachers=50, asked=60, **seeded
    )
    assert some.numbers["votes"].shape == (60, 2) and len(some.table("labelled")) == 80
    assert (some.table("votes")["teachers"] == "").sum() == 20
    assert set(some.table("labelled")["ill"]) <= {"no", "yes"}


def test_labels_that_queries_have_are_not_read(found: Answers) -> None:
    """The same bytes with other labels, with a column more, or as typed cells."""
    plain = Queries.read(patients(300, 2, label=False), WARD, "ill")
    assert plain.digest == found.document["queries"]
    labelled = patients(300, 2)
    turned = labelled.assign(ill="no", note="x", age=labelled["age"].astype(int))
    assert Queries.read(turned, WARD, "ill").csv() == plain.csv()


def test_nobody_known_leaves_noise_alone() -> None:
    rows = patients(30, 1).assign(ill="")
    seeded = {"without_ledger": True, "entropy": SeededEntropy(1)}
    none = dpsynth.labels(rows, patients(9, 2), WARD, "ill", **BUDGET, teachers=9, **seeded)
    assert none.numbers["votes"].shape == (9, 2) and none.certificate.composed_epsilon <= 2


def test_nothing_but_noisy_votes_is_learned_of_private_rows(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Where the mechanism shows nothing, no byte of any file tells one private table from another.

    The second has cells that stand nowhere else, in columns that count and in one that does not.
    """
    secret = "Xq7canary"
    other = patients(80, 7).assign(note=secret)
    other.loc[::3, ["age", "ill"]] = secret
    votes = np.arange(18).reshape(9, 2)
    monkeypatch.setattr("dpsynth.stats.labelling.noisy_votes", lambda *_: votes)
    monkeypatch.setattr(PaidEntropy, "unused", ())  # else answers without their event are not kept
    quiet = {"without_ledger": True, "teachers": 5}
    first, second = (
        dpsynth.labels(rows, patients(9, 2), WARD, "ill", **BUDGET, **quiet).files()
        for rows in (patients(50, 1), other)
    )
    assert first == second
    shown = capfd.readouterr()
    assert secret not in shown.out + shown.err + str(second)


def test_a_private_table_that_cannot_be_read_shows_no_cell() -> None:
    document = WARD.to_dict()
    document["fields"][2]["dpsynth"] |= {"on_unknown": "refuse"}
    rows = patients(30, 1)
    rows.loc[3, "ill"] = "Xq7canary"
    quiet = {"without_ledger": True, "teachers": 5}
    with pytest.raises(InputError) as caught:
        dpsynth.labels(rows, patients(9, 2), Schema.from_dict(document), "ill", **BUDGET, **quiet)
    assert "ill" in str(caught.value) and "Xq7" not in str(caught.value)


def test_the_ledger_is_charged_before_a_row_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, states = Ledger.create(tmp_path / "ledger.sqlite"), []

    def read(*_: Any, **__: Any) -> Any:
        states.extend(entry.status for entry in ledger.entries())
        raise InputError("unreadable")

    monkeypatch.setattr("dpsynth.synthesis.readers.read_cohort", read)
    with pytest.raises(InputError, match="unreadable"):
        dpsynth.labels(patients(50, 1), patients(9, 2), WARD, "ill", **BUDGET, ledger=ledger)
    assert states == ["reading"]
    assert [entry.status for entry in ledger.entries()] == ["failed"]


def test_a_policy_binds_labels_as_it_does_fits(tmp_path: Path) -> None:
    from dpsynth.policy import Policy

    document = {"dpsynth_policy": 1, "name": "office", "delta": 1e-5, "models": ["statistics"]}
    document |= {"caps": {"total": {"epsilon": 9.0, "basis": "board"}}}
    refused = Policy.from_dict(document, "test")
    tables = (patients(50, 1), patients(9, 2), WARD, "ill")
    with pytest.raises(BudgetError, match="labels"):
        dpsynth.labels(
            *tables, **BUDGET, ledger=Ledger.create(tmp_path / "a.sqlite"), policy=refused
        )
    allowed = Policy.from_dict(document | {"models": ["labels"]}, "test")
    ledger = Ledger.create(tmp_path / "b.sqlite")
    assert dpsynth.labels(*tables, **BUDGET, ledger=ledger, policy=allowed).stamps == ()


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no column": ({"label": "il"}, "did you mean 'ill'"),
    "too many values": ({"label": "age"}, "too many"),
    "one teacher": ({"teachers": 1}, "from 2 to"),
    "a vote of another kind": ({"vote": "loud"}, "best"),
    "no rows asked": ({"asked": 0}, "1 to"),
    "more asked than there are": ({"asked": 21}, "no more can be asked"),
    "a column is missing": ({"queries": patients(20, 2)[["age", "ill"]]}, "sex"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_bad_tasks_are_refused_in_a_sentence(case: str) -> None:
    change, words = REFUSED[case]
    given = {"queries": patients(20, 2), "schema": WARD, "label": "ill"} | change
    with pytest.raises(InputError, match=words):
        LabelsRequest.of(**given)


def test_a_label_needs_another_column() -> None:
    document = WARD.to_dict()
    document["fields"] = document["fields"][2:]
    with pytest.raises(InputError, match="no other column"):
        LabelsRequest.of(patients(9, 2), Schema.from_dict(document), "ill")


def test_what_would_not_fit_in_memory_is_refused() -> None:
    with pytest.raises(InputError, match="can vote on 1 to 5,000 rows"):
        LabelsRequest.of(patients(9, 2), WARD, "ill", asked=5_001, teachers=20_000)


def test_more_budget_promises_more() -> None:
    request = LabelsRequest.of(patients(50, 2), WARD, "ill", teachers=500)
    tried = what_if(request, delta=1e-6, epsilons=(0.5, 2.0))
    few, more = tried[0.5].values, tried[2.0].values
    assert few["sigma"] > more["sigma"] and few["student_sd"] > more["student_sd"]
    assert few["right_at_lead"]["0.4"] < more["right_at_lead"]["0.4"] <= 1
    assert few["answerable_by_votes"] < more["answerable_by_votes"]


def test_a_synthetic_table_is_read_as_it_is_written(tmp_path: Path) -> None:
    document = WARD.to_dict()
    document["dpsynth"]["dialect"] = {"delimiter": ";"}
    schema = Schema.from_dict(document)
    rows = patients(20, 2, label=False)
    rows.to_csv(tmp_path / "synthetic.csv", index=False)
    rows.to_csv(tmp_path / "public.csv", index=False, sep=";")
    synthetic = Queries.read(tmp_path / "synthetic.csv", schema, "ill")
    public = Queries.read(tmp_path / "public.csv", schema, "ill")
    assert synthetic.written and not public.written
    assert synthetic.csv() == public.csv()
    (tmp_path / "none.csv").write_text("age\n1\n")
    with pytest.raises(InputError, match="sex"):
        Queries.read(tmp_path / "none.csv", schema, "ill")


def test_the_command_plans_labels_and_verifies(
    command_line: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "ward.json").write_bytes(written(WARD.to_dict()))
    patients(20, 2, label=False).to_csv(tmp_path / "public.csv", index=False)
    patients(99, 1).to_csv(tmp_path / "extract.csv", index=False)
    task = ("labels", "ward.json", "public.csv")
    options = ("--label", "ill", "--teachers", "9", "--delta", "1e-6")
    planned = command_line(*task, *options, "--epsilon", "2")
    assert planned.code == 0 and "student" in planned.out and "cost" in planned.out
    wondered = command_line(*task, *options, "--what-if", "--json")
    assert wondered.code == 0 and '"right_at_lead"' in wondered.out
    asked = (*task, "extract.csv", *options, "--epsilon", "2")
    done = command_line(*asked, "--dataset", "d", "-o", "out")
    assert done.code == 0, done.err
    assert [entry.status for entry in Ledger().entries()] == ["charged"]
    assert command_line("verify", "out").code == 0
    assert command_line("release", "out", "-o", "bundle").code == 0
    missing = command_line(*asked)
    assert missing.code == 2 and "--dataset" in missing.err
    alone = command_line(*task, *options)
    assert alone.code == 2 and "--epsilon" in alone.err
    both = command_line(*task, *options, "--epsilon", "1", "--what-if")
    assert both.code == 2 and "leave out" in both.err
