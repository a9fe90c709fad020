"""Rules: the grammar, the logic of missing values, and comparisons of every kind of value."""

from __future__ import annotations

import itertools
from datetime import date, datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpsynth.errors import InputError
from dpsynth.schema import Column, Rule

FRAME = pd.DataFrame(
    {
        "sbp": [120, 90, 140],
        "dbp": [80.0, 95.5, 140.0],
        "sex": ["F", "M", "other"],
        "smoker": [True, False, True],
        "age (years)": [30, 40, 50],
        "born": [date(1950, 1, 2), date(2000, 2, 29), date(1600, 1, 1)],
        "seen": pd.to_datetime(["1950-01-02 10:00", "2000-02-28 00:00", "2020-01-01 00:00"]),
    }
)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("sbp > dbp", "100"),
        ("sbp >= dbp", "101"),
        ("sbp < 120", "010"),
        ("sbp <= 120", "110"),
        ("sbp == 1.2e2", "100"),
        ("sbp = 120", "100"),
        ("sbp != +120", "011"),
        ("-1 < sbp", "111"),
        ("80 <= dbp <= 100", "110"),
        ("sex == 'F'", "100"),
        ('sex != "F"', "011"),
        ("smoker == true", "101"),
        ("false == smoker", "010"),
        ("`age (years)` >= 40", "011"),
        ("born == '1950-01-02'", "100"),
        ("born < '1700-12-31'", "001"),
        ("born <= seen", "101"),
        ("seen > '1950-01-02T09:59:59'", "111"),
        ("not sbp < 120", "101"),
        ("not not sbp < 120", "010"),
        ("sbp > 100 and sex == 'F'", "100"),
        ("sbp < 100 or sex == 'F'", "110"),
        ("sbp > 100 implies sex == 'F'", "110"),
        # not binds closer than and, and than or, or than implies; implies groups to the right
        ("sex == 'M' or sex == 'F' and sbp > 130", "010"),
        ("(sex == 'M' or sex == 'F') and sbp > 100", "100"),
        ("not sex == 'M' and sbp > 130", "001"),
        ("sex == 'F' or sex == 'M' implies smoker == true", "101"),
        ("smoker == true implies sbp > 130 implies dbp > 130", "111"),
        ("(smoker == true implies sbp > 130) implies dbp > 130", "101"),
        ("  sbp\n>\tdbp ", "100"),
    ],
)
def test_rules_hold_where_they_should(text: str, rows: str) -> None:
    holds = Rule.parse(text).holds(FRAME)
    assert holds.dtype == bool
    assert "".join(map(str, holds.astype(int))) == rows


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("", 1, "a column or a value is expected"),
        ("sbp", 4, "a comparison is expected"),
        ("sbp <", 6, "a column or a value is expected"),
        ("sbp < < 3", 7, "a column or a value is expected"),
        ("sbp 3", 5, "a comparison is expected"),
        ("sbp < 3 dbp", 9, "the rule should end here"),
        ("(sbp < 3", 9, "a closing bracket is missing"),
        ("sbp < 3)", 8, "the rule should end here"),
        ("1 < 2", 5, "not two values"),
        ("sbp < 'abc", 7, "nothing that a rule can hold"),
        ("sbp < 3x", 7, "nothing that a rule can hold"),
        ("sbp < 1.2.3", 7, "nothing that a rule can hold"),
        ("sbp + 1 < 3", 5, "nothing that a rule can hold"),
        ("sbp < 1e999", 7, "too large"),
        ("f(sbp) < 3", 2, "a comparison is expected"),
        ("sbp.real < 3", 4, "nothing that a rule can hold"),
        ("sbp < 3; dbp < 3", 8, "nothing that a rule can hold"),
        ("not", 4, "a column or a value is expected"),
        ("implies sbp < 3", 1, "a column or a value is expected"),
    ],
)
def test_what_is_no_rule(text: str, place: int, message: str) -> None:
    with pytest.raises(InputError, match=f"character {place}: .*{message}"):
        Rule.parse(text)


def test_size_is_bounded() -> None:
    with pytest.raises(InputError, match="at most 2000 characters"):
        Rule.parse("a < 1 and " * 300 + "a < 1")
    with pytest.raises(InputError, match="brackets nest deeper"):
        Rule.parse("(" * 900 + "a < 1" + ")" * 900)
    Rule.parse("not " * 490 + "a < 1")
    Rule.parse("a < 1 " + "and a < 1 " * 199)
    with pytest.raises(InputError, match="brackets nest deeper"):
        Rule.parse("a < 1 " + "implies a < 1 " * 130)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab1.'\"`()<>=!- \n", max_size=30) | st.text(max_size=30))
def test_any_text_is_a_rule_or_a_clear_mistake(text: str) -> None:
    try:
        rule = Rule.parse(text)
    except InputError as error:
        assert "character" in str(error)
    else:
        assert rule.columns and Rule.parse(rule.text) == rule


def test_columns_come_once_in_order() -> None:
    assert Rule.parse("b < a and `c d` == 'a' or a < 3").columns == ("b", "a", "c d")


# Kleene's strong tables, written out: T true, F false, U unknown.
TABLES = {
    "and": {"TT": "T", "TF": "F", "TU": "U", "FF": "F", "FU": "F", "UU": "U"},
    "or": {"TT": "T", "TF": "T", "TU": "T", "FF": "F", "FU": "U", "UU": "U"},
}
IMPLIES = {"TT": "T", "TF": "F", "TU": "U", "FT": "T", "FF": "T", "FU": "T"}
IMPLIES |= {"UT": "T", "UF": "U", "UU": "U"}


@pytest.mark.parametrize("word", ["and", "or", "implies"])
def test_missing_values_follow_kleene(word: str) -> None:
    cells = {"T": 1.0, "F": 0.0, "U": np.nan}
    rule = Rule.parse(f"a == 1 {word} b == 1")
    negated = Rule.parse(f"not (a == 1 {word} b == 1)")
    for a, b in itertools.product("TFU", repeat=2):
        table = IMPLIES if word == "implies" else TABLES[word]
        truth = table.get(a + b) or table[b + a]
        # An unknown column of one row alone would have no type; two known rows give it one.
        frame = pd.DataFrame({"a": [cells[a], 1.0], "b": [cells[b], 1.0]})
        assert rule.holds(frame)[0] == (truth != "F"), (a, b)
        assert rule.holds(frame, missing=False)[0] == (truth == "T"), (a, b)
        assert negated.holds(frame)[0] == (truth != "T"), (a, b)


MISSING = {
    "number": pd.Series([1, None], dtype="Int64"),
    "float": pd.Series([1.0, np.nan]),
    "object": pd.Series([1, None], dtype=object),
    "text": pd.Series(["x", None], dtype=object),
    "string": pd.Series(["x", pd.NA], dtype="string"),
    "category": pd.Series(["x", None], dtype="category"),
    "boolean": pd.Series([True, None], dtype="boolean"),
    "date": pd.Series([date(2000, 1, 1), None], dtype=object),
    "datetime": pd.Series([datetime(2000, 1, 1), pd.NaT]),
    "old datetime": pd.Series(np.array(["0900-01-01", "NaT"], dtype="datetime64[s]")),
}
LITERALS = {"number": "1", "float": "1", "object": "1", "boolean": "true"}
LITERALS |= {"date": "'2000-01-01'", "datetime": "'2000-01-01'", "old datetime": "'0900-01-01'"}


@pytest.mark.parametrize("kind", list(MISSING))
def test_missing_cells_of_every_kind(kind: str) -> None:
    frame = pd.DataFrame({"a": MISSING[kind]})
    literal = LITERALS.get(kind, "'x'")
    for sign, expected in (("==", [True, True]), ("!=", [False, True])):
        rule = Rule.parse(f"a {sign} {literal}")
        assert rule.holds(frame).tolist() == expected
        assert rule.holds(frame, missing=False).tolist() == [expected[0], False]
    assert Rule.parse(f"a == {literal}").holds(frame.iloc[1:]).tolist() == [True]
    assert Rule.parse(f"a == {literal}").holds(frame.iloc[:0]).tolist() == []


def test_codes_as_categories_compare_as_numbers() -> None:
    frame = pd.DataFrame({"a": pd.Series([1, 2, None], dtype="category")})
    assert Rule.parse("a >= 2").holds(frame).tolist() == [False, True, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sbp == '120'", "compares number with text; text is written in quotes"),
        ("sex == 1", "compares text with number"),
        ("smoker == 1", "compares boolean with number"),
        ("born < 1950", "compares date with number"),
        ("born < sex", "compares date with text"),
        ("sex < 'F'", "no order"),
        ("smoker > false", "no order"),
        ("born < 'then'", "write dates like '2015-12-31'"),
        ("weight < 3", "columns that are absent: weight"),
    ],
)
def test_values_that_cannot_be_compared(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Rule.parse(text).holds(FRAME)


def test_problems_are_found_against_declared_columns() -> None:
    columns = [
        Column("n", "integer"),
        Column("code", "integer", categories=("1", "2")),
        Column("sex", "string", categories=("F", "M"), on_unknown="other"),
        Column("day", "date"),
        Column("time", "datetime"),
        Column("key", "string", roles=frozenset({"unit"})),
    ]

    def problems(text: str) -> list[str]:
        return Rule.parse(text).problems(columns)

    for text in ("n < 3", "sex == 'other'", "day <= time", "code == 2.0", "code < 9"):
        assert problems(text) == []
    assert problems("sexx == 'F' and n < 'x'") == [
        "there is no column 'sexx' (did you mean 'sex'?); a value of text is written in quotes",
        "it compares number with text; text is written in quotes, numbers without",
    ]
    assert problems("sex == F") == ["there is no column 'F'; a value of text is written in quotes"]
    assert problems("code == 3") == ["column 'code' has no category '3'"]
    assert problems("key == 'a'") == [
        "column 'key' has role unit and is not in the synthetic table"
    ]
    assert problems("day < 'x'") == [
        "it compares a date with a text that is not a date; write dates like '2015-12-31'"
    ]


def test_rules_compare_by_their_text() -> None:
    assert Rule.parse("a < 1") == Rule.parse(" a < 1 ")
    assert len({Rule.parse("a < 1"), Rule.parse("a < 1"), Rule.parse("a < 2")}) == 2
