"""Copies: rows of the source in the synthetic table, beside those that a holdout has by chance."""

from __future__ import annotations

import numpy as np
import pandas as pd

from dpsynth.eval.core import Tables
from dpsynth.eval.fidelity import copies
from dpsynth.schema import Schema
from dpsynth.tables import simulate

DEMO = Schema.load("demo")


def non_members(patients: int, seed: int) -> pd.DataFrame:
    rows = simulate(patients, seed=seed)
    return rows.assign(patient_id=rows["patient_id"].astype(str) + f"s{seed}")


def test_each_row_of_the_source_is_found_and_no_other() -> None:
    source = simulate(200, seed=1)
    half = pd.concat([source[:60], non_members(200, 2)[:60]])
    [measure] = copies(
        Tables.read(DEMO, source, half, non_members(100, 3)), np.random.default_rng(0)
    ).measures
    assert measure.estimate.value == 0.5 and measure.estimate.reference == 0.0
    low, high = measure.estimate.low, measure.estimate.high
    assert low is not None and high is not None and 0.4 < low < 0.5 < high < 0.6


def test_one_cell_that_differs_is_another_row() -> None:
    source = simulate(50, seed=1)
    changed = source.assign(age=source["age"].where(source["age"] < 90, 30) + 1)
    [measure] = copies(Tables.read(DEMO, source, changed), np.random.default_rng(0)).measures
    assert measure.estimate.value == 0.0 and measure.estimate.reference is None
