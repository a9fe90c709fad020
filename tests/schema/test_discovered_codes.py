"""Codes with ``discover``: what may be declared, and a schema with the codes that were found."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpsynth.errors import SchemaError
from dpsynth.models import planned_domain
from dpsynth.schema import Rule, Schema, as_declared, with_found
from dpsynth.schema.code_systems.codes import PATTERNS, check_pattern

from ..support.discovered_ward import DEVICE, ICD, discovered_ward

FOUND = {"diagnosis": ("250.01", "428.0"), "device": ("A001", "B002")}


def test_before_a_fit_categories_are_the_groups_or_other() -> None:
    schema = discovered_ward()
    assert "circulatory" in schema.column("diagnosis").levels
    assert schema.column("device").levels == ("other",)
    assert [column.discovers for column in schema.modelled] == [True, True, False]


def test_found_codes_stand_in_their_groups() -> None:
    schema = with_found(discovered_ward(), FOUND)
    levels = schema.column("diagnosis").levels
    assert levels.index("428.0") + 1 == levels.index("circulatory")
    codes = schema.column("diagnosis").codes
    assert codes is not None
    assert dict(zip(codes.categories, codes.group_of, strict=True))["250.01"] == "endocrine"
    assert schema.column("device").levels == ("A001", "B002", "other")
    assert "not listed" in schema.column("diagnosis").labels["circulatory"]


def test_documents_keep_what_was_found_and_digests_what_was_declared() -> None:
    declared = discovered_ward()
    schema = with_found(declared, FOUND)
    again = Schema.from_dict(schema.to_dict())
    assert again == schema and as_declared(again) == declared
    assert again.hash() == declared.hash()
    assert Schema.from_dict(declared.to_dict()) == declared
    other = discovered_ward(device={**DEVICE, "pattern": "[A-Z][0-9]{4}"})
    assert other.hash() != declared.hash()
    enum = next(f for f in schema.to_table_schema()["fields"] if f["name"] == "device")
    assert enum["constraints"]["enum"] == ["A001", "B002", "other"]


def test_a_plan_is_the_same_before_and_after_codes_are_found() -> None:
    declared = discovered_ward()
    complete = with_found(declared, FOUND)
    assert planned_domain(complete) == planned_domain(declared)
    sizes = dict(zip(("diagnosis", "device", "sex"), planned_domain(declared).sizes, strict=True))
    assert sizes["diagnosis"] > 2000 and sizes["device"] > 2000


@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ({"discover": True}, "pattern: is missing: a code that is found is published"),
        ({"discover": True, "pattern": ".*"}, "free text could fit it"),
        ({"discover": True, "pattern": "[A-Z]+"}, "free text could fit it"),
        ({"discover": True, "pattern": "[A-Za-z]{2,12}"}, "names or dates fit the pattern"),
        ({"discover": True, "pattern": "[0-9/.-]{8,10}"}, "names or dates fit the pattern"),
        ({"discover": True, "pattern": "([A-Z]"}, "check its parentheses"),
        ({"discover": True, "pattern": "A?"}, "the empty text fits"),
        ({"discover": True, "pattern": "A?B?C?D?E?F?G?"}, "at most 6 parts"),
        ({"discover": True, "pattern": "A" * 201}, "at most 200 characters"),
        ({**ICD, "list": {"codes": ["1"]}}, "a list says which codes there are"),
        ({**ICD, "several": {"most": 5}}, "where a cell holds one code"),
        ({"discover": True, "system": "ICD-9-CM"}, "name a system and a rollup"),
        ({**ICD, "rollup": "verse"}, "ICD-9-CM"),
        ({**DEVICE, "most": 30_000}, "at most 20,000"),
        ({**DEVICE, "expected": 0}, "a whole number of at least 1"),
        ({**DEVICE, "found": ["B002", "A001"]}, "is written by a fit"),
        ({**DEVICE, "found": ["Maria"]}, "is written by a fit"),
        ({**DEVICE, "found": ["A001", "A002"], "most": 1}, "is written by a fit"),
        ({**DEVICE, "discover": "yes"}, "true or false is expected"),
        ({**DEVICE, "depth": 3}, "there is no such key"),
    ],
)
def test_mistakes_are_said_in_words(codes: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as raised:
        discovered_ward(device=codes)
    assert message in str(raised.value)


def test_a_rule_about_a_code_that_is_not_found_says_where_it_stands() -> None:
    schema = with_found(discovered_ward(), FOUND)
    rule = Rule.parse("diagnosis == '250.01' or diagnosis == '401.9'")
    [problem] = rule.problems(schema.modelled)
    assert problem == (
        "column 'diagnosis' has no category '401.9'; a code that no fit has found stands as its "
        "group or as other"
    )


def test_a_code_that_is_not_found_must_not_stop_a_fit() -> None:
    document = discovered_ward().to_dict()
    document["fields"][2]["dpsynth"]["on_unknown"] = "refuse"
    with pytest.raises(SchemaError, match="a code that is not found must go somewhere"):
        Schema.from_dict(document)
    document["fields"][2]["dpsynth"]["on_unknown"] = "missing"
    assert Schema.from_dict(document).column("device").levels == ()


def test_shipped_patterns_are_as_narrow_as_declared_ones_must_be() -> None:
    for system, pattern in PATTERNS.items():
        assert check_pattern(pattern) == pattern
        rollup = "level-1" if system == "ATC" else "chapter"
        codes = {"system": system, "rollup": rollup, "discover": True}
        assert discovered_ward(device=codes).column("device").discovers


@pytest.mark.parametrize(
    ("system", "rollup", "cell", "code"),
    [
        ("ICD-10-CM", "chapter", " e11.9 ", "E11.9"),
        ("ICD-10-GM", "block", "E11.90", "E11.90"),
        ("ICD-10-GM", "block", "E11.90G", None),
        ("ATC", "level-2", "a10ba02", "A10BA02"),
        ("ATC", "level-2", "A10", None),  # a group, no code within it
        ("ICD-9-CM", "chapter", "E812", "E812"),
        ("ICD-9-CM", "chapter", "428.012", None),
    ],
)
def test_which_cells_hold_a_code(system: str, rollup: str, cell: str, code: str | None) -> None:
    own = {"system": system, "rollup": rollup, "discover": True}
    codes = discovered_ward(device=own).column("device").codes
    assert codes is not None and codes.candidate(cell) == code


def test_reasons_keep_their_labels_beside_the_codes_that_were_found() -> None:
    document = discovered_ward().to_dict()
    device = next(one for one in document["fields"] if one["name"] == "device")
    device["dpsynth"]["missing"] = {"refused": ["Q001"]}
    declared = Schema.from_dict(document)
    complete = with_found(declared, FOUND)
    assert complete.column("device").labels == {"refused": "missing: refused"}
    assert Schema.from_dict(complete.to_dict()) == complete and as_declared(complete) == declared


def test_a_list_beside_discover_is_one_too_many_and_is_not_read(tmp_path: Path) -> None:
    document = discovered_ward().to_dict()
    document["fields"][2]["dpsynth"]["codes"] |= {"list": "nowhere.csv"}
    (tmp_path / "ward.schema.json").write_text(json.dumps(document))
    with pytest.raises(SchemaError, match="remove discover, or the list") as raised:
        Schema.load(tmp_path / "ward.schema.json")
    assert "cannot be read" not in str(raised.value)
