"""Rules that public lists of clinical edits suggest: proposed, with their reason, never imposed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpsynth.draft import clinical_rules, draft_any
from dpsynth.schema import LinkedSchema, Schema

from ..support.command_line import Cli

Field = dict[str, Any]


def choice(name: str, *values: str, **rest: Any) -> Field:
    basis = {"bounds_basis": "form"}
    return {
        "name": name,
        "type": "string",
        "constraints": {"enum": [*values]},
        "dpsynth": basis,
    } | rest


def coded(name: str, system: str, rollup: str, **rest: Any) -> Field:
    codes = {"system": system, "rollup": rollup} | rest
    return {"name": name, "type": "string", "dpsynth": {"codes": codes}}


AGE = {
    "name": "age",
    "type": "integer",
    "constraints": {"minimum": 0, "maximum": 120},
    "dpsynth": {"ucum": "a", "bounds_basis": "form"},
}
SEX = choice("sex", "F", "M", "X")


def table(*fields: Field, rules: tuple[str, ...] = ()) -> Schema:
    sizes = {one: {"value": 1000, "basis": "report"} for one in ("population", "rows")}
    return Schema.from_dict(
        {"name": "x", "fields": [*fields], "dpsynth": {"version": 1, "rules": [*rules], **sizes}}
    )


def texts(schema: Schema | LinkedSchema) -> list[str]:
    return [rule.text for rule in clinical_rules(schema)]


def test_a_chapter_is_of_women_of_some_age() -> None:
    dx = coded("dx", "ICD-10-CM", "chapter")
    [rule] = clinical_rules(table(SEX, AGE, dx))
    assert rule.text == "dx == 'pregnancy' implies sex == 'F' and age >= 9"
    assert "pregnancy" in rule.reason
    assert texts(table(SEX, dx)) == ["dx == 'pregnancy' implies sex == 'F'"]
    assert texts(table(AGE, dx)) == ["dx == 'pregnancy' implies age >= 9"]
    assert texts(table(AGE, coded("dx", "ICD-9-CM", "chapter"))) == [
        "dx == 'pregnancy' implies age >= 9 and age <= 64",
        "dx == 'perinatal' implies age <= 0",
    ]


def test_blocks_of_which_every_category_is_listed() -> None:
    found = texts(table(SEX, coded("dx", "ICD-10-GM", "block")))
    assert len(found) == 2
    women, men = found
    assert "'O80-O82'" in women and "'N70-N77'" in women and women.endswith("sex == 'F'")
    assert men == "dx in ('C60-C63', 'N40-N51') implies sex == 'M'"
    assert "'N80-N98'" not in women, "N95 is, N99.0 beside it is not"


def test_codes_of_a_list() -> None:
    listed = choice("dx", "I10", "E11.9", "O80", "C61", "N40.1", "N99.1")
    assert texts(table(SEX, listed)) == [
        "dx == 'O80' implies sex == 'F'",
        "dx in ('C61', 'N40.1') implies sex == 'M'",
    ]
    assert texts(table(SEX, choice("dx", "O80", "high", "low", "none"))) == [], "not codes"


def test_words_of_categories_and_of_columns() -> None:
    words = choice("kind", "prostate cancer", "pregnancy", "family history of prostate cancer")
    assert texts(table(SEX, words)) == [
        "kind == 'prostate cancer' implies sex == 'M'",
        "kind == 'pregnancy' implies sex == 'F'",
    ]
    yes = {"name": "schwanger", "type": "boolean", "dpsynth": {}}
    assert texts(table(SEX, yes)) == ["schwanger == true implies sex == 'F'"]


def test_what_is_stated_is_not_proposed_and_what_is_unclear_neither() -> None:
    dx = coded("dx", "ICD-10-CM", "chapter")
    stated = "dx == 'pregnancy' implies sex == 'F'"
    assert texts(table(SEX, dx, rules=(stated,))) == []
    assert texts(table(choice("sex", "0", "1"), dx)) == [], "which of them are women?"
    several = coded("dx", "ICD-10-CM", "chapter", several={"separator": ";", "most": 3})
    assert texts(table(SEX, several)) == [], "a cell of several codes"
    assert texts(table(SEX, choice("gender", "F", "M"), dx)) == [], "two columns of sex"


@pytest.mark.parametrize(
    ("women", "men"), [("vrouw", "man"), ("K", "M"), ("Frau", "Mann"), ("Mujer", "Hombre")]
)
def test_sex_in_other_languages(women: str, men: str) -> None:
    listed = choice("dx", "O80", "C61")
    found = texts(table(choice("Geschlecht", women, men), listed))
    assert found == [
        f"dx == 'O80' implies Geschlecht == '{women}'",
        f"dx == 'C61' implies Geschlecht == '{men}'",
    ]


def test_a_label_says_which_code_is_a_woman() -> None:
    labels = [{"value": "1", "label": "männlich"}, {"value": "2", "label": "weiblich"}]
    sex = choice("sex", "1", "2", categories=labels)
    assert texts(table(sex, choice("dx", "O80", "I10"))) == ["dx == 'O80' implies sex == '2'"]


def linked(once: bool) -> LinkedSchema:
    fields: list[Field] = [{"name": "id", "type": "string"}, {"name": "day", "type": "integer"}]
    key = {"fields": ["id"], "reference": {"resource": "patients", "fields": ["id"]}}
    own: dict[str, Any] = {"time": "day", "max_rows": {"value": 3, "basis": "x"}}
    if once:
        own = {"time": "day", "once": "dx"}
    return LinkedSchema.from_dict(
        {
            "name": "x",
            "resources": [
                {"name": "patients", "schema": {"primaryKey": "id", "fields": [fields[0], SEX]}},
                {
                    "name": "dx",
                    "schema": {
                        "foreignKeys": [key],
                        "fields": [*fields, choice("dx", "O80", "O14", "I10")],
                    },
                    "dpsynth": own,
                },
            ],
            "dpsynth": {
                "version": 1,
                "patients": "patients",
                "population": {"value": 1000, "basis": "x"},
                "window": {"first": 0, "last": 100, "basis": "x"},
            },
        }
    )


def test_rules_of_linked_tables_can_be_stated() -> None:
    assert texts(linked(once=False)) == [
        "each(dx).dx in ('O80', 'O14') implies patients.sex == 'F'"
    ]
    [rule] = texts(linked(once=True))
    assert rule == "(count(dx, O80) > 0 or count(dx, O14) > 0) implies patients.sex == 'F'"
    for schema in (linked(once=False), linked(once=True)):
        document = schema.to_dict()
        document["dpsynth"]["rules"] = texts(schema)
        assert texts(LinkedSchema.from_dict(document)) == []


def test_a_draft_asks(tmp_path: Path) -> None:
    dictionary = tmp_path / "dictionary.csv"
    dictionary.write_text(
        "Variable,Type,Values\nsex,text,F;M\ndx,text,I10;O80;C61\n", encoding="utf-8"
    )
    text = draft_any(dictionary=dictionary).text
    assert "# if your documents say so (cancer of prostate): rules: [" in text
    assert "rules:" not in "".join(line for line in text.splitlines() if "#" not in line)


def test_a_check_of_a_schema_asks(command_line: Cli) -> None:
    result = command_line("schema", "check", "diabetes130")
    assert "diag_1 == 'pregnancy' implies gender == 'Female'" in result.out
