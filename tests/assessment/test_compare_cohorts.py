"""Cohorts side by side: the same patients, one table of measures, and a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsynth.assessment import Candidate, compare, evaluate, failed_gates
from dpsynth.eval import Gate

from ..support.clinic import clinic_run, clinic_schema, clinic_tables, write_clinic
from ..support.history_cohorts import grow_few_trees


@pytest.mark.long
def test_cohorts_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grow_few_trees(monkeypatch)
    schema, run = clinic_schema(), clinic_run()
    candidates = [Candidate.drawn(name, run, seed) for name, seed in (("one", 1), ("two", 2))]
    source = write_clinic(tmp_path / "source", clinic_tables())
    found = compare(schema, source, candidates, output=tmp_path / "page")
    assert [document["tables"]["synthetic"]["name"] for document in found] == ["one", "two"]
    assert found[0]["patients"]["source"] == found[1]["patients"]["source"]
    page = (tmp_path / "page/comparison.html").read_text()
    assert "Patients" in page and "Headline measures" in page
    document = json.loads((tmp_path / "page/comparison.json").read_text())
    assert list(document["evaluations"]) == ["one", "two"]


def test_internal_gates_of_histories_are_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    grow_few_trees(monkeypatch)
    drawn = Candidate("drawn", clinic_run().sample(120, seed=1))
    one = Gate("calendar", "at_most", -1.0, "a gate that nothing passes")
    limits = [one, Gate("c2st", "at_most", 0.8, "a gate of one table")]
    document = evaluate(clinic_schema(), clinic_tables(), drawn, limits=limits)
    assert [(gate["key"], gate["passed"]) for gate in document["gates"]] == [("calendar", False)]
    assert failed_gates(document) == ("calendar",)
