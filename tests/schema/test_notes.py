"""What a schema may say better: orders among rules, and patterns that record numbers fit."""

from __future__ import annotations

import pytest

from dpsynth.inspection import schema_notes, schema_warnings

from ..support.following_columns import HIGH, LOW, ORDER, SEX, TOP, schema_of
from ..support.related_columns import ADMITTED
from ..support.schema_fields import schema_field


def test_an_order_among_rules_of_text_could_hold_by_construction() -> None:
    [note] = schema_notes(schema_of(LOW, HIGH, SEX, rules=["high > low", "sex == 'F' or low > 40"]))
    assert note.place == "high > low" and '- order: "low < high"' in note.message


@pytest.mark.parametrize(
    "rule",
    [ORDER, "high < low", "low < high or low > 100", "low < 90", "admitted <= seen", "low != high"],
)
def test_no_note_where_nothing_would_be_better(rule: object) -> None:
    seen = {**ADMITTED, "name": "seen"}
    assert schema_notes(schema_of(LOW, HIGH, TOP, ADMITTED, seen, rules=[rule])) == ()


@pytest.mark.parametrize(
    ("pattern", "digits"), [("[0-9]{8}", 8), ("[A-Z]?[0-9]{6,7}", 6), ("[A-Z][0-9]{2}", None)]
)
def test_patterns_that_record_numbers_fit_are_warned_of(pattern: str, digits: int | None) -> None:
    codes = {"codes": {"discover": True, "pattern": pattern}}
    warnings = schema_warnings(schema_of(LOW, schema_field("device", "string", codes)))
    assert [one.place for one in warnings] == ["device"] * (digits is not None)
    assert all(f"{digits} digits do" in one.message for one in warnings)
