"""A column in words: its figures are written alike, in full."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth._util.formatting import quantity
from dpsynth.bundle.gates import ColumnProfile
from dpsynth.bundle.pages.report import facts_of
from dpsynth.schema import Bound, Column


def facts(column: Column, mean: float | None, *five: str) -> dict[str, str]:
    profile = ColumnProfile(column, 4, 0, 0, (), 0, 4, False, mean, five)
    return {fact.name: fact.value for fact in facts_of(profile)}


def test_the_figures_of_a_column_are_written_alike() -> None:
    age = Column("age", "integer", minimum=6575, maximum=36525, ucum="d")
    words = facts(age, 19447.31, "10,798", "17,664", "19,691", "21,327", "23,713")
    assert words["Mean"] == "19,447" and words["Median"] == "19,691"
    assert words["Bounds"] == "6,575 to 36,525"


@pytest.mark.parametrize(
    ("type_", "low", "high", "words"),
    [
        ("year", 1990, 2026, "1990 to 2026"),
        ("number", 0.00001, 2_000_000.0, "0.00001 to 2,000,000"),
        ("number", -1.25, 10.0, "-1.25 to 10"),
        ("date", date(2020, 1, 1), date(2021, 1, 1), "2020-01-01 to 2021-01-01"),
    ],
)
def test_bounds_are_written_in_full(type_: str, low: Bound, high: Bound, words: str) -> None:
    assert facts(Column("x", type_, minimum=low, maximum=high), None)["Bounds"] == words


@given(st.floats(-1e15, 1e15))
def test_a_quantity_has_no_power_of_ten_and_four_digits(value: float) -> None:
    text = quantity(value)
    assert "e" not in text
    assert float(text.replace(",", "")) == pytest.approx(value, rel=5e-4, abs=1e-12)
