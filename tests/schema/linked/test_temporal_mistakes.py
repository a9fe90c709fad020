"""Temporal rules in a schema: kept as they are written, and every mistake has its place."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError, SchemaError
from dpsynth.schema import LinkedSchema, TemporalRule

from ...support.linked_tables import choice, package, plain, resource

RULES = [
    "each(visits).date >= patients.index",
    "event(stroke) >= first(labs).days",
    "count(visits) >= 1 or patients.sex == 'F'",
    "next(visits).date > each(visits).date",
    "last(labs, hdl).value >= first(labs, hdl).value",
    "each(labs).test == 'hdl' implies each(labs).days >= 0",
    "count(events, mi) <= 1 and event(events, mi) >= 0",
    "first(labs, smoke).value in (0, 1)",
    'each(visits).date >= "2000-01-01"',
    "each(`visits`).`ward` != 'c' implies each(visits).sbp > 100",
]
MISTAKES = [
    ("visits.date > 3", "say which: first(visits).date, last(visits).date, each(visits).date"),
    ("date > '2000-01-01'", "character 1: 'date' needs its table: write patients.date"),
    ("each(visit).date > '2000-01-01'", "there is no table 'visit' (did you mean 'visits'?)"),
    ("person.sex == 'F'", "there is no table 'person'"),
    ("each(patients).sex == 'F'", "has one row in patients; write patients.sex"),
    ("count(patients) > 1", "count the rows of another table"),
    ("first(labs).value > 3", "name one, such as first(labs, hdl).value"),
    ("first(labs, hdx).value > 3", "table labs has no test 'hdx'"),
    ("count(events, strok) > 3", "has no event 'strok' (did you mean 'stroke'?)"),
    ("first(visits, hdl).sbp > 3", "is wide; it has no tests"),
    ("event(strok) > 3", "there is no event 'strok' (did you mean 'stroke'?); events: stroke, mi"),
    ("event(visits, mi) > 3", "there is no table of events 'visits'"),
    ("each(visits).date > 3", "compares date with number; use one kind; days count from"),
    ("event(mi) >= last(visits).date", "compares number with date"),
    ("each(visits).sbp > each(labs).days", "goes through the rows of one table, not of"),
    ("each(labs).days > each(labs, hdl).days", "goes through the rows of one table"),
    ("frist(visits).sbp > 3", "no function 'frist' (did you mean 'first'?); functions: first"),
    ("first(visits.sbp > 3", "character 13: a closing bracket is missing"),
    ("first(visits) > 3", "character 15: a column is expected, such as first(visits).date"),
    ("first().sbp > 3", "character 7: the name of a table is expected"),
    ("count(visits).sbp > 3", "character 14: a comparison is expected"),
    ("each(visits).id == 'a'", "a key is no value"),
    ("patients.id == 'a'", "a key is no value"),
    ("each(visits).visit == 'a'", "has role drop and is not in the synthetic table"),
    ("first(orders).number == 1", "a number that the sampler gives"),
    ("first(visits).ward == 'z'", "'first(visits).ward' has no category 'z'"),
    ("first(visits).ward > 'a'", "orders text, which has no order"),
    ("patients.sexx == 'F'", "no column 'sexx' (did you mean 'sex'?)"),
    ("each(visits).date > '12.5.2001'", "a text that is not a date"),
    (3, "text is expected, not 3"),
]


def with_rules(*rules: Any) -> dict[str, Any]:
    document = package()
    document["dpsynth"]["rules"] = list(rules)
    return document


def test_rules_are_kept_as_they_are_written() -> None:
    schema = LinkedSchema.from_dict(with_rules(*RULES))
    assert [rule.text for rule in schema.rules] == RULES
    assert LinkedSchema.from_dict(schema.to_dict()) == schema
    plainly = LinkedSchema.from_dict(package())
    assert schema.to_dict()["dpsynth"]["rules"] == RULES
    assert "rules" not in plainly.to_dict()["dpsynth"]
    assert len({schema.hash(), plainly.hash()}) == 2
    assert LinkedSchema.from_dict(with_rules()).hash() == plainly.hash()


@pytest.mark.parametrize(("rule", "message"), MISTAKES)
def test_each_mistake_has_its_place(rule: Any, message: str) -> None:
    with pytest.raises(SchemaError) as caught:
        LinkedSchema.from_dict(with_rules(RULES[0], rule))
    (problem,) = caught.value.problems
    assert problem.place == "dpsynth.rules[1]" and message in problem.message


def test_a_list_is_expected() -> None:
    with pytest.raises(SchemaError, match=r"dpsynth\.rules: a list of rules is expected"):
        LinkedSchema.from_dict(package() | {"dpsynth": package()["dpsynth"] | {"rules": "a"}})


def test_an_event_of_two_tables_is_named_with_its_table() -> None:
    document = with_rules("event(mi) >= 0")
    again = [plain("id"), plain("days", "integer"), choice("event", "mi")]
    document["resources"].append(resource("deaths", again, time="days", once="event"))
    with pytest.raises(SchemaError, match=r"tables events, deaths have this event; name one"):
        LinkedSchema.from_dict(document)
    document["dpsynth"]["rules"] = ["event(deaths, mi) >= event(events, mi)"]
    LinkedSchema.from_dict(document)


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="abeach()., <>='1`\"", max_size=30) | st.text(max_size=30))
def test_any_text_is_a_rule_or_a_clear_mistake(text: str) -> None:
    try:
        rule = TemporalRule.parse(text)
    except InputError as error:
        assert "character" in str(error)
    else:
        assert rule.terms
