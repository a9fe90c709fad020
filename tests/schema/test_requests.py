"""Conditions that no row can meet: what contradicts what, and what must not be refused."""

from __future__ import annotations

import pytest

from dpsynth.schema import Rule, impossible

from ..support.following_columns import WHOLE, schema_of
from ..support.related_columns import ADMITTED, DISCHARGED


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("low > 999", "no row can meet 'low > 999': the declared bounds or categories exclude it"),
        ("sex == 'F' and low > 100 and low < 90", "both 'low > 100' and 'low < 90'; correct one"),
        ("sex == 'F' and sex == 'M'", "both \"sex == 'F'\" and \"sex == 'M'\""),
        ("low > 100 and high <= 100", "beside what the schema declares: 'low < high"),
        ("pregnant == true and sex == 'M'", "declares: present_if of 'pregnant'"),
        ("not (low <= 100 or low >= 90)", "no row can meet 'not (low <= 100 or low >= 90)'"),
        ("low < 90 and high < low", "no row can meet 'high < low' beside what the schema declares"),
    ],
)
def test_a_contradiction_is_named_by_its_fewest_parts(condition: str, words: str) -> None:
    found = impossible(WHOLE, Rule.parse(condition))
    assert found is not None and words.replace('"', "'") in found.replace('"', "'")


@pytest.mark.parametrize(
    "condition",
    [
        "low > 90 and high > 100",
        "sex == 'M' and (pregnant == true or low > 50)",  # the other half is met with no pregnancy
        "pregnant == true or sex == 'M'",
        "not (pregnant == true and sex == 'M')",
        "low == 50 or low == 51 or low > 400",
        " or ".join(f"(low == {30 + n} and high == 10)" for n in range(60)) + " or low > 1",
    ],
)
def test_what_some_row_can_meet_is_not_refused(condition: str) -> None:
    assert impossible(WHOLE, Rule.parse(condition)) is None


def test_an_interval_excludes_a_discharge_before_the_admission() -> None:
    schema = schema_of(ADMITTED, DISCHARGED)
    found = impossible(schema, Rule.parse("discharged < admitted"))
    assert found is not None and "'discharged' after 'admitted'" in found
    assert impossible(schema, Rule.parse("discharged <= admitted")) is None
