"""Record linkage: what is counted, that both registers are charged, and what forgers try."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

import dpsynth
from dpsynth._util.strict_json import written
from dpsynth.certificate import Certificate, OtherRegister, json_schema, not_covered, readings
from dpsynth.errors import (
    ArtifactError,
    BudgetError,
    GateError,
    InputError,
    TableError,
    VerificationError,
)
from dpsynth.ledger import Ledger, adopt, sign, verify_ledger
from dpsynth.ledger.ledger import Reservation
from dpsynth.policy import Policy
from dpsynth.privacy import SeededEntropy, Unit
from dpsynth.stats import (
    Answers,
    LinkageRequest,
    close_answers,
    evidence_by_folder,
    release_answers,
    verify_answers,
)
from dpsynth.stats.linking import open_pairs, read_pairs

from ..support.two_registers import BUDGET, PEOPLE, pairs, request

CAP = {"epsilon": 3, "basis": "board"}
POLICY: dict[str, Any] = {"dpsynth_policy": 1, "name": "office", "delta": 1e-4}
APART = request(same_people=False)


def office(*, cap: float = 3, **changes: Any) -> Policy:
    """A policy by which the people of both registers draw on one budget."""
    document = POLICY | {"caps": {"total": CAP | {"epsilon": cap}}, "datasets": PEOPLE}
    return Policy.from_dict(document | changes, "office")


@pytest.fixture(scope="module")
def found() -> Answers:
    return dpsynth.linkage(
        pairs(),
        LinkageRequest.from_dict(request()),
        **BUDGET,
        without_ledger=True,
        entropy=SeededEntropy(1),
    )


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ledger:
    monkeypatch.setenv("DPSYNTH_USER", "ann")
    return Ledger.create(tmp_path / "ledger.sqlite")


@pytest.fixture
def joint(ledger: Ledger) -> Ledger:
    adopt(ledger, office())
    return ledger


@pytest.fixture
def folder(tmp_path: Path, ledger: Ledger) -> Path:
    (tmp_path / "request.json").write_text(json.dumps(APART))
    place = tmp_path / "out"
    dpsynth.linkage(pairs(), tmp_path / "request.json", **BUDGET, ledger=ledger, output=place)
    return place


@pytest.fixture
def shared(tmp_path: Path, joint: Ledger) -> Path:
    place, asked = tmp_path / "shared", LinkageRequest.from_dict(request())
    dpsynth.linkage(pairs(), asked, **BUDGET, ledger=joint, output=place)
    return place


def test_pairs_are_read_by_their_own_cells() -> None:
    asked = LinkageRequest.from_dict(request())
    table = pairs(4)
    table.loc[0, ["birth_id", "score", "match"]] = ["", "0.95", "1"]  # no record
    table.loc[1, ["score", "match"]] = ["high", "1"]
    table.loc[2, ["score", "match"]] = ["0.49", "1"]
    table.loc[3, ["score", "match"]] = ["0.9", " 1 "]
    table["match"] = ["1", "1", "1", " 1 ", "maybe", "0", "0", ""]
    table.loc[4:, "score"] = ["0.71", "0.5", "9", "0.6"]
    read = read_pairs(open_pairs(table, asked), asked)
    assert read["matches"].cells.tolist() == [[True, True, True]]
    assert read["non-matches"].cells.tolist() == [[True, False, False], [True, True, True]]
    assert read["not reviewed"].cells.tolist() == [[True, True, False], [True, False, False]]


def test_figures_are_near_those_of_the_pairs(found: Answers) -> None:
    tables = {one.name: one.table for one in found.results}
    table, bands = tables["thresholds"], tables["bands"]
    for name in ("accepted", "matches", "non-matches", "not reviewed"):
        assert (np.diff(table[name]) <= 0).all() and (table[name] >= 0).all()
    for name in ("accepted", "precision", "recall", "F1"):
        known = table[table[name].notna()]
        assert (known[f"{name}: lower"] <= known[name]).all()
        assert (known[name] <= known[f"{name}: upper"]).all()
    assert table["recall"][0] == 1 and len(bands) == 9
    assert abs(table["matches"][0] - 360) < 200


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"registers": request()["registers"][:1]}, "two"),
        ({"score": {"column": "score", "thresholds": [0.7, 0.7]}}, "rise"),
        ({"score": {"column": "match", "thresholds": [0.7]}}, "names of their own"),
        ({"cap": {"matches": 0, "others": 1, "basis": "x"}}, "cap.matches"),
        ({"match": {"column": "m", "matches": ["1"], "others": ["1"]}}, "in common"),
        ({"same_people": "yes"}, "same_people"),
        ({"confidence": 2}, "confidence"),
        ({"own_records": {"value": False, "basis": "top 3"}}, "best few candidates"),
        ({"own_records": {"value": True, "basis": " "}}, "own_records.basis"),
        ({"own_records": {"value": True}}, "basis"),
        ({"own_records": True}, "own_records"),
        ({"more": 1}, "no key 'more'"),
    ],
)
def test_what_is_no_request_is_refused(change: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        LinkageRequest.from_dict(request(**change))


def test_a_person_has_records_in_both_registers_unless_the_office_says_not() -> None:
    for same_people, records in ((True, 2), (False, 1)):
        asked = LinkageRequest.from_dict(request(same_people=same_people))
        assert {share.event.records for share in asked.shares()} == {records}  # type: ignore[union-attr]


def test_both_registers_are_charged_verified_and_released(
    folder: Path, ledger: Ledger, tmp_path: Path
) -> None:
    entries = ledger.entries()
    assert [entry.dataset for entry in entries] == ["births", "cancers"]
    assert {entry.status for entry in entries} == {"charged"}
    assert {entry.unit.name for entry in entries} == {"birth_id", "case_id"}
    assert "both registers" in verify_answers(folder, ledger=ledger)[-1]
    assert verify_ledger(ledger, evidence_by_folder([folder]))
    release_answers(folder, tmp_path / "bundle", ledger=ledger)
    assert all(len(entry.releases) == 1 for entry in ledger.entries())
    certificate = Answers.load(folder).certificate
    jsonschema.Draft202012Validator(json.loads(json_schema())).validate(certificate.to_dict())
    assert Certificate.from_dict(certificate.to_dict()) == certificate
    assert certificate.to_dict()["second"] is not None and not certificate.is_joint
    with pytest.raises(BudgetError, match="already charged"):
        close_answers(ledger, folder)


def test_a_second_charge_that_is_refused_leaves_no_first(ledger: Ledger, tmp_path: Path) -> None:
    asked = LinkageRequest.from_dict(APART)
    terms = BUDGET | {"epsilon": 2.5, "dataset_a": "others"}
    adopt(ledger, Policy.from_dict(POLICY | {"caps": {"total": CAP}}, "office"))
    dpsynth.linkage(pairs(seed=2), asked, **terms, ledger=ledger)
    with pytest.raises(BudgetError, match="cancers"):
        dpsynth.linkage(pairs(), asked, **BUDGET, ledger=ledger)
    assert [entry.dataset for entry in ledger.entries()] == ["others", "cancers"]
    assert (
        len(
            readings(
                dpsynth.linkage(
                    pairs(), asked, **BUDGET | {"epsilon": 0.4}, ledger=ledger
                ).certificate
            )
        )
        == 2
    )  # on cancers alone is there more than this


def test_people_that_the_policy_calls_the_same_are_not_assumed_apart(ledger: Ledger) -> None:
    group = {"datasets": {"births": ["births", "cancers"]}, "caps": {"total": CAP | {"epsilon": 9}}}
    adopt(ledger, Policy.from_dict(POLICY | group, "office"))
    asked = LinkageRequest.from_dict(request(same_people=False))
    with pytest.raises(BudgetError, match="shares people"):
        dpsynth.linkage(pairs(), asked, **BUDGET, ledger=ledger)
    assert ledger.entries() == []


def test_every_entry_needs_its_signatures(ledger: Ledger, tmp_path: Path, monkeypatch: Any) -> None:
    adopt(ledger, office(sign_off={"people": 1}, datasets={}))
    asked, place = LinkageRequest.from_dict(APART), tmp_path / "out"
    dpsynth.linkage(pairs(), asked, **BUDGET, ledger=ledger, output=place)
    monkeypatch.setenv("DPSYNTH_USER", "bob")
    first, second = ledger.entries()
    sign(ledger, first.id)
    with pytest.raises(BudgetError, match="1 more person"):
        release_answers(place, tmp_path / "bundle", ledger=ledger)
    sign(ledger, second.id)
    release_answers(place, tmp_path / "bundle", ledger=ledger)


def test_people_of_both_registers_spend_once_from_one_budget(
    shared: Path, joint: Ledger, tmp_path: Path
) -> None:
    [entry] = joint.entries()
    assert entry.status == "charged" and joint.spent("cancers") == joint.spent("births")
    assert joint.spent("births").epsilon_sum == 2.0
    certificate = Answers.load(shared).certificate
    assert certificate.is_joint and certificate.ledger is not None
    assert certificate.ledger.scope == ("births", "cancers", "people")
    assert len(readings(certificate)) == 1
    jsonschema.Draft202012Validator(json.loads(json_schema())).validate(certificate.to_dict())
    assert "the budget that both registers share" in verify_answers(shared, ledger=joint)[-1]
    assert verify_ledger(joint, evidence_by_folder([shared]))
    release_answers(shared, tmp_path / "bundle", ledger=joint)
    assert len(joint.entries()[0].releases) == 1
    second = certificate.second
    assert second is not None
    whole, schema = Answers.load(shared), LinkageRequest.from_dict(request()).schemas[0]
    for charge in (replace(certificate.ledger, entry="0" * 32), None):
        other = replace(second, ledger=charge)
        words = not_covered(schema, certificate.ledger, "linkage", other)
        forged = replace(certificate, second=other, not_covered=words)
        for name, content in replace(whole, certificate=forged).files().items():
            (shared / name).write_bytes(content)
        with pytest.raises(ArtifactError, match="charges|stamps"):
            Answers.load(shared)


def admitted(ledger: Ledger) -> int:
    """How many of three answers about a person in both registers the ledger lets pass."""
    both, alone = (LinkageRequest.from_dict(one) for one in (request(), APART))
    asked = [
        (both, "births", "cancers"),
        (alone, "births", "girls"),
        (alone, "boys", "cancers"),
    ]
    passed = 0
    for number, (each, first, second) in enumerate(asked):
        terms = BUDGET | {"epsilon": 0.6, "dataset_a": first, "dataset_b": second}
        try:
            dpsynth.linkage(pairs(4, seed=number), each, **terms, ledger=ledger)
            passed += 1
        except BudgetError:
            pass
    return passed


def test_a_person_in_both_registers_keeps_the_cap(ledger: Ledger) -> None:
    adopt(ledger, office(cap=1.0))
    assert admitted(ledger) == 2


def test_registers_with_a_budget_each_are_caught(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The twin: both are charged, and nothing says that their people are the same."""
    adopt(ledger, office(cap=1.0, datasets={}))
    monkeypatch.setattr("dpsynth.ledger.ledger._require_shared", lambda pen, asked: None)
    monkeypatch.setattr("dpsynth.ledger.ledger._together", lambda asked: [[one] for one in asked])
    assert admitted(ledger) == 3


def test_people_of_both_need_one_budget_of_the_adopted_policy(ledger: Ledger) -> None:
    """A policy that is only named binds this answer, and no later one."""
    asked = LinkageRequest.from_dict(request())
    for policy in (None, office()):
        with pytest.raises(BudgetError, match="share one budget"):
            dpsynth.linkage(pairs(), asked, **BUDGET, ledger=ledger, policy=policy)
    assert ledger.entries() == []


def test_a_group_whose_people_were_linked_is_not_taken_apart(shared: Path, joint: Ledger) -> None:
    """The entry has the name of one register: the other would no longer count it."""
    for datasets in ({}, {"people": ["births", "others"]}):
        with pytest.raises(BudgetError, match="keep these datasets in one group"):
            adopt(joint, office(datasets=datasets))
    adopt(joint, office(datasets={"people": ["births", "cancers", "deaths"]}))


@pytest.mark.parametrize("population", [1000, 3000])
def test_the_second_register_keeps_the_policy(population: int, ledger: Ledger) -> None:
    """Its population counts, and what it has spent, by a named policy as by an adopted one."""
    small = request()["registers"]
    small[1]["population"] = {"value": population, "basis": "declared"}
    least = {"minimum_population": {"value": 1500, "basis": "board"}}
    for same in (False, True):
        asked = LinkageRequest.from_dict(request(registers=small, same_people=same))
        named = office(**least, datasets={})
        if same:
            adopt(ledger, office(**least))
            named = office(**least)
        terms = BUDGET | {"epsilon": 0.1}
        if population < 1500:
            with pytest.raises(BudgetError, match="cancers"):
                dpsynth.linkage(pairs(), asked, **terms, ledger=ledger, policy=named)
            assert ledger.entries() == []
        else:
            dpsynth.linkage(pairs(), asked, **terms, ledger=ledger, policy=named)


def test_a_named_policy_caps_the_second_register(ledger: Ledger) -> None:
    asked, named = LinkageRequest.from_dict(APART), office(datasets={})
    terms = BUDGET | {"epsilon": 2.5, "dataset_a": "others"}
    dpsynth.linkage(pairs(seed=2), asked, **terms, ledger=ledger, policy=named)
    with pytest.raises(BudgetError, match="cancers"):
        dpsynth.linkage(pairs(), asked, **BUDGET, ledger=ledger, policy=named)


def test_another_policy_for_the_second_register_is_refused(joint: Ledger) -> None:
    """Joined or not, what is asked of each register is held against the adopted policy."""
    first = reservation("births", joined=("cancers",))
    for second in (
        reservation("cancers", policy=office(cap=9)),
        reservation("cancers", unit=replace(first.unit, name="x", person="visitor")),
        reservation("cancers", epsilon=2.0),
    ):
        with pytest.raises((BudgetError, InputError)):
            joint.reserve_all([first, second])
    assert joint.entries() == []
    [entry] = joint.reserve_all([first, reservation("cancers")])
    assert entry.dataset == "births"


def reservation(dataset: str, **changes: Any) -> Reservation:
    """What linkage asks of the ledger for one register."""
    asked = LinkageRequest.from_dict(request())
    plan = asked.plan(1.0, 1e-6)
    whole: dict[str, Any] = {
        "purpose": "",
        "plan": plan.to_dict(),
        "epsilon": 1.0,
        "delta": 1e-6,
        "model": "linkage",
        "schema_hash": asked.schemas[0].hash(),
        "unit": Unit.of(asked.schemas[0]),
        "allow_refuse": False,
        "population": 2000,
    }
    return Reservation(dataset, **whole | changes)


def undeclared() -> dict[str, Any]:
    asked = request()
    del asked["own_records"]
    return asked


def test_pairs_that_may_depend_on_others_are_refused_before_the_charge(
    joint: Ledger, command_line: Callable[..., Any], tmp_path: Path
) -> None:
    with pytest.raises(InputError, match="best few candidates"):
        dpsynth.linkage(
            tmp_path / "absent.csv", LinkageRequest.from_dict(undeclared()), **BUDGET, ledger=joint
        )
    assert joint.entries() == []
    (tmp_path / "request.json").write_text(json.dumps(undeclared()))
    refused = command_line("linkage", "request.json", "--delta", "1e-6", "--what-if")
    assert refused.code == 2 and "own_records" in refused.err


def test_the_declaration_is_in_the_certificate_and_on_the_page(found: Answers) -> None:
    why = request()["own_records"]["basis"]
    assert found.certificate.second is not None and found.certificate.second.own_records == why
    assert any(
        "two records alone" in line and why in line for line in found.certificate.not_covered
    )
    assert why in found.files()["report.html"].decode()


def test_another_entry_for_the_second_register_is_found(folder: Path, ledger: Ledger) -> None:
    [evidence] = evidence_by_folder([folder]).values()
    second = evidence.certificate.second
    assert second is not None and second.ledger is not None
    assert evidence.certificate.ledger is not None
    forged: list[OtherRegister] = [
        replace(second, ledger=replace(second.ledger, fits=2)),
        replace(second, population=3),
        replace(second, ledger=evidence.certificate.ledger),
    ]
    for one in forged:
        wrong = replace(evidence, certificate=replace(evidence.certificate, second=one))
        with pytest.raises(VerificationError):
            verify_ledger(ledger, {"out": wrong})


Forge = Callable[[Answers], Answers]
FORGED: dict[str, Forge] = {
    "a threshold more": lambda one: replace(
        one, numbers=dict(one.numbers) | {"matches": np.array([5, 4, 3, 2])}
    ),
    "a class more": lambda one: replace(one, numbers=dict(one.numbers) | {"x": np.zeros(3, int)}),
    "a lesser cost": lambda one: replace(
        one, certificate=replace(one.certificate, composed_epsilon=0.01)
    ),
    "one register": lambda one: replace(one, certificate=replace(one.certificate, second=None)),
    "one register, in the words of one": lambda one: replace(
        one,
        certificate=replace(
            one.certificate,
            second=None,
            not_covered=not_covered(one.request.schemas[0], None, "linkage"),
        ),
    ),
    "people apart": lambda one: replace(
        one, request=LinkageRequest.from_dict(request(same_people=False))
    ),
    "no declaration": lambda one: replace(one, request=LinkageRequest.from_dict(undeclared())),
    "another reason": lambda one: replace(
        one,
        request=LinkageRequest.from_dict(
            request(own_records={"value": True, "basis": "we say so"})
        ),
    ),
    "no word of what is assumed": lambda one: replace(
        one,
        certificate=replace(
            one.certificate,
            not_covered=tuple(w for w in one.certificate.not_covered if "own unit" not in w),
        ),
    ),
    "no stamp": lambda one: replace(one, stamps=("seeded-entropy",)),
}


@pytest.mark.parametrize("change", FORGED)
def test_what_nobody_paid_for_does_not_load(change: str, found: Answers, tmp_path: Path) -> None:
    """Though the digest is that of the forger."""
    forged = FORGED[change](found)
    for name, content in (found.files() | {"linkage.json": written(forged.document)}).items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ArtifactError, match="linkage.json"):
        Answers.load(tmp_path)


def test_a_change_is_found_and_a_stamp_is_kept(found: Answers, tmp_path: Path) -> None:
    found.save(tmp_path / "out")
    assert Answers.load(tmp_path / "out").digest == found.digest
    with pytest.raises(GateError, match="no-ledger"):
        release_answers(tmp_path / "out", tmp_path / "bundle")
    path = tmp_path / "out" / "bands.csv"
    path.write_bytes(path.read_bytes().replace(b"match", b"catch", 1))
    with pytest.raises(ArtifactError, match="changed"):
        Answers.load(tmp_path / "out")


def test_the_command_plans_and_charges(command_line: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "request.json").write_text(json.dumps(request()))
    pairs().to_csv(tmp_path / "pairs.csv", index=False)
    line = ("linkage", "request.json", "--delta", "1e-6")
    wondered = command_line(*line, "--what-if", "--json")
    assert wondered.code == 0 and "0.5" in wondered.json["epsilons"]
    planned = command_line(*line, "--epsilon", "1")
    assert planned.code == 0 and "confidence 95 %" in planned.out
    both = ("--dataset-a", "births", "--dataset-b", "cancers")
    missing = command_line(*line, "pairs.csv", "--epsilon", "1", *both[:2], "-o", "out")
    assert missing.code == 2 and "--dataset-b" in missing.err
    same = command_line(*line, "pairs.csv", "--epsilon", "1", *both[:3], "Births", "-o", "out")
    assert same.code == 2 and "two are needed" in same.err
    alone = command_line(*line, "pairs.csv", "--epsilon", "1", *both, "-o", "out")
    assert alone.code == 4 and "share one budget" in alone.err
    (tmp_path / "policy.json").write_text(json.dumps(office().to_dict()))
    assert command_line("ledger", "policy", "policy.json").code == 0
    done = command_line(*line, "pairs.csv", "--epsilon", "1", *both, "-o", "out")
    assert done.code == 0 and "once, to the budget that births and cancers share" in done.out
    assert command_line("verify", "out", "--ledger").code == 0
    (tmp_path / "request.json").write_text(json.dumps(APART))
    split = ("--dataset-a", "girls", "--dataset-b", "boys")
    done = command_line(*line, "pairs.csv", "--epsilon", "1", *split, "-o", "out2")
    assert done.code == 0 and "charged to births and to cancers" in done.out


def numbered(*keys: str, kind: str = "int64") -> Any:
    """Pairs whose keys are numbers, of a type of Arrow."""
    table = pairs(8)
    for key in keys:
        table[key] = table[key].str[1:].astype("int64")
    return pa.Table.from_pandas(table.astype(dict.fromkeys(keys, kind)), preserve_index=False)


def units_of(source: Any) -> list[list[int]]:
    asked = LinkageRequest.from_dict(request())
    read = read_pairs(open_pairs(source, asked), asked)
    return [[*links.first, *links.second] for links in read.values()]


@pytest.mark.parametrize("keys", [("birth_id",), ("case_id",), ("birth_id", "case_id")])
def test_keys_of_either_register_may_be_whole_numbers(
    keys: tuple[str, ...], tmp_path: Path
) -> None:
    pa.parquet.write_table(numbered(*keys), tmp_path / "pairs.parquet")
    for source in (numbered(*keys), tmp_path / "pairs.parquet"):
        assert units_of(source) == units_of(pairs(8))


@pytest.mark.parametrize("key", ["birth_id", "case_id"])
def test_keys_of_neither_register_may_be_floating_point_numbers(key: str, tmp_path: Path) -> None:
    asked = LinkageRequest.from_dict(request())
    pa.parquet.write_table(numbered(key, kind="float64"), tmp_path / "pairs.parquet")
    for source in (numbered(key, kind="float64"), tmp_path / "pairs.parquet"):
        with pytest.raises(TableError, match=f"'{key}' holds floating-point numbers.*the key"):
            open_pairs(source, asked)
    empty = pairs(8).assign(**{key: None})
    with pytest.raises(TableError, match=f"'{key}' holds no cell at all"):
        open_pairs(empty, asked)
    large = pairs(8).assign(**{key: pd.array([2**53] * 16, "Int64")})
    with pytest.raises(TableError, match=f"'{key}' holds whole numbers that may have been rounded"):
        open_pairs(large, asked)


def test_a_register_whose_missing_keys_are_padded_has_keys_of_text() -> None:
    """007 means missing there, and no whole number is written so."""
    for place, key in enumerate(("birth_id", "case_id")):
        document = request()
        document["registers"][place]["missing"] = ["", "007"]
        with pytest.raises(TableError, match=f"'{key}' holds whole numbers, but the schema"):
            open_pairs(numbered(key), LinkageRequest.from_dict(document))
