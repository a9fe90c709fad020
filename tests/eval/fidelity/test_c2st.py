"""The classifier that tells synthetic rows from real ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

from dpsynth.eval.core import PartResult
from dpsynth.eval.fidelity import records as module
from dpsynth.eval.fidelity.records import auc_by_folds, c2st

from ...support.evaluation_tables import BASIS, number, tables, words

FIELDS = [
    {"name": "who", "type": "string", "dpsynth": {"role": "unit"}},
    number("age", 0, 99),
    words("ward", *"abcde"),
    number("noise", 0, 9),
]


def people(rows: int, seed: int, of_unit: int = 1) -> pd.DataFrame:
    """Units of ``of_unit`` rows with one age and ward each."""
    rng = np.random.default_rng(seed)
    age = np.repeat(rng.integers(0, 100, rows // of_unit), of_unit)
    ward = np.array(list("abcde"))[age // 20]
    keys = [f"{seed}-{i // of_unit}" for i in range(rows)]
    noise = rng.integers(0, 10, rows)
    return pd.DataFrame({"who": keys, "age": age, "ward": ward, "noise": noise})


def verdict(*frames: pd.DataFrame) -> PartResult:
    bound = {"max_rows": {"value": 5, "basis": BASIS}}
    return c2st(tables(FIELDS, *frames, **bound), np.random.default_rng(0))


@pytest.fixture(autouse=True)
def few_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fast classifier: two columns tell all there is."""
    monkeypatch.setattr(module, "SETTINGS", {**module.SETTINGS, "max_iter": 10})


def test_people_of_the_same_population_cannot_be_told_apart() -> None:
    part = verdict(people(800, 1), people(800, 2), people(800, 3))
    (measure,) = part.measures
    estimate = measure.estimate
    assert estimate.value == pytest.approx(0.5, abs=0.06)
    assert estimate.low is not None and estimate.high is not None
    assert estimate.low < 0.5 < estimate.high
    assert estimate.reference == pytest.approx(0.5, abs=0.06)
    assert estimate.chance is None and estimate.n == 1600 and measure.best == 0.5


def test_shuffled_columns_are_told_apart_by_the_columns_that_lost_their_relation() -> None:
    real = people(800, 1)
    shuffled = real.assign(ward=real["ward"].sample(frac=1, random_state=1).to_numpy())
    part = verdict(real, shuffled, people(800, 3))
    assert part.measures[0].estimate.value > 0.8
    telling = [entry["column"] for entry in part.details["c2st"]["telling"]]
    assert set(telling[:2]) == {"age", "ward"}
    assert part.details["c2st"]["auc"]["value"] == pytest.approx(
        part.measures[0].estimate.value, rel=1e-5
    )


def test_without_a_holdout_two_halves_of_the_source_stand_beside_it() -> None:
    estimate = verdict(people(800, 1), people(800, 2)).measures[0].estimate
    assert estimate.reference is None
    assert estimate.chance == pytest.approx(0.5, abs=0.07)
    assert estimate.value == pytest.approx(0.5, abs=0.06)


def test_rows_of_a_unit_do_not_betray_each_other() -> None:
    """Units of four nearly equal rows: split by row, the classifier would recognise them."""
    part = verdict(people(800, 1, 4), people(800, 2, 1), people(800, 3, 4))
    assert part.measures[0].estimate.reference == pytest.approx(0.5, abs=0.1)


def test_small_tables_are_left_out() -> None:
    for frames in ((people(800, 1), people(1, 2)), (people(40, 1), people(800, 2))):
        part = verdict(*frames)
        assert not part.measures and not part.details and part.notes


def test_empty_and_constant_columns_do_no_harm() -> None:
    real = people(200, 1).assign(age=None, ward="a")
    estimate = verdict(real, people(200, 2).assign(age=None, ward="a")).measures[0].estimate
    assert estimate.value == pytest.approx(0.5, abs=0.12)
    assert verdict(real, people(200, 2)).measures[0].estimate.value > 0.95


def test_the_area_is_that_of_scikit_learn_and_its_error_that_of_simulation() -> None:
    areas, errors = [], []
    zeros = np.zeros(400, dtype=np.int64)
    truth = np.repeat([1, 0], 200)
    units = np.tile(np.arange(200), 2)
    for seed in range(200):
        scores = np.random.default_rng(seed).normal(truth * 0.7).round(1)
        value, error = auc_by_folds(scores, truth, zeros, units)
        if seed == 0:
            assert value == pytest.approx(roc_auc_score(truth, scores))
        areas.append(value)
        errors.append(error)
    assert np.std(areas) == pytest.approx(np.mean(errors), rel=0.2)


def test_equal_rows_of_a_unit_count_as_one() -> None:
    """Each row four times: the area stays, its error stays that of the units."""
    rng = np.random.default_rng(1)
    truth = np.repeat([1, 0], 50)
    scores = rng.normal(truth * 1.0)
    units = np.tile(np.arange(50), 2)
    once = auc_by_folds(scores, truth, np.zeros(100, dtype=np.int64), units)
    again = [np.repeat(values, 4) for values in (scores, truth, units)]
    four = auc_by_folds(again[0], again[1], np.zeros(400, dtype=np.int64), again[2])
    assert four == pytest.approx(once)


def test_scores_are_compared_within_folds_only() -> None:
    truth = np.array([1, 0, 1, 0])
    fold = np.array([0, 0, 1, 1])
    scores = np.array([1.0, 0.0, 11.0, 10.0])  # the second fold's model scores all rows higher
    value, _ = auc_by_folds(scores, truth, fold, np.array([0, 0, 1, 1]))
    assert value == 1


def test_large_tables_are_sampled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ROWS", 100)
    part = verdict(people(500, 1), people(500, 2), people(400, 3))
    assert part.measures[0].estimate.n == 200
    assert "100 rows" in part.notes[0]
