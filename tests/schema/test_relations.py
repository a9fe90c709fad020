"""Intervals, derived columns and parts of the calendar: what a schema may say, and its bounds."""

from __future__ import annotations

import json
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest

from dpsynth.errors import InputError, SchemaError
from dpsynth.inspection import schema_warnings
from dpsynth.schema import Formula, Interval, Schema

from ..support.command_line import Cli
from ..support.related_columns import ADMITTED, BMI, BORN, DISCHARGED, SEEN, SIZES, document

FIRST, LAST = date(2010, 1, 1), date(2014, 12, 31)


def problems(*fields: dict[str, Any], rules: tuple[str, ...] = ()) -> str:
    with pytest.raises(SchemaError) as refused:
        Schema.from_dict(document(*fields, rules=list(rules)))
    return str(refused.value)


def changed(field: dict[str, Any], **own: Any) -> dict[str, Any]:
    return field | {"dpsynth": field["dpsynth"] | own}


def test_the_bounds_of_an_interval_follow_from_the_other_date() -> None:
    schema = Schema.from_dict(document(DISCHARGED, ADMITTED, BORN, SEEN))
    stay, born, seen = (schema.column(name) for name in ("discharged", "born", "seen"))
    assert stay.interval == Interval("admitted", "d", longest=90)
    assert (stay.minimum, stay.maximum) == (FIRST, date(2015, 3, 31))
    assert (born.minimum, born.maximum) == (date(1899, 1, 2), LAST)  # the day before is 111 years
    assert (seen.minimum, seen.maximum) == (datetime(2010, 1, 1), datetime(2015, 1, 2))


def test_chains_are_bounded_in_any_order_of_declaration() -> None:
    operated = changed(DISCHARGED, longest=7, shortest=-1) | {"name": "operated"}
    left = changed(DISCHARGED, after="operated", longest=30)
    left["constraints"] = {}
    schema = Schema.from_dict(document(left, operated, ADMITTED))
    assert schema.column("operated").minimum == date(2009, 12, 31)
    assert schema.column("discharged").maximum == date(2015, 2, 6)
    assert schema_warnings(schema) == ()


def test_a_schema_with_relations_round_trips_and_names_them() -> None:
    schema = Schema.from_dict(document(DISCHARGED, ADMITTED, BORN, SEEN, *SIZES, BMI))
    written = schema.to_dict()
    assert Schema.from_dict(written) == schema
    fields = {field["name"]: field for field in written["fields"]}
    assert fields["discharged"]["constraints"] == {"required": True}
    assert fields["bmi"]["dpsynth"]["derived"] == "weight / (height / 100) ^ 2"
    public = {field["name"]: field for field in schema.to_table_schema()["fields"]}
    assert public["discharged"]["constraints"]["maximum"] == "2015-03-31"
    assert public["discharged"]["dpsynth"] == {"relation": "0 to 90 days after admitted"}
    assert public["born"]["dpsynth"]["relation"] == "0 to 110 years before admitted"


def test_a_draft_may_leave_the_longest_gap_open() -> None:
    open_end = {**DISCHARGED, "dpsynth": {"after": "admitted", "longest": "TODO"}}
    whole = document(open_end, ADMITTED)
    whole["dpsynth"]["draft"] = True
    schema = Schema.from_dict(whole)
    assert Schema.from_dict(schema.to_dict()) == schema
    with pytest.raises(SchemaError, match=r"'discharged'\.dpsynth\.longest: is still TODO"):
        schema.require_complete()


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"after": "admited"}, "dpsynth.after: there is no column 'admited' (did you mean"),
        ({"after": "patient"}, "column 'patient' has role unit and is not in the synthetic"),
        ({"after": "weight"}, "column 'weight' is of type number; a date or datetime is"),
        ({"after": "discharged"}, "goes round in a circle: discharged after discharged; one date"),
        ({"before": "admitted"}, "a date is an interval to one other; keep after or before"),
        ({"longest": None}, "longest: is missing; declare it, it is never taken from the data"),
        ({"longest": -1}, "longest is below shortest"),
        ({"longest": 10**9}, "longest: is more than 1000 years"),
        ({"longest": 800, "unit": "a", "shortest": -1}, "completed years are not negative"),
        ({"unit": "h"}, "unit: 'h' is not one of d, wk, a"),
        ({"unit": "mo"}, "unit: months are not equally long"),
        ({"step": 2}, "step: follows from 'after' and the other date; remove it"),
        ({"calendar": "weekday"}, "an interval keeps the hour alone; declare others for its base"),
        ({"bounds_basis": None}, "bounds_basis: is missing for the longest gap"),
    ],
)
def test_mistakes_in_an_interval(own: dict[str, Any], message: str) -> None:
    assert message in problems(changed(DISCHARGED, **own), ADMITTED, *SIZES)


def test_mistakes_between_columns() -> None:
    bounds = {**DISCHARGED, "constraints": {"minimum": "2010-01-01", "required": True}}
    assert "constraints.minimum: follows from 'after'" in problems(bounds, ADMITTED)
    nullable = {**ADMITTED, "constraints": {**ADMITTED["constraints"], "required": False}}
    assert "but 'admitted' may be missing" in problems(DISCHARGED, nullable)
    number = {**DISCHARGED, "type": "integer"}
    assert "an interval is of type date or datetime, not integer" in problems(number, ADMITTED)
    one = changed({**DISCHARGED, "name": "one"}, after="two")
    two = changed({**DISCHARGED, "name": "two"}, after="one")
    assert "goes round in a circle: one after two after one" in problems(one, two)
    early = {**ADMITTED, "constraints": {"minimum": "0001-01-01", "maximum": "0002-01-01"}}
    assert "leads to dates outside the years 1 to 9999" in problems(early, BORN)
    assert "longest: only an interval has it" in problems(changed(ADMITTED, longest=3))


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ({"derived": "weight / hight"}, "there is no column 'hight' (did you mean"),
        ({"derived": "weight / admitted"}, "column 'admitted' is of type date; a number is"),
        ({"derived": "year(weight)"}, "column 'weight' is of type number; a date is expected"),
        ({"derived": "bmi + 1"}, "goes round in a circle: bmi needs bmi"),
        ({"derived": "weight +"}, "character 9: a column or a number is expected"),
        ({"role": "target"}, "role: the column is derived, and so has none; remove it"),
        ({"on_bad": "minimum"}, "on_bad: the column is derived, and so has none"),
    ],
)
def test_mistakes_in_a_derived_column(own: dict[str, Any], message: str) -> None:
    assert message in problems(changed(BMI, **own), *SIZES, ADMITTED)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 + 2", "character 1: a formula needs a column"),
        ("a b", "character 3: a sign + - * / ^ is expected"),
        ("(a", "character 3: a closing bracket is missing"),
        ("sqrt(a)", "character 1: there is no function 'sqrt'; functions: days"),
        ("days(a)", "character 1: days takes 2 column(s), not 1"),
        ("days(a, 2)", "a function of dates takes names of columns"),
        ("a + ; b", "character 5: nothing that a formula can hold begins here"),
        ("a * " + "9" * 400, "character 5: the number is too large"),
        ("(" * 30 + "a" + ")" * 30, "brackets nest deeper than 20"),
        ("a" + "^a" * 30, "powers nest deeper than 20"),
        ("a" + " + a" * 200, "a formula has at most 500 characters"),
    ],
)
def test_mistakes_in_a_formula(text: str, message: str) -> None:
    with pytest.raises(InputError, match=".*") as refused:
        Formula.parse(text)
    assert message in str(refused.value)


def test_mistakes_in_a_calendar() -> None:
    assert "calendar: 'weekdays' is not one of weekday, month, hour" in problems(
        changed(ADMITTED, calendar="weekdays")
    )
    assert "only a date has a calendar" in problems(changed(SIZES[0], calendar="month"))
    assert "a date has no hour; set type: datetime" in problems(changed(ADMITTED, calendar="hour"))
    quarters = {**ADMITTED, "type": "datetime", "dpsynth": ADMITTED["dpsynth"] | {"step": 2400}}
    assert "an hour needs a step that divides it" in problems(changed(quarters, calendar="hour"))
    clash = {**SIZES[0], "name": "admitted: weekday"}
    assert "is the name of a column; rename that one" in problems(
        changed(ADMITTED, calendar="weekday"), clash
    )


def two_dates(rule: str) -> dict[str, Any]:
    plain = {**ADMITTED, "name": "discharged"}
    return document(ADMITTED, plain, DISCHARGED | {"name": "moved"}, rules=[rule])


@pytest.mark.parametrize(
    ("rule", "warned"),
    [
        ("admitted <= discharged", True),
        ("discharged >= admitted", True),
        ("not (admitted > discharged) and moved < discharged", False),
        ("admitted <= moved", False),
        ("admitted >= '2011-01-01'", False),
        ("admitted != discharged", False),
    ],
)
def test_two_dates_with_a_rule_and_no_interval(rule: str, warned: bool) -> None:
    warnings = schema_warnings(Schema.from_dict(two_dates(rule)))
    assert [warning.place for warning in warnings] == [rule] * warned
    assert all("admitted and discharged" in warning.message for warning in warnings)


def test_schema_check_warns_and_says_what_to_add(command_line: Cli, tmp_path: Path) -> None:
    path = tmp_path / "stays.schema.json"
    path.write_text(json.dumps(two_dates("admitted <= discharged")))
    done = command_line("schema", "check", path)
    assert "warning  admitted <= discharged: orders the dates" in done.out
    assert "dpsynth: {after: admitted, longest: ..., bounds_basis: ...}" in done.out
    warnings = command_line("schema", "check", path, "--json").json["warnings"]
    assert len(warnings) == 1
    path.write_text(json.dumps(document(ADMITTED, DISCHARGED)))
    assert "warning" not in command_line("schema", "check", path).out
