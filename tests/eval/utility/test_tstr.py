"""Which rows train and test, and what the figures of a trial are."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import Tables
from dpsynth.eval.utility import trials
from dpsynth.eval.utility.learners import MODELS, tasks
from dpsynth.eval.utility.tstr import ModelTrial, measures
from dpsynth.schema import Schema
from dpsynth.tables import simulate


@pytest.fixture(scope="module")
def demo() -> Tables:
    return Tables.read(Schema.load("demo"), simulate(300, seed=1), simulate(100, seed=2))


def made(demo: Tables, truth: list[int], **scores: list[float]) -> ModelTrial:
    """A trial on the first rows of the source, with given scores."""
    view = demo.source.take(np.arange(len(truth)))
    predictions = {side: np.array(values, dtype=float) for side, values in scores.items()}
    return ModelTrial(
        tasks(demo)[0][0], "boosting", view, np.array(truth, dtype=float), {}, predictions
    )


def test_figures_are_the_auc_of_each_side(demo: Tables) -> None:
    tried = made(
        demo, [1, 0, 1, 0],
        synthetic=[0.8, 0.5, 0.3, 0.1], source=[0.9, 0.2, 0.8, 0.1], chance=[0.1, 0.2, 0.3, 0.4],
    )  # fmt: skip
    assert tried.quality().of() == [0.75, 1.0, 0.25]
    assert tried.quality(np.array([1, 2])).of() == [0.0, 1.0, 1.0]
    assert not tried.quality().possible  # two rows of a class are too few


def test_the_gap_is_paired(demo: Tables) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 200)
    scores = truth + rng.normal(0, 1, 200)
    tried = made(demo, truth.tolist(), synthetic=scores.tolist(), source=scores.tolist(),
                 chance=rng.random(200).tolist())  # fmt: skip
    found, entry = measures(tried, rng)
    tstr, gap = found
    assert (tstr.key, gap.key) == ("tstr:readmitted_30d", "tstr_gap:readmitted_30d")
    assert gap.estimate.value == gap.estimate.low == gap.estimate.high == 0
    assert tstr.estimate.value == tstr.estimate.reference == pytest.approx(0.76, abs=0.06)
    assert gap.estimate.chance == pytest.approx(tstr.estimate.value - tstr.estimate.chance)
    assert entry["trtr"]["value"] == entry["tstr"]["value"]
    # Hanley and McNeil's error of an AUC of 0.76 with 100 rows of each class is about 0.034
    assert (tstr.estimate.high - tstr.estimate.low) / (2 * 1.96) == pytest.approx(0.034, abs=0.012)


def test_sides_are_trained_on_equally_many_rows_and_tested_on_other_people(demo: Tables) -> None:
    tried, notes = trials(demo, np.random.default_rng(0))
    assert tuple(trial.model for trial in tried) == MODELS
    units = len(np.unique(demo.source.units))
    assert len(np.unique(tried[0].test.units)) == pytest.approx(units / 5, abs=1)
    assert any("there is no holdout" in note for note in notes)
    assert f"models are trained on {demo.synthetic.rows} rows" in notes[-1]
    assert tried[0].test is not None and tried[0].predictors[0] == "visit_date"
    assert "readmitted_30d" not in tried[0].predictors


def test_with_a_holdout_it_is_the_test() -> None:
    holdout: Any = simulate(80, seed=2)
    holdout["patient_id"] = holdout["patient_id"].astype(str) + "h"
    tables = Tables.read(Schema.load("demo"), simulate(100, seed=1), simulate(100, seed=3), holdout)
    assert tables.holdout is not None
    tried, notes = trials(tables, np.random.default_rng(0))
    assert tried[0].test.rows == tables.holdout.rows
    pd.testing.assert_frame_equal(tried[0].test.frame, tables.holdout.frame)
    assert not any("no holdout" in note for note in notes)
