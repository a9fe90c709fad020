"""Variances: what they are without noise, and intervals that hold however few rows there are."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import read_cohort
from dpsynth.privacy import RowSums
from dpsynth.stats import StatisticsRequest, Variances
from dpsynth.stats.means import variances
from dpsynth.stats.statistic import FINE, Rows
from dpsynth.tables import open_table, simulate

from ..support.bare_counts import Silence

ENTRIES = [
    {"name": "rows", "variance": "sbp", "by": ["sex"]},
    {"name": "patients", "variance": "sbp", "per": "patient"},
]


def test_without_noise_they_are_those_of_the_table() -> None:
    request = StatisticsRequest.from_dict({"schema": "demo", "statistics": ENTRIES})
    plan = request.plan(epsilon=500, delta=1e-6)
    events, table, silence = {e.name: e for e in plan.events}, simulate(400, seed=1), Silence(0)
    cohort = read_cohort(open_table(table, request.schema), request.codec, request.schema, silence)
    rows, answers = Rows.of(cohort), {}
    for one in request.statistics:
        answers |= one.answer(rows, events, silence)
    of_rows, of_patients = request.results(answers, events)
    (one, two) = request.statistics
    assert isinstance(one, Variances) and isinstance(two, Variances)
    values = one.values[rows.codes[:, one.place]]
    for place, label in enumerate(one.axes[0].labels):
        own = values[one.cells(rows) == place]
        own = own[np.isfinite(own)]
        found = of_rows.table.loc[of_rows.table["sex"] == label].iloc[0]
        assert found["variance"] == pytest.approx(own.var(), rel=1e-3)
        assert found["sd"] == pytest.approx(own.std(), rel=1e-3)
        assert found["lower"] <= own.var() <= found["upper"]
    known = np.isfinite(values)
    frame = pd.DataFrame({"unit": rows.units[known], "value": values[known]})
    frame["square"] = frame["value"] ** 2
    mean = frame.groupby("unit").mean()
    true = float(mean["square"].mean() - mean["value"].mean() ** 2)
    found = of_patients.table.iloc[0]
    assert found["variance"] == pytest.approx(true, rel=2e-3)
    assert found["lower"] <= true <= found["upper"]


@pytest.mark.parametrize(("sd", "rows"), [(5, 40), (5, 1000), (20, 300)])
@pytest.mark.parametrize("spread", [0.0, 0.3])
def test_the_interval_holds_as_often_as_it_says(sd: int, rows: int, spread: float) -> None:
    rng = np.random.default_rng(3)
    values = np.clip(rng.normal(-0.6, spread, rows), -1, 1)
    exact = [float(rows), values.sum(), (values**2).sum()]
    noisy = [one + rng.normal(0, sd, 2000) for one in exact]
    value, lower, upper = variances(*noisy, (sd, sd, sd), 1.959964)
    held = (lower <= values.var() + 1e-12) & (values.var() - 1e-12 <= upper)
    assert held.mean() > 0.94
    assert ((lower <= value) & (value <= upper)).all()
    # the broken twin: as if the mean and the number had no noise
    _, lower, upper = variances(*noisy, (1e-9, 1e-9, sd), 1.959964)
    twin = ((lower <= values.var()) & (values.var() <= upper)).mean()
    assert twin < 0.9 or spread == 0


def test_squares_are_charged_for_all_that_a_row_adds() -> None:
    request = StatisticsRequest.from_dict({"schema": "demo", "statistics": ENTRIES})
    plan = request.plan(epsilon=1, delta=1e-6)
    for event in plan.events:
        assert isinstance(event, RowSums)
        if event.name.endswith(": squares"):
            assert (event.largest, event.signed) == (FINE, False)
    (of_rows, of_patients) = request.statistics
    squares = [plan.event(f"{one.name}: squares") for one in (of_rows, of_patients)]
    assert [one.sensitivity for one in squares] == [4 * FINE, FINE]
