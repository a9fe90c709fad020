"""Schema: documents become facts, and facts become the same documents."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError
from datetime import date, datetime
from typing import Any

import pytest

from dpsynth.errors import InputError, SchemaError
from dpsynth.schema import Column, Declared, Dialect, PrivacyUnit, Schema
from dpsynth.schema.code_systems import Codes

from ..support.hospital_schema import coded, document, hospital, measured


def only(field: dict[str, Any], **own: Any) -> Column:
    return Schema.from_dict(document(field, **own)).columns[0]


def test_every_declared_fact_arrives() -> None:
    schema = Schema.from_dict(hospital())
    assert schema.name == "ward" and schema.title == "Ward"
    assert schema.unit == PrivacyUnit(
        "patient", 5, "office policy", "window", False, True, False, "own"
    )
    assert schema.population == Declared(900, "annual report")
    assert schema.dialect == Dialect(";", "latin-1", ",", "'")
    assert schema.source == "https://example.org/table"
    assert schema.order_column == "visit" and not schema.may_refuse
    names = ["los", "sex", "weight", "born", "seen", "year", "smoker", "diagnosis"]
    assert [column.name for column in schema.modelled] == names
    assert [rule.columns for rule in schema.rules] == [("born", "seen"), ("smoker", "los")]
    sex = schema.column("sex")
    assert sex.roles == {"quasi_identifier", "group"} and sex.labels == {"F": "Female", "M": "Male"}
    assert sex.missing_values == ("", "?") and sex.nullable and sex.is_categorical
    weight = schema.column("weight")
    assert (weight.minimum, weight.maximum, weight.step) == (20.0, 300.5, 0.5)
    assert weight.missing_values == ("-9",)
    assert schema.column("born").maximum == date(2020, 12, 31)
    assert type(schema.column("born").minimum) is date
    assert schema.column("seen").minimum == datetime(2000, 1, 1)
    smoker = schema.column("smoker")
    assert smoker.categories == ("false", "true") and smoker.true_values == ("yes",)
    diagnosis = schema.column("diagnosis")
    assert diagnosis.codes == Codes("ICD-9-CM", "chapter")
    assert diagnosis.categories is not None and len(diagnosis.categories) == 19
    with pytest.raises(InputError, match="no column 'weigth'"):
        schema.column("weigth")


# on_bad and on_unknown, resolved: required, declared policies, and what they become.
POLICIES = [
    (coded(), ("missing", "missing"), False),
    (coded(constraints={"required": True}), ("other", "other"), True),
    (coded(enum=["a", "Other"], constraints={"required": True}), ("Other", "Other"), False),
    (coded(enum=["a", "other"], constraints={"required": True}), ("other", "other"), False),
    (coded(dpsynth={"on_unknown": "other"}), ("missing", "other"), True),
    (coded(enum=["a", "Other"], dpsynth={"on_unknown": "other"}), ("missing", "Other"), False),
    (coded(dpsynth={"on_unknown": "F", "on_bad": "refuse"}), ("refuse", "F"), False),
    (coded(constraints={"required": True}, dpsynth={"on_unknown": "M"}), ("M", "M"), False),
    (coded(enum=[3, 1.0], type="integer", constraints={"required": True}), ("3", "3"), False),
    (coded(enum=[0.5, 1], type="number", dpsynth={"on_unknown": 1}), ("missing", "1"), False),
    ({"name": "b", "type": "boolean"}, ("missing", "missing"), False),
    (
        {"name": "b", "type": "boolean", "constraints": {"required": True}},
        ("false", "false"),
        False,
    ),
    (coded(enum=[False, True], type="boolean", dpsynth={"on_bad": True}),)
    + (("true", "missing"), False),
    (measured("n", "integer", 0, 9), ("missing", "missing"), False),
    (
        measured("n", "integer", 0, 9, constraints={"required": True}),
        ("minimum", "minimum"),
        False,
    ),
    (measured("n", "date", "2000-01-01", "2000-01-01", dpsynth={"on_bad": "maximum"}),)
    + (("maximum", "maximum"), False),
]


@pytest.mark.parametrize(("field", "policies", "other"), POLICIES)
def test_policies_resolve(field: dict[str, Any], policies: tuple[str, str], other: bool) -> None:
    column = only(field)
    assert (column.on_bad, column.on_unknown) == policies
    assert column.has_other is other
    assert column.levels[len(column.categories or ()) :] == (("other",) if other else ())
    again = Schema.from_dict(Schema.from_dict(document(field)).to_dict())
    assert again.columns == (column,)


def test_numbers_in_an_enum_have_one_text() -> None:
    column = only(coded(enum=[1, 2.0, "3"], type="integer"))
    assert column.categories == ("1", "2", "3")
    assert only(coded(enum=[0.50, -1, 1e3], type="number")).categories == ("0.5", "-1", "1000")


def test_the_default_format_is_none() -> None:
    assert only(coded(format="email")).format == "email"
    assert only(coded(format="default")).format is None
    assert only(measured("d", "date", "2000-01-01", "2000-01-02", format="default")).format is None


def test_each_row_is_a_unit_unless_one_is_named() -> None:
    schema = Schema.from_dict(document(coded()))
    assert schema.unit == PrivacyUnit(None, 1, None)
    limited = Schema.from_dict(document(coded(), max_rows={"value": 1, "basis": "policy"}))
    assert limited.unit.max_rows_basis == "policy"


@pytest.mark.parametrize(
    ("value", "basis"),
    [
        (72, "office"),
        (100000, "office"),
        (71518, "Strack et al. 2014"),
        (71518, "doi:10.1155/2014"),
        (71518, "see https://example.org/table"),
    ],
)
def test_public_sizes_are_round_or_cited(value: int, basis: str) -> None:
    schema = Schema.from_dict(document(coded(), rows={"value": value, "basis": basis}))
    assert schema.rows.value == value


def test_a_draft_loads_but_is_not_complete() -> None:
    draft = document(
        measured("n", "integer", "TODO", 9) | {"dpsynth": {"bounds_basis": "TODO"}},
        {"name": "s", "type": "string"},
        {"name": "p", "type": "string", "dpsynth": {"role": "unit"}},
        population={"value": "TODO", "basis": "TODO"},
        draft=True,
    )
    schema = Schema.from_dict(draft)
    assert Schema.from_dict(schema.to_dict()) == schema
    with pytest.raises(SchemaError) as caught:
        schema.require_complete()
    places = [problem.place for problem in caught.value.problems]
    assert places == [
        "dpsynth.draft",
        "fields[0] 'n'.dpsynth.bounds_basis",
        "fields[0] 'n'.constraints.minimum",
        "fields[1] 's'.constraints.enum",
        "dpsynth.max_rows",
        "dpsynth.population.value",
        "dpsynth.population.basis",
    ]
    Schema.from_dict(document(coded())).require_complete()
    filled = Schema.from_dict(document(coded(), draft=True))
    with pytest.raises(SchemaError, match="1 mistake"):
        filled.require_complete()


def test_hash_depends_on_every_fact_and_on_no_spelling() -> None:
    base = Schema.from_dict(hospital())
    assert base.hash() == Schema.from_dict(base.to_dict()).hash() and len(base.hash()) == 64
    spelt = hospital()
    spelt["fields"][4]["constraints"]["minimum"] = 20.0
    spelt["fields"][5]["constraints"]["minimum"] = date(1900, 12, 31)
    assert Schema.from_dict(spelt).hash() == base.hash()
    for path, value in (
        (("fields", 2, "constraints", "maximum"), 15),
        (("fields", 2, "dpsynth", "bounds_basis"), "form 8"),
        (("dpsynth", "rows", "value"), 1300),
        (("dpsynth", "rules"), ["born < seen"]),
        (("title",), "Station"),
    ):
        changed: Any = hospital()
        part = changed
        for key in path[:-1]:
            part = part[key]
        part[path[-1]] = value
        assert Schema.from_dict(changed).hash() != base.hash(), path


def test_facts_are_frozen() -> None:
    schema = Schema.from_dict(hospital())
    column = schema.column("diagnosis")
    facts: list[Any] = [schema, schema.unit, schema.rows, schema.dialect, column, column.codes]
    for fact in [*facts, schema.rules[0], schema.rules[0].tree]:
        with pytest.raises(FrozenInstanceError):
            setattr(fact, next(iter(vars(fact))), None)
    assert hash(schema) == hash(Schema.from_dict(hospital()))
    assert Column("n", "integer").nullable and Column("n", "integer").modelled


def test_reading_does_not_change_the_document() -> None:
    given_ = hospital()
    before = copy.deepcopy(given_)
    Schema.from_dict(given_)
    assert given_ == before
