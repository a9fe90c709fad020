"""Small areas: merged by noisy numbers alone, or drawn together; intervals hold on average."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import RowSums
from dpsynth.stats import StatisticsRequest, fieller
from dpsynth.stats.means import merged, shrunk
from dpsynth.stats.statistic import FINE

Z = 1.959964


def answered(small: Any, numbers: list[int], means: list[float]) -> Any:
    """The table of a mean by age groups, from answers without noise."""
    entry = {"name": "m", "mean": "sbp", "by": [{"age": [30, 45, 60, 75]}]}
    entry |= {} if small is None else {"small": small}
    request = StatisticsRequest.from_dict({"schema": "demo", "statistics": [entry]})
    plan = request.plan(epsilon=1, delta=1e-6)
    sums = np.rint(np.array(numbers) * np.array(means) * FINE).astype(np.int64)
    answers = {"m: numbers": [np.array(numbers)], "m: sums": [sums]}
    (result,) = request.results(answers, {event.name: event for event in plan.events})
    return result.table, plan


NUMBERS, MEANS = [5000, 4000, 300, 6000, 100], [0.0, 0.1, -0.5, 0.05, 0.9]


def test_small_areas_are_merged_by_what_is_public() -> None:
    table, _ = answered({"merge": 1000}, NUMBERS, MEANS)
    plain, _ = answered(None, NUMBERS, MEANS)
    assert len(plain) == 5 and len(table) == 4
    assert table["age"].tolist()[-1] == "together: 45 to below 60; 75 or more"
    assert table["number"].tolist() == [5000, 4000, 6000, 400]
    middle, half = 150.0, 90.0  # of the bounds 60 and 240
    assert table["mean"].iloc[-1] == pytest.approx(middle + half * (-150 + 90) / 400, rel=0.01)
    for left, right in zip(plain["mean"][[0, 1, 3]], table["mean"], strict=False):
        assert left == right
    assert len(answered({"merge": 200}, NUMBERS, MEANS)[0]) == 5  # one alone stays what it is
    assert merged(np.array([5.0, 6.0]), 10.0).tolist() == [0, 0]


def test_small_areas_are_drawn_further_than_large_ones() -> None:
    table, plan = answered("shrink", NUMBERS, MEANS)
    plain, _ = answered(None, NUMBERS, MEANS)
    assert table["own weight"].between(0, 1).all()
    order = np.argsort(NUMBERS)
    own = table["own weight"].to_numpy()[order]
    assert (np.diff(own) >= 0).all() and own[0] < own[1] < own[-1]
    moved = (table["mean"] - plain["mean"]).to_numpy()
    assert moved[2] > 0 > moved[4] and (np.abs(moved[[0, 1, 3]]) < 0.5).all()
    twin, _ = answered("shrink", NUMBERS, MEANS)
    assert twin.equals(table)  # from the answers alone, again
    assert all(isinstance(event, RowSums) for event in plan.events)


@pytest.mark.parametrize("spread", [0.0, 0.2])
def test_intervals_hold_on_average_over_the_areas(spread: float) -> None:
    rng, held, errors = np.random.default_rng(4), [], []
    for _ in range(60):
        n = np.ceil(rng.lognormal(4, 1.2, 30))
        true = np.clip(rng.normal(-0.3, spread, 30) + rng.normal(0, 0.3, 30) / n**0.5, -1, 1)
        noisy, sums = n + rng.normal(0, 10, 30), n * true + rng.normal(0, 10, 30)
        found, lower, upper, _ = shrunk(noisy, sums, 10, 10, Z, 1)
        own, _, _ = fieller(sums, noisy, 10, 10, Z)
        held.append(np.mean((lower <= true) & (true <= upper)))
        errors.append([np.mean((one - true) ** 2) for one in (found, own)])
    assert np.mean(held) > 0.93
    drawn, alone = np.mean(errors, axis=0)
    assert drawn < 0.6 * alone


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ({"small": "drop"}, "either shrink, or"),
        ({"small": {"merge": True}}, "either shrink, or"),
        ({"small": {"merge": 0}}, "either shrink, or"),
        ({"small": "shrink", "by": ["sex"]}, "4 cells at least"),
        ({"small": {"merge": 10}, "by": ["sex", "ward"]}, "exactly one column"),
    ],
)
def test_what_cannot_be_done_is_refused(entry: dict[str, Any], words: str) -> None:
    asked = {"name": "m", "mean": "sbp", "by": ["ward"]} | entry
    with pytest.raises(InputError, match=words):
        StatisticsRequest.from_dict({"schema": "demo", "statistics": [asked]})
