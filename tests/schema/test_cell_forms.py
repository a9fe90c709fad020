"""What a schema declares of the writing of cells: mistakes, round trips, hashes, status columns."""

from __future__ import annotations

import copy
from typing import Any

import frictionless
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import SchemaError
from dpsynth.schema import Schema
from dpsynth.schema.cell_forms import ambiguous
from dpsynth.schema.types import TYPES

from ..support.declared_cells import ALL, CRP, DAYS, SEEN, UNIT, field, schema_of

BOUNDS = {"minimum": 0, "maximum": 100}
YES = {"enum": ["ja", "nein"]}
OLD_HASHES = {  # as they were before these declarations
    "brfss2015": "2ec2c3960dd0f324a5e80f2f1da7e15677808a12a1ba559abeaf9a48395246cd",
    "cardio": "7058241535e1bf46342a8d90d8495693f3bcd6a73f12a65117e021831654b9ac",
    "demo": "17c304d3674b1f2f01d2f926f80560edd97f095a67cb8f041ce9e824dd6473ab",
    "diabetes130": "9309eb0ba68fe1fabef0dd81004e493d9ef8774ca3859f4f584f33d247d33a26",
}


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        (field("string", YES, values={"J": "yes"}), "values.J: 'yes' is not what the column"),
        (field("string", YES, values={"ja": "nein"}), "'ja' has two meanings, in enum and values"),
        (field("string", YES, values={"": "ja"}), "an empty cell is always missing"),
        (field("string", YES, values={"JA": "nein"}, case=False), "regardless of case"),
        (field("string", {"enum": ["a", "A"]}, case=False), "case: 'A' has two meanings"),
        (field("number", BOUNDS, values={"7": 8}), "is a number already"),
        (field("number", BOUNDS, values={"x": 101}), "values.x: 101 is not what the column"),
        (field("number", BOUNDS, values={"x": "<5"}), "values.x: '<5' is not what the column"),
        (field("number", BOUNDS, case=False), "numbers and dates have no case"),
        (field("string", YES, censored={"low": 5}), "only a column of numbers with bounds"),
        (field("number", BOUNDS, censored=True), "declare the limits: {low: 5, high: 2000}"),
        (field("number", BOUNDS, censored={}), "declare a limit"),
        (field("number", BOUNDS, censored={"low": 500}), "500 is not within the bounds"),
        (field("number", BOUNDS, censored={"low": ">5"}), "'>5' is not a limit, such as 5 or '<5'"),
        (field("number", BOUNDS, step=2, censored={"low": 5}), "5 lies between two steps"),
        (field("number", BOUNDS, missing={"refused": []}), "list the texts of the reason"),
        (field("number", BOUNDS, missing={"low": ["-8"]}), "'low' has another meaning"),
        (field("string", YES, missing={"ja": ["-8"]}), "'ja' has another meaning"),
        (field("number", BOUNDS, missing={"a": ["-8"], "b": ["-8.0"]}), "'-8.0' has two meanings"),
        (field("number", {**BOUNDS, "required": True}, missing={"a": ["x"]}), "column is required"),
        (field("string", {**YES, "required": True}, values={"x": "missing"}), "is required"),
        (field("number", BOUNDS, status="note"), "the column has no status"),
        (field("string", YES, status="note", missing={"a": ["x"]}), "the column has no status"),
        (field("string", YES, unit_from={"column": "u", "%": 1}), "only a column of numbers"),
        (field("number", BOUNDS, unit_from={"%": 1}), "name the column and its units"),
        (field("number", BOUNDS, unit_from={"column": "u"}), "name the column and its units"),
        (field("number", BOUNDS, unit_from={"column": "u", "%": 0}), "the factor is positive"),
        (field("number", BOUNDS, unit_from={"column": "u", "%": "x"}), "a factor is expected"),
        (field("number", BOUNDS, unit_from={"column": "u", "%": {"by": 2}}), "no such key here"),
        (field("number", BOUNDS, unit_from={"column": "x", "%": 1}), "there is no column 'x'"),
        (field("number", BOUNDS, unit_from={"column": "other", "%": 1}), "with role drop"),
        (field("date", DAYS, formats=["%d/%m/%Y", "%m/%d/%Y"]), "read one text as two dates"),
        (field("date", DAYS, formats=["%d.%m.%Y", "%q"]), "'%q' is not a date format"),
        (field("string", YES, formats=["%d.%m.%Y"]), "only dates have formats"),
        (field("date", DAYS, formats=["default"]) | {"format": "%d.%m.%Y"}, "remove the field's"),
        ({"type": "string", "dpsynth": {"role": "drop", "case": False}}, "has none; remove it"),
    ],
)  # fmt: skip
def test_every_mistake_is_reported(column: dict[str, Any], problem: str) -> None:
    with pytest.raises(SchemaError) as refused:
        schema_of(c=column, u=UNIT, other=field("string", YES))
    assert problem in str(refused.value)


def test_a_limit_may_be_written_with_the_decimal_sign_of_the_source() -> None:
    column = field("number", BOUNDS, step=0.1, censored={"low": ["<0,5", "< 1"], "high": ">90,5"})
    forms = schema_of(decimal=",", c=column).column("c").forms
    assert (forms.low, forms.high) == ((0.5, 1.0), (90.5,))
    with pytest.raises(SchemaError, match="'<0,5' is not a limit.*the decimal sign is a point"):
        schema_of(c=column)


def test_a_status_column_needs_a_name_of_its_own() -> None:
    with pytest.raises(SchemaError, match="'c_status' is the name of the status column of c"):
        schema_of(c=CRP, c_status=field("string", YES))
    renamed = {**CRP, "dpsynth": {**CRP["dpsynth"], "status": "crp_note"}}
    schema = schema_of(c=renamed, c_status=field("string", YES))
    assert [column.name for column in schema.modelled] == ["c", "crp_note", "c_status"]


def test_a_status_column_says_what_it_is() -> None:
    schema = schema_of(crp=CRP)
    status = schema.column("crp_status")
    assert status.levels == ("value", "low", "high", "refused", "unknown", "missing")
    assert status.labels["low"] == "below the limit of detection, which crp holds"
    entry = schema.to_table_schema()["fields"][1]
    assert entry["constraints"]["enum"] == list(status.levels)
    assert entry["categories"][3] == {"value": "refused", "label": "missing: refused"}
    assert "crp_status" not in str(schema.to_dict())


def test_rules_may_name_a_status() -> None:
    document = schema_of(**ALL).to_dict()
    document["dpsynth"]["rules"] = ['crp_status == "refused" implies smoker == "ja"']
    assert len(Schema.from_dict(document).rules) == 1
    document["dpsynth"]["rules"] = ['crp_status == "refuse"']
    with pytest.raises(SchemaError):
        Schema.from_dict(document)


def test_all_declarations_round_trip() -> None:
    schema = schema_of(**ALL)
    written = schema.to_dict()
    assert Schema.from_dict(written) == schema
    assert Schema.from_dict(written).to_dict() == written
    assert Schema.from_dict(written).hash() == schema.hash()
    for descriptor in (written, schema.to_table_schema()):
        frictionless.Schema.from_descriptor(copy.deepcopy(descriptor))


def test_each_declaration_is_part_of_the_hash() -> None:
    hashes = {schema_of(c=field("number", BOUNDS)).hash()}
    for own in (
        {"values": {"x": 1}},
        {"censored": {"low": 5}},
        {"censored": {"low": 6}},
        {"censored": {"high": 5}},
        {"missing": {"a": ["x"]}},
        {"missing": {"b": ["x"]}},
        {"missing": {"b": ["x"]}, "status": "s"},
    ):
        hashes.add(schema_of(c=field("number", BOUNDS, **own)).hash())
    for first, second in (("%", 2), ("%", 3), ("g", 3)):
        own = {"unit_from": {"column": "u", first: second}}
        hashes.add(schema_of(c=field("number", BOUNDS, **own), u=UNIT).hash())
    assert len(hashes) == 11


def test_bounds_may_be_in_the_first_format() -> None:
    dotted = field(
        "date",
        {"minimum": "01.01.2000", "maximum": "31.12.2020"},
        formats=SEEN["dpsynth"]["formats"],
    )
    dotted["dpsynth"]["missing"] = SEEN["dpsynth"]["missing"]
    assert schema_of(c=dotted) == schema_of(c=SEEN)


@pytest.mark.parametrize(
    ("formats", "is_ambiguous"),
    [
        (("%d.%m.%Y", "%Y-%m-%d", "default"), False),
        (("%d.%m.%Y", "%d.%m.%y"), False),
        (("%d.%m.%Y", "%d/%m/%Y"), False),
        (("%Y%m%d", "%d.%m.%Y"), False),
        (("%d/%m/%Y", "%m/%d/%Y"), True),
        (("%d.%m.%y", "%y.%m.%d"), True),
        (("%m-%d-%Y", "%d-%m-%Y", "default"), True),
        (("%Y-%d-%m", "default"), True),
        (("%d%m%y", "%y%m%d"), True),
    ],
)
def test_ambiguous_formats(formats: tuple[str, ...], is_ambiguous: bool) -> None:
    assert (ambiguous(formats, TYPES["date"]) is not None) == is_ambiguous


words = st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=1, max_size=4)


@st.composite
def forms(draw: st.DrawFn) -> dict[str, Any]:
    """A valid column with some of the declarations."""
    kind = draw(st.sampled_from(["number", "string", "date", "boolean"]))
    texts = draw(st.lists(words, min_size=6, max_size=6, unique_by=str.casefold))
    texts = [f"{at}{text}" for at, text in enumerate(texts)]
    own: dict[str, Any] = {"missing": {f"r{texts[0]}": [f"x{texts[1]}", "-8"]}}
    own["values"] = {f"v{texts[2]}": "missing", f"v{texts[3]}": f"r{texts[0]}"}
    if kind == "number":
        own["censored"] = {"low": draw(st.lists(st.integers(0, 50), min_size=1))}
        own["unit_from"] = {"column": "u", "%": draw(st.floats(0.001, 1000)), "g": {"plus": 1}}
        own["values"][f"v{texts[4]}"] = draw(st.integers(0, 100))
        limits: dict[str, Any] = BOUNDS
    elif kind == "string":
        limits = {"enum": [f"c{text}" for text in texts]}
        own["case"] = draw(st.booleans())
        own["values"][f"v{texts[4]}"] = f"c{texts[5]}"
    elif kind == "date":
        limits, own["formats"] = DAYS, draw(st.permutations(["%d.%m.%Y", "default", "%d/%m/%Y"]))
        own["values"]["9999-12-31"] = "missing"
    else:
        limits, own["values"][f"v{texts[4]}"] = {}, draw(st.booleans())
    cells = draw(st.sets(st.sampled_from(sorted(own))))
    own = {key: own[key] for key in cells}
    if "missing" not in own:
        own.get("values", {}).pop(f"v{texts[3]}", None)
    return field(kind, limits, **own)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(st.lists(forms(), min_size=1, max_size=3))
def test_any_declarations_round_trip(columns: list[dict[str, Any]]) -> None:
    schema = schema_of(**{f"c{at}": column for at, column in enumerate(columns)}, u=UNIT)
    written = schema.to_dict()
    assert Schema.from_dict(written) == schema
    assert Schema.from_dict(written).to_dict() == written
    frictionless.Schema.from_descriptor(copy.deepcopy(schema.to_table_schema()))


@pytest.mark.parametrize("name", sorted(OLD_HASHES))
def test_schemas_without_these_declarations_hash_as_before(name: str) -> None:
    assert Schema.load(name).hash() == OLD_HASHES[name]
