"""Codes within a bin follow a threshold of another column, where the bins beside it show one."""

from __future__ import annotations

import numpy as np
import pytest

from dpsynth.models import Domain, Feature
from dpsynth.models.marginals import Binning, MergedBins, Products
from dpsynth.models.marginals.within_bins import NONE, Thresholds

PRESSURE = Feature("systolic", 50, 50, (1,) * 50)
LOW = Feature("hypotension", 2, 0)
DOMAIN = Domain((PRESSURE, LOW), 1000, 1)
PARTED = 2  # the bin of codes 20 .. 29, within which the threshold lies


def columns() -> tuple[MergedBins, ...]:
    """Five bins of ten codes that are alike, and two categories."""
    bins = MergedBins((np.arange(50) // 10).astype(np.uint16), np.full(50, 1 / 50))
    return bins, MergedBins(np.arange(2).astype(np.uint16), np.array([0.46, 0.54]))


def law(inside: float, slip: float = 0.0) -> Products:
    """Bins below have hypotension, those above have none; so much of the bin between has it."""
    shares = [1 - slip, 1 - slip, inside, slip, slip]
    tables = []
    for each, share in enumerate(shares):
        for low in (0, 1):
            bins = np.eye(5)[each]
            tables.append((0.2 * (share if low == 0 else 1 - share), [*bins, *np.eye(2)[low]]))
    weights = np.array([weight for weight, _ in tables])
    kept = weights > 0
    rows = np.array([row for _, row in tables], dtype=np.float32)
    return Products((5, 2), weights[kept] / weights.sum(), rows[kept])


def drawn(products: Products, rows: int = 40_000, *, even: bool = True) -> np.ndarray:
    """Codes of rows of a law."""
    rng = np.random.default_rng(1)
    binning = Binning(DOMAIN, columns()).following(products, rng)
    again = Binning.restore(DOMAIN, binning.arrays())
    return again.refine(products.draw(rows, rng), rng, even=even)


@pytest.mark.parametrize("even", [True, False])
def test_codes_on_the_wrong_side_of_a_threshold_do_not_occur(even: bool) -> None:
    codes = drawn(law(0.3), even=even)
    low, pressure = codes[:, 1] == 0, codes[:, 0]
    assert (pressure[low] < 23).all() and (pressure[~low] >= 23).all()
    shares = np.bincount(pressure, minlength=50) / len(codes)
    assert np.abs(shares - 1 / 50).max() < (0.001 if even else 0.006)


def test_a_bin_without_a_threshold_is_drawn_as_before() -> None:
    """The share falls from bin to bin: the sides of the middle one overlap by far more."""
    smooth = law(0.5, slip=0.2)
    found = Thresholds.of(smooth, DOMAIN, columns())
    assert (found.partners == NONE).all()
    codes = drawn(smooth)
    low = codes[:, 1] == 0
    assert (codes[low, 0] > 25).any() and (codes[~low, 0] < 25).any()


def test_the_part_below_has_the_rows_of_its_values() -> None:
    found = Thresholds.of(law(0.3, slip=0.01), DOMAIN, columns())
    assert np.flatnonzero(found.partners != NONE).tolist() == [PARTED]
    assert found.partners[PARTED] == 1
    assert found.below[PARTED] == pytest.approx(0.3, abs=1e-6)
    assert found.lower[PARTED, :2].tolist() == [1, 0]


def test_the_ends_of_a_column_are_not_cut() -> None:
    found = Thresholds.of(law(0.3), DOMAIN, columns())
    assert found.partners[0] == found.partners[4] == NONE
    assert (found.partners[5:] == NONE).all()  # categories have no order


def test_shapes_follow_from_the_numbers_of_bins_alone() -> None:
    some, none = Thresholds.of(law(0.3), DOMAIN, columns()), Thresholds.none((5, 2))
    for name, array in some.arrays().items():
        assert array.shape == none.arrays()[name].shape
        assert array.dtype == none.arrays()[name].dtype
