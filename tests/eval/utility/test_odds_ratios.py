"""Odds ratios of two tables, against a 2x2 table and the table itself."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import Tables
from dpsynth.eval.utility.effects import odds_ratios
from dpsynth.eval.utility.learners import tasks
from dpsynth.schema import Schema

from ...support.schema_fields import schema_field

BASIS = "choice: for this test"


def schema(unit: bool = False) -> Schema:
    fields: list[dict[str, Any]] = [
        schema_field(
            "site",
            "string",
            {"on_unknown": "a", "bounds_basis": BASIS},
            enum=["a", "b", "c"],
            required=True,
        ),
        {"name": "ill", "type": "boolean", "dpsynth": {"role": "target"}},
    ]
    if unit:
        fields.append({"name": "who", "type": "string", "dpsynth": {"role": "unit"}})
    number = {"value": 500, "basis": BASIS}
    facts: dict[str, Any] = {"version": 1, "population": number, "rows": number}
    if unit:
        facts["max_rows"] = {"value": 4, "basis": BASIS}
    return Schema.from_dict({"fields": fields, "dpsynth": facts})


def table(**ill_and_well: tuple[int, int]) -> pd.DataFrame:
    """Rows that are ill and well, by site."""
    blocks = [
        pd.DataFrame({"site": site, "ill": [True] * ill + [False] * well})
        for site, (ill, well) in ill_and_well.items()
    ]
    return pd.concat(blocks, ignore_index=True)


SOURCE = table(a=(100, 300), b=(60, 60), c=(40, 80))


def compare(source: pd.DataFrame, synthetic: pd.DataFrame, holdout: Any = None, unit: bool = False):
    tables = Tables.read(schema(unit), source, synthetic, holdout)
    return odds_ratios(tables, tasks(tables)[0][0], np.random.default_rng(0))


def test_the_interval_is_that_of_a_2x2_table() -> None:
    measure, entry, notes = compare(SOURCE, SOURCE)
    assert measure is not None and entry is not None and notes == []
    assert entry["class"] == "true" and [t["term"] for t in entry["terms"]] == [
        "site = b",
        "site = c",
    ]
    ratio, error = (60 * 300) / (60 * 100), np.sqrt(1 / 60 + 1 / 60 + 1 / 100 + 1 / 300)
    shown = entry["terms"][0]["source"]
    assert shown["value"] == pytest.approx(ratio, rel=1e-4)
    assert shown["low"] == pytest.approx(ratio * np.exp(-1.959964 * error), rel=1e-4)
    assert shown["high"] == pytest.approx(ratio * np.exp(1.959964 * error), rel=1e-4)
    json.dumps(entry, allow_nan=False)


def test_the_source_itself_overlaps_wholly_and_a_broken_relation_less_than_chance() -> None:
    same, _, _ = compare(SOURCE, SOURCE, table(a=(100, 300), b=(65, 55), c=(42, 78)))
    assert same is not None and same.estimate.value == pytest.approx(1, abs=1e-4)
    assert same.estimate.reference is not None and 0.5 < same.estimate.reference < 1
    broken, entry, _ = compare(SOURCE, table(a=(300, 100), b=(60, 60), c=(40, 80)))
    assert broken is not None and entry is not None and broken.estimate.value == 0
    assert broken.estimate.chance is not None and broken.estimate.chance > 0.3


def test_rows_of_one_unit_do_not_narrow_the_interval() -> None:
    once = compare(SOURCE, SOURCE)[1]
    units = [str(k) for k in range(len(SOURCE))]
    doubled = pd.concat([SOURCE.assign(who=units)] * 2, ignore_index=True)
    twice = compare(doubled, doubled[["site", "ill"]], unit=True)[1]
    assert once is not None and twice is not None
    for key in ("value", "low", "high"):
        robust = twice["terms"][0]["source"][key]
        assert robust == pytest.approx(once["terms"][0]["source"][key], rel=1e-3)
    naive = twice["terms"][0]["synthetic"]
    assert (
        naive["high"] / naive["low"]
        < 0.8 * once["terms"][0]["source"]["high"] / (once["terms"][0]["source"]["low"])
    )


def test_a_level_absent_from_the_synthetic_table_counts_as_apart() -> None:
    measure, entry, notes = compare(SOURCE, table(a=(100, 300), b=(60, 60)))
    assert measure is not None and entry is not None
    assert entry["terms"][1]["synthetic"] == {"value": None, "low": None, "high": None}
    assert entry["terms"][1]["overlap"] == 0 and 0.4 < measure.estimate.value <= 0.5
    assert len(notes) == 1 and "count as apart" in notes[0]


def test_a_rare_level_of_the_source_is_left_out() -> None:
    source = table(a=(100, 300), b=(60, 60), c=(5, 80))
    _, entry, notes = compare(source, source)
    assert entry is not None and [term["term"] for term in entry["terms"]] == ["site = b"]
    assert len(notes) == 1 and notes[0].startswith("ill: 1 of 2 terms")


@pytest.mark.parametrize("synthetic", [table(a=(0, 300)), table(a=(3, 5))])
def test_a_synthetic_table_that_tells_nothing_overlaps_nowhere(synthetic: pd.DataFrame) -> None:
    source = table(a=(1000, 3000), b=(600, 600))
    measure, entry, _ = compare(source, synthetic)
    if len(synthetic) < 10:  # as many rows of the source tell nothing either
        assert measure is None and entry is None
    else:
        assert measure is not None and measure.estimate.value == 0


def test_a_source_of_one_class_has_no_odds_ratios() -> None:
    measure, entry, notes = compare(table(a=(0, 300), b=(0, 60)), SOURCE)
    assert measure is None and entry is None and "too few rows" in notes[0]
