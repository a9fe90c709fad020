"""Risk ratios of a target by group: size, sign and interval, on tables counted by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import Measure, PairedTables
from dpsynth.eval.utility.effects import effects
from dpsynth.eval.utility.learners import tasks

from ...support.evaluation_tables import number, tables, words

GROUPS = tuple("abcdefghijkl")
FIELDS = [words("ward", *GROUPS), number("age", 0, 99), words("died", "no", "yes")]
FIELDS[2]["dpsynth"] |= {"role": "target"}


def patients(hits: dict[str, int], rows: int = 400) -> pd.DataFrame:
    """So many rows in each ward, and so many of them died; the age says nothing."""
    parts = [
        pd.DataFrame(
            {
                "ward": ward,
                "age": np.arange(rows) % 100,
                "died": ["yes"] * count + ["no"] * (rows - count),
            }
        ).assign(age=lambda part: np.arange(len(part)) * 37 % 100)
        for ward, count in hits.items()
    ]
    return pd.concat(parts, ignore_index=True)


RISKS = dict(zip(GROUPS, [40, 60, 70, 130, 150, 160] * 2, strict=True))  # of 400
REAL = patients(RISKS)


def found(
    synthetic: pd.DataFrame, holdout: pd.DataFrame | None = None, source: pd.DataFrame = REAL
) -> tuple[dict[str, Measure], dict[str, Any] | None, list[str]]:
    compared = tables(FIELDS, source, synthetic, holdout)
    [task] = tasks(compared)[0]
    sides = PairedTables.of(compared, np.random.default_rng(0))
    measures, details, notes = effects(sides, task)
    return {measure.key: measure for measure in measures}, details, notes


def test_the_same_rows_have_slope_1_and_no_wrong_sign() -> None:
    measures, details, _ = found(REAL, REAL)
    assert measures["effects:died"].estimate.value == pytest.approx(1.0)
    assert measures["effects:died"].estimate.reference == pytest.approx(1.0)
    assert measures["signs:died"].estimate.value == 0
    assert details is not None and details["compared"] == 13  # twelve wards, and halves of the age


def test_the_listed_risk_ratio_is_that_of_the_counts() -> None:
    _, details, _ = found(REAL)
    assert details is not None
    [ward] = [one for one in details["groups"] if one["group"] == "f"]
    others = sum(RISKS.values()) - 160
    risk, rest = 160 / 400, others / 4400
    assert ward["source"]["value"] == pytest.approx(risk / rest, rel=0.01)
    error = np.sqrt((1 - risk) / 160 + (1 - rest) / others)  # delta method
    assert ward["source"]["high"] / ward["source"]["value"] == pytest.approx(
        np.exp(1.96 * error), rel=0.01
    )
    assert ward["source"]["low"] > 1 and ward["column"] == "ward"


def test_effects_of_half_the_size_have_slope_one_half() -> None:
    mean = sum(RISKS.values()) / len(RISKS)
    halved = {ward: round(mean * (hits / mean) ** 0.5) for ward, hits in RISKS.items()}
    measures, _, _ = found(patients(halved))
    assert measures["effects:died"].estimate.value == pytest.approx(0.5, abs=0.03)
    assert measures["signs:died"].estimate.value == 0


def test_turned_effects_have_the_wrong_sign_and_a_slope_below_0() -> None:
    turned = {ward: 200 - hits for ward, hits in RISKS.items()}
    measures, _, _ = found(patients(turned), REAL)
    slope = measures["effects:died"].estimate
    assert slope.value < -0.5 and slope.low is not None and slope.low < slope.value
    assert measures["signs:died"].estimate.value > 0.8
    assert measures["signs:died"].estimate.reference == 0


def test_one_group_of_twelve_that_turns_is_a_twelfth_of_the_signs() -> None:
    measures, _, _ = found(patients({**RISKS, "a": 190}))
    assert measures["signs:died"].estimate.value == pytest.approx(1 / 12)


def test_without_effects_there_is_no_slope_and_a_note_says_so() -> None:
    even = patients(dict.fromkeys(GROUPS, 100))
    measures, details, notes = found(REAL, source=even)
    assert not measures and details is not None
    assert [note.partition(":")[0] for note in notes] == ["died", "died"]


def test_groups_of_fewer_than_a_hundred_rows_are_left_out() -> None:
    small = patients({"a": 10, "b": 20}, rows=90)
    measures, details, [note] = found(small, source=small[small["age"] > 60])
    assert not measures and details is None and "100 rows" in note


def test_unknown_outcomes_are_in_no_group() -> None:
    unknown = REAL.copy()
    unknown.loc[unknown["ward"] == "a", "died"] = None
    _, details, _ = found(unknown, source=unknown)
    assert details is not None
    assert "a" not in [one["group"] for one in details["groups"]]
