"""Importances of columns, with models whose workings are known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import Tables, TableView
from dpsynth.eval.core.scores import rank_correlation
from dpsynth.eval.utility.learners import Constant, tasks
from dpsynth.eval.utility.tstr import SIDES, ModelTrial, importance
from dpsynth.schema import Schema

BASIS = "choice: for this test"
NUMBER = {"value": 500, "basis": BASIS}
BOUNDS = {"minimum": 0, "maximum": 99, "required": True}
SCHEMA = Schema.from_dict(
    {
        "fields": [
            {"name": name, "type": "integer", "constraints": BOUNDS,
             "dpsynth": {"bounds_basis": BASIS}}
            for name in "abcd"
        ]
        + [{"name": "ill", "type": "boolean", "dpsynth": {"role": "target"}}],
        "dpsynth": {"version": 1, "population": NUMBER, "rows": NUMBER},
    }
)  # fmt: skip


@dataclass(frozen=True)
class Weighted:
    """Adds columns up."""

    weights: tuple[float, ...]

    def features(self, view: TableView) -> np.ndarray:
        return view.frame[list("abcd")].to_numpy(dtype=float)

    def predict(self, features: np.ndarray) -> np.ndarray:
        return features @ np.array(self.weights)


def trial(synthetic: Any, source: Any) -> ModelTrial:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 100, (800, 4)), columns=list("abcd"))
    frame["ill"] = frame @ np.array([8.0, 4.0, 2.0, 0.0]) > 700
    tables = Tables.read(SCHEMA, frame, frame)
    task = tasks(tables)[0][0]
    learners = dict(zip(SIDES, (synthetic, source, source), strict=True))
    view = tables.source
    scores = {side: model.predict(model.features(view)) for side, model in learners.items()}
    return ModelTrial(task, "boosting", view, task.truth(view), learners, scores)


def test_rank_correlation_by_hand() -> None:
    # ranks 1 2 3 4 against 2 1 4 3: 1 - 6 (1 + 1 + 1 + 1) / (4 * 15)
    assert rank_correlation(np.array([1.0, 2, 3, 9]), np.array([0.2, 0.1, 8, 7])) == pytest.approx(
        0.6
    )
    assert np.isnan(rank_correlation(np.zeros(3), np.array([1.0, 2, 3])))


def test_the_same_model_rests_on_the_same_columns() -> None:
    same = Weighted((8, 4, 2, 0))
    measure, table, note = importance(trial(same, same), np.random.default_rng(1))
    assert measure is not None and note is None
    assert measure.estimate.value == pytest.approx(1) and measure.estimate.chance == 1
    assert [entry["column"] for entry in table] == ["a", "b", "c", "d"]
    assert table[3]["source"] == table[3]["synthetic"] == 0  # d enters nothing
    assert table[0]["source"] > table[1]["source"] > table[2]["source"] > 0


def test_a_model_of_other_columns_is_seen() -> None:
    other, true = Weighted((0, 2, 4, 0)), Weighted((8, 4, 2, 0))
    measure, table, _ = importance(trial(other, true), np.random.default_rng(1))
    assert measure is not None and measure.estimate.value < 0.7
    assert {entry["column"]: entry["synthetic"] for entry in table}["a"] == 0


def test_a_permuted_column_leaves_the_others_alone() -> None:
    """With one column in use, its importance is the AUC less that of a random order."""
    one = Weighted((1, 0, 0, 0))
    tried = trial(one, one)
    _, table, _ = importance(tried, np.random.default_rng(1))
    falls = {entry["column"]: entry["source"] for entry in table}
    assert falls["a"] == pytest.approx(tried.quality().of()[1] - 0.5, abs=0.06)
    assert falls["b"] == falls["c"] == falls["d"] == 0


def test_a_model_that_rests_on_nothing_is_said() -> None:
    measure, table, note = importance(trial(Constant(0.5), Weighted((8, 4, 2, 0))),
                                      np.random.default_rng(1))  # fmt: skip
    assert measure is None and note is not None and "rests on no column" in note
    assert len(table) == 4
