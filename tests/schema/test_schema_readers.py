"""Table Schema tools read what a schema writes, and shipped schemas are complete."""

from __future__ import annotations

import copy
from typing import Any

import frictionless

from dpsynth.schema import Schema, shipped_schemas

from ..support.hospital_schema import coded, hospital


def errors(descriptor: dict[str, Any], names: list[str], *rows: list[Any]) -> list[str]:
    """What frictionless finds wrong in rows, one error type per finding."""
    resource = frictionless.Resource(data=[names, *rows], schema=descriptor_schema(descriptor))
    return [error.type for task in resource.validate().tasks for error in task.errors]


def descriptor_schema(descriptor: dict[str, Any]) -> frictionless.Schema:
    return frictionless.Schema.from_descriptor(copy.deepcopy(descriptor))


def test_frictionless_reads_the_synthetic_tables_schema() -> None:
    required = coded(name="race", constraints={"required": True})
    yes = coded(name="yes", enum=[0, 1], type="integer", constraints={"required": True})
    document_ = hospital()
    document_["fields"] += [required, yes]
    descriptor = Schema.from_dict(document_).to_table_schema()
    own = [field["dpsynth"] for field in descriptor["fields"] if "dpsynth" in field]
    assert all(set(one) == {"ucum"} for one in own) and "dpsynth" not in descriptor
    names = [field["name"] for field in descriptor["fields"]]
    good = [3, "F", 70.5, "2000-12-31", "2000-06-01T10:00:00", 1999, "true", "blood", "other", 1]
    empty = [3] + [""] * 7 + ["M", 0]
    assert errors(descriptor, names, good, empty) == []
    for place, wrong in enumerate(
        [15, "other", 301, "2021-01-01", "1999-12-31T00:00:00", 1989, "maybe", "250.83", "X", 2]
    ):
        row = [*good[:place], wrong, *good[place + 1 :]]
        assert len(errors(descriptor, names, row)) == 1, names[place]
    for place in (0, 8, 9):
        assert errors(descriptor, names, [*good[:place], "", *good[place + 1 :]]) != []


def test_frictionless_reads_the_whole_document() -> None:
    written = Schema.from_dict(hospital()).to_dict()
    assert descriptor_schema(written).to_descriptor() == written
    names = [field["name"] for field in written["fields"]]
    row = ["007", "2000-01-01T00:00:00", "14", "F", "70,5", "31/12/2000", "2000-06-01T10:00:00"]
    row += ["1999", "yes", "250.83", "any text"]
    assert errors(written, names, row) == []
    assert errors(written, names, [*row[:5], "31/12/2021", *row[6:]]) == ["constraint-error"]
    assert errors(written, names, [*row[:3], "?", *row[4:]]) == []


def test_shipped_schemas_are_complete_and_round() -> None:
    names = shipped_schemas()
    assert {"brfss2015", "cardio", "demo", "diabetes130"} <= set(names)
    for name in names:
        schema = Schema.load(name)
        schema.require_complete()
        assert Schema.from_dict(schema.to_dict()) == schema
        assert schema.name == name
        descriptor_schema(schema.to_dict())
        descriptor_schema(schema.to_table_schema())
