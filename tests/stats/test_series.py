"""Time series: who is counted in which period, and lines whose intervals hold the source."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.encoding import read_cohort
from dpsynth.errors import InputError
from dpsynth.privacy import SeededEntropy, StaySums
from dpsynth.privacy.stay_filters import inverse_weights
from dpsynth.schema import Schema
from dpsynth.stats import StatisticsRequest, shares_of_request, smoothed
from dpsynth.stats.series import noise_power
from dpsynth.stats.statistic import Ints, Rows
from dpsynth.tables import open_table, simulate

STAYS = {"from": "visit_date", "for": "length_of_stay"}


def answered(request: StatisticsRequest, rows: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """Answer with all but no noise."""
    events = {
        share.event.name: replace(share.event, sigma=3.0)
        for share in shares_of_request(request, 1e-6)
    }
    source = SeededEntropy(1)
    table = open_table(rows, request.schema)
    coded = Rows.of(read_cohort(table, request.codec, request.schema, source))
    answers: dict[str, list[Ints]] = {}
    for one in request.statistics:
        answers |= one.answer(coded, events, source)
    return {result.name: result.table for result in request.results(answers, events)}


def demo(*entries: dict[str, Any]) -> StatisticsRequest:
    return StatisticsRequest.from_dict({"schema": "demo", "statistics": list(entries)})


def test_a_patient_is_there_in_each_period_that_her_stays_touch() -> None:
    rows = simulate(150, seed=1).groupby("patient_id").head(4)
    found = answered(
        demo(
            {"name": "days", "occupancy": STAYS, "by": ["sex"]},
            {"name": "weeks", "occupancy": STAYS, "period": "week", "longest": 2},
        ),
        rows,
    )
    begin = pd.to_datetime(rows["visit_date"])
    end = begin + pd.to_timedelta(pd.to_numeric(rows["length_of_stay"]), "D")
    days = found["days"].set_index(["sex", "period"])["count"]
    for day in ("2019-03-01", "2020-01-15", "2021-06-30", "2022-11-11"):
        there = (begin <= pd.Timestamp(day)) & (pd.Timestamp(day) <= end)
        true = rows[there].drop_duplicates("patient_id")["sex"].value_counts()
        for sex in ("female", "male"):
            assert days[(sex, day)] == true.get(sex, 0)
    assert days.sum() > 150
    weeks = found["weeks"].set_index("period")["count"]
    first = begin - pd.to_timedelta(begin.dt.dayofweek, "D")
    last = end - pd.to_timedelta(end.dt.dayofweek, "D")
    last = last.where(last <= first + pd.Timedelta(7, "D"), first + pd.Timedelta(7, "D"))
    monday = pd.Timestamp("2021-05-03")
    there = (first <= monday) & (monday <= last)
    assert weeks["2021-05-03"] == rows[there]["patient_id"].nunique()


def ward() -> Schema:
    fields: list[dict[str, Any]] = [
        {"name": "id", "type": "string", "dpsynth": {"role": "unit"}},
    ]
    for name in ("came", "left"):
        fields.append(
            {
                "name": name,
                "type": "datetime",
                "constraints": {
                    "minimum": "2024-01-01T00:00:00",
                    "maximum": "2024-01-03T23:00:00",
                },
                "dpsynth": {"step": 3600, "bounds_basis": "the study's three days"},
            }
        )
    public = {"value": 40, "basis": "beds"}
    rules = {
        "version": 1,
        "population": public,
        "rows": public,
        "max_rows": {"value": 1, "basis": "one stay"},
    }
    return Schema.from_dict({"name": "icu", "fields": fields, "dpsynth": rules})


def test_hours_between_two_times() -> None:
    entry = {"name": "beds", "occupancy": {"from": "came", "until": "left"}, "period": "hour"}
    request = StatisticsRequest.from_dict({"schema": ward().to_dict(), "statistics": [entry]})
    [statistic] = request.statistics
    [(event, _)] = statistic.events()
    assert isinstance(event, StaySums) and (event.periods, event.longest) == (72, 72)
    rows = pd.DataFrame(
        {
            "id": ["a", "b", "c", "d"],
            "came": ["2024-01-01T22:00:00", "2024-01-02T01:00:00", "2024-01-03T22:00:00", None],
            "left": ["2024-01-02T01:00:00", "2024-01-02T01:00:00", "2024-01-03T21:00:00"] + [None],
        }
    )
    table = answered(request, rows)["beds"].set_index("period")["count"]
    assert table["2024-01-01T21:00"] == 0 and table["2024-01-01T22:00"] == 1
    assert table["2024-01-02T01:00"] == 2 and table["2024-01-02T02:00"] == 0
    assert table["2024-01-03T21:00"] == table["2024-01-03T22:00"] == 0  # ends before it begins


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "no stays": ({"occupancy": "visit_date"}, "'occupancy' is {from"),
    "both ends": ({"occupancy": STAYS | {"until": "visit_date"}}, "'occupancy' is {from"),
    "another key": ({"occupancy": STAYS | {"to": "age"}}, "no key 'to'"),
    "no date": ({"occupancy": STAYS | {"from": "age"}}, "'from' must name a column of dates"),
    "no length": ({"occupancy": STAYS | {"for": "sex"}}, "'for' must name a column of numbers"),
    "unit": ({"occupancy": STAYS | {"in": "weeks"}}, "either days or hours"),
    "period": ({"occupancy": STAYS, "period": "decade"}, "'period' is one of"),
    "hours of dates": ({"occupancy": STAYS, "period": "hour"}, "dates without a time of day"),
    "longest": ({"occupancy": STAYS, "longest": 0}, "'longest' is a whole number"),
    "smooth": ({"occupancy": STAYS, "smooth": "yes"}, "either true or false"),
    "by its begin": ({"occupancy": STAYS, "by": [{"visit_date": "year"}]}, "the begin or the end"),
    "nothing to smooth": ({"count": "rows", "by": ["sex"], "smooth": True}, "with a period"),
    "too short": ({"count": "rows", "by": [{"visit_date": "year"}], "smooth": True}, "8 periods"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_one_clear_sentence(case: str) -> None:
    entry, words = WRONG[case]
    with pytest.raises(InputError, match=words):
        demo({"name": "x", **entry})


def test_a_column_in_coarser_steps_than_its_periods_is_refused() -> None:
    document = ward().to_dict()
    for field in document["fields"][1:]:
        field["constraints"]["maximum"] = "2034-01-01T00:00:00"
    entry = {"name": "x", "count": "rows", "by": [{"came": "hour"}]}
    with pytest.raises(InputError, match="coarser steps than a hour"):
        StatisticsRequest.from_dict({"schema": document, "statistics": [entry]})


def test_a_line_lies_beside_the_counts_of_each_group() -> None:
    rows = simulate(150, seed=1)
    by = [{"visit_date": "month"}, "sex"]
    table = answered(demo({"name": "x", "count": "rows", "by": by, "smooth": True}), rows)["x"]
    assert table.columns.tolist()[-3:] == ["smooth", "smooth: lower", "smooth: upper"]
    assert (table["smooth: lower"] <= table["smooth"].clip(lower=0) + 0.1).all()
    assert (table["smooth"] - table["count"]).abs().mean() < 3
    total = table.groupby("sex")[["count", "smooth"]].sum()
    np.testing.assert_allclose(total["count"], total["smooth"], atol=10)  # the mean is left as is


TIMES = np.arange(120)
SOURCES = {
    "constant": np.full(120, 50.0),
    "season": 50 + 20 * np.sin(TIMES / 15),
    "outbreak": 50 + 100 * np.exp(-(((TIMES - 60) / 8) ** 2)),
    "people by chance": np.random.default_rng(3).poisson(50, 120).astype(float),
}


@pytest.mark.parametrize("name", SOURCES)
def test_intervals_of_lines_hold_the_source(name: str) -> None:
    """Seeded; docs/statistics.md has the figures of many more."""
    source, rng, sd = SOURCES[name], np.random.default_rng(4), 8.0
    held, nearer = [], []
    for _ in range(25):
        series = source + rng.normal(0, sd, 120)
        line, lower, upper = smoothed(series, np.full(120, sd**2), 1.96)
        held.append(np.mean((lower <= source) & (source <= upper)))
        nearer.append(np.std(line - source) / sd)
    assert np.mean(held) > 0.9
    assert np.mean(nearer) < 0.85


def test_the_noise_of_a_filtered_series_is_known_by_frequency() -> None:
    event = StaySums("beds", 200, longest=20, stays_per_unit=1, sigma=2.0**20)
    way_back, power = inverse_weights(200, 20) * 2**20, noise_power(event)
    source, rng, held = 50 + 20 * np.sin(np.arange(200) / 15), np.random.default_rng(5), []
    for _ in range(25):
        series = source + np.convolve(rng.normal(0, 1, 200), way_back)[:200]
        _, lower, upper = smoothed(series, power, 1.96)
        held.append(np.mean((lower <= source) & (source <= upper)))
    assert np.mean(held) > 0.9
