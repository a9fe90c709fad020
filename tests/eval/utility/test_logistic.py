"""Logistic regression against 2x2 tables, sklearn and hand-made equations."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.eval.utility.learners import Logistic, least_squares


def two_by_two(a: int, b: int, c: int, d: int) -> tuple[np.ndarray, np.ndarray]:
    """Exposed with and without the outcome (a, b), not exposed with and without it (c, d)."""
    exposed = np.repeat([1.0, 1.0, 0.0, 0.0], [a, b, c, d])
    return exposed[:, None], np.repeat([1.0, 0.0, 1.0, 0.0], [a, b, c, d])


def test_log_odds_ratio_and_its_error_of_a_2x2_table() -> None:
    matrix, truth = two_by_two(30, 70, 20, 180)
    fit = Logistic.fit(matrix, truth)
    assert fit.coefficients[1] == pytest.approx(np.log(30 * 180 / (70 * 20)), rel=1e-5)
    assert fit.coefficients[0] == pytest.approx(np.log(20 / 180), rel=1e-5)
    error = np.sqrt(1 / 30 + 1 / 70 + 1 / 20 + 1 / 180)
    assert fit.errors(matrix, truth)[1] == pytest.approx(error, rel=1e-5)


def test_robust_errors_are_the_same_where_each_row_is_a_unit_of_a_saturated_model() -> None:
    matrix, truth = two_by_two(30, 70, 20, 180)
    fit = Logistic.fit(matrix, truth)
    robust = fit.errors(matrix, truth, np.arange(len(truth)))
    assert robust == pytest.approx(fit.errors(matrix, truth), rel=1e-4)


def test_rows_written_twice_tell_no_more_when_they_are_one_unit() -> None:
    matrix, truth = two_by_two(30, 70, 20, 180)
    once = Logistic.fit(matrix, truth).errors(matrix, truth)
    matrix, truth = np.tile(matrix, (2, 1)), np.tile(truth, 2)
    twice = Logistic.fit(matrix, truth)
    assert twice.errors(matrix, truth) == pytest.approx(once / np.sqrt(2), rel=1e-4)
    units = np.tile(np.arange(300), 2)
    assert twice.errors(matrix, truth, units) == pytest.approx(once, rel=1e-4)


def test_the_ridge_is_that_of_scikit_learn() -> None:
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(3)
    matrix = rng.normal(size=(300, 4))
    truth = (rng.random(300) < 1 / (1 + np.exp(-matrix[:, 0] + 0.5))).astype(float)
    peer = LogisticRegression(C=1.0, tol=1e-10, max_iter=1000).fit(matrix, truth)
    fit = Logistic.fit(matrix, truth, ridge=1.0)
    assert fit.coefficients[1:] == pytest.approx(peer.coef_[0], abs=1e-5)
    assert fit.coefficients[0] == pytest.approx(peer.intercept_[0], abs=1e-5)
    assert fit.predict(matrix) == pytest.approx(peer.predict_proba(matrix)[:, 1], abs=1e-5)


def test_scores_by_group_sum_to_nothing_at_the_maximum() -> None:
    matrix, truth = two_by_two(5, 7, 11, 3)
    fit = Logistic.fit(matrix, truth)
    by_group = fit.scores(matrix, truth, np.arange(26) % 4)
    assert by_group.shape == (4, 2)
    assert by_group.sum(axis=0) == pytest.approx(np.zeros(2), abs=1e-3)


def test_separated_classes_do_not_stop_the_fit() -> None:
    matrix, truth = two_by_two(20, 0, 0, 20)
    fit = Logistic.fit(matrix, truth)
    assert np.isfinite(fit.coefficients).all()
    assert np.abs(fit.predict(matrix) - truth).max() < 0.01


def test_least_squares_by_the_normal_equations() -> None:
    rng = np.random.default_rng(4)
    matrix, truth = rng.normal(size=(50, 3)) + 5, rng.normal(size=50)
    wide = np.column_stack([np.ones(50), matrix])
    by_hand = np.linalg.solve(wide.T @ wide + np.diag([0, 2.0, 2, 2]), wide.T @ truth)
    assert least_squares(matrix, truth, 2.0) == pytest.approx(by_hand)
