"""Codes within the bins of later rows: those of first rows, as far as noise hides their own."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models.histories.steps.first_rows import blended
from dpsynth.models.marginals import MergedBins

BIN_OF = np.array([0, 0, 0, 1, 1, 2], dtype=np.uint16)
LATER = MergedBins(BIN_OF, np.array([0.10, 0.10, 0.10, 0.30, 0.20, 0.20]))
FIRST = np.array([0.30, 0.00, 0.10, 0.30, 0.30, 0.00])


@pytest.mark.parametrize("noise", [0.0, 1e-3, 0.1, 10.0])
def test_shares_of_bins_stay(noise: float) -> None:
    found = blended(LATER, FIRST, noise)
    assert found.bin_shares == pytest.approx(LATER.bin_shares)
    assert np.array_equal(found.bin_of, BIN_OF)


def test_with_much_noise_codes_are_those_of_first_rows() -> None:
    found = blended(LATER, FIRST, 10.0).shares
    assert found == pytest.approx([0.225, 0.0, 0.075, 0.25, 0.25, 0.2], abs=1e-4)


def test_without_noise_codes_stay_but_for_those_that_no_first_row_has() -> None:
    found = blended(LATER, FIRST, 0.0).shares
    assert found == pytest.approx([0.15, 0.0, 0.15, 0.30, 0.20, 0.20])


def test_a_bin_that_no_first_row_has_keeps_its_codes() -> None:
    found = blended(LATER, np.zeros(6), 0.1)
    assert found.shares == pytest.approx(LATER.shares)
