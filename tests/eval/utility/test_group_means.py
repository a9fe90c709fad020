"""Means by group, against sums by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import Tables
from dpsynth.eval.utility.group_means import group_means
from dpsynth.schema import Schema

from ...support.schema_fields import schema_field

BASIS = "choice: for this test"
SCHEMA = Schema.from_dict(
    {
        "fields": [
            schema_field(
                "sex", "string", {"role": "group", "bounds_basis": BASIS}, enum=["F", "M"]
            ),
            schema_field("age", "integer", BASIS, minimum=0, maximum=99),
        ],
        "dpsynth": {
            "version": 1,
            "population": {"value": 500, "basis": BASIS},
            "rows": {"value": 500, "basis": BASIS},
        },
    }
)


def frame(women: Any, men: Any) -> pd.DataFrame:
    return pd.DataFrame({"sex": ["F"] * len(women) + ["M"] * len(men), "age": [*women, *men]})


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def test_a_difference_is_in_standard_deviations_of_the_source() -> None:
    source = frame([30, 50] * 50, [60, 80] * 50)
    synthetic = frame([40] * 100, [75] * 100)  # women as they are, men 5 older
    tables = Tables.read(SCHEMA, source, synthetic)
    measure, cells, notes = group_means(tables, rng())
    assert measure is not None and notes == []
    deviation = source["age"].std(ddof=0)
    assert measure.estimate.value == pytest.approx((0 + 5 / deviation) / 2)
    assert [cell["level"] for cell in cells] == ["F", "M"]
    assert cells[0]["source"]["value"] == 40 and cells[0]["source"]["n"] == 100
    assert cells[1]["synthetic"]["value"] == 75
    # an interval of a mean: 1.96 times 10 / sqrt(100)
    half = (cells[0]["source"]["high"] - cells[0]["source"]["low"]) / 2
    assert half == pytest.approx(1.96, rel=0.4)
    assert cells[1]["synthetic"]["low"] == cells[1]["synthetic"]["high"] == 75


def test_the_source_itself_has_no_difference() -> None:
    source = frame(range(20, 60), range(30, 70))
    tables = Tables.read(SCHEMA, source, source)
    measure, _, _ = group_means(tables, rng())
    assert measure is not None
    assert measure.estimate.value == 0 and measure.estimate.reference is None
    assert measure.estimate.chance is not None and measure.estimate.chance > 0


def test_a_level_without_synthetic_rows_is_shown_and_left_out_of_the_mean() -> None:
    tables = Tables.read(SCHEMA, frame([30, 50] * 20, [60, 80] * 20), frame([30, 50] * 20, []))
    measure, cells, notes = group_means(tables, rng())
    assert measure is not None and measure.estimate.value == 0
    nothing = {"value": None, "low": None, "high": None, "n": 0}
    assert cells[1]["synthetic"] == nothing and cells[1]["source"]["value"] == 70
    assert len(notes) == 1 and "synthetic rows" in notes[0]


@pytest.mark.parametrize(
    "source",
    [
        frame([40] * 30, [40] * 30),  # constant
        frame([np.nan] * 30, [np.nan] * 30),  # missing
        frame([30, 50], [40]),  # few rows
    ],
)
def test_what_has_no_spread_or_no_rows_is_left_out(source: pd.DataFrame) -> None:
    measure, cells, notes = group_means(Tables.read(SCHEMA, source, source), rng())
    assert measure is None and cells == [] and len(notes) == 1
