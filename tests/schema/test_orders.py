"""Orders, groups of codes and conditions of columns: what a schema may say of them."""

from __future__ import annotations

from typing import Any

import pytest

from dpsynth.errors import SchemaError
from dpsynth.schema import Floor, Schema, coded_schema, relation_of

from ..support.following_columns import (
    AGE,
    BORN,
    CHAPTER,
    DIAGNOSIS,
    HIGH,
    LOW,
    ORDER,
    PREGNANT,
    SEX,
    TOP,
    WHOLE,
    schema_of,
)
from ..support.related_columns import ADMITTED, BASIS, DISCHARGED
from ..support.related_columns import BORN as BORN_DATE
from ..support.schema_fields import schema_field


def problems(*fields: dict[str, Any], rules: Any = ()) -> str:
    with pytest.raises(SchemaError) as caught:
        schema_of(*fields, rules=rules)
    return str(caught.value)


def test_a_schema_comes_back_from_its_document() -> None:
    document = WHOLE.to_dict()
    assert Schema.from_dict(document) == WHOLE
    assert document["dpsynth"]["rules"] == [ORDER]
    fields = {field["name"]: field for field in document["fields"]}
    assert fields["chapter"]["dpsynth"]["derived"] == {"group": "diagnosis", "level": "chapter"}
    assert fields["pregnant"]["dpsynth"]["present_if"] == "sex == 'F' and age < 55"
    longest = schema_of(LOW, HIGH, rules=[{"order": "low < high", "longest": 90}])
    assert Schema.from_dict(longest.to_dict()) == longest


def test_a_rule_without_order_is_read_as_ever() -> None:
    schema = schema_of(LOW, HIGH, rules=["low < high"])
    assert schema.column("high").floor is None and coded_schema(schema) is schema
    assert schema.to_dict()["dpsynth"]["rules"] == ["low < high"]


def test_the_upper_column_of_an_order_is_modelled_as_a_gap() -> None:
    coded = {column.name: column for column in coded_schema(WHOLE).modelled}
    assert list(coded) == ["low", "high", "top", "sex", "pregnant", "born", "diagnosis"]
    assert WHOLE.column("high").floor == Floor((("low", True),))
    assert (coded["high"].minimum, coded["high"].maximum) == (0, 200)  # from 60 where low is 30
    assert (coded["top"].maximum, coded["top"].step) == (240.0, 0.5)
    assert relation_of(WHOLE.column("high")) == "above low"
    assert relation_of(WHOLE.column("pregnant")) == "only where sex == 'F' and age < 55"
    assert relation_of(WHOLE.column("chapter")) == "computed as the chapter of diagnosis"


def test_the_longest_gap_is_that_of_the_rule_or_of_the_bounds() -> None:
    rules = [{"order": "low < high", "longest": 90}]
    gap = coded_schema(schema_of(LOW, HIGH, rules=rules)).column("high")
    assert (gap.minimum, gap.maximum) == (0, 90)


def test_dates_are_ordered_in_days() -> None:
    last = {**ADMITTED, "name": "seen"}
    schema = schema_of(ADMITTED, last, rules=[{"order": "seen >= admitted"}])
    gap = coded_schema(schema).column("seen")
    assert (gap.type, gap.maximum, gap.ucum) == ("integer", 1825, "d")


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"order": "low < 30"}, "an order compares columns"),
        ({"order": "low < high or low < top"}, "an order compares columns"),
        ({"order": "low == high"}, "an order compares columns"),
        ({"order": "low < low"}, "an order compares columns"),
        ({"order": "low < hihg"}, "there is no column 'hihg' (did you mean"),
        ({"order": "low < sex"}, "compares number with text"),
        ({"order": "low < age"}, "'age' is derived, and so is not modelled"),
        ({"order": "high < low"}, "the maximum of 'high' is 260"),
        ({"order": "low < high", "longest": 0}, "is a positive gap"),
        ({"order": "low < high < top", "longest": 5}, "of one pair of columns"),
        ({"order": "low <"}, "a column or a value is expected"),
        ({"longest": 5}, "a mapping such as {order: 'a <= b'}"),
        ({"order": "low < high", "log": 5}, "log"),
    ],
)
def test_mistakes_in_an_order(rule: dict[str, Any], message: str) -> None:
    assert message in problems(LOW, HIGH, TOP, SEX, BORN, AGE, rules=[rule])


def test_an_order_goes_round_in_no_circle() -> None:
    first, second = ({**LOW, "name": name, "constraints": HIGH["constraints"]} for name in "ab")
    rules = [{"order": "a <= b"}, {"order": "b <= a"}]
    assert "goes round in a circle: a needs b needs a" in problems(first, second, rules=rules)


def test_the_circle_says_which_declarations_make_it() -> None:
    message = problems(ADMITTED, BORN_DATE, rules=[{"order": "born <= admitted"}])
    assert "'born' is declared by its gap before 'admitted' already" in message
    low = {**LOW, "dpsynth": LOW["dpsynth"] | {"present_if": "high > 90"}}
    low["constraints"] = {key: LOW["constraints"][key] for key in ("minimum", "maximum")}
    assert "'low' follows from 'high' by present_if, 'high' follows from 'low' by an order" in (
        problems(low, HIGH, rules=[{"order": "low < high"}])
    )


@pytest.mark.parametrize(
    ("order", "words"),
    [
        ("admitted <= discharged", "so no drawn row breaks this order; remove the order"),
        ("admitted < discharged", "declare the gap with shortest: 1"),
        ("discharged <= admitted", "the opposite of this order; remove one of both"),
        ("seen <= discharged", "write the order as text: 'seen <= discharged'"),
    ],
)
def test_the_date_of_an_interval_has_its_gap_already(order: str, words: str) -> None:
    seen = {**ADMITTED, "name": "seen"}
    message = problems(ADMITTED, DISCHARGED, seen, rules=[{"order": order}])
    assert "'discharged' is" in message and "by its gap after 'admitted' already" in message
    assert words in message


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"present_if": "sex == 'X'"}, "has no category 'X'"),
        ({"present_if": "sexx == 'F'"}, "there is no column 'sexx'"),
        ({"present_if": "sex =="}, "a column or a value is expected"),
        ({"present_if": "pregnant == true"}, "goes round in a circle: pregnant needs pregnant"),
    ],
)
def test_mistakes_in_a_condition(own: dict[str, Any], message: str) -> None:
    field = {**PREGNANT, "dpsynth": PREGNANT["dpsynth"] | own}
    assert message in problems(field, SEX, BORN, AGE)


def test_a_required_column_is_never_empty() -> None:
    field = {**PREGNANT, "constraints": {"required": True}}
    assert "the column is required, so no cell is empty" in problems(field, SEX, BORN, AGE)


def test_the_status_of_a_cell_says_why_it_is_missing() -> None:
    own = BASIS | {"present_if": "sex == 'F'", "censored": {"low": 35}}
    field = schema_field("dose", "integer", own, minimum=30, maximum=60)
    assert "the column has a status column" in problems(field, SEX)
    measured = schema_field(
        "dose", "integer", BASIS | {"censored": {"low": 35}}, minimum=30, maximum=60
    )
    other = schema_field(
        "other", "integer", BASIS | {"present_if": "dose_status == 'low'"}, minimum=0, maximum=9
    )
    assert "'dose_status' is a status column" in problems(measured, other)


@pytest.mark.parametrize(
    ("derived", "message"),
    [
        ({"group": "diagnosis", "level": "chaptr"}, "ICD-10-CM has no roll-up 'chaptr'"),
        ({"group": "diagnosis", "level": 1}, "is that of a list, and column 'diagnosis' has none"),
        ({"group": "sex", "level": "chapter"}, "column 'sex' has no codes"),
        ({"group": "diagnos", "level": "chapter"}, "there is no column 'diagnos' (did you mean"),
        ({"group": "diagnosis"}, "name a roll-up such as chapter"),
        ({"level": "chapter"}, "name the column of codes"),
        ({"group": "diagnosis", "level": "chapter", "of": 1}, "of"),
    ],
)
def test_mistakes_in_a_group(derived: dict[str, Any], message: str) -> None:
    field = {**CHAPTER, "dpsynth": {"derived": derived}}
    assert message in problems(field, DIAGNOSIS, SEX)


def test_a_group_is_no_finer_than_its_codes() -> None:
    chapters = {"system": "ICD-10-CM", "rollup": "chapter"}
    coarse = {**DIAGNOSIS, "dpsynth": {"codes": chapters}}
    fine = {**CHAPTER, "dpsynth": {"derived": {"group": "diagnosis", "level": "block"}}}
    assert "block is finer than chapter" in problems(coarse, fine)


def test_groups_are_the_categories_of_their_column() -> None:
    column = WHOLE.column("chapter")
    assert column.levels[:2] == ("infectious", "neoplasm") and "other" in column.levels
    assert "A00-B99" in column.labels["infectious"]
    listed = {"codes": ["I", "I1", "E"], "parents": ["", "I", ""]}
    codes = {"system": "own", "list": listed, "model": 1}
    base = {**DIAGNOSIS, "dpsynth": {"codes": codes}}
    field = {**CHAPTER, "dpsynth": {"derived": {"group": "diagnosis", "level": 1}}}
    assert schema_of(base, field).column("chapter").levels == ("I", "E", "other")
