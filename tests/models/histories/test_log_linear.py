"""The network of a wide table's steps follows released pairs as far as noise lets them be seen."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models.histories.steps import log_linear
from dpsynth.models.histories.steps.log_linear import PRIOR, Expected, fitted_network, root_of
from dpsynth.models.marginals import MergedBins, Products, Target

GIVEN, SIZES = 2, (2, 2, 2)
FOLLOWS = np.array([[0.9, 0.6], [0.4, 0.1]])  # share of code 0, by both columns before


NOTHING = np.zeros((2, 6))


def drawn(sd: float, monkeypatch: pytest.MonkeyPatch, weights: np.ndarray = NOTHING) -> np.ndarray:
    """Fit to the pairs of a column that follows from two; return shares of 0 by both."""
    for name, value in (("ROWS", 4_000), ("STEPS", 240), ("RATE", 0.05)):
        monkeypatch.setattr(log_linear, name, value)
    joint = np.stack([FOLLOWS, 1 - FOLLOWS], axis=2) / 4
    pairs, known = np.zeros((6, 6)), np.full((6, 6), np.inf)
    pairs[:2, 4:], pairs[2:4, 4:] = joint.sum(axis=1), joint.sum(axis=0)
    known[:4, 4:] = sd
    one = np.array([0.5, 0.5, 0.5, 0.5, *joint.sum(axis=(0, 1))])
    target = Target(SIZES, one, np.full(6, 1e-4), pairs, known)
    even = Products(SIZES, np.ones(1), one[None].astype(np.float32))
    bins = [MergedBins(np.arange(2, dtype=np.uint16), one[at : at + 2]) for at in (0, 2, 4)]
    expected = Expected(GIVEN, (0, 0, 0), (), {}, weights)
    network = fitted_network(
        even, target, bins, expected, lambda network: np.empty((0, 0)), np.random.default_rng(0)
    )
    rows = np.repeat([[0, 0], [0, 1], [1, 0], [1, 1]], 20_000, axis=0)
    after = network.draw_after(rows, np.random.default_rng(1))[:, 0]
    return np.asarray((after == 0).reshape(2, 2, -1).mean(axis=2))


def test_pairs_that_are_known_well_are_followed_by_both_columns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert drawn(1e-4, monkeypatch) == pytest.approx(FOLLOWS, abs=0.05)


def test_pairs_that_noise_hides_move_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(1.0, monkeypatch) == pytest.approx(np.full((2, 2), FOLLOWS.mean()), abs=0.02)


def test_what_is_expected_stays_where_noise_hides_a_pair(monkeypatch: pytest.MonkeyPatch) -> None:
    """And gives way to what is known well."""
    expected = np.array([[1.0, -1.0, 0.0, 0.0, 0.0, 0.0], [-1.0, 1.0, 0.0, 0.0, 0.0, 0.0]])
    found = drawn(1.0, monkeypatch, expected)
    odds = np.log(found / (1 - found))
    assert odds[0] - odds[1] == pytest.approx(4.0, abs=0.3)
    assert found.mean() == pytest.approx(FOLLOWS.mean(), abs=0.03)
    assert drawn(1e-4, monkeypatch, expected) == pytest.approx(FOLLOWS, abs=0.05)


def test_numbers_of_rows_go_together_but_for_the_last_row() -> None:
    """Of what remains, no row is apart from some rows; elsewhere neighbours are alike."""
    bins = [MergedBins(np.arange(5, dtype=np.uint16), np.full(5, 0.2)) for _ in range(4)]
    root = root_of(PRIOR, bins, [5] * 4, (0, 1, 2)).double().numpy()
    correlation = root @ root.T
    assert np.diagonal(correlation) == pytest.approx(np.ones(20), abs=1e-5)
    rows, remaining, other = (correlation[at : at + 5, at : at + 5] for at in (0, 10, 15))
    assert rows[0, 1] > rows[0, 4] > 0.7 > 0.5 > other[0, 1]
    assert np.abs(remaining[0, 1:]).max() < 1e-6
    assert remaining[1:, 1:] == pytest.approx(rows[1:, 1:], abs=1e-5)
