"""Every kind of schema is evaluated: dates, several tables, events alone, patients alone."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest

from dpsynth.encoding import Histories, HistoryCodec
from dpsynth.eval.longitudinal import evaluate_histories
from dpsynth.eval.longitudinal.cohort import HistoryFacts
from dpsynth.eval.longitudinal.pictures import shown_courses
from dpsynth.eval.report import longitudinal_page
from dpsynth.schema import LinkedSchema

from ...support.history_cohorts import grow_few_trees
from ...support.linked_rows import frames, patient_rows, read, together
from ...support.linked_tables import package
from ...support.some_cases import some_of


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    grow_few_trees(monkeypatch)


def histories(document: dict[str, Any], seed: int, size: int = 260) -> Histories:
    """Made-up patients, read from tables; of the tables that the document has."""
    rng = np.random.default_rng(seed)
    rows = together([patient_rows(f"p{seed} {number}", rng) for number in range(size)])
    names = [one["name"] for one in document["resources"]]
    tables = {name: table for name, table in frames(rows).items() if name in names}
    return read(tables, document=document, seed=seed)


def only(*names: str) -> dict[str, Any]:
    """The package with some of its tables."""
    document = package()
    document["resources"] = [one for one in document["resources"] if one["name"] in names]
    return document


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize(
    "names",
    some_of(
        [
            ("patients", "labs", "events", "visits", "orders"),
            ("patients",),
            ("patients", "events"),
            ("patients", "orders"),
            ("patients", "visits"),
        ],
        every=3,
    ),
)
def test_a_schema_with_some_tables_is_evaluated(names: tuple[str, ...]) -> None:
    document = only(*names)
    codec = HistoryCodec(LinkedSchema.from_dict(document))
    cohorts = [histories(document, seed) for seed in (1, 2, 3)]
    found = evaluate_histories(codec, *cohorts)
    parts = json.loads(found.to_json())
    keys = {one.key for one in found.measures}
    assert {"baseline1", "baseline2"} <= keys
    assert ("rows_per_patient" in keys) == bool({"labs", "visits", "orders"} & set(names))
    assert ("gaps" in keys) == bool({"labs", "visits"} & set(names))
    assert ("event_curves" in keys) == ("events" in names)
    assert ("transitions" in keys) == bool({"labs", "visits", "orders"} & set(names))
    for one in found.measures:
        reference = one.estimate.reference
        if one.estimate.n >= 100 and ":" not in one.key and reference is not None:
            assert one.estimate.value < 2.5 * reference + 0.1 or one.key.startswith("t"), one.key
    for audience in ("internal", "public"):
        assert longitudinal_page(parts, audience=audience)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_window_of_one_day_is_fine() -> None:
    document = only("patients", "visits")
    document["dpsynth"]["window"] = {"first": 0, "last": 0, "basis": "protocol"}
    document["resources"][0]["schema"]["fields"][2]["constraints"] |= {"maximum": 1}
    codec = HistoryCodec(LinkedSchema.from_dict(document))
    found = evaluate_histories(codec, histories(document, 1), histories(document, 2))
    assert found.measure("gaps").estimate.value == 0.0
    assert all(math.isfinite(one.estimate.value) for one in found.measures)


def crowded_package(tests: int) -> dict[str, Any]:
    """The package with many tests in its long table, of which most are never measured."""
    document = only("patients", "labs", "visits")
    series = document["resources"][1]["dpsynth"]["series"]
    series["tests"] |= {
        f"t{number:02}": {"minimum": 0, "maximum": 9, "step": 1, "bounds_basis": "x"}
        for number in range(tests)
    }
    return document


def test_many_tests_leave_one_note_and_pictures_for_every_table() -> None:
    document = crowded_package(9)
    codec = HistoryCodec(LinkedSchema.from_dict(document))
    train, drawn = (histories(document, seed) for seed in (1, 2))
    found = evaluate_histories(codec, drawn, train, seed=3)
    few = [note for note in found.notes if "have several rows of" in note]
    assert len(few) == 1 and "labs t00; labs t01" in few[0] and "and 4 more" in few[0]
    shown = shown_courses(HistoryFacts.of(codec).series)
    series = HistoryFacts.of(codec).series
    assert {series[number].place[0] for number, _ in shown} == {0, 1} and len(shown) == 6
    assert shown == sorted(shown)
