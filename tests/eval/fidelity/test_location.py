"""Mean and reach of a column: a lost tail is seen although its bins of equal mass look right."""

from __future__ import annotations

import doctest
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import PairedTables, PartResult
from dpsynth.eval.fidelity.columns import margins
from dpsynth.eval.fidelity.numbers import location
from dpsynth.eval.gates import gates, judged
from dpsynth.eval.report import formatting
from dpsynth.eval.report.uses import off_columns, uses

from ...support.evaluation_tables import number, tables

ROWS = 4_000
FIELDS = [number("troponin", 0, 10_000), number("age", 0, 120)]


def drawn(seed: int, rows: int = ROWS, high: float = 0.03) -> pd.DataFrame:
    """Three in a hundred have a troponin of about 1,000; of all others it is about 6."""
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < high
    values = np.where(ill, rng.normal(1_000, 200, rows), rng.normal(6, 2, rows))
    return pd.DataFrame({"troponin": values, "age": rng.normal(60, 15, rows)}).round().clip(0)


def sides(*frames: pd.DataFrame) -> PairedTables:
    return PairedTables.of(tables(FIELDS, *frames), np.random.default_rng(0))


def document(part: PartResult) -> dict[str, Any]:
    measures = {measure.key: measure.to_dict() for measure in part.measures}
    return {"measures": measures, "parts": {"fidelity": part.details}}


LOST = drawn(1).assign(troponin=lambda frame: frame["troponin"].clip(upper=30))


def test_a_lost_tail_is_named_although_its_bins_look_right() -> None:
    compared = sides(drawn(0), LOST, drawn(2))
    far = next(measure for measure in margins(compared).measures if measure.key == "tvd1:troponin")
    assert far.estimate.value < 0.03  # bins of equal mass see nothing
    found = document(location(compared))
    measures = found["measures"]
    assert measures["mean_worst"]["value"] == measures["mean:troponin"]["value"]
    assert measures["reach:troponin"]["low"] > 2 > measures["reach:troponin"]["reference"]
    assert measures["mean:age"]["value"] < 0.1 and measures["reach:age"]["value"] < 0.3
    [off] = off_columns(found)
    assert off.name == "troponin" and off.unfit
    for words in ("The mean is 6.66", "in the source", "values above 30 are nearly all lost"):
        assert words in off.sentence
    [bad, rest] = uses(found)[:2]
    assert (bad.key, bad.verdict, rest.verdict) == ("means_off", "not fit", "fit")
    assert bad.title == "Means and outer values of troponin"


def test_an_exaggerated_tail_is_named() -> None:
    wild = drawn(1).assign(age=lambda frame: np.where(frame.index % 50 == 0, 0, frame["age"]))
    [off] = off_columns(document(location(sides(drawn(0), wild, drawn(2)))))
    assert off.name == "age" and "its tail is exaggerated" in off.sentence


@pytest.mark.parametrize("rows", [150, 600, ROWS])
def test_another_sample_of_the_same_people_is_not_named(rows: int) -> None:
    for seed in range(6):
        frames = [drawn(10 * seed + k, rows) for k in range(3)]
        found = document(location(sides(*frames)))
        assert not [column for column in off_columns(found) if column.unfit]


def test_figures_by_hand() -> None:
    source = pd.DataFrame({"troponin": [0, 10] * 100, "age": [50] * 200})
    synthetic = pd.DataFrame({"troponin": [0, 0, 0, 10] * 50, "age": [53] * 200})
    found = document(location(sides(source, synthetic)))["measures"]
    # deviation 5; the 90 % range is 10, over 3.2897: 3.04
    assert found["mean:troponin"]["value"] == pytest.approx(2.5 / (10 / 3.2897), rel=1e-4)
    assert found["mean:age"]["value"] == 3.0  # a constant counts in steps
    assert found["mean:troponin"]["reference"] is None
    assert found["mean:troponin"]["chance"] is not None


def test_columns_with_few_values_are_left_out() -> None:
    few = drawn(0).assign(age=lambda frame: frame["age"].where(frame.index < 99))
    part = location(sides(drawn(1), few))
    assert [one["column"] for one in part.details["location"]] == ["troponin"]
    part = location(sides(drawn(0, 50), drawn(1, 50)))
    assert not part.measures and part.notes and part.details == {"location": []}


def test_the_gates_stop_a_lost_tail_and_know_the_noise_of_the_plan() -> None:
    measures = document(location(sides(drawn(0), LOST, drawn(2))))["measures"]
    other = document(location(sides(drawn(0), drawn(1), drawn(2))))["measures"]

    def passed(found: dict[str, Any], noise: float = 0.0) -> list[bool]:
        verdicts = judged(found, gates(), noise)
        return [one["passed"] for one in verdicts if one["key"] in ("mean_worst", "reach_worst")]

    assert passed(measures) == [False, False]
    assert passed(measures, noise=10.0) == [True, True]
    assert passed(other) == [True, True]


def test_dates_and_the_examples_of_the_docstrings() -> None:
    assert doctest.testmod(formatting).failed == 0
    assert formatting.value_text({"type": "datetime"}, 1_704_103_230.0) == "2024-01-01 10:00"
    assert formatting.value_text({"type": "time"}, 30_600.0) == "08:30"
