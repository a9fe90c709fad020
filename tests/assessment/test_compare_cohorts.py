"""Cohorts side by side: the same patients, one table of measures, and a page."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dpsynth.assessment import Candidate, compare
from dpsynth.errors import InputError

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


def test_internal_gates_are_about_one_table() -> None:
    with pytest.raises(InputError, match="gates are about one table"):
        from dpsynth.assessment import evaluate

        drawn = Candidate("drawn", clinic_run().sample(20, seed=1))
        evaluate(clinic_schema(), clinic_tables(), drawn, limits=[])
