"""Heaps and tails of numeric columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpsynth.eval.core import PairedTables, PartResult
from dpsynth.eval.fidelity.numbers import COMMONEST, heaping, tails

from ...support.evaluation_tables import BASIS, number, tables


def compared(field: dict[str, Any], *values: Any) -> PartResult:
    frames = [pd.DataFrame({"x": value}) for value in values]
    return heaping(PairedTables.of(tables([field], *frames), np.random.default_rng(0)))


def rounded(rows: int, seed: int, share: float, base: int = 10) -> np.ndarray:
    rng = np.random.default_rng(seed)
    values = np.clip(rng.normal(125, 20, rows), 61, 239).round()
    return np.where(rng.random(rows) < share, (values / base).round() * base, values).astype(int)


PRESSURE = number("x", 60, 240)


def test_a_rounding_habit_is_found_and_its_loss_is_measured() -> None:
    real, smooth = rounded(4000, 1, 0.6), rounded(4000, 2, 0.0)
    part = compared(PRESSURE, real, smooth, rounded(4000, 3, 0.6))
    heap = part.details["heaping"][0]
    assert heap["column"] == "x" and heap["base"] == 10
    assert heap["source"] == pytest.approx((real % 10 == 0).mean(), rel=1e-5)
    assert heap["synthetic"] == pytest.approx((smooth % 10 == 0).mean(), rel=1e-5)
    by_base = {h["base"]: abs(h["source"] - h["synthetic"]) for h in part.details["heaping"]}
    estimate = part.measures[0].estimate
    assert estimate.value == pytest.approx(np.mean(list(by_base.values())), rel=1e-4)
    assert estimate.reference is not None and estimate.reference < 0.05


def test_rounding_to_fives_and_thousands() -> None:
    assert compared(PRESSURE, rounded(4000, 1, 0.6, 5), [100]).details["heaping"][0]["base"] == 5
    income = np.random.default_rng(1).integers(1, 90_000, 5000)
    income[:3000] = (income[:3000] / 1000).round() * 1000
    part = compared(number("x", 0, 100_000), income, income)
    assert part.details["heaping"][0]["base"] == 1000
    assert part.measures[0].estimate.value == 0


def test_decimals_are_rounded_to_halves() -> None:
    field = number("x", 0, 20) | {"type": "number"}
    field["dpsynth"] = {"bounds_basis": BASIS, "step": 0.1}
    values = np.random.default_rng(1).uniform(0.1, 19.9, 3000).round(1)
    values[:1500] = (values[:1500] * 2).round() / 2
    (heap, *_) = compared(field, values, values).details["heaping"]
    assert heap["base"] == 0.5


def test_smooth_skewed_and_short_columns_have_no_heaps() -> None:
    rng = np.random.default_rng(1)
    assert not compared(PRESSURE, rounded(4000, 1, 0), [100]).details["heaping"]
    part = compared(number("x", 0, 14), np.minimum(rng.geometric(0.3, 4000), 14), [1])
    assert [heap["base"] for heap in part.details["heaping"]] in ([], [COMMONEST])
    assert not compared(number("x", 0, 9), [0, 5] * 500, [1]).details["heaping"]
    part = compared(number("x", 0, 9), [None] * 500, [1])
    assert not part.measures and part.notes


def test_values_read_as_the_bound_are_no_rounding() -> None:
    """Half of the values lie on the upper bound 240, a multiple of ten."""
    values = np.where(np.arange(4000) % 2, rounded(4000, 1, 0), 240)
    (heap,) = compared(PRESSURE, values, values).details["heaping"]
    assert heap["base"] == COMMONEST and heap["source"] == pytest.approx(0.5, abs=0.01)


def test_a_table_without_values_gives_no_figure() -> None:
    part = compared(PRESSURE, rounded(4000, 1, 0.6), [None] * 50)
    assert not part.measures
    assert part.details["heaping"][0]["synthetic"] is None


def test_tails_by_hand() -> None:
    """Percentiles 1 and 99 of 0 to 999 are 9 and 989: below lie 0.9 %, above 1 %."""
    field = number("x", 0, 999)
    source = pd.DataFrame({"x": range(1000)})
    drawn = pd.DataFrame({"x": [5] * 100 + [500] * 900})
    part = tails(PairedTables.of(tables([field], source, drawn), np.random.default_rng(0)))
    low, high = part.details["tails"]
    assert (low["tail"], low["quantile"], high["tail"], high["quantile"]) == (
        "low",
        0.01,
        "high",
        0.99,
    )
    assert (low["source"], low["synthetic"]) == (0.009, 0.1)
    assert (high["source"], high["synthetic"]) == (0.01, 0)
    assert part.measures[0].estimate.value == pytest.approx((0.091 + 0.01) / 2)


def test_a_tail_that_nobody_can_be_beyond_is_left_out() -> None:
    field = number("x", 0, 999)
    skewed = pd.DataFrame({"x": [0] * 500 + list(range(500))})
    part = tails(PairedTables.of(tables([field], skewed, skewed), np.random.default_rng(0)))
    assert [tail["tail"] for tail in part.details["tails"]] == ["high"]
    constant = pd.DataFrame({"x": [3] * 500})
    part = tails(PairedTables.of(tables([field], constant, constant), np.random.default_rng(0)))
    assert not part.measures and part.notes
