"""Subgroups: counts, distances and the group that is kept worst."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import Tables
from dpsynth.eval.utility import trials
from dpsynth.eval.utility.subgroups import subgroups
from dpsynth.schema import Schema

from ...support.schema_fields import schema_field

BASIS = "choice: for this test"


def schema(role: str = "group") -> Schema:
    def chosen(name: str, values: list[str], role: str | None) -> dict[str, Any]:
        own: dict[str, Any] = {"bounds_basis": BASIS, "on_unknown": values[0]}
        return schema_field(
            name,
            "string",
            own if role is None else {**own, "role": role},
            enum=values,
            required=True,
        )

    number = {"value": 500, "basis": BASIS}
    fields = [
        chosen("site", ["a", "b", "c"], role),
        chosen("smoker", ["no", "yes"], None),
        chosen("cough", ["no", "yes"], None),
        chosen("drug", ["none", "one", "two"], None),
        {"name": "ill", "type": "boolean", "constraints": {"required": True},
         "dpsynth": {"role": "target"}},
    ]  # fmt: skip
    return Schema.from_dict(
        {"fields": fields, "dpsynth": {"version": 1, "population": number, "rows": number}}
    )


def cohort(seed: int, *, broken: str = "", a: int = 600, b: int = 300, c: int = 30) -> pd.DataFrame:
    """Smokers cough, those who cough are ill; in the broken site nothing goes with anything."""
    rng = np.random.default_rng(seed)
    site = np.repeat(["a", "b", "c"], [a, b, c])
    rows = len(site)
    smoker = rng.random(rows) < 0.5
    cough = np.where(rng.random(rows) < 0.9, smoker, ~smoker)
    ill = np.where(rng.random(rows) < 0.85, cough, ~cough)
    apart = site == broken
    cough[apart], ill[apart] = rng.random((2, apart.sum())) < 0.5
    words = np.array(["no", "yes"])
    return pd.DataFrame(
        {
            "site": site,
            "smoker": words[smoker.astype(int)],
            "cough": words[cough.astype(int)],
            "drug": rng.choice(["none", "one", "two"], rows),
            "ill": ill,
        }
    )


def compare(source: pd.DataFrame, synthetic: pd.DataFrame, holdout: Any = None):
    tables = Tables.read(schema(), source, synthetic, holdout)
    part = subgroups(tables, np.random.default_rng(0))
    json.dumps(part.details, allow_nan=False)
    return part, {entry["level"]: entry for entry in part.details["subgroups"]}


def test_the_group_whose_relations_are_lost_is_named_though_it_is_not_the_smallest() -> None:
    part, levels = compare(cohort(1, b=150), cohort(2, broken="a", b=150), cohort(3, b=150))
    measures = {measure.key: measure for measure in part.measures}
    assert levels["a"]["worst"] and not levels["b"]["worst"]
    worst = measures["subgroup_worst_tvd2"]
    assert worst.meaning.endswith("site: a.") and worst.estimate.value == levels["a"]["tvd2"]
    assert worst.estimate.reference is not None
    assert worst.estimate.low > worst.estimate.reference
    assert measures["subgroup_worst_tstr:ill"].meaning.endswith("site: a.")
    use = levels["a"]["tstr"]["ill"]
    assert use["n"] == 600 and use["trtr"] - use["value"] > 0.02


def test_levels_are_counted_and_small_ones_have_no_metrics() -> None:
    part, levels = compare(cohort(1), cohort(2, b=400), cohort(3, c=25))
    assert {n: e["n_source"] for n, e in levels.items()} == {"a": 600, "b": 300, "c": 30}
    assert levels["b"]["n_synthetic"] == 400 and levels["c"]["n_holdout"] == 25
    assert levels["a"]["share_source"] == pytest.approx(600 / 930, rel=1e-5)
    small = levels["c"]
    assert small["tvd1"] is None and small["tvd2"] is None and small["chance_tvd2"] is None
    assert small["tstr"]["ill"] == {"value": None, "trtr": None, "n": 25}
    assert any("1 of 3 levels have fewer than 50 rows" in note for note in part.notes)


def test_the_source_itself_has_no_distance_and_less_than_chance() -> None:
    part, levels = compare(cohort(1), cohort(1))
    assert levels["a"]["tvd1"] == levels["a"]["tvd2"] == 0 < levels["a"]["chance_tvd2"]
    assert levels["a"]["n_holdout"] is None
    assert (
        next(m for m in part.measures if m.key == "subgroup_worst_tvd2").estimate.reference is None
    )


def test_distances_are_those_of_the_other_columns_by_hand() -> None:
    source, synthetic = cohort(1, b=0, c=0), cohort(1, b=0, c=0)
    synthetic["smoker"] = "no"
    _, levels = compare(source, synthetic)
    off = (source["smoker"] == "yes").mean()  # every pair with smoker is as far off; 3 of 6
    assert levels["a"]["tvd1"] == pytest.approx(off / 4, rel=1e-4)
    assert levels["a"]["tvd2"] == pytest.approx(off / 2, rel=1e-4)


def test_a_level_absent_from_the_synthetic_table_is_counted() -> None:
    _, levels = compare(cohort(1), cohort(2, b=0))
    assert levels["b"]["n_synthetic"] == 0 and levels["b"]["share_synthetic"] == 0
    assert levels["b"]["tvd2"] is None and levels["a"]["tvd2"] is not None


def test_no_group_is_said() -> None:
    tables = Tables.read(schema("sensitive"), cohort(1), cohort(2))
    part = subgroups(tables, np.random.default_rng(0))
    assert part.measures == () and part.details == {"subgroups": []}
    assert len(part.notes) == 1 and "role group" in part.notes[0]


def test_trials_that_were_made_already_are_taken() -> None:
    tables = Tables.read(schema(), cohort(1), cohort(2), cohort(3))
    tried, _ = trials(tables, np.random.default_rng(0))
    part = subgroups(tables, np.random.default_rng(1), tried=tried)
    none = subgroups(tables, np.random.default_rng(1), tried=())
    assert part.details["subgroups"][0]["tstr"]["ill"]["n"] == 600
    assert none.details["subgroups"][0]["tstr"] == {}
    assert [measure.key for measure in none.measures] == ["subgroup_worst_tvd2"]
