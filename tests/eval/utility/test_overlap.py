"""Overlap of intervals, and the terms that a table can tell."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsynth.eval.core.estimate import Z
from dpsynth.eval.utility.effects import Wald, estimable, overlap


def wald(*terms: tuple[float, float]) -> Wald:
    """Make terms from the ends of their intervals."""
    low, high = np.array(terms).T
    return Wald((low + high) / 2, (high - low) / (2 * Z), np.zeros((0, len(terms))))


def test_overlap_by_hand() -> None:
    # [0, 2] and [1, 5]: 1 of 2 and 1 of 4; [0, 1] in [-1, 3]: 1 of 1 and 1 of 4; apart
    a, b = wald((0, 2), (0, 1), (0, 1)), wald((1, 5), (-1, 3), (2, 3))
    assert overlap(a, b) == pytest.approx([(1 / 2 + 1 / 4) / 2, (1 + 1 / 4) / 2, 0])


def test_a_term_that_one_table_cannot_tell_counts_as_apart() -> None:
    lost = Wald(np.array([np.nan]), np.array([np.nan]), np.zeros((0, 1)))
    assert overlap(wald((0, 1)), lost).tolist() == [0]
    assert lost.interval(0) == {"value": None, "low": None, "high": None}


def test_an_interval_is_of_ratios() -> None:
    shown = wald((0.0, 2.0)).interval(0)
    assert shown["low"] == pytest.approx(1) and shown["high"] == pytest.approx(np.exp(2), rel=1e-5)
    assert shown["value"] == pytest.approx(np.exp(1), rel=1e-5)


def test_the_overlap_without_a_group_uses_the_shifted_values() -> None:
    a = Wald(np.array([0.0]), np.array([1.0]), np.array([[5.0]]))
    b = Wald(np.array([0.0]), np.array([1.0]), np.array([[5.0 + Z]]))
    assert overlap(a, b) == pytest.approx([1])
    assert overlap(a, b, 0) == pytest.approx([0.5])


ends = st.tuples(st.floats(-5, 5), st.floats(0.01, 5)).map(lambda pair: (pair[0], sum(pair)))


@given(ends, ends)
def test_overlap_is_symmetric_and_between_0_and_1(a: tuple[float, float], b: tuple[float, float]):
    one, other = overlap(wald(a), wald(b))[0], overlap(wald(b), wald(a))[0]
    assert one == pytest.approx(other) and 0 <= one <= 1 + 1e-9
    assert overlap(wald(a), wald(a))[0] == pytest.approx(1)


def test_rare_constant_and_repeated_terms_are_left_out() -> None:
    rng = np.random.default_rng(0)
    outcome = (np.arange(400) % 2).astype(float)
    common = (rng.random(400) < 0.5).astype(float)
    rare = np.zeros(400)
    rare[:18] = 1  # nine with the outcome, nine without
    number = rng.normal(size=400)
    matrix = np.column_stack(
        [common, rare, number, np.zeros(400), 1 - common, number + common, np.ones(400)]
    )
    terms = estimable(matrix, outcome)
    assert terms.tolist() == [True, False, True, False, False, False, False]
    rare[18:20] = 1  # ten of each
    assert estimable(matrix[:, :0], outcome).tolist() == []
    assert estimable(np.column_stack([rare]), outcome).tolist() == [True]
