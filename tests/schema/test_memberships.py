"""``in (...)`` and ``not in (...)``: a list of values beside the other comparisons."""

from __future__ import annotations

from datetime import date

import pandas as pd
import pytest

from dpsynth.errors import InputError
from dpsynth.eval.fidelity import records
from dpsynth.schema import Rule, Schema

FRAME = pd.DataFrame(
    {
        "sex": ["F", "M", None],
        "age": [30.0, None, 50.0],
        "smoker": [True, False, False],
        "born": [date(1950, 1, 2), date(2000, 2, 29), None],
        "pack years": [1, 2, 3],
        "in": [1, 2, 3],
    }
)


@pytest.mark.parametrize(
    ("text", "certain", "not_broken"),
    [
        ("sex in ('F', 'X')", "100", "101"),
        ('sex in ("F","M")', "110", "111"),
        ("sex not in ('F')", "010", "011"),
        ("not sex in ('F')", "010", "011"),
        ("not sex not in ('F')", "100", "101"),
        ("age in (30, 5.0e1)", "101", "111"),
        ("age not in (-1, +30)", "001", "011"),
        ("smoker in (true)", "100", "100"),
        ("born in ('1950-01-02', '1999-12-31')", "100", "101"),
        ("`pack years` in (1, 3)", "101", "101"),
        ("in in (1)", "100", "100"),  # a column may still have that name
        ("in > 1", "011", "011"),
        ("sex in ('F') or `pack years` in (2) and age > 1", "100", "111"),
        ("`pack years` in (1, 2) implies sex == 'F'", "101", "101"),
    ],
)
def test_a_list_is_the_same_as_its_comparisons(text: str, certain: str, not_broken: str) -> None:
    rule = Rule.parse(text)
    for missing, rows in ((False, certain), (True, not_broken)):
        holds = rule.holds(FRAME, missing=missing)
        assert "".join(map(str, holds.astype(int))) == rows
    assert Rule.parse(rule.text) == rule


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        ("sex in", 7, "in needs values in brackets, such as"),
        ("sex in 'F'", 9, "in needs values in brackets"),
        ("sex in ()", 9, "a value is expected, such as"),
        ("sex in ('F',)", 13, "a value is expected"),
        ("sex in (,'F')", 9, "a value is expected"),
        ("sex in ('F' 'M')", 14, "a comma and another value, or a closing bracket"),
        ("sex in ('F'", 12, "a comma and another value, or a closing bracket"),
        ("sex in (F, M)", 9, "text needs quotes"),
        ("sex not in F", 12, "in needs values in brackets"),
        ("'F' in ('F', 'M')", 5, "write a column before in"),
        ("sex in (('F'))", 9, "a value is expected"),
        ("sex not ('F')", 5, "a comparison is expected"),
        ("age in (1) in (2)", 12, "the rule should end here"),
        ("age < 3, sex == 'F'", 8, "the rule should end here"),
    ],
)
def test_mistakes_are_named_by_their_place(text: str, place: int, message: str) -> None:
    with pytest.raises(InputError, match=f"character {place}: .*{message}"):
        Rule.parse(text)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sex in ('female', 'femal')", "column 'sex' has no category 'femal'"),
        ("sex in (1, 2)", "compares text with number; text is written in quotes"),
        ("age in ('old', 'young')", "compares number with text"),
        ("visit_date in ('2015-01-01', 'soon')", "not a date"),
        ("sexx in ('female', 'male')", "did you mean 'sex'"),
    ],
)
def test_each_problem_with_the_columns_is_said_once(text: str, problem: str) -> None:
    problems = Rule.parse(text).problems(Schema.load("demo").modelled)
    assert len(problems) == 1 and problem in problems[0]


def test_a_broken_list_is_worded_for_the_page() -> None:
    words = records.broken(Rule.parse("sex in ('female', 'male')"), Schema.load("demo"))
    assert words.count(" is not ") == 2 and " and " in words
