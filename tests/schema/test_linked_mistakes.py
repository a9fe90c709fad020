"""Every mistake in a schema of linked tables is reported: where it is, and what to do."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from dpsynth.errors import SchemaError
from dpsynth.schema import LinkedSchema

from ..support.document_mistakes import GONE, problems_of, with_value
from ..support.linked_tables import choice, package

CHILD = "resources.1.dpsynth"
CASES: list[tuple[str, Any, str, str]] = [
    # the document
    ("resources", GONE, "resources", "a list of tables is expected"),
    ("resources", [], "resources", "not a list"),
    ("resources.1", "labs", "resources[1]", "a mapping is expected"),
    ("fields", [], "fields", "lists its tables in resources"),
    ("population", {}, "population", "belongs inside 'dpsynth'"),
    ("titel", "x", "titel", "did you mean 'title'"),
    ("name", "a b", "name", "letters, digits"),
    ("dpsynth", GONE, "dpsynth", "write version: 1"),
    ("dpsynth.version", 2, "dpsynth.version", "reads version 1, not 2"),
    ("dpsynth.windw", {}, "dpsynth.windw", "did you mean 'window'"),
    ("dpsynth.population", GONE, "dpsynth.population", "is missing"),
    ("dpsynth.population.value", 1234, "dpsynth.population.value", "looks counted"),
    ("dpsynth.key", {"caze": True}, "dpsynth.key.caze", "did you mean 'case'"),
    # patients
    ("dpsynth.patients", GONE, "dpsynth.patients", "one row a patient"),
    ("dpsynth.patients", "patient", "dpsynth.patients", "did you mean 'patients'"),
    ("dpsynth.patients", ["patients", "labs"], "dpsynth.patients", "name that one"),
    ("resources.0.schema.primaryKey", GONE, "resources[0].schema.primaryKey", "is missing"),
    ("resources.0.schema.primaryKey", "idd", "resources[0].schema.primaryKey", "no column 'idd'"),
    ("resources.0.schema.primaryKey", ["id", "sex"], "resources[0].schema.primaryKey", "is one"),
    ("resources.0.schema.foreignKeys", [], "resources[0].schema.foreignKeys", "points to no other"),
    ("resources.0.schema.fields.1.constraints.enum", GONE)
    + ("resources[0].schema.fields[1] 'sex'.constraints.enum", "list the categories"),
    ("resources.0.schema.fields.0.dpsynth", {"role": "unit"})
    + ("resources[0].schema.fields[0] 'id'.dpsynth.role", "remove the role"),
    ("resources.0.dpsynth", {"time": "end"}, "resources[0].dpsynth.time", "no such key"),
    ("resources.0.name", "labs", "resources[1].name", "repeats the name of resources[0]"),
    ("resources.1.name", GONE, "resources[1].name", "is missing"),
    ("resources.1.name", "la bs", "resources[1].name", "letters"),
    ("resources.1.dialect", {}, "resources[1].dialect", "dpsynth.dialect"),
    ("resources.1.data", [], "resources[1].data", "rows stand in files"),
    ("resources.1.shema", {}, "resources[1].shema", "did you mean 'schema'"),
    ("resources.1.schema", GONE, "resources[1].schema", "is missing"),
    ("resources.1.schema.dpsynth", {}, "resources[1].schema.dpsynth", "beside 'schema'"),
    ("dpsynth.end", "ends", "dpsynth.end", "did you mean 'end'"),
    ("dpsynth.end", "sex", "dpsynth.end", "modelled column of days"),
    ("dpsynth.end", "index", "dpsynth.end", "after: index"),
    ("resources.0.schema.fields.2.type", "number", "dpsynth.end", "declare an integer"),
    ("dpsynth.ended_by", "death", "dpsynth.ended_by", "no table with 'once' lists the event"),
    # keys
    ("resources.1.schema.foreignKeys", GONE, "resources[1].schema.foreignKeys", "is missing"),
    ("resources.1.schema.foreignKeys", "id", "resources[1].schema.foreignKeys", "a list of keys"),
    ("resources.1.schema.foreignKeys", [], "resources[1].schema.foreignKeys", "no key of labs"),
    ("resources.1.schema.foreignKeys.0.fields", ["idd"])
    + ("resources[1].schema.foreignKeys[0].fields", "no column 'idd' (did you mean 'id'?)"),
    ("resources.1.schema.foreignKeys.0.reference.resource", "patient")
    + ("resources[1].schema.foreignKeys[0].reference.resource", "did you mean 'patients'"),
    ("resources.1.schema.foreignKeys.0.reference.fields", ["nr"])
    + ("resources[1].schema.foreignKeys[0].reference.fields", "no column 'nr'"),
    ("resources.1.schema.foreignKeys.0.reference.fields", ["sex"])
    + ("resources[1].schema.foreignKeys", "the patient's key is 'id', not sex"),
    # time and order
    (f"{CHILD}.time", GONE, "resources[1].dpsynth.time", "or order:"),
    (f"{CHILD}.time", "day", "resources[1].dpsynth.time", "did you mean 'days'"),
    (f"{CHILD}.time", "test", "resources[1].dpsynth.time", "of type 'string'"),
    (f"{CHILD}.time", "id", "resources[1].dpsynth.time", "is the patient's key already"),
    (f"{CHILD}.origin", "index", "resources[1].dpsynth.origin", "already; remove it"),
    ("resources.1.schema.fields.1.type", "date", "resources[1].dpsynth.origin", "is missing"),
    ("resources.3.dpsynth.origin", "sex", "resources[3].dpsynth.origin", "a date or datetime"),
    ("resources.3.dpsynth.origin", "indx", "resources[3].dpsynth.origin", "did you mean 'index'"),
    (f"{CHILD}.longest_gap", 99999, "resources[1].dpsynth.longest_gap", "days long"),
    ("dpsynth.window", GONE, "dpsynth.window", "is missing"),
    ("dpsynth.window.first", 3, "dpsynth.window.first", "from -100000 to 0"),
    ("dpsynth.window.last", 2.5, "dpsynth.window.last", "a whole number"),
    ("dpsynth.window.basis", GONE, "dpsynth.window.basis", "never from the data"),
    (f"{CHILD}.max_rows", GONE, "resources[1].dpsynth.max_rows", "is missing"),
    (f"{CHILD}.max_rows.value", 0, "resources[1].dpsynth.max_rows.value", "at least 1"),
    (f"{CHILD}.keep", "first", "resources[1].dpsynth.keep", "random, window"),
    (f"{CHILD}.maxrows", 3, "resources[1].dpsynth.maxrows", "did you mean 'max_rows'"),
    # long tables
    (f"{CHILD}.series.column", GONE, "resources[1].dpsynth.series.column", "names the test"),
    (f"{CHILD}.series.value", "test", "resources[1].dpsynth.series.value", "two columns"),
    (f"{CHILD}.series.value", "val", "resources[1].dpsynth.series.value", "did you mean 'value'"),
    (f"{CHILD}.series.tests", {}, "resources[1].dpsynth.series.tests", "each test"),
    (f"{CHILD}.series.on_unknown", "keep", "resources[1].dpsynth.series.on_unknown", "drop, "),
    (f"{CHILD}.series.tests.hdl.minimum", GONE)
    + ("resources[1].dpsynth.series.tests.hdl.minimum", "never taken from the data"),
    (f"{CHILD}.series.tests.hdl.bounds_basis", GONE)
    + ("resources[1].dpsynth.series.tests.hdl.bounds_basis", "never from the data"),
    (f"{CHILD}.series.tests.hdl.minumum", 3)
    + ("resources[1].dpsynth.series.tests.hdl.minumum", "did you mean 'minimum'"),
    (f"{CHILD}.series.tests.hdl", None, "resources[1].dpsynth.series.tests.hdl", "is missing"),
    (f"{CHILD}.series.tests.hdl.type", "string")
    + ("resources[1].dpsynth.series.tests.hdl.type", "needs a value column of type string"),
    (f"{CHILD}.series.tests.fasting", {"enum": [0]})
    + ("resources[1].dpsynth.series", "the name of a test and of a column"),
    ("resources.1.schema.fields.2.constraints", {"enum": ["a"]})
    + ("resources[1].schema.fields[2] 'test'.constraints", "its categories are the tests"),
    ("resources.1.schema.fields.2.dpsynth", {"role": "unit"})
    + ("resources[1].schema.fields[2] 'test'.dpsynth.role", "values and case only"),
    ("resources.1.schema.fields.4.dpsynth", {"role": "unit"})
    + ("resources[1].schema.fields[4] 'fasting'.dpsynth.role", "declare no role unit"),
    # events
    ("resources.2.dpsynth.max_rows", {"value": 3}, "resources[2].dpsynth.max_rows", "once"),
    ("resources.2.dpsynth.time", GONE, "resources[2].dpsynth.time", "the event happened"),
    ("resources.2.dpsynth.once", "events", "resources[2].dpsynth.once", "did you mean 'event'"),
    ("resources.2.schema.fields.3", choice("severity", "mild", "fatal"))
    + ("resources[2].dpsynth.once", "no value; give severity role drop"),
    # wide tables
    ("resources.4.dpsynth.longest_gap", 30, "resources[4].dpsynth.longest_gap", "no gaps"),
    ("resources.4.dpsynth.rules", ["x < 1"], "resources[4].dpsynth.rules[0]", "no column 'x'"),
    ("resources.4.dpsynth.dialect", {"quote": "''"}, "resources[4].dpsynth.dialect.quote", "one"),
]  # fmt: skip


def changed(path: str, value: Any) -> dict[str, Any]:
    return with_value(package(), path, value)


def problems(document: object) -> list[tuple[str, str]]:
    return problems_of(LinkedSchema, document)


def test_the_base_document_has_no_mistake() -> None:
    schema = LinkedSchema.from_dict(package())
    schema.require_complete()
    assert [child.kind for child in schema.children] == ["long", "once", "wide", "wide"]
    assert repr(schema) == "<LinkedSchema ward, 5 tables>"
    assert repr(schema.child("labs")) == "<ChildTable labs, long>"


@pytest.mark.parametrize(
    ("path", "value", "place", "message"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_a_mistake_is_named(path: str, value: Any, place: str, message: str) -> None:
    found = problems(changed(path, value))
    assert [p for p, text in found if p == place and message in text], found
    assert len(found) <= (12 if path in ("dpsynth", "resources.0.name") else 5), found


@pytest.mark.parametrize("document", [None, [], "resources", 3, {}, {1: 2}])
def test_what_is_no_document(document: object) -> None:
    assert problems(document)


def test_keys_in_a_circle() -> None:
    document = package()
    key = {"fields": ["visit"], "reference": {"resource": "orders", "fields": ["visit"]}}
    back = {"fields": ["visit"], "reference": {"resource": "visits", "fields": ["visit"]}}
    document["resources"][3]["schema"]["foreignKeys"].append(key)
    document["resources"][4]["schema"]["foreignKeys"].append(back)
    assert ("resources", "keys go in a circle: visits -> orders -> visits; remove one of these "
            "foreignKeys") in problems(document)  # fmt: skip


def test_a_key_to_a_visit_is_kept() -> None:
    document = package()
    back = {"fields": ["visit"], "reference": {"resource": "visits", "fields": ["visit"]}}
    document["resources"][4]["schema"]["foreignKeys"].append(back)
    schema = LinkedSchema.from_dict(document)
    [link] = schema.child("orders").links
    assert (link.columns, link.table, link.target) == (("visit",), "visits", ("visit",))
    assert LinkedSchema.from_dict(schema.to_dict()) == schema


def test_an_end_needs_a_window() -> None:
    document = package()
    document["resources"] = [document["resources"][place] for place in (0, 4)]
    document["dpsynth"].pop("window")
    assert [place for place, _ in problems(document)] == ["dpsynth.window"]
    document["dpsynth"].pop("end")
    schema = LinkedSchema.from_dict(document)
    assert schema.window is None and LinkedSchema.from_dict(schema.to_dict()) == schema


def test_all_mistakes_come_at_once() -> None:
    document = changed("resources.0.schema.fields.1.constraints.enum", GONE)
    document["resources"][1]["dpsynth"]["series"]["tests"]["hdl"].pop("maximum")
    document["resources"][2]["dpsynth"]["time"] = "dayz"
    document["dpsynth"]["window"]["first"] = 12
    document["dpsynth"]["end"] = "nothing"
    assert sorted(place for place, _ in problems(document)) == [
        "dpsynth.end",
        "dpsynth.window.first",
        "resources[0].schema.fields[1] 'sex'.constraints.enum",
        "resources[1].dpsynth.series.tests.hdl.maximum",
        "resources[2].dpsynth.time",
    ]


def test_a_draft_may_leave_bounds_and_sizes_open() -> None:
    document = copy.deepcopy(changed("resources.0.schema.fields.2.constraints.minimum", "TODO"))
    document["dpsynth"]["draft"] = True
    document["dpsynth"]["population"] = "TODO"
    document["resources"][1]["dpsynth"]["series"]["tests"]["hdl"]["minimum"] = "TODO"
    document["resources"][3]["dpsynth"]["max_rows"] = {"value": "TODO", "basis": "TODO"}
    document["dpsynth"].pop("window")
    schema = LinkedSchema.from_dict(document)
    assert LinkedSchema.from_dict(schema.to_dict()) == schema
    with pytest.raises(SchemaError, match="this is a draft") as caught:
        schema.require_complete()
    places = {problem.place for problem in caught.value.problems}
    assert {"dpsynth.window", "resources[1].dpsynth.series.tests.hdl.minimum"} <= places
