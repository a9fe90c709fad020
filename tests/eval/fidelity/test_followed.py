"""What follows from modelled columns: a body mass index of right inputs, and the calendar."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import PairedTables, PartResult, Tables
from dpsynth.eval.fidelity.numbers import followed, location
from dpsynth.eval.report.uses import far_columns, off_columns
from dpsynth.schema import Schema

from ...support.related_columns import ADMITTED, BMI, DISCHARGED, SIZES, document

ROWS = 3_000


def ward(seed: int, *, related: bool = True, weekend: bool = False) -> pd.DataFrame:
    """Weight and height of one person, or of two; admissions on all days, or at weekends only."""
    rng = np.random.default_rng(seed)
    height = np.where(rng.random(ROWS) < 0.3, rng.normal(80, 4, ROWS), rng.normal(170, 8, ROWS))
    weight = (25 * (height / 100) ** 2).clip(30, 250)
    if not related:
        weight = rng.permutation(weight)
    day = rng.integers(0, 200, ROWS) * 7 + (rng.integers(5, 7, ROWS) if weekend else 0)
    if not weekend:
        day = rng.integers(0, 1_400, ROWS)
    admitted = pd.Timestamp("2010-01-04") + pd.to_timedelta(day, unit="D")
    stay = pd.to_timedelta(rng.integers(0, 9, ROWS), unit="D")
    frame = {
        "patient": [f"p{seed}-{k}" for k in range(ROWS)],
        "admitted": admitted,
        "discharged": admitted + stay,
    }
    dates = {name: frame[name].strftime("%Y-%m-%d") for name in ("admitted", "discharged")}
    sizes = {"weight": np.round(2 * weight) / 2, "height": height.round()}
    return pd.DataFrame({**frame, **dates, **sizes})


def compared(*frames: pd.DataFrame) -> PairedTables:
    schema = Schema.from_dict(document(ADMITTED, DISCHARGED, *SIZES, BMI))
    source, synthetic, *held = frames
    bmi = (synthetic["weight"] / (synthetic["height"] / 100) ** 2).round(1).clip(8, 100)
    synthetic = synthetic.assign(bmi=bmi).drop(columns="patient")
    found = Tables.read(schema, source, synthetic, held[0] if held else None)
    return PairedTables.of(found, np.random.default_rng(0))


def read(*parts: PartResult) -> dict[str, Any]:
    measures = {measure.key: measure.to_dict() for part in parts for measure in part.measures}
    details: dict[str, Any] = {}
    for part in parts:
        details |= part.details
    return {"measures": measures, "parts": {"fidelity": details}}


def test_a_derived_column_of_right_inputs_is_named() -> None:
    sides = compared(ward(0), ward(1, related=False), ward(2))
    found = read(followed(sides), location(sides))
    measures = found["measures"]
    assert measures["followed:bmi"]["low"] > 0.2 > measures["followed:bmi"]["reference"]
    assert measures["followed_correlation"]["value"] > 0.3
    assert measures["followed_correlation"]["reference"] < 0.1
    assert [column.name for column in off_columns(found)] == ["bmi"]
    assert far_columns(found)[0] == "bmi"
    [entry] = [one for one in found["parts"]["fidelity"]["followed"] if one["name"] == "bmi"]
    assert entry["mark"] == "derived" and "(derived)" in entry["title"]
    assert len(entry["source"]) == len(entry["bins"]) == len(entry["synthetic"])
    assert sum(entry["source"]) == pytest.approx(1, abs=1e-4)


def test_the_calendar_of_published_dates_is_compared() -> None:
    found = read(followed(compared(ward(0), ward(1, weekend=True), ward(2))))
    measures = found["measures"]
    assert measures["followed:admitted (weekday)"]["value"] == pytest.approx(5 / 7, abs=0.05)
    assert measures["followed_worst"]["value"] >= 0.6
    assert measures["followed:admitted (weekday)"]["reference"] < 0.05
    keys = {key for key in measures if key.startswith("followed:")}
    assert "followed:discharged (date)" in keys and "followed:discharged (month)" in keys
    assert not any("hour" in key for key in keys)  # dates have none


def test_another_sample_of_the_same_people_is_near() -> None:
    sides = compared(ward(0), ward(1), ward(2))
    found = read(followed(sides), location(sides))
    assert found["measures"]["followed_worst"]["value"] < 0.1
    assert not off_columns(found) and not far_columns(found)
