"""Contradictory rules: found exactly where a search can decide, and the fewest of them named."""

from __future__ import annotations

import itertools
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import SchemaError
from dpsynth.inspection import schema_warnings
from dpsynth.schema import (
    LinkedSchema,
    Rule,
    Schema,
    contradictions,
    incomplete_only,
    require_consistent_tables,
    solver,
)
from dpsynth.schema.solver import Search
from dpsynth.synthesis import prepare

from ..support.following_columns import PREGNANT, SEX, schema_of
from ..support.related_columns import ADMITTED, BASIS, DISCHARGED
from ..support.schema_fields import schema_field

A, B, C = (schema_field(name, "integer", BASIS, minimum=0, maximum=100) for name in "abc")
KIND = schema_field("kind", "integer", BASIS, enum=[1, 2, 3])
FLAG = schema_field("flag", "boolean", BASIS)
SCORE = schema_field("score", "number", BASIS, minimum=0, maximum=10)
CALLED = schema_field("called", "time", BASIS)
FIELDS = (A, B, C, KIND, FLAG, SCORE, SEX, CALLED)


def found(*rules: Any, fields: Any = FIELDS) -> str:
    return " ".join(contradictions(schema_of(*fields, rules=rules)))


@pytest.mark.parametrize(
    ("rules", "named"),
    [
        (["a > 200"], 1),
        (["a < b", "b < a"], 2),
        ([{"order": "a <= b"}, "b < a"], 2),
        (["a == b", "a != b"], 2),
        (["a <= b", "b <= a", "a != b"], 3),
        (["a > 3", "a < 4"], 2),
        (["a < b", "b < 1"], 2),
        (["kind > 2", "kind != 3"], 2),
        (["kind in (1, 2)", "kind not in (1, 2)"], 2),
        (["flag == true implies a > 50", "flag == true", "a <= 50"], 3),
        (["not (a < b or b < a)", "a > 50", "b < 40"], 3),
        (["sex == 'F' implies a > 50", "sex != 'F' implies a > 60", "a < 20"], 3),
        (["called < '08:30'", "called > '09:00'"], 2),
    ],
)
def test_the_fewest_contradictory_rules_are_named(rules: list[Any], named: int) -> None:
    beside = ["b <= 100", "flag == false or c >= 0"]
    words = found(*beside, *rules)
    texts = [rule["order"] if isinstance(rule, dict) else rule for rule in rules]
    assert len(texts) == named
    assert all(repr(text) in words for text in texts)
    assert not any(repr(text) in words for text in beside)
    assert ("contradict each other" in words) == (named > 1)


@pytest.mark.parametrize(
    "rules",
    [
        ["a < b", "b < c"],
        ["score > 3", "score < 4"],
        ["a == b", "b == c"],
        ["sex == 'F' implies a > 50", "sex == 'M' implies a > 60", "a < 20"],
        ["kind != 1", "kind != 2"],
        ["a in (1, 2) or b < 3", "a not in (1, 2)"],
        ["sex == 'other'"],
    ],
)
def test_rules_that_a_row_can_meet_are_not_refused(rules: list[str]) -> None:
    assert found(*rules) == "" and incomplete_only(schema_of(*FIELDS, rules=rules)) is None


def test_intervals_and_conditions_of_columns_take_part() -> None:
    dates = [ADMITTED, {**DISCHARGED, "dpsynth": DISCHARGED["dpsynth"] | {"shortest": 1}}]
    words = found("discharged <= admitted", fields=dates)
    assert "'discharged <= admitted', 'discharged' after 'admitted'" in words
    field = {**PREGNANT, "dpsynth": BASIS | {"present_if": "sex == 'F'"}}
    words = found("sex == 'M'", fields=[SEX, field])
    assert '''"sex == 'M'", present_if of 'pregnant': "sex == 'F'"''' in words
    assert found("sex == 'F'", fields=[SEX, field]) == ""


def test_dates_are_compared_as_dates() -> None:
    assert "contradicts the declared bounds" in found("admitted > '2015-01-01'", fields=[ADMITTED])
    assert found("admitted >= '2014-12-31'", fields=[ADMITTED]) == ""
    later = ["admitted > '2012-05-01'", "admitted < '2012-05-02'"]
    assert "contradict each other" in found(*later, fields=[ADMITTED])


def test_rules_that_keep_cells_empty_are_told_and_not_refused() -> None:
    rules = ["kind == 1 implies a < 0", "kind == 2 implies b < 0", "kind != 3"]
    schema = schema_of(*FIELDS, rules=rules)
    require_consistent_tables(schema)
    [warning] = schema_warnings(schema)
    assert warning.place == "rules" and "only rows with empty cells meet them" in warning.message


def test_a_fit_is_refused_before_it_is_charged() -> None:
    schema = schema_of(*FIELDS, rules=["a < b", "b < a"])
    with pytest.raises(SchemaError, match="dpsynth.rules: contradict each other"):
        prepare(schema, epsilon=3, delta=1e-6)


def test_each_of_linked_tables_is_checked() -> None:
    schema = LinkedSchema.load("clinic")
    require_consistent_tables(schema)
    document = schema.to_dict()
    visits = next(one for one in document["resources"] if one["name"] == "visits")
    visits["dpsynth"]["rules"] = ["systolic > weight", "systolic < 30"]
    with pytest.raises(SchemaError, match="'systolic < 30' contradicts the declared bounds"):
        require_consistent_tables(LinkedSchema.from_dict(document))


def test_a_search_that_grows_too_large_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = ["a < 10 or b < 10", "a > 50", "b > 50"]
    assert "contradict each other" in found(*rules)
    monkeypatch.setattr(solver, "MAX_NODES", 1)
    assert found(*rules) == ""


SMALL = [
    schema_field("x", "integer", BASIS, minimum=0, maximum=3, required=True),
    schema_field("y", "number", BASIS | {"step": 0.5}, minimum=1, maximum=2, required=True),
    schema_field("z", "integer", BASIS, enum=[1, 4], required=True),
    schema_field("s", "string", BASIS | {"on_unknown": "F"}, enum=["F", "M"], required=True),
    schema_field("t", "string", BASIS | {"on_unknown": "M"}, enum=["M", "N"], required=True),
]
COMPARED = st.builds(
    lambda left, sign, right: f"{left} {sign} {right}",
    st.sampled_from("xyz"),
    st.sampled_from(["<", "<=", ">", ">=", "==", "!="]),
    st.sampled_from([*"xyz", "0", "1", "2", "3"]),
).filter(lambda text: text.split()[0] != text.split()[2])
OF_TEXT = st.sampled_from(["s == 'F'", "s != 'F'", "t == 'M'", "t != 'M'", "s == t", "s != t"])
RULE = st.recursive(
    COMPARED | OF_TEXT,
    lambda inner: st.builds(
        lambda left, word, right: f"({left}) {word} ({right})",
        inner,
        st.sampled_from(["and", "or", "implies", "and not"]),
        inner,
    ),
    max_leaves=5,
)


@pytest.mark.long
@settings(deadline=None, max_examples=150)
@given(st.lists(RULE, min_size=1, max_size=5))
def test_the_search_agrees_with_trying_every_row(texts: list[str]) -> None:
    schema = schema_of(*SMALL)
    values = {"x": range(4), "y": [1.0, 1.5, 2.0], "z": [1, 4], "s": ["F", "M"], "t": ["M", "N"]}
    rows = pd.DataFrame(list(itertools.product(*values.values())), columns=list(values))
    rules = [Rule.parse(text) for text in texts]
    holds = rows.assign(met=True)["met"].to_numpy()
    for rule in rules:
        holds = holds & rule.holds(rows)
    columns = {column.name: column for column in schema.modelled}
    search = Search(columns, frozenset(columns))
    assert search.possible([rule.tree for rule in rules]) == holds.any()


def test_schemas_that_ship_are_consistent() -> None:
    for name in ("demo", "cardio", "diabetes130", "brfss2015"):
        require_consistent_tables(Schema.load(name))
