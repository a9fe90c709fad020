"""P20: row epsilon sold as patient epsilon. A unit counts with all its rows, k identical ones too.

The check: how far one unit can move the joint counts is within the sensitivity that was accounted,
and the true divergence between the releases with and without that unit is within the claim.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpsynth.errors import InputError
from dpsynth.privacy import (
    JointHistograms,
    PrivacyBudget,
    PrivacyPlan,
    SeededEntropy,
    Share,
    joint_histograms,
)
from dpsynth.privacy.accounting import delta
from dpsynth.privacy.events import UNDECIDED

from ..support.bare_counts import Rows, Silence

SIZES = (4, 3, 2)


def cohort(rows: int, spread: bool, units: int = 30) -> Rows:
    """Units of up to ``rows`` rows; the last has all of them: identical, or spread over codes."""
    rng = np.random.default_rng(8)
    codes = np.stack([rng.integers(0, size, (units, rows)) for size in SIZES], axis=-1)
    mask = np.arange(rows) < rng.integers(1, rows + 1, (units, 1))
    mask[-1] = True
    codes[-1] = np.arange(rows)[:, None] % np.array(SIZES) if spread else 1
    return Rows(codes.astype(np.uint16), mask)


def without_last(rows: Rows) -> Rows:
    return Rows(rows.codes[:-1], rows.mask[:-1])


def shift_of_one_unit(rows: Rows, event: JointHistograms) -> np.ndarray:
    bare = [
        np.concatenate(joint_histograms(each, SIZES, event, Silence(0)))
        for each in (rows, without_last(rows))
    ]
    return bare[0] - bare[1]


def true_delta(shift: np.ndarray, sigma: float, eps: float) -> float:
    """Divergence between noise and noise moved by ``shift``, cell losses convolved exactly."""
    edge = math.ceil(13 * sigma)
    z = np.arange(-edge, edge + 1)
    mass = np.exp(-(z**2) / (2 * sigma**2))
    mass /= mass.sum()
    law, reach = np.ones(1), 0
    for step in np.abs(shift[shift != 0]):
        spread = np.zeros(2 * int(step) * edge + 1)
        spread[:: int(step)] = mass
        law, reach = np.convolve(law, spread), reach + int(step) * edge
    loss = (float((shift**2).sum()) - 2 * np.arange(-reach, reach + 1)) / (2 * sigma**2)
    return float(np.sum(law * np.maximum(-np.expm1(np.minimum(eps - loss, 0)), 0)))


def claim_holds(shift: np.ndarray, event: JointHistograms, eps: float) -> bool:
    return true_delta(shift, event.sigma, eps) <= delta([event], eps)


@pytest.mark.parametrize("rows", [1, 2, 3, 5])
@pytest.mark.parametrize("spread", [False, True])
def test_one_unit_moves_the_counts_by_no_more_than_accounted(rows: int, spread: bool) -> None:
    event = JointHistograms("counts", len(SIZES), rows, 25.0)
    shift = shift_of_one_unit(cohort(rows, spread), event)
    length = float(np.sqrt((shift**2).sum()))
    assert length <= event.sensitivity + 1e-12
    assert np.abs(shift).sum() == rows * len(SIZES)
    if not spread:  # identical rows reach the bound: the sensitivity is not larger than needed
        assert length == pytest.approx(rows * math.sqrt(len(SIZES)))
    for eps in (0.1, 0.5, 2.0):
        assert claim_holds(shift, event, eps)


@pytest.mark.parametrize("rows", [2, 5])
def test_a_row_level_claim_is_caught(rows: int) -> None:
    """Broken twin: the noise and claim of one row per unit, for a unit of several."""
    row_level = JointHistograms("counts", len(SIZES), 1, 25.0)
    paid = JointHistograms("counts", len(SIZES), rows, 25.0)
    shift = shift_of_one_unit(cohort(rows, spread=False), paid)
    assert not claim_holds(shift, row_level, 0.1)
    with pytest.raises(InputError, match="accounts for 1 rows per unit"):
        joint_histograms(cohort(rows, spread=False), SIZES, row_level, SeededEntropy(1))


def test_row_epsilon_and_patient_epsilon() -> None:
    """The noise grows with the rows that a unit may bring, as fast as the shift does."""
    budget = PrivacyBudget(1.0, 1e-6)
    sigma = {}
    for rows in (1, 2, 5, 10):
        share = Share(JointHistograms("counts", len(SIZES), rows, UNDECIDED), 1.0)
        event = PrivacyPlan.calibrate(budget, [share]).event("counts")
        assert isinstance(event, JointHistograms)
        sigma[rows] = event.sigma
    for rows in (2, 5, 10):
        assert sigma[rows] == pytest.approx(rows * sigma[1], rel=0.01)


def test_masked_rows_do_not_count() -> None:
    rows = cohort(3, spread=False)
    event = JointHistograms("counts", len(SIZES), 3, 25.0)
    hidden = Rows(rows.codes, rows.mask.copy())
    hidden.mask[-1] = False
    assert not shift_of_one_unit(hidden, event).any()


def test_columns_that_nobody_pays_for_are_refused() -> None:
    fewer = JointHistograms("counts", len(SIZES) - 1, 3, 25.0)
    with pytest.raises(InputError, match="accounts for 2 histograms"):
        joint_histograms(cohort(3, spread=True), SIZES, fewer, SeededEntropy(1))
