"""Cells that a spreadsheet would run: the office is warned, and recipients are told."""

from __future__ import annotations

import pytest

from dpsynth.bundle.format import ManifestHeader
from dpsynth.bundle.pages.limits import formula_columns, limits_of
from dpsynth.inspection import schema_warnings
from dpsynth.schema import Column, Schema

FORMULAS = ["=HYPERLINK(1)", "@SUM(1+1)*cmd|' /C calc'!A0", "+cmd()", "-cmd()", "\t=1", "-5 to 0"]
TEXTS = ["-5", "+1.5", "-1,5", "<5", "A+", "a=b", "+", "-", "Ünknown", "1-2"]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_category_that_a_spreadsheet_would_run_is_found(text: str) -> None:
    assert Column("result", "string", categories=("normal", text)).runs_in_spreadsheets


@pytest.mark.parametrize("text", TEXTS)
def test_texts_and_numbers_are_not(text: str) -> None:
    assert not Column("result", "string", categories=("normal", text)).runs_in_spreadsheets


def test_a_name_of_a_column_is_a_cell_of_the_file_too() -> None:
    assert Column("@age", "string", categories=("a", "b")).runs_in_spreadsheets


def test_a_number_is_never_a_formula() -> None:
    assert not Column("change", "integer", minimum=-5, maximum=5).runs_in_spreadsheets


def with_formula() -> Schema:
    document = Schema.load("demo").to_dict()
    ward = next(one for one in document["fields"] if one["name"] == "ward")
    ward["constraints"]["enum"] = [*ward["constraints"]["enum"], "=HYPERLINK(1)"]
    return Schema.from_dict(document)


def test_the_check_of_a_schema_warns() -> None:
    warnings = [one for one in schema_warnings(with_formula()) if one.place == "ward"]
    assert "may run it as a formula" in warnings[0].message
    assert not any("formula" in one.message for one in schema_warnings(Schema.load("demo")))


def test_recipients_are_told(drawing: object) -> None:
    from dpsynth.bundle.format import About

    sound = ManifestHeader(Schema.load("demo"), drawing, About())  # type: ignore[arg-type]
    heading = ManifestHeader(with_formula(), drawing, About())  # type: ignore[arg-type]
    assert formula_columns(sound) == () and formula_columns(heading) == ("ward",)
    assert any("Cells of ward begin like a formula" in limit for limit in limits_of(heading))
