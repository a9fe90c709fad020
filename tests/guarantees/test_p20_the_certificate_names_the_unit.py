"""P20: a certificate says whose presence is hidden: which unit, how many of its rows, which change.

The words are part of the claim. They have to be those that the accounting is about: one unit more
or less, with all its rows, and as many rows as the events account for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from dpsynth.bundle.checks import check_certificate
from dpsynth.certificate import Certificate, certify
from dpsynth.errors import ArtifactError
from dpsynth.schema import Schema
from dpsynth.synthesis import prepare

Change = Callable[[dict[str, Any]], dict[str, Any]]


@pytest.fixture
def document(clinic: Schema) -> dict[str, Any]:
    plan = prepare(clinic, epsilon=2.0, delta=1e-5, model="independent").plan
    return certify(clinic, plan, model="independent", charge=None)


def test_patients_are_named_with_their_rows(clinic: Schema, document: dict[str, Any]) -> None:
    assert document["adjacency"] == "add or remove one unit with all its rows"
    assert document["unit"] == {
        "name": "patient",
        "max_rows": 2,
        "keep": "window",
        "trim": True,
        "case": False,
        "leading_zeros": True,
        "missing_key": "drop",
        "person": None,
        "same_as": [],
        "max_units": 1,
        "max_units_basis": None,
    }
    assert document["population"] == 300
    assert {event["rows_per_unit"] for event in document["events"]} == {2}


@pytest.mark.parametrize("policy", ["drop", "own"])
def test_rows_without_a_key_are_said_to_be_units_where_they_are(
    policy: str, clinic: Schema
) -> None:
    document = clinic.to_dict()
    document["dpsynth"]["missing_key"] = policy
    schema = Schema.from_dict(document)
    plan = prepare(schema, epsilon=2.0, delta=1e-5, model="independent").plan
    words = " ".join(certify(schema, plan, model="independent", charge=None)["not_covered"])
    assert "one value written in several ways, is several units" in words
    assert ("a row without one is a unit of its own" in words) == (policy == "own")


@pytest.mark.parametrize(
    "words", ["replace one unit by another", "add or remove one row", "add or remove one unit"]
)
def test_another_change_is_no_certificate(words: str, document: dict[str, Any]) -> None:
    with pytest.raises(ArtifactError, match="adjacency"):
        Certificate.from_dict(document | {"adjacency": words})


@pytest.mark.parametrize(
    "unit",
    [
        {"name": None, "max_rows": 1},  # the epsilon of rows
        {"max_rows": 1},
        {"name": "note"},
        {"keep": "random"},
        {"trim": False},
        {"case": True},
        {"leading_zeros": False},
        {"missing_key": "own"},
        {"person": "patient"},
        {"person": "patient", "same_as": ["mrn"]},
        {"person": "patient", "max_units": 2, "max_units_basis": "a guess"},
    ],
)
def test_another_unit_is_found(
    unit: dict[str, Any], clinic: Schema, document: dict[str, Any]
) -> None:
    changed = document | {"unit": document["unit"] | unit}
    problems = check_certificate(Certificate.from_dict(changed), clinic, None)
    assert "unit is not that of schema.json" in [problem.message for problem in problems]
