"""Which class of a target is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import Tables
from dpsynth.eval.utility.learners import tasks
from dpsynth.schema import Schema

BASIS = "choice: for this test"


def schema(*fields: dict[str, Any]) -> Schema:
    for field in fields:
        field.setdefault("dpsynth", {}).setdefault("bounds_basis", BASIS)
        if field["type"] == "boolean":
            del field["dpsynth"]["bounds_basis"]
    number = {"value": 500, "basis": BASIS}
    return Schema.from_dict(
        {"fields": list(fields), "dpsynth": {"version": 1, "population": number, "rows": number}}
    )


def column(name: str, kind: str, *, role: str | None = None, **constraints: Any) -> dict[str, Any]:
    roles = {} if role is None else {"role": role}
    return {"name": name, "type": kind, "constraints": constraints, "dpsynth": roles}


AGE = {"minimum": 0, "maximum": 99, "required": True}


def read(schema: Schema, frame: pd.DataFrame) -> Tables:
    return Tables.read(schema, frame, frame)


def test_the_class_is_the_rarest_with_one_per_cent() -> None:
    declared = schema(
        column("age", "integer", **AGE),
        column("site", "string", role="target", enum=["a", "b", "c", "d"]),
    )
    site = ["a"] * 500 + ["b"] * 486 + ["c"] * 10 + ["d"] * 4 + [""] * 100  # of 1000 known ones
    frame = pd.DataFrame({"age": 50, "site": site})
    found, notes = tasks(read(declared, frame))
    assert [task.label for task in found] == ["c"] and notes == []
    truth = found[0].truth(read(declared, frame).source)
    assert np.nansum(truth) == 10 and np.isnan(truth).sum() == 100
    assert found[0].known(read(declared, frame).source).rows == 1000


@pytest.mark.parametrize("rare", [5, 995])
def test_of_two_classes_it_is_the_last_declared(rare: int) -> None:
    declared = schema(
        column("age", "integer", **AGE),
        column("site", "string", role="target", enum=["a", "b"]),
        column("ill", "boolean", role="target", required=True),
    )
    b = np.arange(1000) < rare
    frame = pd.DataFrame({"age": 50, "site": np.where(b, "b", "a"), "ill": b})
    found, _ = tasks(read(declared, frame))
    assert [(task.name, task.label) for task in found] == [("site", "b"), ("ill", "true")]
    assert all(task.truth(read(declared, frame).source).sum() == rare for task in found)
    assert found[0].skip == {"site", "ill"}  # a target is no predictor of another


def test_numbers_are_regressed_and_dates_left_out() -> None:
    declared = schema(
        column("age", "integer", role="target", **AGE),
        column("day", "date", role="target", minimum="2020-01-01", maximum="2020-12-31"),
        column("ill", "boolean"),
    )
    frame = pd.DataFrame({"age": [1, 2], "day": ["2020-03-01", ""], "ill": ["true", ""]})
    found, notes = tasks(read(declared, frame))
    assert [(task.name, task.kind, task.label) for task in found] == [("age", "regression", None)]
    assert found[0].truth(read(declared, frame).source).tolist() == [1, 2]
    assert notes == ["day: a target that is a date is left out"]


def test_no_target_and_nothing_else_are_said() -> None:
    declared = schema(column("age", "integer", **AGE))
    frame = pd.DataFrame({"age": [1, 2]})
    found, notes = tasks(read(declared, frame))
    assert found == [] and "role target" in notes[0]
    declared = schema(column("age", "integer", role="target", **AGE))
    found, notes = tasks(read(declared, frame))
    assert found == [] and "nothing to foretell" in notes[0]


def test_a_target_without_a_value_is_left_out() -> None:
    declared = schema(
        column("age", "integer", **AGE), column("site", "string", role="target", enum=["a", "b"])
    )
    found, notes = tasks(read(declared, pd.DataFrame({"age": [1, 2], "site": ["", ""]})))
    assert found == [] and notes == ["site: no row of the source has a value; left out"]
