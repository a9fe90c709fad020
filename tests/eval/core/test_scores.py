"""AUC, R2, ROC curves and bootstrap by unit, against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.eval.core.scores import auc, bootstrap, r2, ranks, roc, spread


def area(scores: list[float], positive: list[float], weights: list[float] | None = None) -> float:
    weight = None if weights is None else np.array(weights)
    return auc(ranks(np.array(scores)), np.array(positive), weight)


def test_auc_is_the_share_of_pairs_in_order() -> None:
    # positives 0.8 and 0.3 against negatives 0.5 and 0.1: 3 of 4 pairs are in order
    assert area([0.8, 0.5, 0.3, 0.1], [1, 0, 1, 0]) == 0.75


def test_a_tie_counts_half() -> None:
    assert area([0.5, 0.5, 0.1], [1, 0, 0]) == (0.5 + 1) / 2
    assert area([0.5, 0.5, 0.5], [1, 0, 1]) == 0.5


def test_a_weight_is_so_many_equal_rows() -> None:
    assert area([0.8, 0.5, 0.3, 0.1], [1, 0, 1, 0], [1, 2, 3, 1]) == area(
        [0.8, 0.5, 0.5, 0.3, 0.3, 0.3, 0.1], [1, 0, 0, 1, 1, 1, 0]
    )


def test_auc_of_one_class_is_no_number() -> None:
    assert np.isnan(area([0.1, 0.2], [1, 1]))


def test_r2_by_hand() -> None:
    truth = np.array([1.0, 2.0, 3.0])  # spread 2
    assert r2(np.array([1.0, 2.0, 4.0]), truth) == pytest.approx(1 - 1 / 2)
    assert r2(truth, truth) == 1
    assert r2(np.full(3, 2.0), truth) == 0
    assert np.isnan(r2(truth, np.full(3, 7.0)))


def test_roc_goes_through_its_corners() -> None:
    curve = roc(np.array([0.9, 0.8, 0.4, 0.2]), np.array([1.0, 0.0, 1.0, 0.0]))
    at = dict(zip(curve["fpr"], curve["tpr"], strict=True))
    assert len(curve["fpr"]) == 101
    assert at[0.0] == 0.5 and at[0.25] == 0.5 and at[0.51] == 1 and at[1.0] == 1


def test_bootstrap_keeps_rows_of_a_unit_together() -> None:
    units = np.array([3, 8, 3, 8, 5])
    rng = np.random.default_rng(0)
    draws = bootstrap(lambda w: [w[0] - w[2], w[1] - w[3], w[0] + w[1] + w[4]], units, rng)
    assert (draws[:, :2] == 0).all()
    assert (draws[:, 2] == 3).all()  # as many units as there are


def test_the_spread_of_a_mean_is_its_standard_error() -> None:
    values = np.random.default_rng(1).normal(size=400)
    draws = bootstrap(lambda w: [float((w * values).sum() / w.sum())], np.arange(400),
                      np.random.default_rng(2))  # fmt: skip
    assert spread(draws[:, 0]) == pytest.approx(values.std() / 20, rel=0.2)


def test_draws_that_gave_no_number_are_left_out_of_the_spread() -> None:
    assert spread(np.array([1.0, np.nan, 3.0])) == pytest.approx(np.sqrt(2))
    assert spread(np.array([np.nan, 2.0])) == 0
