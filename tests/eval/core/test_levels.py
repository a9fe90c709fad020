"""Levels of groups: categories and bands."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from dpsynth.eval.core import Levels, Tables, levels_of
from dpsynth.schema import Schema


def tables(field: dict[str, Any], cells: list[Any]) -> Tables:
    field.setdefault("dpsynth", {}).update(role="group", bounds_basis="choice: for this test")
    number = {"value": 500, "basis": "choice: for this test"}
    schema = Schema.from_dict(
        {"fields": [field], "dpsynth": {"version": 1, "population": number, "rows": number}}
    )
    frame = pd.DataFrame({field["name"]: cells})
    return Tables.read(schema, frame, frame)


def test_categories_have_their_labels_and_missing_is_no_level() -> None:
    field = {
        "name": "sex",
        "type": "integer",
        "categories": [{"value": 1, "label": "woman"}, {"value": 2, "label": "man"}],
        "constraints": {"enum": [1, 2]},
        "dpsynth": {"on_unknown": "missing"},
    }
    cohort = tables(field, ["2", "", "1"])
    levels = levels_of(cohort.codec, "group")[0]
    assert levels.names == ("woman", "man")
    assert levels.of_rows(cohort.source).tolist() == [1, -1, 0]


def test_bands_are_of_equal_width_between_the_declared_bounds() -> None:
    field = {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}}
    cohort = tables(field, ["0", "19", "20", "79", "80", "99", ""])
    levels = levels_of(cohort.codec, "group")[0]
    assert levels.names == ("0 to 19", "20 to 39", "40 to 59", "60 to 79", "80 to 99")
    assert levels.of_rows(cohort.source).tolist() == [0, 0, 1, 3, 4, 4, -1]


@pytest.mark.parametrize(
    ("field", "cells", "names", "places"),
    [
        (
            {"name": "n", "type": "integer", "constraints": {"minimum": 1, "maximum": 3}},
            ["1", "2", "3"],
            ("1", "2", "3"),
            [0, 1, 2],
        ),
        (
            {"name": "n", "type": "number", "constraints": {"minimum": 0, "maximum": 1}},
            ["0.19", "0.2", "1"],
            (
                "0 to under 0.2",
                "0.2 to under 0.4",
                "0.4 to under 0.6",
                "0.6 to under 0.8",
                "0.8 to 1",
            ),
            [0, 1, 4],
        ),
        (
            {
                "name": "n",
                "type": "date",
                "constraints": {"minimum": "2020-01-01", "maximum": "2020-01-06"},
            },
            ["2020-01-01", "2020-01-02", "2020-01-03", "2020-01-06"],
            ("2020-01-01 to 2020-01-02", "2020-01-03", "2020-01-04", "2020-01-05", "2020-01-06"),
            [0, 0, 1, 4],
        ),
    ],
)
def test_bands_of_every_type(
    field: dict[str, Any], cells: list[str], names: tuple[str, ...], places: list[int]
) -> None:
    cohort = tables(field, cells)
    levels = Levels.of(cohort.schema.modelled[0], cohort.codec)
    assert levels.of_rows(cohort.source).tolist() == places
    assert levels.names == names
    assert len(levels.names) == len(levels.cuts) + 1
