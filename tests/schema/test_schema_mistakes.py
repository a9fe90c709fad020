"""Every mistake in a schema is reported: where it is, what is wrong, what to do; all at once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from dpsynth.schema import Schema

from ..support.document_mistakes import GONE, problems_of, with_value
from ..support.schema_fields import schema_field

BASE: dict[str, Any] = {
    "name": "ward",
    "missingValues": ["", "?"],
    "fields": [
        {"name": "patient", "type": "string", "dpsynth": {"role": "unit"}},
        schema_field("sbp", "integer", "device range", minimum=40, maximum=300),
        schema_field("sex", "string", "form", enum=["F", "M"], required=True),
        schema_field("born", "date", "form", minimum="1900-01-01", maximum="2020-12-31"),
        {"name": "smoker", "type": "boolean"},
        schema_field("weight", "number", "scale", minimum=20, maximum=300),
        {
            "name": "diagnosis",
            "type": "string",
            "dpsynth": {"codes": {"system": "ICD-9-CM", "rollup": "chapter"}},
        },
    ],
    "dpsynth": {
        "version": 1,
        "max_rows": {"value": 5, "basis": "policy"},
        "population": {"value": 900, "basis": "report"},
        "rows": {"value": 1200, "basis": "report"},
    },
}
SBP, SEX, BORN, SMOKER, WEIGHT, DIAGNOSIS = (
    f"fields[{index}] '{name}'"
    for index, name in enumerate(["sbp", "sex", "born", "smoker", "weight", "diagnosis"], start=1)
)

# (path, value), place of the problem, a piece of its message
CASES: list[tuple[str, Any, str, str]] = [
    # the document
    ("fields", GONE, "fields", "a list of the table's columns is expected"),
    ("fields", [], "fields", "not a list"),
    ("fields", {"a": 1}, "fields", "not a mapping"),
    ("name", "a b", "name", "letters, digits"),
    ("titel", "x", "titel", "did you mean 'title'"),
    ("population", {"value": 9}, "population", "belongs inside 'dpsynth'"),
    ("missingValues", "?", "missingValues", "a list is expected"),
    ("missingValues", [-9], "missingValues[0]", "write it in quotes"),
    ("dpsynth", GONE, "dpsynth", "version: 1"),
    ("dpsynth", [], "dpsynth", "a mapping is expected, not a list"),
    ("dpsynth.version", GONE, "dpsynth.version", "write version: 1"),
    ("dpsynth.version", 2, "dpsynth.version", "reads version 1, not 2"),
    ("dpsynth.max_row", 3, "dpsynth.max_row", "did you mean 'max_rows'"),
    # sizes and the unit
    ("dpsynth.population", GONE, "dpsynth.population", "is missing"),
    ("dpsynth.population", 900, "dpsynth.population", "{value: ..., basis: ...}"),
    ("dpsynth.rows.value", 1234, "dpsynth.rows.value", "write 1200, or cite a publication"),
    ("dpsynth.population.value", 901, "dpsynth.population.value", "write 900, or cite"),
    ("dpsynth.rows.value", 0, "dpsynth.rows.value", "at least 1"),
    ("dpsynth.rows.value", 10**400, "dpsynth.rows.value", "not finite"),
    ("dpsynth.rows.value", "1200", "dpsynth.rows.value", "without quotes"),
    ("dpsynth.rows.value", True, "dpsynth.rows.value", "a number is expected, not true"),
    ("dpsynth.rows.value", 2.5, "dpsynth.rows.value", "whole number"),
    ("dpsynth.rows.basis", GONE, "dpsynth.rows.basis", "say where the number comes from"),
    ("dpsynth.rows.basis", "TODO", "dpsynth.rows.basis", "still TODO"),
    ("dpsynth.rows.bases", "x", "dpsynth.rows.bases", "did you mean 'basis'"),
    ("dpsynth.max_rows", GONE, "dpsynth.max_rows", "how many rows of a unit"),
    ("dpsynth.keep", "windw", "dpsynth.keep", "did you mean 'window'"),
    ("dpsynth.keep", "window", "dpsynth.keep", "give one column role order"),
    ("dpsynth.key", {"trim": "yes"}, "dpsynth.key.trim", "true or false"),
    ("dpsynth.key", {"caze": True}, "dpsynth.key.caze", "did you mean 'case'"),
    ("dpsynth.missing_key", "keep", "dpsynth.missing_key", "drop, own"),
    ("fields.0.dpsynth", {}, "dpsynth.max_rows", "no column has role unit"),
    ("fields.0.type", "date", "fields[0] 'patient'.type", "string or integer"),
    ("fields.2.dpsynth.role", "unit", "fields", "one column has role unit, not 2: patient, sex"),
    # the dialect
    ("dpsynth.dialect", {"delimiter": ";;"}, "dpsynth.dialect.delimiter", "one character"),
    ("dpsynth.dialect", {"quote": ","}, "dpsynth.dialect", "another character than delimiter"),
    ("dpsynth.dialect", {"decimal": ",", "quote": ""}, "dpsynth.dialect", "no cell is quoted"),
    ("dpsynth.dialect", {"encoding": "utf-88"}, "dpsynth.dialect.encoding", "not a text encoding"),
    ("dpsynth.dialect", {"encoding": "rot13"}, "dpsynth.dialect.encoding", "not a text encoding"),
    ("dpsynth.dialect", {"separator": ";"}, "dpsynth.dialect.separator", "known: delimiter"),
    # rules
    ("dpsynth.rules", "sbp < 3", "dpsynth.rules", "a list of rules"),
    ("dpsynth.rules", ["sbp <"], "dpsynth.rules[0]", "character 6"),
    ("dpsynth.rules", ["sbpp < 3"], "dpsynth.rules[0]", "no column 'sbpp' (did you mean 'sbp'?)"),
    ("dpsynth.rules", ["patient == 'a'"], "dpsynth.rules[0]", "has role unit"),
    ("dpsynth.rules", ["sex == 3"], "dpsynth.rules[0]", "compares text with number"),
    ("dpsynth.rules", ["sex < 'M'"], "dpsynth.rules[0]", "no order"),
    ("dpsynth.rules", ["sex == 'f'"], "dpsynth.rules[0]", "no category 'f' (did you mean 'F'?)"),
    ("dpsynth.rules", ["born < '2020'"], "dpsynth.rules[0]", "write dates like"),
    ("dpsynth.rules", ["born < sex"], "dpsynth.rules[0]", "compares date with text"),
    ("dpsynth.rules", [3], "dpsynth.rules[0]", "text is expected, not 3"),
    # fields
    ("fields.1", "sbp", "fields[1]", "a mapping is expected, not 'sbp'"),
    ("fields.1.name", GONE, "fields[1].name", "is missing"),
    ("fields.1.name", "sex", "fields[2] 'sex'", "repeats the name of fields[1]"),
    ("fields.1.name", "a\nb", "fields[1] 'a\\nb'.name", "printable"),
    ("fields.1.name", "sbp ", "fields[1] 'sbp '.name", "no blanks at its ends"),
    ("fields.1.type", GONE, f"{SBP}.type", "is missing; types: integer"),
    ("fields.1.type", "integr", f"{SBP}.type", "did you mean 'integer'"),
    ("fields.1.type", "geopoint", f"{SBP}.type", "role drop"),
    ("fields.1.constraint", {}, f"{SBP}.constraint", "did you mean 'constraints'"),
    ("fields.1.minimum", 3, f"{SBP}.minimum", "belongs inside 'constraints'"),
    ("fields.1.step", 3, f"{SBP}.step", "belongs inside 'dpsynth'"),
    ("fields.1.dpsynth.rol", "target", f"{SBP}.dpsynth.rol", "did you mean 'role'"),
    ("fields.1.dpsynth.role", "targt", f"{SBP}.dpsynth.role", "did you mean 'target'"),
    ("fields.1.dpsynth.role", ["drop", "target"], f"{SBP}.dpsynth.role", "drop stands alone"),
    ("fields.1.dpsynth.ucum", "", f"{SBP}.dpsynth.ucum", "blank"),
    ("fields.1.title", "\ud800", f"{SBP}.title", "surrogate"),
    # bounds
    ("fields.1.constraints.minimum", GONE, f"{SBP}.constraints.minimum", "never taken from the"),
    ("fields.1.constraints.maximum", 39, f"{SBP}.constraints.maximum", "below minimum"),
    ("fields.1.constraints.maximum", "300", f"{SBP}.constraints.maximum", "a number is expected"),
    ("fields.1.constraints.maximum", 300.5, f"{SBP}.constraints.maximum", "whole number"),
    ("fields.1.constraints.maximum", float("inf"), f"{SBP}.constraints.maximum", "finite"),
    ("fields.1.constraints.minimum", float("nan"), f"{SBP}.constraints.minimum", "finite"),
    ("fields.1.constraints.maximum", 10**400, f"{SBP}.constraints.maximum", "finite"),
    ("fields.1.constraints.maxmum", 3, f"{SBP}.constraints.maxmum", "did you mean 'maximum'"),
    ("fields.1.constraints.unique", True, f"{SBP}.constraints.unique", "role drop"),
    ("fields.1.constraints.pattern", "a", f"{SBP}.constraints.pattern", "not kept by a generator"),
    ("fields.1.constraints.required", "no", f"{SBP}.constraints.required", "true or false"),
    ("fields.1.dpsynth.bounds_basis", GONE, f"{SBP}.dpsynth.bounds_basis", "never from the data"),
    ("fields.1.dpsynth.step", 0, f"{SBP}.dpsynth.step", "at least 1"),
    ("fields.5.dpsynth.step", -0.5, f"{WEIGHT}.dpsynth.step", "positive"),
    ("fields.5.dpsynth.step", 1e-300, f"{WEIGHT}.dpsynth.step", "larger step"),
    ("fields.5.decimalChar", ",", f"{WEIGHT}.decimalChar", "dpsynth.dialect.decimal"),
    ("fields.5.groupChar", ".", f"{WEIGHT}.groupChar", "is the decimal sign"),
    ("fields.5.groupChar", "x", f"{WEIGHT}.groupChar", "is not a point"),
    ("fields.5.bareNumber", False, f"{WEIGHT}.bareNumber", "units within cells"),
    ("fields.5.trueValues", ["1"], f"{WEIGHT}.trueValues", "only a boolean column"),
    ("fields.3.constraints.minimum", "01/01/1900", f"{BORN}.constraints.minimum", "'2015-12-31'"),
    ("fields.3.constraints.minimum", 1900, f"{BORN}.constraints.minimum", "not 1900"),
    (
        "fields.3.constraints.minimum",
        datetime(1900, 1, 1, tzinfo=UTC),
        f"{BORN}.constraints.minimum",
        "no zone",
    ),
    ("fields.3.constraints.minimum", "1900-01-01T10:00", f"{BORN}.constraints.minimum", "no time"),
    ("fields.3.format", "any", f"{BORN}.format", "is not a date format"),
    ("fields.3.format", "%Y-%Q", f"{BORN}.format", "is not a date format"),
    (
        "fields.3.format",
        "%Y-%m-%dT%H:%M%z",
        f"{BORN}.format",
        "has a time zone, and times have none",
    ),
    ("fields.3.format", "%d/%m", f"{BORN}.format", "is not a date format"),
    ("fields.3.format", "%d/%d/%Y", f"{BORN}.format", "each directive once"),
    ("fields.3.format", "%Y-%m-%d %Y", f"{BORN}.format", "each directive once"),
    ("fields.3.format", "%d/%m/%Y %", f"{BORN}.format", "is not a date format"),
    ("fields.3.format", "%d/%m/%y", f"{BORN}.constraints.minimum", "cannot hold 1900-01-01"),
    ("fields.3.constraints.enum", ["a"], f"{BORN}.constraints.enum", "type date has bounds"),
    # categories
    ("fields.2.constraints.enum", GONE, f"{SEX}.constraints.enum", "list the categories"),
    ("fields.2.constraints.enum", [], f"{SEX}.constraints.enum", "a list of categories"),
    ("fields.2.constraints.enum", ["F", "F"], f"{SEX}.constraints.enum[1]", "repeats enum[0]"),
    ("fields.2.constraints.enum", ["F", False], f"{SEX}.constraints.enum[1]", "read as false"),
    ("fields.2.constraints.enum", ["F", 1], f"{SEX}.constraints.enum[1]", "in quotes"),
    ("fields.2.constraints.enum", ["F", " M"], f"{SEX}.constraints.enum[1]", "trimmed"),
    ("fields.2.constraints.enum", ["F", "?"], f"{SEX}.constraints.enum[1]", "missing value too"),
    ("fields.2.constraints.enum", [str(i) for i in range(4095)], f"{SEX}.constraints.enum", "4094"),
    ("fields.2.constraints.minimum", 3, f"{SEX}.constraints.minimum", "has categories"),
    ("fields.2.categories", [3], f"{SEX}.categories[0]", "write it in quotes"),
    ("fields.2.categories", ["F", "X"], f"{SEX}.categories[1]", "not in constraints.enum"),
    ("fields.2.categories", [{"value": "F", "label": 3}], f"{SEX}.categories[0].label", "quotes"),
    ("fields.1.constraints.enum", [1, 1.5], f"{SBP}.constraints.enum[1]", "not whole"),
    ("fields.1.constraints.enum", [1, "a"], f"{SBP}.constraints.enum[1]", "not of type integer"),
    ("fields.4.constraints", {"enum": ["yes"]}, f"{SMOKER}.constraints.enum", "both values"),
    ("fields.4.trueValues", ["false"], f"{SMOKER}.trueValues", "two meanings"),
    ("fields.4.trueValues", [""], f"{SMOKER}.trueValues", "two meanings"),
    ("fields.4.trueValues", [], f"{SMOKER}.trueValues", "the list is empty"),
    ("fields.4.falseValues", ["?"], f"{SMOKER}.falseValues", "two meanings"),
    ("fields.6.dpsynth.codes", {"discover": {"max": 200}}, f"{DIAGNOSIS}.dpsynth.codes.discover")
    + ("true or false is expected",),
    ("fields.6.dpsynth.codes.system", "ICD-99", f"{DIAGNOSIS}.dpsynth.codes", "ICD-99"),
    ("fields.6.dpsynth.codes.rollup", GONE, f"{DIAGNOSIS}.dpsynth.codes", "name a system and a"),
    ("fields.6.constraints", {"enum": ["a"]}, f"{DIAGNOSIS}.constraints.enum", "one of the two"),
    ("fields.6.type", "integer", f"{DIAGNOSIS}.dpsynth.codes", "codes are text"),
    # policies
    ("fields.2.dpsynth.on_bad", "missing", f"{SEX}.dpsynth.on_bad", "is required"),
    (
        "fields.2.dpsynth.on_unknown",
        "X",
        f"{SEX}.dpsynth.on_unknown",
        "is not a policy or a category",
    ),
    ("fields.2.dpsynth.on_unknown", "minimum", f"{SEX}.dpsynth.on_unknown", "not a policy"),
    ("fields.1.dpsynth.on_unknown", "missing", f"{SBP}.dpsynth.on_unknown", "use on_bad"),
    ("fields.1.dpsynth.on_bad", "other", f"{SBP}.dpsynth.on_bad", "not one of missing, minimum"),
    ("fields.0.dpsynth.on_bad", "refuse", "fields[0] 'patient'.dpsynth.on_bad", "remove it"),
    ("fields.4.dpsynth", {"on_unknown": "other"}, f"{SMOKER}.dpsynth.on_unknown", "or a category"),
]


def changed(path: str, value: Any) -> dict[str, Any]:
    return with_value(BASE, path, value)


def problems(document: object) -> list[tuple[str, str]]:
    return problems_of(Schema, document)


def test_the_base_document_has_no_mistake() -> None:
    Schema.from_dict(BASE).require_complete()


@pytest.mark.parametrize(
    ("path", "value", "place", "message"), CASES, ids=[f"{c[0]}-{i}" for i, c in enumerate(CASES)]
)
def test_a_mistake_is_named(path: str, value: Any, place: str, message: str) -> None:
    messages = problems(changed(path, value))
    assert [p for p, text in messages if p == place and message in text], messages
    # One mistake does not raise a crowd; without `dpsynth` everything in it is missing.
    assert len(messages) <= (4 if path == "dpsynth" else 3), messages


@pytest.mark.parametrize("document", [None, [], "fields", 3, {}, {1: 2}])
def test_what_is_no_document(document: object) -> None:
    assert problems(document)


def test_all_mistakes_come_at_once_in_the_order_of_the_document() -> None:
    document = changed("fields.1.constraints.minimum", GONE)
    document["fields"][2]["constraints"]["enum"] = [True]
    document["fields"][3]["type"] = "dat"
    document["dpsynth"]["rows"]["value"] = 12345
    document["dpsynth"]["rules"] = ["sbp >"]
    assert [place for place, _ in problems(document)] == [
        f"{SBP}.constraints.minimum",
        f"{SEX}.constraints.enum[0]",
        f"{BORN}.type",
        "dpsynth.rows.value",
        "dpsynth.rules[0]",
    ]


def test_messages_stay_short_whatever_the_value() -> None:
    bomb: Any = ["lol"]
    for _ in range(40):
        bomb = [bomb] * 10  # 10^40 values, if anything walked through them
    for path in ("name", "fields.1", "fields.1.type", "fields.2.constraints.enum"):
        assert all(len(text) < 400 for _, text in problems(changed(path, bomb)))
    assert all(len(text) < 400 for _, text in problems(changed("fields.1.type", "x" * 10**6)))
