"""What an attack could have seen: a control that fails voids only what rests on it."""

from __future__ import annotations

import copy
import doctest
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpsynth.cli.commands.audit import end, lines_of
from dpsynth.errors import GateError, InputError
from dpsynth.eval.attack_stats import Attack, People, TableAttack
from dpsynth.eval.attacks import attacked, sight, verdict_of
from dpsynth.eval.attacks import audit as module
from dpsynth.eval.attacks.controls import CONTROLS, control_table
from dpsynth.eval.attacks.linkability import ATTACK as LINKABILITY
from dpsynth.eval.attacks.memorization import ATTACK as MEMORIZATION
from dpsynth.eval.attacks.singling_out import ATTACK as SINGLING_OUT
from dpsynth.eval.core import Tables
from dpsynth.schema import Schema
from dpsynth.tables import simulate

from ...support.audit_example import audit, found

Json = dict[str, Any]


def with_failed(document: Json, key: str) -> Json:
    """The same audit with one control failed."""
    changed = copy.deepcopy(document)
    next(control for control in changed["controls"] if control["key"] == key)["passed"] = False
    return changed


def clinic(patients: int = 300) -> Tables:
    """A cohort with one modelled column."""
    document = Schema.load("demo").to_dict()
    kept = ("patient_id", "age")
    document["fields"] = [field for field in document["fields"] if field["name"] in kept]
    del document["dpsynth"]["rules"]
    schema = Schema.from_dict(document)
    sides = [simulate(patients, seed=seed)[list(kept)] for seed in (1, 2, 3)]
    sides[2]["patient_id"] = "h" + sides[2]["patient_id"].astype(str)
    return Tables.read(schema, sides[0], sides[1].drop(columns="patient_id"), sides[2])


def test_the_examples_of_the_docstrings_hold() -> None:
    tried = doctest.testmod(sight)
    assert tried.failed == 0 and tried.attempted > 0


def test_a_failed_control_voids_only_what_rests_on_it() -> None:
    document = with_failed(audit(), "jittered")
    before = {one.key: one.sees for one in sight.sights(audit())}
    after = {one.key: one for one in sight.sights(document)}
    changed = {key for key, one in after.items() if one.sees != before[key]}
    assert changed == {key for key in before if key.startswith("membership:") and before[key]}
    lost = after["membership:density"]
    assert lost.blind and "Every row a source row, moved" in lost.reason and lost.remedy
    assert verdict_of(document) == "quiet"


def test_what_a_blind_attack_found_stands() -> None:
    document = with_failed(found(), "jittered")
    assert verdict_of(document) == "found"
    hits = [one for one in sight.sights(document) if one.found]
    assert hits and not any(hit.blind for hit in hits)
    with pytest.raises(GateError, match="attacks succeeded"):
        end(document)


def test_only_a_broken_audit_proves_nothing() -> None:
    for document in (
        with_failed(found(), "fresh"),
        audit(broken=[{"attack": "linkability", "where": "table", "error": "ValueError"}]),
        audit(controls=[]),
    ):
        assert verdict_of(document) == "failed"
        with pytest.raises(GateError, match="the audit is broken"):
            end(document)


def test_a_leak_that_was_missed_is_told_and_ends_with_exit_code_3_if_nothing_could_see() -> None:
    document = with_failed(audit(), "jittered")
    end(document)  # the other attacks could have seen a leak
    for power in document["powers"]:
        power["least"] = None
    with pytest.raises(GateError, match=r"no attack could have seen a leak here"):
        end(document)
    lines = "\n".join(lines_of(document))
    assert "no attack succeeded" in lines and "what to change: " in lines


def test_an_older_document_that_called_itself_failed_is_read_by_its_controls() -> None:
    old = with_failed(audit(verdict="failed"), "jittered")
    assert "sights" not in old and verdict_of(old) == "quiet"


@pytest.mark.parametrize("planted, words", [(100, "than 100 "), (10_000, "no more canaries")])
def test_the_remedy_of_canaries_is_more_of_them(planted: int, words: str) -> None:
    assert words in sight.remedy({"parts": {"training": {"canaries": planted}}}, "training:white")


def test_a_wide_table_is_told_to_be_narrower() -> None:
    few = {"tables": {"holdout": {"units": 400}}, "columns": 33}
    assert "hold out more people than 400" in sight.remedy(few, "linkability")
    assert "fewer columns than 33" in sight.remedy(few, "linkability")


def test_one_modelled_column_raises_nothing() -> None:
    tables = clinic()
    rng = np.random.default_rng(3)
    people = People.of(tables, rng)
    attacks = (MEMORIZATION, LINKABILITY, SINGLING_OUT)
    made = [control_table(key, tables, people, rng) for key in CONTROLS]
    played = [control for table in made for control in table.play(attacks, people, rng)]
    assert not any(one.attack.startswith(("linkability", "singling")) for one in played)


def test_an_attack_that_raises_loses_no_other_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Attack:
        raise ZeroDivisionError("patient 17")

    broken = TableAttack("echo", "Echoes", "echoes", run=fails)
    attacks = (MEMORIZATION, broken)
    monkeypatch.setattr(module, "ATTACKS", attacks)
    noted: list[dict[str, str]] = []
    made, played = attacked(clinic(), claim=None, seed=1, progress=lambda *_: None, broken=noted)
    assert made["memorization"].findings and not made["echo"].findings
    assert {one["attack"] for one in noted} == {"echo", "controls"}
    assert {one.attack for one in played} == {"memorization:copies"}  # that attack has its control
    assert "patient 17" not in str(noted)
    with pytest.raises(ZeroDivisionError):
        attacked(clinic(), claim=None, seed=1, progress=lambda *_: None)


def test_bad_input_is_no_broken_attack(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any) -> Attack:
        raise InputError("too few people")

    refusing = SimpleNamespace(key="echo", title="Echoes", play=refuses)
    monkeypatch.setattr(module, "ATTACKS", (refusing,))
    with pytest.raises(InputError, match="too few people"):
        attacked(clinic(), claim=None, seed=1, progress=lambda *_: None, broken=[])


def test_an_attack_without_a_known_power_is_blind() -> None:
    document = audit()
    first, second = (power["key"] for power in document["powers"][:2])
    for finding in document["findings"]:
        finding["found"] = False
    document["powers"] = [one for one in document["powers"] if one["key"] != first]
    document["powers"][0] |= {"least": None, "sentence": "no leak is sure to be seen"}
    found = {one.key: one for one in sight.sights(document)}
    assert found[first].sees is None and found[first].blind and found[first].remedy
    assert found[second].sees is False and found[second].blind
    assert found[second].reason == "no leak is sure to be seen"
