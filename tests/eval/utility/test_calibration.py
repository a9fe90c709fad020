"""Calibration error, against bins worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.eval.utility.tstr import calibration_error, equal_bins, reliability


def test_calibration_error_by_hand() -> None:
    scores = np.array([0.1, 0.1, 0.1, 0.1, 0.6, 0.6])
    positive = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 0.0])
    bins = equal_bins(scores)
    # bins {0.1: 1 of 4} and {0.6: 1 of 2}: 4/6 |0.1 - 0.25| + 2/6 |0.6 - 0.5|
    assert calibration_error(scores, positive, bins) == pytest.approx(4 / 6 * 0.15 + 2 / 6 * 0.1)
    assert reliability(scores, positive) == [
        {"predicted": pytest.approx(0.1), "observed": 0.25, "n": 4},
        {"predicted": pytest.approx(0.6), "observed": 0.5, "n": 2},
    ]


def test_a_weight_is_so_many_equal_rows() -> None:
    scores, positive, bins = np.array([0.2, 0.9]), np.array([1.0, 1.0]), np.array([0, 1])
    weighted = calibration_error(scores, positive, bins, np.array([3.0, 1.0]))
    assert weighted == pytest.approx((3 * 0.8 + 0.1) / 4)


def test_bins_hold_equally_many_rows() -> None:
    scores = np.random.default_rng(0).random(1000)
    assert np.bincount(equal_bins(scores)).tolist() == [100] * 10


def test_true_risks_are_calibrated_and_doubled_ones_are_not() -> None:
    rng = np.random.default_rng(1)
    risk = rng.uniform(0, 0.5, 40_000)
    positive = (rng.random(40_000) < risk).astype(float)
    assert calibration_error(risk, positive, equal_bins(risk)) < 0.01
    assert calibration_error(2 * risk, positive, equal_bins(risk)) == pytest.approx(0.25, abs=0.01)


def test_a_constant_score_is_one_bin() -> None:
    assert reliability(np.full(4, 0.3), np.array([0.0, 1, 0, 0])) == [
        {"predicted": pytest.approx(0.3), "observed": 0.25, "n": 4}
    ]
