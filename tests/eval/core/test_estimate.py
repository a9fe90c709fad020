"""Estimates: numbers with their interval, size and references."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from dpsynth.eval.core import Estimate, about, jackknife_error


def test_the_jackknife_of_a_mean_is_its_standard_error() -> None:
    values = np.random.default_rng(0).normal(size=40)
    without = [np.delete(values, i).mean() for i in range(40)]
    assert jackknife_error(without) == pytest.approx(values.std(ddof=1) / math.sqrt(40))


def test_an_interval_stays_within_the_range_of_its_figure() -> None:
    estimate = about(0.02, 0.02, 10, minimum=0.0, maximum=1.0)
    assert (estimate.low, estimate.high) == (0.0, pytest.approx(0.02 + 1.96 * 0.02, rel=1e-4))


def test_json_holds_every_field() -> None:
    document = json.loads(json.dumps(Estimate(1 / 3, None, None, 7, reference=0.5).to_dict()))
    assert document == {
        "value": 0.333333,
        "low": None,
        "high": None,
        "n": 7,
        "reference": 0.5,
        "chance": None,
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": math.nan},
        {"reference": math.inf},
        {"low": 0.0},
        {"high": 1.0},
        {"n": 0},
    ],
)
def test_what_is_no_estimate_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="estimate"):
        Estimate(**{"value": 0.5, "low": None, "high": None, "n": 3, **wrong})  # type: ignore[arg-type]
