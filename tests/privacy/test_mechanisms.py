"""Joint histograms: counts by hand, masks, refusals before noise, and the noise that is added."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpsynth.errors import InputError
from dpsynth.privacy import JointHistograms, OsEntropy, PaidEntropy, SeededEntropy, joint_histograms
from dpsynth.privacy.events import UNDECIDED

from ..support.bare_counts import Rows, Silence

SIZES = (3, 2)
EVENT = JointHistograms("counts", histograms=2, rows_per_unit=2, sigma=4.0)
COHORT = Rows(
    codes=np.array([[[0, 1], [2, 1]], [[2, 0], [9, 9]], [[2, 1], [2, 1]]], np.uint16),
    mask=np.array([[True, True], [True, False], [True, True]]),
)


def test_counts_by_hand_and_masked_rows_never_count() -> None:
    source = Silence()
    first, second = joint_histograms(COHORT, SIZES, EVENT, source)
    assert first.tolist() == [1, 0, 4]
    assert second.tolist() == [1, 4]
    assert first.dtype == second.dtype == np.int64
    assert source.asked == [(4.0, 5)]  # one joint draw, at the event's own sigma


def test_each_cell_gets_its_own_discrete_noise() -> None:
    """Joint noise of 2000 releases: chi-square of its parts, correlations near 0."""
    source = SeededEntropy(11)
    exact = np.array([1, 0, 4, 1, 4])
    noise = (
        np.array(
            [np.concatenate(joint_histograms(COHORT, SIZES, EVENT, source)) for _ in range(2000)]
        )
        - exact
    )
    z = np.arange(-60, 61)
    mass = np.exp(-(z**2) / 32) / np.exp(-(z**2) / 32).sum()
    for cell in noise.T:
        observed = np.bincount(np.clip(cell, -8, 8) + 8, minlength=17)
        expected = 2000 * np.bincount(np.clip(z, -8, 8) + 8, weights=mass)
        assert stats.chisquare(observed, expected).pvalue > 1e-4
    apart = np.corrcoef(noise.T)[np.triu_indices(5, 1)]
    assert np.abs(apart).max() < 0.1


def test_counts_come_out_negative_too() -> None:
    empty = Rows(np.zeros((0, 2, 2), np.uint16), np.zeros((0, 2), bool))
    released = np.concatenate(
        joint_histograms(empty, (200, 200), EVENT, PaidEntropy([EVENT], OsEntropy()))
    )
    assert released.min() < 0 < released.max()


def change(**fields: Any) -> Rows:
    return Rows(**{"codes": COHORT.codes, "mask": COHORT.mask} | fields)


REFUSED = [
    (change(codes=COHORT.codes[0]), SIZES, EVENT, "units, rows, columns"),
    (change(mask=COHORT.mask[:2]), SIZES, EVENT, "units, rows, columns"),
    (change(mask=COHORT.mask.astype(int)), SIZES, EVENT, "mask is boolean"),
    (change(codes=COHORT.codes.astype(float)), SIZES, EVENT, "codes of a cohort are integers"),
    (change(codes=COHORT.codes.astype(int) - 1), SIZES, EVENT, "outside its column"),
    (COHORT, (2, 2), EVENT, "outside its column"),
    (COHORT, (3,), EVENT, "2 columns and 1 sizes"),
    (COHORT, (3, 0), EVENT, "at least one code"),
    (COHORT, SIZES, JointHistograms("counts", 3, 2, 4.0), "accounts for 3 histograms"),
    (COHORT, SIZES, JointHistograms("counts", 2, 1, 4.0), "accounts for 1 rows per unit"),
    (COHORT, SIZES, JointHistograms("counts", 2, 2, UNDECIDED), "not decided"),
]


@pytest.mark.parametrize(("cohort", "sizes", "event", "message"), REFUSED)
def test_what_the_event_does_not_account_for_is_refused_before_noise(
    cohort: Rows, sizes: tuple[int, ...], event: JointHistograms, message: str
) -> None:
    source = Silence()
    with pytest.raises(InputError, match=message):
        joint_histograms(cohort, sizes, event, source)
    assert source.asked == []


def test_messages_quote_no_code() -> None:
    with pytest.raises(InputError) as error:
        joint_histograms(change(codes=COHORT.codes + 7777), SIZES, EVENT, Silence())
    assert "777" not in str(error.value) and "778" not in str(error.value)
