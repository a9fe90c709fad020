"""Columns whose cells hold several codes: what is declared, and refused in words."""

from __future__ import annotations

from typing import Any

import pytest

from dpsynth.errors import InputError, SchemaError
from dpsynth.schema import LinkedSchema, Rule, Schema, Several, coded_schema

from ..support.code_sets import codes_field, document, schema_of, several
from ..support.linked_tables import package


def test_the_schema_says_how_cells_hold_codes_and_keeps_it() -> None:
    schema = schema_of(several=several(4, ordered=True))
    assert schema.column("dx").several == Several(";", 4, ordered=True)
    again = Schema.from_dict(schema.to_dict())
    assert again.columns == schema.columns and again.hash() == schema.hash()
    assert again.hash() != schema_of(several=several(4)).hash()


def test_each_place_is_a_column_and_only_the_first_is_required() -> None:
    coded = coded_schema(schema_of(required=True))
    names = [column.name for column in coded.modelled]
    assert names == ["sex", "dx: 1", "dx: 2", "dx: 3"]
    assert [column.required for column in coded.modelled[1:]] == [True, False, False]
    assert all(column.several is None and column.roles for column in coded.modelled[1:])


def test_the_synthetic_table_lists_no_categories_but_says_what_a_cell_is() -> None:
    [_, field] = schema_of().to_table_schema()["fields"]
    assert "constraints" not in field and "categories" not in field
    assert field["dpsynth"]["several"] == {"separator": ";", "most": 3, "ordered": False}


def test_chapters_of_a_published_system_may_be_several() -> None:
    field = codes_field()
    field["dpsynth"]["codes"] = {"system": "ICD-9-CM", "rollup": "chapter", "several": several()}
    assert len(Schema.from_dict(document(field)).column("dx").levels) == 19


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"most": 3}, "separator: name the one character between two codes"),
        ({"separator": ";;", "most": 3}, "separator: name the one character"),
        ({"separator": "x", "most": 3}, "separator: name the one character"),
        ({"separator": "1", "most": 3}, "separator: name the one character"),
        ({"separator": ";"}, "most: is missing: the number of codes of a cell at most"),
        ({"separator": ";", "most": 1}, "a whole number of at least 2"),
        ({"separator": ";", "most": 21}, "is 21; at most 20 codes"),
        ({"separator": ";", "most": 3, "ordered": "yes"}, "true or false is expected"),
        ({"separator": ";", "most": 3, "order": True}, "there is no such key here"),
    ],
)
def test_mistakes(declared: dict[str, Any], message: str) -> None:
    with pytest.raises(SchemaError) as error:
        schema_of(several=declared)
    assert message in str(error.value), str(error.value)
    assert "'dx'.dpsynth.codes.several" in str(error.value)


def test_a_separator_that_is_part_of_a_code() -> None:
    field = codes_field(several={"separator": "-", "most": 3})
    field["dpsynth"]["codes"]["list"] = {"codes": ["E08-E13", "I10"]}
    with pytest.raises(SchemaError, match="'-' is part of 1 code of the list, such as 'E08-E13'"):
        Schema.from_dict(document(field))


def test_what_a_column_of_several_codes_cannot_have() -> None:
    for declared, message in (
        ({"role": "target"}, "a column of several codes has no role target"),
        ({"missing": {"refused": ["-8"]}}, "reasons are for cells of one code"),
    ):
        with pytest.raises(SchemaError, match=message):
            schema_of(**declared)
    other = {"name": "dx: 2", "type": "boolean"}
    with pytest.raises(SchemaError, match="'dx: 2' is the name of a column; rename that one"):
        Schema.from_dict(document(codes_field(), other))


def test_many_codes_are_no_events() -> None:
    linked, field = package(), codes_field()
    codes = field["dpsynth"]["codes"]
    codes.pop("several")
    codes["list"] = {"codes": [f"E{i}" for i in range(101)]}
    fields = linked["resources"][2]["schema"]["fields"]
    linked["resources"][2]["schema"]["fields"] = [*fields[:2], field | {"name": "event"}]
    with pytest.raises(SchemaError, match="lists 101 codes, and each event is modelled by itself"):
        LinkedSchema.from_dict(linked)


def test_a_draft_may_leave_the_number_open() -> None:
    own = document(codes_field(several={"separator": ";", "most": "TODO"}))
    own["dpsynth"]["draft"] = True
    assert "several.most" in str(Schema.from_dict(own).gaps)
    del own["dpsynth"]["draft"]
    with pytest.raises(SchemaError, match="several.most: is still TODO"):
        Schema.from_dict(own)


def test_rules_do_not_compare_several_codes() -> None:
    own = document(codes_field())
    own["dpsynth"]["rules"] = ["dx != 'A' or sex == 'f'"]
    with pytest.raises(SchemaError, match="column 'dx' holds several codes"):
        Schema.from_dict(own)
    assert Rule.parse("dx == 'A'").problems(schema_of().modelled)


def test_linked_tables_have_a_table_of_codes_instead() -> None:
    linked = package()
    linked["resources"][3]["schema"]["fields"].append(codes_field())
    with pytest.raises(SchemaError, match="put the codes into a table of their own") as error:
        LinkedSchema.from_dict(linked)
    assert "'dx'.dpsynth.codes.several" in str(error.value)
    assert isinstance(error.value, InputError)
